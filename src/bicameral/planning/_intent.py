"""The intent of a request: by rules alone where the request is explicit, and by a model (Echo) where it is not.

`Intent` is the versioned structure that a plan is compared with. Rules find dates, the effects that the request asks
for, and what is left open. Dates (`tomorrow`, `next Friday`, `March 15`) are
resolved against a given day: weeks begin on Monday, a weekday means the next such day (today does not count), `last
Friday` the one before.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Callable, Iterable, MutableMapping
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bicameral.errors import IntentError
from bicameral.labels import Labelled, open_labelled, vouched_value
from bicameral.models import Message, Provider
from bicameral.sessions import Listener, Session
from bicameral.text import ENGLISH_MONTH_NUMBERS, ENGLISH_WEEKDAYS, STOP_WORDS, has_any_phrase, split_words, text_stems
from bicameral.tools import CHANGING, Effect, Registry, Tool

INTENT_VERSION = "intent/1"


class IntentNode(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class IntentStep(IntentNode):
    """One thing to do, in a few words: `remove duplicates`, from or about what."""

    action: str
    about: str = ""


class NamedDate(IntentNode):
    """A phrase of the request that means a day or a range of days, and which."""

    phrase: str
    start: dt.date
    end: dt.date


class Intent(IntentNode):
    """A request, understood: versioned, readable, the only thing Delta plans from.

    `effects` are the changes to the world that the request speaks of, `required` those without which it is not served;
    `questions` are what must be answered first.
    """

    version: Literal["intent/1"] = INTENT_VERSION
    request: str
    task: str = ""
    steps: tuple[IntentStep, ...] = ()
    constraints: tuple[str, ...] = ()
    output: Literal["answer", "file", "mail", "calendar"] = "answer"
    effects: tuple[Effect, ...] = ()
    required: tuple[Effect, ...] = ()
    dates: tuple[NamedDate, ...] = ()
    questions: tuple[str, ...] = ()
    by: Literal["echo", "fast-path", "deterministic"] = "deterministic"

    def to_json(self) -> str:
        """Canonical JSON: the same intent is always the same bytes."""
        return self.model_dump_json()

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def intent_schema() -> dict[str, Any]:
    """The published JSON Schema of the intent."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Intent.model_json_schema()}


_WEEKDAY_PATTERN = (
    r"(?:(?P<which>next|this|last|coming)\s+)?(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|"
    + (r"thu(?:rs?(?:day)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)")
)
_MONTH_PATTERN = rf"(?P<month>{'|'.join(ENGLISH_MONTH_NUMBERS)})"
DayRange = tuple[dt.date, dt.date]


def named_dates(text: str, today: dt.date) -> tuple[NamedDate, ...]:
    """The phrases of a text that mean days, in order and without overlaps."""
    found: list[tuple[int, int, NamedDate]] = []
    for pattern, resolve in _DATE_PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(start < other_end and other_start < end for other_start, other_end, _ in found):
                continue
            try:
                days = resolve(match, today)
            except (ValueError, OverflowError, LookupError):
                # No such day, or letters that only match without regard to case (`ſep`, `frıday`): not a date.
                continue
            found.append((start, end, NamedDate(phrase=match.group(0), start=days[0], end=days[1])))
    return tuple(named for _, _, named in sorted(found, key=lambda each: each[0]))


def _single_day(day: dt.date) -> DayRange:
    return day, day


def _resolve_relative(days: int) -> Callable[[re.Match[str], dt.date], DayRange]:
    return lambda _, today: _single_day(today + dt.timedelta(days=days))


def _resolve_weekday(match: re.Match[str], today: dt.date) -> DayRange:
    index = [name[:3] for name in ENGLISH_WEEKDAYS].index(match["weekday"].lower()[:3])
    if (match["which"] or "").lower() == "last":
        return _single_day(today - dt.timedelta(days=(today.weekday() - index - 1) % 7 + 1))
    return _single_day(today + dt.timedelta(days=(index - today.weekday() - 1) % 7 + 1))


