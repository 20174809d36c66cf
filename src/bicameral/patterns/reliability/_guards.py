"""Guards: their inputs and verdicts, the guards that most stacks need, and how they are run.

The guards of a seam run in order, every verdict goes into the trace, and a guard that fails refuses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal, LiteralString, cast, get_args

from bicameral.boundary import screen
from bicameral.errors import RunError
from bicameral.patterns.kernel import GuardQuestions, guard_failed_error
from bicameral.secrets import redact_secrets
from bicameral.types import Type, mismatch

Seam = Literal["input", "call", "result", "output"]
"""Where a guard runs: on what comes in, before a call, on the result of a call, on what goes out."""
SEAMS: tuple[Seam, ...] = get_args(Seam)
REMOVED = "[removed]"


@dataclass(frozen=True, slots=True)
class GuardInput:
    """Everything that a guard gets: the value at its seam (before a call the arguments), its trust, and the tool."""

    value: Any
    trusted: bool
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Pass:
    """The value may go on."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The value must not go on. The reason is a literal of the program, so any model may read it; `found` counts."""

    reason: LiteralString
    found: int = 1


@dataclass(frozen=True, slots=True)
class Redact:
    """The value may go on as changed here. Arguments of a call are never changed: before a call this refuses."""

    value: Any
    reason: LiteralString
    found: int = 1


@dataclass(frozen=True, slots=True)
class AskPerson:
    """The value may go on if a person says yes to it. The question is a literal of the program.

    The person is asked when all guards of the seam have passed the value, and sees it as it would go on.
    """

    reason: LiteralString
    found: int = 1


GuardVerdict = Pass | Refuse | Redact | AskPerson
GuardCheck = Callable[[GuardInput], GuardVerdict]


@dataclass(frozen=True, slots=True)
class Guard:
    """One rule at one seam. A check that raises, or returns anything but a verdict, refuses.

    Example:
        >>> small = Guard("small", "call", lambda seen: Pass() if seen.value["amount"] < 100 else Refuse("too much"))
    """

    rule: str
    at: Seam
    check: GuardCheck


def length_guard(at: Seam, most: int) -> Guard:
    """A guard that refuses values whose texts have more than `most` characters together."""

    def check(seen: GuardInput) -> GuardVerdict:
        length = sum(map(len, texts_in(seen.value)))
        return Pass() if length <= most else Refuse("it is too long", length)

    return Guard("length", at, check)


def type_guard(at: Seam, wanted: Type, *, tool: str = "") -> Guard:
    """A guard that refuses values of another type; with `tool` only at the calls of that tool."""

    def check(seen: GuardInput) -> GuardVerdict:
        if tool and seen.tool != tool:
            return Pass()
        return Refuse("it is not of the type that it must be") if mismatch(seen.value, wanted) else Pass()

    return Guard("type", at, check)


def screening_guard(at: Seam) -> Guard:
    """A guard that refuses untrusted text which addresses a model or hides something."""

    def check(seen: GuardInput) -> GuardVerdict:
        alerts = 0 if seen.trusted else sum(screen(text).alert for text in texts_in(seen.value))
        return Refuse("a stranger's text speaks to a model, or hides something", alerts) if alerts else Pass()

    return Guard("screening", at, check)


def words_guard(at: Seam, words: Iterable[str], *, redact: bool = False) -> Guard:
    """A guard against these words, however their letters are disguised. With `redact` it removes plain ones."""
    listed = sorted({_normalise_text(word) for word in words}, key=len, reverse=True)
    found_in = re.compile(r"(?<!\w)(" + "|".join(map(re.escape, listed)) + r")(?!\w)", re.IGNORECASE)

    def check(seen: GuardInput) -> GuardVerdict:
        count = sum(len(found_in.findall(_normalise_text(text))) for text in texts_in(seen.value))
        if not count:
            return Pass()
        cleaned = map_texts(seen.value, lambda text: found_in.sub(REMOVED, text)) if redact else seen.value
        # A word that is still found after normalising was disguised: it cannot be removed reliably, so this refuses.
        if redact and not any(found_in.search(_normalise_text(text)) for text in texts_in(cleaned)):
            return Redact(cleaned, "a word must not be in it", count)
        return Refuse("a word must not be in it", count)

    return Guard("words", at, check)


def secrets_guard(at: Seam, *, redact: bool = True) -> Guard:
    """A guard against keys, tokens, card numbers, and every secret that this process has registered."""

    def check(seen: GuardInput) -> GuardVerdict:
        count = sum(redact_secrets(text, REMOVED) != text for text in texts_in(seen.value))
        if not count:
            return Pass()
        if not redact:
            return Refuse("a secret is in it")
        return Redact(map_texts(seen.value, lambda text: redact_secrets(text, REMOVED)), "a secret is in it", count)

    return Guard("secrets", at, check)


def _normalise_text(text: str) -> str:
    """The text with one form of each letter, and without diacritics and invisible characters."""
    visible = (each for each in unicodedata.normalize("NFKD", text) if unicodedata.category(each) not in ("Cf", "Mn"))
    return "".join(visible).casefold()


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a value, with the names of its fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, each in cast("Mapping[Any, Any]", value).items():
            yield from texts_in(name)
            yield from texts_in(each)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in cast("Iterable[Any]", value):
            yield from texts_in(each)


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {
            map_texts(name, change): map_texts(each, change) for name, each in cast("Mapping[Any, Any]", value).items()
        }
    if isinstance(value, list | tuple):
        changed = [map_texts(each, change) for each in cast("Iterable[Any]", value)]
        return changed if isinstance(value, list) else tuple(changed)
    return value


NoteFunction = Callable[..., None]
_VERDICT_NAMES = {Pass: "pass", Refuse: "refuse", Redact: "redact", AskPerson: "ask"}


def run_guards(guards: Sequence[Guard], seam: Seam, seen: GuardInput, note: NoteFunction) -> GuardQuestions:
    """The value after all guards of a seam, and what a person must be asked about it; an error if one refuses.

    Every verdict goes into the trace and into the record.
    """
    asks: list[LiteralString] = []
    for guard in guards:
        if guard.at != seam:
            continue
        verdict = _ask_guard(guard, seen, note)
        found = 0 if isinstance(verdict, Pass) else verdict.found
        note("guard", at=seam, rule=guard.rule, verdict=_VERDICT_NAMES[type(verdict)], found=found, tool=seen.tool)
        if isinstance(verdict, Redact) and seam != "call":
            seen = replace(seen, value=verdict.value)
        elif isinstance(verdict, AskPerson):
            asks.append(verdict.reason)
        elif not isinstance(verdict, Pass):
            raise RunError("pattern.guarded", f"the guard {guard.rule!r} at the {seam} says no: {verdict.reason}")
    return GuardQuestions(tuple(asks), seen.value)


def _ask_guard(guard: Guard, seen: GuardInput, note: NoteFunction) -> GuardVerdict:
    try:
        # A guard gets a copy: only its verdict can change the value.
        verdict = cast("object", guard.check(replace(seen, value=deepcopy(seen.value))))
    except Exception as error:
        note("guard", at=guard.at, rule=guard.rule, verdict="failed", found=0, tool=seen.tool)
        raise guard_failed_error(error) from None
    if isinstance(verdict, Pass | Refuse | Redact | AskPerson):
        return verdict
    note("guard", at=guard.at, rule=guard.rule, verdict="failed", found=0, tool=seen.tool)
    raise guard_failed_error(TypeError("no verdict"))
