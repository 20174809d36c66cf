"""Claims of a plan's answer, held against the calls that the plan makes.

`unsupported_claims` finds the claims that no call of the plan makes on every path to the answer, `false_claims` those
of an answer that a run did not make true. Only the literal parts of an answer are read: what a tool returns, or a model
extracts, is content and no claim of ours.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from bicameral.planning._claims import HOLE, Claim, ClaimKind, claims_of, may_claim
from bicameral.plans import (
    Answer,
    Apply,
    Arithmetic,
    Call,
    Choose,
    Compare,
    Comprehension,
    Compute,
    Const,
    Each,
    EvaluationError,
    Format,
    Index,
    Lambda,
    Not,
    Plan,
    Ref,
    Slice,
    Update,
    When,
    children,
    evaluate_expr,
    free_names,
    walk,
)
from bicameral.text import stem
from bicameral.tools import Effect, Registry, Tool

MAX_PATHS = 256
MAX_TEXTS = 32

_EFFECTS: dict[ClaimKind, frozenset[Effect]] = {
    "send": frozenset({"send"}),
    "write": frozenset({"write"}),
    # A tool may delete an event, or change it by sending an invitation.
    "calendar": frozenset({"write", "irreversible", "send"}),
    "delete": frozenset({"irreversible", "write"}),
    "change": frozenset({"write", "irreversible", "send"}),
    "pay": frozenset({"send", "irreversible", "write"}),
    "order": frozenset({"send", "irreversible", "write"}),
}
# Only a tool for it pays or orders: an entry in a calendar or a line in a file does not.
_NEEDED_WORDS: dict[ClaimKind, frozenset[str]] = {
    "pay": frozenset(map(stem, "pay payment transfer wire settle refund money".split())),
    "order": frozenset(
        map(stem, "order buy purchase reserve book reorder rent checkout shop reservation booking".split())
    ),
}
_GENERAL_TOOLBOXES = frozenset({"calendar", "files", "tables", "mail", "lines", "web", "clock"})


def supports_claim(tool: Tool, kind: ClaimKind, phrase: str = "") -> bool:
    """Whether a call of this tool can be what a claim of this kind speaks of."""
    if tool.effect not in _EFFECTS[kind]:
        # A tool of another effect may have the very word: a chat in which `post` is a write.
        return tool.changes and not tool.self_described and stem(phrase.lower()) in map(stem, tool.words)
    needed = _NEEDED_WORDS.get(kind)
    if needed is None:
        return True
    if tool.toolbox in _GENERAL_TOOLBOXES:
        return False
    # What a program says of itself is untrusted: only the name that the settings give it counts.
    said = (tool.toolbox,) if tool.self_described else (tool.name.replace("_", " "), *tool.words)
    return any(stem(word) in needed for text in said for word in text.lower().split())


@dataclass(frozen=True, slots=True)
class UnsupportedClaim:
    """A claim of an answer that no call makes on some path to it; `path` is that of the answer's step."""

    claim: Claim
    path: str


@dataclass(frozen=True, slots=True)
class _Way:
    """One way through a plan: the texts of variables, the tools called, and how conditions were decided."""

    texts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    made: frozenset[str] = frozenset()
    decided: tuple[tuple[Any, bool], ...] = ()
    merged: bool = False
    """Whether it stands for several ways, so that other tools may have been called as well."""

    def bind(self, name: str, texts: tuple[str, ...]) -> _Way:
        kept = tuple((known, value) for known, value in self.texts if known != name)
        # A condition about a variable says nothing any more when the variable has changed.
        decided = tuple((condition, held) for condition, held in self.decided if name not in free_names(condition))
        return replace(self, texts=(*kept, (name, texts)), decided=decided)

    def decision(self, condition: Any) -> bool | None:
        return next((held for known, held in self.decided if known == condition), None)


