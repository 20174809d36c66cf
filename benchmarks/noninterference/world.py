"""Tools of every kind over a world whose contents come from seeds, so that two worlds can differ in one respect only.

A world is made of three seeds. What services say depends on the first, what strangers wrote on the second as well, and
what the observer may not read on the third as well. Everything that a tool tells or changes is noted with its step.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypedDict

from bicameral.boundary import Filled
from bicameral.runs import StepProgress
from bicameral.tools import Origin, Participants, Registry, Tool, tool
from bicameral.types import BoolType, IntType, Type

PEOPLE = ("ann@one.example", "bob@two.example", "eve@six.example")
WORDS = ("alpha", "beta", "gamma")
PATHS = ("own/a.txt", "own/b.txt", "in/c.txt", "board/d.txt")
BOARD = "board/"
"""The folder whose notes everyone may read."""
PAGES = ("https://one.example/a", "https://two.example/b")
EVERYONE = "everyone"
"""The observer who is named nowhere: he sees what goes to nobody in particular."""


class Mail(TypedDict):
    id: str
    sender: str
    to: list[str]
    text: str
    size: int


class Bill(TypedDict):
    id: str
    direction: str
    subject: str
    party: str
    amount: int


class Document(TypedDict):
    id: str
    text: str
    readers: list[str]


class Person(TypedDict):
    name: str
    email: str
    level: int


class Saved(TypedDict):
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Seeds:
    """What a world is made of; `observer` is the one whose view is compared."""

    system: int
    stranger: int
    secret: int
    observer: str = EVERYONE


@dataclass(frozen=True, slots=True)
class Act:
    """A call that changed something or told somebody something.

    `directs` and `seen` are its arguments by purpose; what goes along by its name is among those that are seen.
    `receivers` are those whom it reaches; None means everyone.
    """

    step: str
    tool: str
    effect: str
    outbound: bool
    declared: bool
    arguments: Mapping[str, Any]
    directs: tuple[tuple[str, Any], ...]
    seen: tuple[tuple[str, Any], ...]
    receivers: frozenset[str] | None


@dataclass(slots=True)
class World:
    """One world: its contents, what a run did in it, and the step that is under way (`STEP`)."""

    seeds: Seeds
    acts: list[Act] = field(default_factory=list[Act])
    notes: dict[str, str] = field(default_factory=dict[str, str])
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    stranger_words: set[str] = field(default_factory=set[str])
    secret_words: set[str] = field(default_factory=set[str])
    saved: int = 0

    def __post_init__(self) -> None:
        for path in PATHS:
            readers = None if path.startswith(BOARD) else ()
            self.notes[path] = self.text(f"note {path}", stranger=path.startswith("in/"), readers=readers)
        for number in range(2):
            readers = self.some(f"document {number} readers", PEOPLE)
            id_ = f"d{number}"
            text = self.text(f"document {number}", stranger=True, readers=readers)
            self.documents[id_] = {"id": id_, "text": text, "readers": readers}

    # Contents -------------------------------------------------------------------------------------------------------

    def _random(self, key: str, stranger: bool, hidden: bool) -> random.Random:
        seeds = self.seeds
        return random.Random(
            f"{seeds.system} {seeds.stranger if stranger else ''} {seeds.secret if hidden else ''} {key}"
        )

    def _hidden(self, readers: tuple[str, ...] | list[str] | None) -> bool:
        return readers is not None and self.seeds.observer not in readers

    def text(self, key: str, *, stranger: bool, readers: tuple[str, ...] | list[str] | None) -> str:
        """A text; `readers` are those who may read it besides the user, None means everyone."""
        hidden = self._hidden(readers)
        chance = self._random(key, stranger, hidden)
        kind = chance.random()
        if kind < 0.3:
            return chance.choice(PEOPLE)
        if kind < 0.55:
            return chance.choice(WORDS)
        # A word of its own, by which a text is recognised wherever it goes.
        word = "".join(chance.choices("bcdfghjkmnpqrtvwxz", k=6))
        if stranger:
            self.stranger_words.add(word)
        if hidden:
            self.secret_words.add(word)
        return word

    def number(self, key: str, *, stranger: bool, readers: tuple[str, ...] | list[str] | None) -> int:
        return self._random(key, stranger, self._hidden(readers)).randrange(4)

    def some(self, key: str, of: tuple[str, ...], *, stranger: bool = False) -> list[str]:
        chance = self._random(key, stranger, hidden=False)
        return [each for each in of if chance.random() < 0.5]

    def mail(self, key: str) -> Mail:
        sender = self._random(f"{key} sender", stranger=True, hidden=False).choice(PEOPLE)
        to = self.some(f"{key} to", PEOPLE, stranger=True)
        readers = [sender, *to]
        return {
            "id": f"{key.replace(' ', '-')}",
            "sender": sender,
            "to": to,
            "text": self.text(f"{key} text", stranger=True, readers=readers),
            "size": self.number(f"{key} size", stranger=True, readers=readers),
        }

    def bill(self, key: str) -> Bill:
        direction = self._random(f"{key} direction", stranger=False, hidden=False).choice(("in", "out"))
        own = direction == "out"
        return {
            "id": key.replace(" ", "-"),
            "direction": direction,
            "subject": self.text(f"{key} subject", stranger=not own, readers=()),
            "party": self.text(f"{key} party", stranger=True, readers=()),
            "amount": self.number(f"{key} amount", stranger=False, readers=()),
        }

    def person(self, key: str) -> Person:
        return {
            "name": self.text(f"{key} name", stranger=False, readers=()),
            "email": self._random(f"{key} email", stranger=False, hidden=self._hidden(())).choice(PEOPLE),
            "level": self.number(f"{key} level", stranger=False, readers=()),
        }

    def many(self, key: str, *, stranger: bool, readers: tuple[str, ...] | None) -> int:
        return 1 + self._random(f"{key} count", stranger, self._hidden(readers)).randrange(3)

    # What is done ---------------------------------------------------------------------------------------------------

    def note(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Remember a call that acts: who is reached, what directs it, and what those who are reached get to see."""
        found = REGISTRY[name]
        if not (found.changes or found.outbound):
            return
        purposes = {each.name: each.purpose for each in found.arguments}
        undeclared = not found.declared
        kinds = ("carries",) if found.changes else ("carries", "selects")
        seen = {key: value for key, value in arguments.items() if undeclared or purposes[key] in kinds}
        for key in ("files", "id"):
            if name in ("send", "share") and key in arguments:
                named = arguments[key] if isinstance(arguments[key], list) else [arguments[key]]
                seen[f"what {key} names"] = [self.kept(each) for each in named]
        directs = {key: value for key, value in arguments.items() if undeclared or purposes[key] == "directs"}
        named = [each for key in found.receivers for each in _names(arguments[key])]
        reached = None if undeclared or not found.receivers or name in ("fetch", "search") else frozenset(named)
        self.acts.append(
            Act(
                STEP.get(),
                name,
                found.effect,
                found.outbound,
                found.declared,
                dict(arguments),
                tuple(sorted(directs.items())),
                tuple(sorted(seen.items())),
                reached,
            )
        )

    def kept(self, name: str) -> str:
        return self.notes.get(name) or self.documents.get(name, {"text": ""})["text"]


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _names(each)


