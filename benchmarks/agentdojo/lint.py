"""Proof that an oracle plan knows only what its task's prompt says: each literal comes from there, or is neutral.

`python -m benchmarks.agentdojo.lint` checks all plans. A text, number or date must occur in the prompt, possibly in
another spelling; prose (instructions of extractions, what is answered or sent as a sentence) may rearrange the
prompt's words and use the tools' own vocabulary and a few generic words, which say nothing about an environment.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from bicameral.plans import (
    Answer,
    Apply,
    Ask,
    Call,
    Compute,
    Const,
    DictOf,
    Each,
    Extract,
    Format,
    Index,
    Plan,
    Slice,
    Update,
    When,
    children,
    walk,
)
from bicameral.types import DictType, ListType, LiteralType, OptionalType, RecordType, TupleType, Type

from .adapter import plan_of, tools_of
from .dojo import SUITES, suite_of
from .spellings import Prompt, words

NEUTRAL_NUMBERS = frozenset({-1, 0, 1, 2, 24, 60, 100})
"""First, last, none, half, per cent, and the parts of days and hours."""

NEUTRAL_TEXTS = frozenset({"www.", "http://", "https://"})
"""How any address on the web begins."""

SERVICE_TEXTS = {"banking": frozenset({"me"})}
"""Texts by which a service names something to everybody: the bank calls the user's own account so."""

GENERIC = frozenset(
    """
    a about according action address all an and any are as at be been by can did do does e each else email
    everything exactly few for found from given have her his how i i've if in information instead into is it its
    kind least link list mail many message more most much my name new no none not nothing number of on one only or
    other out over page part person place question reply said same say says send sent short so subject such summary
    take text than that the their them then there these they this those time title to total until up updated want
    was website were what when where which who whole why will with without word words would write yes you your yours
    """.split()
)
"""Words of any form or sentence."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A literal that the prompt does not account for."""

    step: str
    literal: object

    def __str__(self) -> str:
        return f"step {self.step}: {self.literal!r} is not from the prompt"


@dataclass(frozen=True, slots=True)
class _Literal:
    value: Any
    prose: bool = False


def lint(suite: str, task: str, plan: Plan) -> list[Finding]:
    """The literals of a plan that its prompt does not account for."""
    prompt = Prompt.of(suite_of(suite).user_tasks[task].PROMPT)
    names = _names(suite, plan)
    found: list[Finding] = []
    for path, step in walk(plan.steps):
        for literal in _literals(suite, step, names):
            if not _accounted(suite, literal, prompt):
                found.append(Finding(path, literal.value))
    return found


def _accounted(suite: str, literal: _Literal, prompt: Prompt) -> bool:
    value = literal.value
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        return value in NEUTRAL_NUMBERS or prompt.has_number(value)
    text = str(value)
    if not words(text) or prompt.has_text(text) or text in NEUTRAL_TEXTS:
        return True
    if text in SERVICE_TEXTS.get(suite, ()) or text in _enums(suite):
        return True
    return literal.prose and prompt.has_words(text, GENERIC | _vocabulary(suite))


def _literals(suite: str, step: Any, names: frozenset[str]) -> Iterator[_Literal]:
    match step:
        case Call():
            tool = next(tool for tool in tools_of(suite) if tool.name == step.tool)
            for name, value in step.args.items():
                argument = tool.argument(name)
                yield from _inside(value, names, prose=argument is not None and argument.purpose == "carries")
        case Extract():
            yield from _inside(step.source, names)
            yield from _inside(step.instruction, names, prose=True)
            yield from (_Literal(text, prose=True) for text in _choices(step.result_type))
        case Compute() | Update():
            if isinstance(step, Update) and step.key is not None:
                yield from _inside(step.key, names)
            yield from _inside(step.value, names)
        case Answer():
            yield from _inside(step.value, names, prose=True)
        case Ask():
            yield from _inside(step.question, names, prose=True)
        case Each():
            yield from _inside(step.over, names)
        case When():
            yield from _inside(step.condition, names)
        case _:
            raise TypeError(f"{step!r} is no step that this lint knows")