def unsupported_claims(plan: Plan, registry: Registry, *, done: Iterable[Effect] = ()) -> tuple[UnsupportedClaim, ...]:
    """The claims in a plan's answers that no call makes on every path to that answer.

    A loop counts as done: whether its list is empty is known only in the run, which compares the answer with the
    calls that were made.

    Args:
        plan: The plan.
        registry: Its tools.
        done: The effects of earlier rounds.
    """
    walker = _ClaimWalker(registry, frozenset(done))
    walker.walk(plan.steps, [_Way()], "")
    return tuple(dict.fromkeys(walker.found))


def answers_after(plan: Plan, tools: Collection[str]) -> tuple[str, ...]:
    """The literal texts of the answers that follow a call of one of these tools and may tell that it was done.

    A plan loses calls that nobody asked for. What its answers say of them would be false.

    Args:
        plan: The plan with the calls.
        tools: The names of the tools.
    """
    walker = _ClaimWalker(Registry(), frozenset())
    walker.walk(plan.steps, [_Way()], "")
    return tuple(
        dict.fromkeys(
            text
            for text, way in walker.answers
            # Ways that were put together have only the calls of all of them.
            if (way.merged or not way.made.isdisjoint(tools)) and may_claim(text)
        )
    )


def answer_claims(plan: Plan) -> tuple[Claim, ...]:
    """All claims in the literal parts of a plan's answers, on any path."""
    walker = _ClaimWalker(Registry(), frozenset())
    walker.walk(plan.steps, [_Way()], "")
    return tuple(dict.fromkeys(each.claim for each in walker.found))


def false_claims(plan: Plan, registry: Registry, answer: object, called: Iterable[str]) -> tuple[str, ...]:
    """What an answer claims and the run did not do, a sentence each.

    The check before the run counts a loop as done; here its list may have been empty. Claims are those of the literal
    parts of the plan's answers, as far as the given answer has their words.

    Args:
        plan: The plan that ran.
        registry: Its tools.
        answer: The answer of the run.
        called: The names of the tools whose calls changed something.
    """
    words = str(answer)
    made = [tool for name in set(called) if (tool := registry.get(name)) is not None and tool.changes]
    return tuple(
        f"The answer says {claim.phrase!r}, but no call of this run did that."
        for claim in answer_claims(plan)
        if not claim.reported
        # "Sent 0 mails" is true of an empty list.
        and re.search(rf"\b{re.escape(claim.phrase)}\b(?!\s+(?:0|no|none|nothing)\b)", words)
        and not any(supports_claim(tool, claim.kind, claim.phrase) for tool in made)
    )


class _ClaimWalker:
    def __init__(self, registry: Registry, done: frozenset[Effect]) -> None:
        self._registry = registry
        self._done = done
        self.found: list[UnsupportedClaim] = []
        self.answers: list[tuple[str, _Way]] = []
        """Each text of an answer, with the way to it."""

    def walk(self, steps: tuple[Any, ...], ways: list[_Way], at: str) -> list[_Way]:
        """The ways after some steps; those that end in an answer are not among them."""
        for number, step in enumerate(steps):
            path = f"{at}{number}"
            match step:
                case Answer():
                    for way in ways:
                        self._check_answer(step, way, path)
                    return []
                case Call():
                    ways = [self._after_call(step, way) for way in ways]
                case Compute():
                    ways = [way.bind(step.name, _texts(step.value, way)) for way in ways]
                case Update():
                    ways = [
                        way.bind(step.name, _joined(_variable_texts(step.name, way), _texts(step.value, way)))
                        for way in ways
                    ]
                case When():
                    ways = self._after_when(step, ways, path)
                case Each():
                    called = frozenset(inner.tool for _, inner in walk(step.steps) if isinstance(inner, Call))
                    ways = [
                        replace(way, made=way.made | called)
                        for way in [*self.walk(step.steps, ways, f"{path}/"), *ways]
                    ]
                case _:
                    if (name := getattr(step, "name", None)) is not None:
                        ways = [way.bind(name, (HOLE,)) for way in ways]
            ways = _bounded(ways)
        return ways

    def _after_call(self, step: Call, way: _Way) -> _Way:
        way = replace(way, made=way.made | {step.tool})
        return way if step.name is None else way.bind(step.name, (HOLE,))

    def _after_when(self, step: When, ways: list[_Way], path: str) -> list[_Way]:
        after: list[_Way] = []
        for branch, steps, side in ((True, step.steps, "then"), (False, step.otherwise, "else")):
            taken = [
                replace(way, decided=(*way.decided, (step.condition, branch)))
                for way in ways
                if way.decision(step.condition) in (None, branch)
            ]
            after += self.walk(steps, taken, f"{path}/{side}/") if taken else []
        return after

    def _check_answer(self, step: Answer, way: _Way, path: str) -> None:
        made = [tool for name in way.made if (tool := self._registry.get(name)) is not None and tool.changes]
        for text in _texts(step.value, way):
            self.answers.append((text, way))
            for claim in claims_of(text):
                supported = any(supports_claim(tool, claim.kind, claim.phrase) for tool in made)
                if not supported and not self._done & _EFFECTS[claim.kind]:
                    self.found.append(UnsupportedClaim(claim, path))