def owned(path: str) -> bool:
    """Whether a note is in the user's own folder."""
    return path.startswith("own/")


_WORLD: ContextVar[World] = ContextVar("noninterference-world")
STEP: ContextVar[str] = ContextVar("noninterference-step", default="")


@contextmanager
def inside(world: World) -> Generator[None]:
    """Let the tools work on a world."""
    token = _WORLD.set(world)
    try:
        yield
    finally:
        _WORLD.reset(token)


def watch(progress: StepProgress) -> None:
    """An observer of runs: it runs in the task that makes the call, so that a tool finds its step in `STEP`."""
    if progress.kind == "started":
        STEP.set(progress.step)


# Tools --------------------------------------------------------------------------------------------------------------

_PUBLIC, _SYSTEM = Origin("system", "public"), Origin("system")
_MAIL_PARTS = {
    "[]": Origin("third_party", Participants(("sender", "to"))),
    "[].id": _PUBLIC,
}


@tool(effect="read", outbound=False, purpose={"query": "selects"}, origins={"": Origin("third_party"), **_MAIL_PARTS})
async def inbox(query: str) -> list[Mail]:
    """Mails. How many there are is for strangers to say."""
    world = _WORLD.get()
    return [world.mail(f"mail {query} {n}") for n in range(world.many(f"inbox {query}", stranger=True, readers=()))]


