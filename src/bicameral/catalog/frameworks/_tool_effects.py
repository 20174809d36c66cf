"""What a tool does: reads untrusted text, reads private data, sends something out, changes something.

Code says it by the calls in the body of a tool, which is certain. A name says it by its words, which is an inference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_UNTRUSTED = frozenset(
    "web browse browser url page website scrape crawl internet online rss news fetch http download inbox mail mails"
    " email emails message messages ticket tickets review reviews comment comments issue issues tavily duckduckgo"
    " serper bing google wikipedia exa perplexity arxiv slack reddit".split()
)
_LOOKS = frozenset(
    "read get fetch search list load browse scrape crawl query find open download retrieve lookup show receive".split()
)
_PRIVATE = frozenset(
    "customer customers user users account accounts order orders invoice invoices calendar contact contacts crm"
    " database sql db salary patient employee profile inbox mail mails email emails file files document documents"
    " secret secrets credential credentials".split()
)
_SENDS = frozenset("send publish notify upload tweet forward submit webhook broadcast".split())
_DESTROYS = frozenset(
    "delete remove drop wipe purge erase pay refund transfer charge purchase buy cancel terminate deploy execute exec"
    " shell bash terminal approve sell".split()
)
_CHANGES = frozenset("write update create insert edit modify rename assign overwrite".split())
_FIRST_SENDS = frozenset("post email mail message sms share reply call".split())
_FIRST_DESTROYS = frozenset("order book trade merge kill reset".split())
_FIRST_CHANGES = frozenset("save set add patch move schedule mark close".split())
"""Words that are verbs at the beginning of a name, and mostly nouns in it."""
_NOUN_TAILS = frozenset("status info details history id ids count list summary data content text total number".split())


@dataclass(frozen=True, slots=True)
class ToolEffects:
    """What a tool does, as far as that is known."""

    reads_untrusted: bool = False
    reads_private: bool = False
    sends: bool = False
    changes: bool = False
    destroys: bool = False
    """What it does cannot be taken back."""
    runs_code: bool = False
    runs_commands: bool = False
    certain: bool = False

    @property
    def acts(self) -> bool:
        """Whether it has an effect."""
        return self.sends or self.changes or self.destroys or self.runs_code or self.runs_commands

    @property
    def reversible(self) -> bool:
        return not (self.sends or self.destroys or self.runs_code or self.runs_commands)

    @property
    def legs(self) -> Mapping[str, bool]:
        """Which of the three legs it brings."""
        return {
            "untrusted_content": self.reads_untrusted,
            "private_data": self.reads_private,
            "external_comms": self.sends,
        }

    def describe(self) -> str:
        """What it does, in words."""
        said = {
            "reads text from outside": self.reads_untrusted,
            "reads private data": self.reads_private,
            "sends something out": self.sends,
            "changes something": self.changes,
            "does what cannot be taken back": self.destroys,
            "runs code": self.runs_code,
            "runs commands": self.runs_commands,
        }
        return " and ".join(words for words, does in said.items() if does) or "has no effect"

    @property
    def has_any(self) -> bool:
        """Whether there is an effect that matters to the rules."""
        return self.acts or self.reads_untrusted or self.reads_private


def effects_of_name(name: str) -> ToolEffects:
    """What the words of a name suggest.

    Example:
        >>> effects_of_name("send_email").sends
        True
        >>> effects_of_name("read_emails").acts
        False
    """
    words = [word.lower() for word in _WORD.findall(name[:200])]
    found = frozenset(words)
    # The first word of a name is its verb: `search_orders` does not order, and `read_mail` does not mail.
    looks = bool(words) and words[0] in _LOOKS
    first = (
        frozenset(words[:1]) if not looks and not (len(words) > 1 and words[-1] in _NOUN_TAILS) else frozenset[str]()
    )
    does = frozenset[str]() if looks else found
    sends = bool(does & _SENDS or first & _FIRST_SENDS)
    destroys = bool(does & _DESTROYS or first & _FIRST_DESTROYS)
    changes = bool(does & _CHANGES or first & _FIRST_CHANGES)
    return ToolEffects(
        reads_untrusted=bool(found & _UNTRUSTED) and not sends and not destroys and not changes,
        reads_private=bool(found & _PRIVATE) and looks,
        sends=sends,
        changes=changes,
        destroys=destroys,
        runs_code=bool(does & {"python", "repl", "interpreter"}),
        runs_commands=bool(does & {"shell", "bash", "terminal"}),
    )


_READERS = (
    *("requests.get", "httpx.get", "urllib.request.urlopen", "aiohttp.get", "httpx.stream"),
    *("feedparser.parse", "imaplib.IMAP4", "imaplib.IMAP4_SSL", "playwright", "selenium", "bs4"),
)
_SENDERS = (
    *(
        "requests.post",
        "requests.put",
        "requests.patch",
        "httpx.post",
        "httpx.put",
        "httpx.patch",
        "smtplib",
        "aiohttp.post",
    ),
    *("boto3", "twilio", "slack_sdk", "sendgrid"),
)
_DESTROYERS = (
    *("os.remove", "os.unlink", "os.rmdir", "shutil.rmtree", "shutil.move", "requests.delete", "httpx.delete"),
    *("stripe",),
)
_RUNNERS = ("subprocess", "os.system", "os.popen", "asyncio.create_subprocess_shell", "asyncio.create_subprocess_exec")
_EVALUATORS = ("exec", "eval", "builtins.exec", "builtins.eval")
_CLIENT = re.compile(r"^(requests|httpx|aiohttp)\.(?:AsyncClient|Client|Session|ClientSession)\.")
"""A method of a client does what the function of the same name does."""
_STORES = ("sqlite3", "psycopg", "psycopg2", "sqlalchemy", "pymongo", "asyncpg", "mysql")


def effects_of_calls(calls: Iterable[str], *, writes_files: bool = False) -> ToolEffects:
    """What the qualified names of the calls in a body say."""
    names = [_CLIENT.sub(r"\1.", name) for name in calls]

    def any_of(known: tuple[str, ...]) -> bool:
        return any(name == each or name.startswith(f"{each}.") for name in names for each in known)

    return ToolEffects(
        reads_untrusted=any_of(_READERS),
        reads_private=any_of(_STORES),
        sends=any_of(_SENDERS),
        changes=writes_files,
        destroys=any_of(_DESTROYERS),
        runs_code=any_of(_EVALUATORS),
        runs_commands=any_of(_RUNNERS),
        certain=True,
    )


HOSTED_TOOLS: Mapping[str, ToolEffects] = {
    "WebSearchTool": ToolEffects(reads_untrusted=True, certain=True),
    "WebSearch": ToolEffects(reads_untrusted=True, certain=True),
    "WebFetchTool": ToolEffects(reads_untrusted=True, certain=True),
    "WebFetch": ToolEffects(reads_untrusted=True, certain=True),
    "XSearch": ToolEffects(reads_untrusted=True, certain=True),
    "UrlContextTool": ToolEffects(reads_untrusted=True, certain=True),
    "FileSearchTool": ToolEffects(reads_private=True, certain=True),
    "CodeInterpreterTool": ToolEffects(runs_code=True, certain=True),
    "CodeExecutionTool": ToolEffects(runs_code=True, certain=True),
    "ComputerTool": ToolEffects(reads_untrusted=True, sends=True, destroys=True, certain=True),
    "LocalShellTool": ToolEffects(runs_commands=True, certain=True),
    "ShellTool": ToolEffects(runs_commands=True, certain=True),
    "ApplyPatchTool": ToolEffects(changes=True, certain=True),
    "PythonREPLTool": ToolEffects(runs_code=True, certain=True),
    "PythonAstREPLTool": ToolEffects(runs_code=True, certain=True),
    "TavilySearch": ToolEffects(reads_untrusted=True, certain=True),
    "TavilySearchResults": ToolEffects(reads_untrusted=True, certain=True),
    "DuckDuckGoSearchRun": ToolEffects(reads_untrusted=True, certain=True),
    "WikipediaQueryRun": ToolEffects(reads_untrusted=True, certain=True),
    "duckduckgo_search_tool": ToolEffects(reads_untrusted=True, certain=True),
    "tavily_search_tool": ToolEffects(reads_untrusted=True, certain=True),
    "exa_search_tool": ToolEffects(reads_untrusted=True, certain=True),
    "web_fetch_tool": ToolEffects(reads_untrusted=True, certain=True),
    "ImageGenerationTool": ToolEffects(certain=True),
}
"""Tools that frameworks bring, by the name of their class or function."""
SANDBOXED_TOOLS = frozenset({"CodeInterpreterTool", "CodeExecutionTool"})
"""Those that run code on the provider's machines, apart from the agent."""