def _bounded(ways: list[_Way]) -> list[_Way]:
    """Distinct ways; beyond a limit one that has all texts and only the calls that every way makes: fail closed."""
    distinct = list(dict.fromkeys(ways))
    if len(distinct) <= MAX_PATHS:
        return distinct
    texts: dict[str, tuple[str, ...]] = {}
    for way in distinct:
        for name, found in way.texts:
            texts[name] = tuple(dict.fromkeys((*texts.get(name, ()), *found)))
    return [_Way(tuple(texts.items()), frozenset[str].intersection(*(way.made for way in distinct)), merged=True)]


def _variable_texts(name: str, way: _Way) -> tuple[str, ...]:
    return next((texts for known, texts in way.texts if known == name), (HOLE,))


def _joined(*parts: tuple[str, ...], between: str = "") -> tuple[str, ...]:
    """The texts that alternatives of parts make together; beyond a limit all of them, one below the other."""
    count = 1
    for part in parts:
        count *= max(1, len(part))
    if count > MAX_TEXTS:
        return ("\n".join(dict.fromkeys(text for part in parts for text in part)),)
    return tuple(dict.fromkeys(between.join(each) for each in product(*parts)))


_TEXT_FUNCTIONS = frozenset(
    "join upper lower title capitalize strip lstrip rstrip removeprefix removesuffix replace str ljust rjust list "
    "tuple sorted reversed unique first last get dict values items flatten zip max min".split()
)
"""Library functions whose result has the texts of their arguments; every other makes a number, a date or the like."""


def _texts(expr: Any, way: _Way) -> tuple[str, ...]:
    """The texts that an expression may have, with HOLE for what the run brings in."""
    match expr:
        case Const(value=str() as text):
            return (text,)
        case Const(value=value):
            return (str(value),)
        case Ref(name=name):
            return _variable_texts(name, way)
        case Format(parts=parts):
            return _joined(*((part,) if isinstance(part, str) else _texts(part.value, way) for part in parts))
        case Arithmetic(op="+", left=left, right=right):
            return _joined(_texts(left, way), _texts(right, way))
        case Choose(condition=condition, then=then, otherwise=otherwise):
            held = way.decision(condition)
            ways = [then] if held is True else [otherwise] if held is False else [then, otherwise]
            return tuple(dict.fromkeys(text for each in ways for text in _texts(each, way)))
        case Apply(args=args) if not free_names(expr):
            try:
                return (str(evaluate_expr(expr, {})),)
            except (EvaluationError, ValueError, TypeError):
                return _joined(*(_texts(each, way) for each in args), between="\n")
        case Apply(function=function) if function not in _TEXT_FUNCTIONS:
            return (HOLE,)
        case Comprehension(element=element, key=key):
            return _joined(*(_texts(each, way) for each in (key, element) if each is not None), between="\n")
        case Index(value=value) | Slice(value=value):
            # Some of the texts, and maybe all of one.
            return _texts(value, way)
        case Compare() | Not() | Lambda():
            return (HOLE,)
        case _:
            inner = children(expr)
            return _joined(*(_texts(each, way) for each in inner), between="\n") if inner else (HOLE,)