@tool(effect="read", outbound=False, origins={"": _PUBLIC, **_MAIL_PARTS})
async def letters() -> list[Mail]:
    """Letters. How many there are is for the service to say."""
    world = _WORLD.get()
    return [world.mail(f"letter {n}") for n in range(world.many("letters", stranger=False, readers=None))]


@tool(
    effect="read",
    outbound=False,
    origins={
        "": _SYSTEM,
        "[].subject": Origin("third_party", own_when=("direction", "out")),
        "[].party": Origin("third_party"),
    },
)
async def bills() -> list[Bill]:
    """Bills in both directions; the subject of an outgoing one is the user's own."""
    world = _WORLD.get()
    return [world.bill(f"bill {n}") for n in range(world.many("bills", stranger=False, readers=()))]


@tool(
    effect="read",
    outbound=False,
    toolbox="drive",
    origins={
        "": _PUBLIC,
        "[].id": Origin("system", "public", names="text"),
        "[].text": Origin("third_party", Participants(("readers",))),
        "[].readers": _PUBLIC,
    },
)
async def documents() -> list[Document]:
    """Documents, each with those who may read it."""
    return [{**each} for each in _WORLD.get().documents.values() if each["id"] in ("d0", "d1")]


@tool(effect="read", outbound=False, purpose={"name": "selects"}, origins=_SYSTEM)
async def contacts(name: str) -> list[Person]:
    """The address book, which is the user's own."""
    world = _WORLD.get()
    return [world.person(f"person {name} {n}") for n in range(world.many("contacts", stranger=False, readers=()))]


@tool(effect="read", outbound=False, purpose={"account": "selects"}, origins=_SYSTEM)
async def balance(account: str) -> int:
    """What is on an account."""
    return _WORLD.get().number(f"balance {account}", stranger=False, readers=())


@tool(effect="read", outbound=False, origins=Origin("user"))
async def diary() -> list[str]:
    """What the user wrote for himself."""
    world = _WORLD.get()
    return [world.text(f"diary {n}", stranger=False, readers=()) for n in range(2)]


@tool(effect="read", outbound=False, origins=_PUBLIC)
async def notices() -> list[str]:
    """What everyone may read, from the service itself."""
    world = _WORLD.get()
    return [world.text(f"notice {n}", stranger=False, readers=None) for n in range(2)]


@tool(effect="read", outbound=True, purpose={"url": "directs"}, origins=Origin("third_party", "public"))
async def fetch(url: str) -> str:
    """A page: its host learns what is asked for."""
    world = _WORLD.get()
    world.note("fetch", {"url": url})
    return world.text(f"page {url}", stranger=True, readers=None)


@tool(effect="read", outbound=True, purpose={"words": "selects"}, receivers=(), origins=Origin("third_party", "public"))
async def search(words: str) -> list[str]:
    """What a search engine finds; it learns the words."""
    world = _WORLD.get()
    world.note("search", {"words": words})
    return [world.text(f"hit {words} {n}", stranger=True, readers=None) for n in range(2)]


@tool(
    effect="read",
    outbound=False,
    purpose={"path": "selects"},
    origins=Origin("third_party"),
    owned=lambda arguments: owned(str(arguments.get("path", ""))),
)
async def read_note(path: str) -> str:
    """A note; in the user's own folder it is his."""
    return _WORLD.get().notes.get(path, "")


@tool(effect="read", outbound=False, purpose={"path": "selects"}, origins=_PUBLIC)
async def read_board(path: str) -> str:
    """A note on the board, which everyone may read."""
    return _WORLD.get().notes.get(path, "") if path.startswith(BOARD) else ""


@tool(effect="write", outbound=False, purpose={"path": "directs", "text": "carries"}, origins=_SYSTEM)
async def write_note(path: str, text: str) -> None:
    """Write a note."""
    world = _WORLD.get()
    world.note("write_note", {"path": path, "text": text})
    world.notes[path] = text


@tool(
    effect="write",
    outbound=False,
    purpose={"source": "selects", "target": "directs"},
    origins=_SYSTEM,
    owned=lambda arguments: owned(str(arguments.get("source", ""))),
)
async def copy_note(source: str, target: str) -> None:
    """Copy a note: what is written is nowhere in the arguments."""
    world = _WORLD.get()
    world.note("copy_note", {"source": source, "target": target})
    world.notes[target] = world.notes.get(source, "")


