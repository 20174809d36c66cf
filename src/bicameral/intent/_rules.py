"""What can be seen of a request without a model: is it explicit, what is missing, which effects does it ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bicameral.errors import IntentError
from bicameral.tools import CHANGING, Effect, Registry, Tool

from ._words import STOP, says, stems, words

MAX_REQUEST = 4_000

_CONCRETE = re.compile(
    r"""[\w./-]+\.[A-Za-z]{2,5}\b     # a file name
      | [\w.+-]+@[\w-]+\.\w+          # an address
      | https?://\S+                  # a link
      | "[^"]+" | '[^']+' | “[^”]+”   # quoted text
      | \d                            # a number or a date
    """,
    re.VERBOSE,
)
_POINTERS = frozenset({"it", "this", "that", "them", "these", "those", "him", "her"})
_VAGUE = frozenset({"stuff", "thing", "things", "something", "somehow", "whatever", "usual", "etc"})


def checked_request(request: str) -> str:
    """The request without surrounding space; an IntentError if there is nothing in it to understand."""
    text = request.strip()
    if not text:
        raise IntentError("intent.empty", "the request is empty", fix="Say what you want done.")
    if len(text) > MAX_REQUEST:
        raise IntentError(
            "intent.too-long",
            f"the request has {len(text):,} characters",
            expected=f"at most {MAX_REQUEST:,}",
            fix="Put long material into a file and name the file.",
        )
    if any(ord(char) < 32 and char not in "\n\t" for char in text):
        raise IntentError("intent.control-characters", "the request holds control characters", fix="Remove them.")
    if not words(text):
        raise IntentError("intent.no-words", f"{text[:40]!r} holds no word", fix="Say what you want done.")
    return text


_VERBLESS = re.compile(
    r"""\b(?:the|my|a|an|this|that|these|those|his|her|our|your|unread|new|newest|last|latest|by|in|per|via|of|any
           |each|every|all|from|for|with|some|about|one)\s+(?:e-?)?mails?\b   # a mail, not: mail it
      | \b(?:e-?)?mails\b
      | \b(?:e-?)?mailed\b | \bsent\b | \bwrote\b | \btold\b             # what somebody did
      | \btell\s+me\b | \bsend\s+me\b(?!.*@)                            # an answer will do
    """,
    re.VERBOSE,
)


def asked_effects(request: str, registry: Registry) -> tuple[Effect, ...]:
    """The changes to the world that a request asks for, by the words that the tools declare."""
    said = _VERBLESS.sub(" ", request.lower())
    found = {tool.effect for tool in registry if tool.changes and says(said, _words_for(tool))}
    if _RECIPIENT.search(request):
        found.add("send")
    if _TARGET.search(request):
        found.add("write")
    return tuple(effect for effect in ("write", "send", "irreversible") if effect in found and effect in CHANGING)


def _words_for(tool: Tool) -> tuple[str, ...]:
    """What asks for a tool's effect. A program that describes itself is asked for by the name of its file alone.

    Its own words could be any, and then every request would ask for its effect. The file is named in the settings.
    """
    return (re.sub(r"[_-]+", " ", tool.toolbox.lower()),) if tool.self_described else tool.words


# An address that is not where something comes from is where something goes; likewise a file after `into`.
_RECIPIENT = re.compile(r"(?<!\bfrom )(?<!\bby )(?<!\bof )(?<![\w.+@-])[\w.+-]+@[\w-]+\.\w", re.IGNORECASE)
_TARGET = re.compile(r"(?:\b(?:into|as)|->|→)\s+(?:a\s+|the\s+|file\s+|new\s+)*[\w./-]*\w\.[a-z]{2,5}\b", re.IGNORECASE)

_TO_ADDRESS = re.compile(
    r"\b(?:send|mail|email|e-mail|forward|reply|tell|notify|write|report)\b.*@", re.IGNORECASE | re.DOTALL
)
_TO_FILE = re.compile(
    r"""\b(?:save|write|put|store|export|dump|append|add(?!\s+(?:up|together))|log)\b
        (?:(?!\.\s).)*?                                           # within the sentence
        \b(?:to|in|into|as|called|named|onto)\s+(?:a\s+|the\s+|file\s+|new\s+)*
        [\w./-]*\w\.[a-z]{2,5}\b""",
    re.IGNORECASE | re.VERBOSE,
)


_TO_CALENDAR = re.compile(
    r"""\b(?:add|put|create|book|schedule|enter|block|arrange|set\s+up)\b
        (?:(?!\.\s|\?).)*?                                        # within the sentence
        \b(?:event|appointment|calendar|reminder)s?\b""",
    re.IGNORECASE | re.VERBOSE,
)


def required_effects(request: str, asked: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """The changes without which a request is certainly not served: to an address, into a file, into the calendar."""
    certain: set[Effect] = set()
    if _TO_ADDRESS.search(request):
        certain.add("send")
    if _TO_FILE.search(request) or _TO_CALENDAR.search(request):
        certain.add("write")
    return tuple(effect for effect in asked if effect in certain)


def gaps(request: str) -> tuple[str, ...]:
    """Questions that nobody but the person can answer: a pointer to something that was never named."""
    said = words(request)
    named = [word for word in said if word not in STOP and word not in _POINTERS and word not in _VAGUE]
    if len(named) < 2 and not _CONCRETE.search(request):
        return (f"What exactly should be done? {request.strip()!r} does not say.",)
    first = next((i for i, word in enumerate(said) if word in _POINTERS), None)
    if first is not None and first <= 1 and len(said) > first + 1 and not _CONCRETE.search(request):
        return (f"What does {said[first]!r} refer to?",)
    return ()


def is_explicit(request: str, registry: Registry) -> bool:
    """Whether a request can go to Delta as it is: it names things, uses known words, and points at nothing unnamed."""
    said = words(request)
    if gaps(request) or set(said) & _VAGUE or len(said) > 60:
        return False
    known = set(stems(request)) & vocabulary(registry)
    return len(known) >= (1 if _CONCRETE.search(request) else 3)


def adds_names(told: str, request: str) -> bool:
    """Whether an account of a request names files, addresses, links or numbers that the request does not."""
    lower = request.lower()
    return any(found.group(0).lower() not in lower for found in _CONCRETE.finditer(told))


def vocabulary(registry: Registry) -> frozenset[str]:
    """The stems of everything the tools say about themselves."""
    return frozenset(word for tool in registry for word in tool_stems(tool.name, tool.doc, tool.words))


def tool_stems(name: str, doc: str, said: Iterable[str] = ()) -> frozenset[str]:
    return frozenset(stems(" ".join([name.replace("_", " "), doc, *said])))