def _resolve_week(match: re.Match[str], today: dt.date) -> DayRange:
    monday = today - dt.timedelta(days=today.weekday())
    monday += dt.timedelta(weeks={"next": 1, "last": -1}.get(match["which"].lower(), 0))
    return monday, monday + dt.timedelta(days=6)


def _resolve_month(match: re.Match[str], today: dt.date) -> DayRange:
    shift = {"next": 1, "last": -1}.get(match["which"].lower(), 0)
    index = today.year * 12 + today.month - 1 + shift
    first = dt.date(index // 12, index % 12 + 1, 1)
    after = dt.date((index + 1) // 12, (index + 1) % 12 + 1, 1)
    return first, after - dt.timedelta(days=1)


def _resolve_month_day(match: re.Match[str], today: dt.date) -> DayRange:
    month = ENGLISH_MONTH_NUMBERS[match["month"].lower()[:3]]
    year = int(match["year"]) if match["year"] else today.year
    return _single_day(dt.date(year, month, int(match["day"])))


def _resolve_offset(match: re.Match[str], today: dt.date) -> DayRange:
    days = int(match["count"]) * (7 if match["unit"].lower().startswith("week") else 1)
    return _single_day(today + dt.timedelta(days=days if match["ago"] is None else -days))


_DATE_FORMS: list[tuple[str, Callable[[re.Match[str], dt.date], DayRange]]] = [
    (r"\d{4}-\d{2}-\d{2}", lambda match, _: _single_day(dt.date.fromisoformat(match.group(0)))),
    (r"(?:the\s+)?day after tomorrow", _resolve_relative(2)),
    (r"today|tonight", _resolve_relative(0)),
    (r"tomorrow|tmrw|tomorow|tommorow|tommorrow", _resolve_relative(1)),
    (r"yesterday", _resolve_relative(-1)),
    (r"(?P<which>next|this|last)\s+week\b(?!end)", _resolve_week),
    (r"(?P<which>next|this|last)\s+month", _resolve_month),
    (_MONTH_PATTERN + r"\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{4}))?", _resolve_month_day),
    (
        r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?" + _MONTH_PATTERN + r"(?:,?\s+(?P<year>\d{4}))?",
        _resolve_month_day,
    ),
    (r"in\s+(?P<count>\d{1,3})\s+(?P<unit>days?|weeks?)(?P<ago>$^)?", _resolve_offset),
    (r"(?P<count>\d{1,3})\s+(?P<unit>days?|weeks?)\s+(?P<ago>ago)", _resolve_offset),
    (_WEEKDAY_PATTERN, _resolve_weekday),
]
_DATE_PATTERNS = [(re.compile(rf"\b(?:{text})\b", re.IGNORECASE), resolve) for text, resolve in _DATE_FORMS]


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
_POINTER_WORDS = frozenset({"it", "this", "that", "them", "these", "those", "him", "her"})
_VAGUE_WORDS = frozenset({"stuff", "thing", "things", "something", "somehow", "whatever", "usual", "etc"})


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


_NOT_AN_ORDER = re.compile(
    r"""\b(?:the|my|a|an|this|that|these|those|his|her|our|your|unread|new|newest|last|latest|by|in|per|via|of|any
           |each|every|all|from|for|with|some|about|one)\s+(?:e-?)?mails?\b   # a mail, not: mail it
      | \b(?:e-?)?mails\b
      | \b(?:e-?)?mailed\b | \bsent\b | \bwrote\b | \btold\b             # what somebody did
      | \btell\s+me\b | \bsend\s+me\b(?!.*@)                            # an answer will do
    """,
    re.VERBOSE,
)


def asked_effects(request: str, registry: Registry) -> tuple[Effect, ...]:
    """The effects that a request asks for, by the words that the tools declare."""
    text = _NOT_AN_ORDER.sub(" ", request.lower())
    found = {tool.effect for tool in registry if tool.changes and has_any_phrase(text, _effect_words(tool))}
    if _RECIPIENT.search(request):
        found.add("send")
    if _TARGET.search(request):
        found.add("write")
    return tuple(effect for effect in ("write", "send", "irreversible") if effect in found and effect in CHANGING)


def _effect_words(tool: Tool) -> tuple[str, ...]:
    """The words that ask for a tool's effect; for a program that describes itself, the name of its file alone.

    Its own words are untrusted: with common ones every request would ask for its effect. Settings name the file.
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
    """The effects that a request certainly needs: to an address, into a file, into the calendar."""
    certain: set[Effect] = set()
    if _TO_ADDRESS.search(request):
        certain.add("send")
    if _TO_FILE.search(request) or _TO_CALENDAR.search(request):
        certain.add("write")
    return tuple(effect for effect in asked if effect in certain)


def open_questions(request: str) -> tuple[str, ...]:
    """Questions to the user about what the request leaves open, such as a pronoun without a referent."""
    said = split_words(request)
    named = [
        word for word in said if word not in STOP_WORDS and word not in _POINTER_WORDS and word not in _VAGUE_WORDS
    ]
    if len(named) < 2 and not _CONCRETE.search(request):
        return (f"What exactly should be done? {request.strip()!r} does not say.",)
    first = next((i for i, word in enumerate(said) if word in _POINTER_WORDS), None)
    if first is not None and first <= 1 and len(said) > first + 1 and not _CONCRETE.search(request):
        return (f"What does {said[first]!r} refer to?",)
    return ()


def is_explicit(request: str, registry: Registry) -> bool:
    """Whether a request needs no model to be understood: it names things, uses known words, and leaves nothing open."""
    said = split_words(request)
    if open_questions(request) or set(said) & _VAGUE_WORDS or len(said) > 60:
        return False
    known = set(text_stems(request)) & tool_vocabulary(registry)
    return len(known) >= (1 if _CONCRETE.search(request) else 3)


def has_added_names(account: str, request: str) -> bool:
    """Whether an account of a request names files, addresses, links or numbers that the request does not."""
    lower = request.lower()
    return any(found.group(0).lower() not in lower for found in _CONCRETE.finditer(account))


def tool_vocabulary(registry: Registry) -> frozenset[str]:
    """The stems of the names, descriptions and words of all tools."""
    return frozenset(word for tool in registry for word in tool_stems(tool.name, tool.doc, tool.words))


def tool_stems(name: str, doc: str, said: Iterable[str] = ()) -> frozenset[str]:
    return frozenset(text_stems(" ".join([name.replace("_", " "), doc, *said])))


ECHO_PROMPT_VERSION = 1
ECHO_TOKENS = 400
INTENT_CACHE_FORM = "intent-cache/1"
"""The format of a cache entry; entries of another format are ignored."""

_SYSTEM = """\
You restate a request as JSON so that a planner can work from it. Keep every name, number, address, file and date \
exactly as written. Correct spelling mistakes and leave out greetings. List the steps in the order they must happen, \
each a short command. Do not add anything that was not asked for."""

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "maxLength": 80},
        "steps": {"type": "array", "items": {"type": "string", "maxLength": 160}, "minItems": 1, "maxItems": 8},
        "constraints": {"type": "array", "items": {"type": "string", "maxLength": 120}, "maxItems": 4},
        "output": {"enum": ["answer", "file", "mail", "calendar"]},
    },
    "required": ["task", "steps", "constraints", "output"],
    "additionalProperties": False,
}


Steps = Annotated[list[Annotated[str, Field(max_length=160)]], Field(min_length=1, max_length=8)]
Constraints = Annotated[list[Annotated[str, Field(max_length=120)]], Field(max_length=4)]


class _EchoReply(BaseModel):
    """A reply, validated: a provider without grammars, or a damaged cache, may return anything."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)
    task: Annotated[str, Field(max_length=80)]
    steps: Steps
    constraints: Constraints
    output: Literal["answer", "file", "mail", "calendar"]


class Echo:
    """Turns requests into intents. Explicit requests do not need the model; with `deterministic` it is never asked.

    Args:
        cache: Replies of the model to earlier requests.
        project: Part of the cache key: a reply of one project is never used in another.

    Example:
        >>> intent = await Echo(provider).intent("Count the lines of notes.txt", registry, today)
    """

    def __init__(
        self,
        provider: Provider,
        *,
        cache: MutableMapping[str, str] | None = None,
        listener: Listener | None = None,
        timeout: float | None = 120.0,
        project: str = "",
    ) -> None:
        self._session = Session(
            "echo", provider, _setup_messages(), max_tokens=ECHO_TOKENS, timeout=timeout, listener=listener
        )
        self._cache = cache
        self._project = project

    async def intent(self, request: str, registry: Registry, today: dt.date, *, deterministic: bool = False) -> Intent:
        """The intent of a request; its `questions` are empty when nothing needs to be asked."""
        text = validate_request(request)
        effects, dates, questions = asked_effects(text, registry), named_dates(text, today), open_questions(text)
        plain = Intent(
            request=text,
            steps=(IntentStep(action=text),),
            effects=effects,
            required=required_effects(text, effects),
            dates=dates,
            questions=questions,
        )
        if deterministic or questions:
            return plain
        if is_explicit(text, registry):
            return plain.model_copy(update={"by": "fast-path"})
        understood = await self._ask_model(text)
        if has_added_names(" ".join(understood["steps"]), text):
            # The model invented a name, so the request itself is the safer account.
            return plain
        return plain.model_copy(
            update={
                "task": understood["task"],
                "steps": tuple(IntentStep(action=step) for step in understood["steps"]),
                "constraints": tuple(understood["constraints"]),
                "output": understood["output"],
                "by": "echo",
            }
        )

    def _cache_key(self, text: str) -> str:
        """A hash over the messages that are sent, the schema, the model and the project."""
        provider = self._session.provider
        messages = [[message.speaker, message.text] for message in self._session.setup]
        model = [provider.name, provider.grammars, dict(provider.adapters)]
        parts = [INTENT_CACHE_FORM, ECHO_PROMPT_VERSION, self._project, model, ECHO_TOKENS, _SCHEMA, messages, text]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _load_cached(self, key: str) -> dict[str, Any] | None:
        """The cached reply; an entry of another format or key is dropped."""
        known = self._cache.get(key) if self._cache is not None else None
        if known is None or self._cache is None:
            return None
        try:
            entry: Any = json.loads(known)
            is_own = (entry["form"], entry["key"]) == (INTENT_CACHE_FORM, key)
            found = _parse_echo_reply(entry["understood"]) if is_own else None
        except (ValueError, TypeError, KeyError, RecursionError):
            found = None
        if found is None:
            self._cache.pop(key, None)
        return found

    async def _ask_model(self, text: str) -> dict[str, Any]:
        key = self._cache_key(text)
        if (known := self._load_cached(key)) is not None:
            return known
        reply = await self._session.ask(text, json_schema=_SCHEMA)
        understood = _parse_echo_reply(reply.text)
        if understood is None:
            raise IntentError(
                "intent.not-understood",
                "the model's account of the request was cut off",
                fix="Say it in fewer words, or use --deterministic.",
            )
        # The reply of a substitute model is not cached: an entry could not say that it is one.
        if self._cache is not None and reply.degraded is None:
            self._cache[key] = json.dumps({"form": INTENT_CACHE_FORM, "key": key, "understood": json.dumps(understood)})
        return understood


def _parse_echo_reply(text: str) -> dict[str, Any] | None:
    """The reply of a model or the cache, if it is complete and valid."""
    try:
        return _EchoReply.model_validate_json(text).model_dump(mode="python")
    except ValueError:
        return None


def _setup_messages() -> tuple[Message, ...]:
    shown = [Message("system", _SYSTEM)]
    for example in json.loads(files("bicameral.planning").joinpath("echo.json").read_text("utf-8")):
        understood = json.dumps(example["understood"], ensure_ascii=False)
        shown += [Message("user", example["request"]), Message("assistant", understood)]
    return tuple(shown)