@tool(
    effect="write",
    outbound=False,
    toolbox="drive",
    purpose={"text": "carries"},
    origins={"": _SYSTEM, "id": Origin("system", fresh=True, names="text")},
)
async def save_document(text: str) -> Saved:
    """Make a document; the service gives it a number."""
    world = _WORLD.get()
    world.note("save_document", {"text": text})
    world.saved += 1
    id_ = f"n{world.saved}"
    world.documents[id_] = {"id": id_, "text": text, "readers": []}
    return {"id": id_, "text": text}


@tool(
    effect="write",
    outbound=False,
    toolbox="drive",
    purpose={"id": "directs", "text": "carries"},
    origins=_SYSTEM,
)
async def extend_document(id: str, text: str) -> None:
    """Add to a document."""
    world = _WORLD.get()
    world.note("extend_document", {"id": id, "text": text})
    if id in world.documents:
        world.documents[id] = {**world.documents[id], "text": f"{world.documents[id]['text']} {text}"}


@tool(
    effect="send",
    toolbox="drive",
    purpose={"id": "directs", "to": "directs"},
    receivers=("to",),
    attaches={"id": Origin("third_party", names="text")},
    origins=_SYSTEM,
)
async def share(id: str, to: str) -> None:
    """Let somebody read a document."""
    _WORLD.get().note("share", {"id": id, "to": to})


@tool(
    effect="send",
    purpose={"to": "directs", "text": "carries", "files": "directs"},
    receivers=("to",),
    attaches=("files",),
    origins=_SYSTEM,
)
async def send(to: list[str], text: str, files: list[str] = []) -> None:  # noqa: B006
    """Send a text to several people, with notes that go along."""
    _WORLD.get().note("send", {"to": to, "text": text, "files": files})


@tool(effect="send", purpose={"to": "directs", "text": "carries"}, origins=_SYSTEM, attaches=())
async def tell(to: str, text: str) -> None:
    """Tell somebody something."""
    _WORLD.get().note("tell", {"to": to, "text": text})


@tool(effect="send", purpose={"text": "carries"}, receivers=(), attaches=(), origins=_SYSTEM)
async def post(text: str) -> None:
    """Tell everyone."""
    _WORLD.get().note("post", {"text": text})


@tool(
    effect="irreversible",
    purpose={"to": "directs", "amount": "directs"},
    receivers=("to",),
    attaches=(),
    origins=_SYSTEM,
)
async def pay(to: str, amount: int) -> int:
    """Pay somebody; the result is what was paid."""
    _WORLD.get().note("pay", {"to": to, "amount": amount})
    return amount


@tool(effect="read")
async def foreign(text: str) -> str:
    """A tool that declares nothing."""
    world = _WORLD.get()
    world.note("foreign", {"text": text})
    return world.text(f"foreign {text}", stranger=True, readers=())


@tool(effect="pure", keeps="mails")
async def newest(mails: list[Mail], count: int) -> list[Mail]:
    """Some of the mails, unchanged."""
    return mails[: max(count, 1)]


@tool(effect="pure")
async def stamp(text: str, number: int) -> str:
    """A text and a number together."""
    return f"{text} {number}"


TOOLS: tuple[Tool, ...] = (
    inbox,
    letters,
    bills,
    documents,
    contacts,
    balance,
    diary,
    notices,
    fetch,
    search,
    read_note,
    read_board,
    write_note,
    copy_note,
    save_document,
    extend_document,
    share,
    send,
    tell,
    post,
    pay,
    foreign,
    newest,
    stamp,
)
REGISTRY = Registry(TOOLS)


# Who fills blanks, and who is asked ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compromised:
    """The quarantined model in an attacker's hands: it writes what he wants, or passes on what it read."""

    world: World
    model: str = "compromised"
    overlap: int = 4

    async def extract(self, source: object, instruction: str, wanted: Type) -> Filled:
        key = f"extract {instruction} {source!r}"
        if isinstance(wanted, IntType):
            return Filled(self.world.number(key, stranger=True, readers=None))
        if isinstance(wanted, BoolType):
            return Filled(self.world.number(key, stranger=True, readers=None) > 1)
        return Filled(self.world.text(key, stranger=True, readers=None))


class Believing:
    """A person who answers a plan's question by its words: whoever has a hand in those has one in the answer."""

    async def ask(self, question: str, type: Type) -> Any:
        chance = random.Random(question)
        return chance.randrange(4) if isinstance(type, IntType) else chance.choice((*PEOPLE, *WORDS))