def _inside(expr: Any, names: frozenset[str], *, prose: bool = False) -> Iterator[_Literal]:
    match expr:
        case Const(value=str() as text) if text in names:
            return
        case Const():
            yield _Literal(expr.value, prose)
            return
        case Format():
            yield from (_Literal(part, prose=True) for part in expr.parts if isinstance(part, str))
        case Slice():
            # Where a list is cut off says nothing about what is in it.
            yield from _inside(expr.value, names, prose=prose)
            bounds = (expr.start, expr.stop, expr.step)
            yield from (one for bound in bounds if not isinstance(bound, Const) for one in _inside(bound, names))
            return
        case Apply(function="strftime"):
            yield from _inside(expr.args[0], names)
            return
        case DictOf():
            for key, value in expr.entries:
                if not isinstance(key, Const):
                    yield from _inside(key, names)
                yield from _inside(value, names, prose=prose)
            return
        case _:
            pass
    for child in children(expr):
        yield from _inside(child, names, prose=prose and not isinstance(expr, Apply | Index))


def _names(suite: str, plan: Plan) -> frozenset[str]:
    """What are names and not values: fields of results and blanks, keys of the plan's own dicts, choices it offers."""
    found = set[str]().union(*(_fields(tool.result) for tool in tools_of(suite)))
    for _, step in walk(plan.steps):
        if isinstance(step, Extract):
            found |= _fields(step.result_type) | _choices(step.result_type)
        for value in _expressions(step):
            found |= _keys(value)
    return frozenset(found)


def _expressions(step: Any) -> Iterator[Any]:
    match step:
        case Call():
            yield from step.args.values()
        case Extract():
            yield from (step.source, step.instruction)
        case Compute() | Update() | Answer():
            yield step.value
        case Each():
            yield step.over
        case When():
            yield step.condition
        case _:
            return


def _keys(expr: Any) -> set[str]:
    found = set[str]().union(*(_keys(child) for child in children(expr)))
    if isinstance(expr, DictOf):
        found |= {str(key.value) for key, _ in expr.entries if isinstance(key, Const)}
    return found


def _types(type_: Type) -> Iterator[Type]:
    """A type and all types inside it."""
    yield type_
    match type_:
        case OptionalType(item=inner) | ListType(item=inner) | DictType(value=inner):
            yield from _types(inner)
        case TupleType(items=items):
            for item in items:
                yield from _types(item)
        case RecordType(fields=fields):
            for field in fields:
                yield from _types(field.type)
        case _:
            pass


def _fields(type_: Type) -> set[str]:
    return {field.name for inner in _types(type_) if isinstance(inner, RecordType) for field in inner.fields}


def _choices(type_: Type) -> set[str]:
    return {value for inner in _types(type_) if isinstance(inner, LiteralType) for value in inner.values}


@cache
def _enums(suite: str) -> frozenset[str]:
    """The values of the tools' own enums."""
    types = [type_ for tool in tools_of(suite) for type_ in (tool.result, *(each.type for each in tool.arguments))]
    return frozenset(set[str]().union(*map(_choices, types)))


@cache
def _vocabulary(suite: str) -> frozenset[str]:
    """The words in which the tools describe themselves: whoever plans has them before him."""
    texts: list[str] = []
    for tool in tools_of(suite):
        texts += [tool.name, tool.doc, *_fields(tool.result)]
        texts += [f"{argument.name} {argument.doc}" for argument in tool.arguments]
    return frozenset(word for text in texts for word in words(re.sub(r"_+", " ", text)))


def main() -> int:
    count = 0
    for suite in SUITES:
        for task in suite_of(suite).user_tasks:
            try:
                findings: list[Any] = list(lint(suite, task, plan_of(suite, task)))
            except (OSError, ValueError) as error:
                findings = [error]
            for finding in findings:
                count += 1
                print(f"{suite} {task}: {finding}")
    print(f"{count} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
