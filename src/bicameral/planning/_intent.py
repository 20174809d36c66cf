"""What rules find in a request: the days it means, and the effects that it asks for.

Dates (`tomorrow`, `next Friday`, `March 15`) are resolved against a given day by `days`: weeks begin on Monday, a
weekday means the next such day (today does not count), `last Friday` the one before, and so does `Friday` where the
verb of its clause is in the past.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from typing import Any

from bicameral.days import named_days
from bicameral.errors import IntentError
from bicameral.labels import Labelled, open_labelled, vouched_value
from bicameral.planning._clause_orders import effects_in_clauses
from bicameral.planning._contents import without_contents
from bicameral.planning._effect_words import effects_in_words, has_declared_word, is_draft_only, ordering_text
from bicameral.planning._everyday_orders import effects_in_phrases
from bicameral.planning._intent_document import NamedDate
from bicameral.planning._language import guess_language
from bicameral.planning._lexicon import DELETABLE, DELETE_VERBS, TEXT_PARTS, noun_phrase, split_tokens
from bicameral.planning._target_orders import effects_in_targets
from bicameral.text import has_any_phrase, lazy_pattern, split_words, text_stems
from bicameral.tools import CHANGING, Effect, Registry, Tool


def named_dates(text: str, today: dt.date) -> tuple[NamedDate, ...]:
    """The phrases of a text that mean days, in order and without overlaps; times of day alone are not among them."""
    return tuple(
        NamedDate(phrase=named.phrase, start=named.start, end=named.end, assumed=named.assumed)
        for named in named_days(text, today)
        if named.names_day
    )


MAX_REQUEST = 4_000

CONCRETE = lazy_pattern(
    r"""[\w./-]+\.[A-Za-z]{2,5}\b     # a file name
      | [\w.+-]+@[\w-]+\.\w+          # an address
      | https?://\S+                  # a link
      | "[^"]+" | '[^']+' | “[^”]+”   # quoted text
      | \d                            # a number or a date
    """,
    re.VERBOSE,
)


def validate_request(request: str) -> str:
    """The request without surrounding space; an IntentError if it is empty, too long, or has no words."""
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
    if not split_words(text):
        raise IntentError("intent.no-words", f"{text[:40]!r} holds no word", fix="Say what you want done.")
    return text


def trusted_request_text(request: str | Labelled[str]) -> str:
    """The text of a request for the privileged planner; an untrusted request is refused.

    A plain text is the user's, unless it is recognised as one that an outcome released (`labels.laundered`). For a
    labelled text its label decides.
    """
    labelled = vouched_value(request) if isinstance(request, str) else request
    if not labelled.label.trusted:
        raise IntentError(
            "intent.needs-endorsement",
            "strangers had a hand in this request, and no plan is written from what they say",
            fix="Show it to a person with `agent.follow`, or let a strategy work on it: `agent.work`.",
        )
    return open_labelled(labelled)


_NOT_AN_ORDER = lazy_pattern(
    r"""\b(?:the|my|a|an|this|that|these|those|his|her|our|your|unread|new|newest|last|latest|by|in|per|via|of|any
           |each|every|all|from|for|with|some|about|one)\s+(?:e-?)?mails?\b   # a mail, not: mail it
      | \b(?:e-?)?mails\b
      | \b(?:e-?)?mailed\b | \bsent\b | \bwrote\b | \btold\b             # what somebody did
      | \btell\s+me\b | \bsend\s+me\b(?!.*@)                            # an answer will do
    """,
    re.VERBOSE,
)


def asked_effects(request: str, registry: Registry) -> tuple[Effect, ...]:
    """The effects that a request asks for: by the words that the tools declare, and by verbs of four languages."""
    if guess_language(request) == "en":
        text = _NOT_AN_ORDER.sub(" ", ordering_text(request))
        # Lines and duplicates are removed from a text, which deletes nothing: those orders ask for no irreversible
        # effect.
        deleting = _NOT_AN_ORDER.sub(" ", ordering_text(_without_text_edits(request)))
        found = {
            tool.effect
            for tool in registry
            if tool.changes and has_any_phrase(deleting if tool.effect == "irreversible" else text, _effect_words(tool))
        }
    else:
        found = {tool.effect for tool in registry if tool.changes and has_declared_word(request, _effect_words(tool))}
        # An effect that no tool has is never allowed by a verb.
        found |= effects_in_words(request) & {tool.effect for tool in registry}
    found |= (effects_in_clauses(request) | effects_in_targets(request) | effects_in_phrases(request)) & {
        tool.effect for tool in registry
    }
    own = without_contents(request)
    # An address in a request for a draft says to whom the draft is addressed, and sends nothing.
    if _RECIPIENT.search(own) and not is_draft_only(request):
        found.add("send")
    if _TARGET.search(own):
        found.add("write")
    return tuple(effect for effect in ("write", "send", "irreversible") if effect in found and effect in CHANGING)


def _without_text_edits(request: str) -> str:
    """The request without the verbs that remove parts of a text: `remove` in "remove the empty lines of a.txt"."""
    tokens = split_tokens(request)
    parts: list[str] = []
    kept = 0
    for place, token in enumerate(tokens):
        verb_end = place
        if token.lower == "rid" and place and tokens[place - 1].lower in ("get", "getting", "got"):
            verb_end = place + 1 if place + 1 < len(tokens) and tokens[place + 1].lower == "of" else place
        elif token.lower not in DELETE_VERBS:
            continue
        # A deletable thing among the words wins: "the duplicate files" are files.
        phrase = {each.lower for each in noun_phrase(tokens, verb_end + 1)}
        if phrase & TEXT_PARTS and not phrase & DELETABLE:
            begin = tokens[place - 1].start if token.lower == "rid" else token.start
            parts.append(request[kept:begin])
            kept = tokens[verb_end].end
    return " ".join([*parts, request[kept:]])


def _effect_words(tool: Tool) -> tuple[str, ...]:
    """The words that ask for a tool's effect; for a program that describes itself, the name of its file alone.

    Its own words are untrusted: with common ones every request would ask for its effect. Settings name the file.
    """
    return (re.sub(r"[_-]+", " ", tool.toolbox.lower()),) if tool.self_described else tool.words


# An address that is not where something comes from is where something goes; likewise a file after `into`.
_RECIPIENT = lazy_pattern(r"(?<!\bfrom )(?<!\bby )(?<!\bof )(?<![\w.+@-])[\w.+-]+@[\w-]+\.\w", re.IGNORECASE)
_TARGET = lazy_pattern(
    r"(?:\b(?:into|as)|->|→)\s+(?:a\s+|the\s+|file\s+|new\s+)*[\w./-]*\w\.[a-z]{2,5}\b", re.IGNORECASE
)

_TO_ADDRESS = lazy_pattern(
    r"\b(?:send|mail|email|e-mail|forward|reply|tell|notify|write|report)\b.*@", re.IGNORECASE | re.DOTALL
)
_TO_FILE = lazy_pattern(
    r"""\b(?:save|write|put|store|export|dump|append|add(?!\s+(?:up|together))|log)\b
        (?:(?!\.\s).)*?                                           # within the sentence
        \b(?:to|in|into|as|called|named|onto)\s+(?:a\s+|the\s+|file\s+|new\s+)*
        [\w./-]*\w\.[a-z]{2,5}\b""",
    re.IGNORECASE | re.VERBOSE,
)


_TO_CALENDAR = lazy_pattern(
    r"""\b(?:add|put|create|book|schedule|enter|block|arrange|set\s+up)\b
        (?:(?!\.\s|\?).)*?                                        # within the sentence
        \b(?:event|appointment|calendar|reminder)s?\b""",
    re.IGNORECASE | re.VERBOSE,
)

# The same in German, French and Spanish, where a verb of the tables orders to write.
_INTO_FILE = lazy_pattern(
    r"\b(?:in|nach|als|an|dans|sous|en|como|al?)\s+(?:(?:die|das|den|der|le|la|el|un|une|una|datei|fichier|archivo)\s+)*"
    r"[\w./-]*\w\.[a-z]{2,5}\b",
    re.IGNORECASE,
)
_INTO_CALENDAR = lazy_pattern(r"\b(?:kalender|agenda|calendrier|calendario)\b", re.IGNORECASE)


def required_effects(request: str, asked: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """The effects that a request certainly needs: to an address, into a file, into the calendar."""
    certain: set[Effect] = set()
    language, ordered = guess_language(request), effects_in_words(request)
    request = without_contents(request)
    if language != "en":
        if "send" in ordered and _RECIPIENT.search(request):
            certain.add("send")
        if "write" in ordered and (_INTO_FILE.search(request) or _INTO_CALENDAR.search(request)):
            certain.add("write")
    if _TO_ADDRESS.search(request):
        certain.add("send")
    if _TO_FILE.search(request) or _TO_CALENDAR.search(request):
        certain.add("write")
    return tuple(effect for effect in asked if effect in certain)


def tool_vocabulary(registry: Registry) -> frozenset[str]:
    """The stems of the names, descriptions and words of all tools."""
    return frozenset(word for tool in registry for word in tool_stems(tool.name, tool.doc, tool.words))


def tool_stems(name: str, doc: str, said: Iterable[str] = ()) -> frozenset[str]:
    return frozenset(text_stems(" ".join([name.replace("_", " "), doc, *said])))


def required_output(request: str, required: tuple[Effect, ...]) -> dict[str, Any]:
    """Where the result of a request certainly goes, as the document of an output; an answer if nothing says so."""
    language, request = guess_language(request), without_contents(request)
    if "send" in required:
        return {"kind": "mail", "to": [match.group().rstrip(".-") for match in _RECIPIENT_WHOLE.finditer(request)]}
    if "write" not in required:
        return {"kind": "answer"}
    into = _TO_FILE.search(request)
    if into is None and language != "en":
        into = _INTO_FILE.search(request)
    return {"kind": "calendar"} if into is None else {"kind": "file", "path": into.group().split()[-1]}


_RECIPIENT_WHOLE = lazy_pattern(
    r"(?<!\bfrom )(?<!\bby )(?<!\bof )(?<![\w.+@-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.IGNORECASE
)
