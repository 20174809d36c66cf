"""The effects that a bound plan would have here, found out without having them.

Where everything that decides about its effects can be read locally, the plan is run with each call that has an effect
replaced by a note of its arguments. Where a model or a person must be asked on the way, the steps that would do so are
compared as they are written, with the values that the readings before them give. Wording that the request leaves free
counts in neither. What is found has the label of everything that was read, and reaches no prompt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from bicameral.agent._dry_run import divide_plan, dry_run, end_with_names, is_local_step
from bicameral.labels import NOTHING, UNKNOWN, Label
from bicameral.planning import Mention, effects_of, text_facts
from bicameral.plans import (
    Answer,
    Arithmetic,
    Call,
    Compute,
    Const,
    DictOf,
    Each,
    Format,
    ListOf,
    Plan,
    PlanLimits,
    Ref,
    Shown,
    TupleOf,
    Update,
    When,
    branch_names,
    children,
    free_names,
    rewrite_steps,
    walk,
)
from bicameral.tools import Registry, Tool

if TYPE_CHECKING:
    from bicameral.policy import Policy


_CARRIED = "carried "
"""How the names of computed contents begin in a note; no argument is called so."""


@dataclass(frozen=True, slots=True)
class PlannedEffects:
    """What a plan would do besides reading.

    Args:
        targets: Its calls and what directs them, as a text to compare; None if that is not known.
        contents: What these calls carry, and what decides about them, as a text to compare; None if it is not known.
        label: Where everything that this tells came from.
    """

    targets: str | None
    contents: str | None
    label: Label = UNKNOWN

    @property
    def is_comparable(self) -> bool:
        """Whether two plans can be compared by it."""
        return self.targets is not None and self.contents is not None


async def find_planned_effects(
    plan: Plan, registry: Registry, policy: Policy, limits: PlanLimits, mentions: Sequence[Mention] = ()
) -> PlannedEffects:
    """What a bound plan would do here.

    Args:
        plan: The plan, with its references bound.
        registry: The tools.
        policy: Decides about every reading, as in a run; nobody is asked.
        limits: The limits of plans.
        mentions: What the request mentions: two texts must agree in these.
    """
    noted = note_calls(plan, registry, _compared_parts)
    if noted is not None:
        read = await dry_run(noted, registry, policy, limits)
        if read.answer is not None:
            return _noted_effects(json.loads(read.answer), plan, registry, mentions, read.label)
    return await _written_effects(plan, registry, policy, limits, mentions)


NotedParts = Callable[[Call, Tool], dict[str, Any]]
"""The expressions of a call that are noted, by name."""


def note_calls(plan: Plan, registry: Registry, parts: NotedParts) -> Plan | None:
    """The plan with a note in place of each call with an effect, ending with the notes; None if it cannot be read."""
    calls = [step for _, step in walk(plan.steps) if isinstance(step, Call) and not _is_reading(step, registry)]
    tools = [registry.get(step.tool) for step in calls]
    results = {step.name for step in calls if step.name is not None}
    uses = (step for _, step in walk(plan.steps) if not isinstance(step, Answer))
    # A plan that works on with what an effect gives, or reads after a change, cannot be known without the change.
    if not all(tool is not None and tool.changes for tool in tools) or any(_own_names(each) & results for each in uses):
        return None
    taken = {name for step in plan.steps for name in branch_names(step) | free_names(step)}
    names = [_free_name(f"call_{place}", taken) for place in range(len(calls))]
    places = {id(step): name for step, name in zip(calls, names, strict=True)}
    notes = Answer(value=DictOf(entries=tuple((Const(value=name), Ref(name=name)) for name in names)))
    changed = False

    def note(step: Any) -> Any:
        nonlocal changed
        if isinstance(step, Answer):
            return notes
        if id(step) not in places:
            return step
        changed = True
        entries = parts(step, cast("Tool", registry.get(step.tool)))
        value = DictOf(entries=tuple((Const(value=name), expr) for name, expr in entries.items()))
        return Update(name=places[id(step)], op="append", value=value)

    steps = rewrite_steps(plan.steps, note, lambda expr: expr)
    if not changed or not all(is_local_step(step, registry, reading=True) for step in steps):
        return None
    if _reads_after_change(plan, registry):
        return None
    empty = tuple(Compute(name=name, value=ListOf()) for name in names)
    return plan.model_copy(update={"steps": (*empty, *steps, notes)})


def _compared_parts(step: Call, tool: Tool) -> dict[str, Any]:
    """What directs a call, and the computed parts of what it carries."""
    content = _content_names(tool)
    directing = {name: expr for name, expr in step.args.items() if name not in content}
    carried = _computed_parts([expr for name, expr in sorted(step.args.items()) if name in content])
    return {**directing, **{f"{_CARRIED}{place}": expr for place, expr in enumerate(carried)}}


def noted_turns(notes: dict[str, list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """The notes of each call, in the order of the plan."""
    # They come sorted by name, which is not that order from ten calls on.
    return [notes[name] for name in sorted(notes, key=_note_place)]


def _free_name(wanted: str, taken: set[str]) -> str:
    while wanted in taken:
        wanted += "_"
    return wanted


def _own_names(step: Any) -> frozenset[str]:
    """The variables that a step itself reads, without those of the steps inside it."""
    match step:
        case Each():
            return free_names(step.over)
        case When():
            return free_names(step.condition)
        case _:
            return free_names(step)


def _is_reading(step: Call, registry: Registry) -> bool:
    tool = registry.get(step.tool)
    return tool is not None and not tool.changes


def _reads_after_change(plan: Plan, registry: Registry) -> bool:
    """Whether a reading may see what an effect of the plan has changed."""
    changed = False
    for step in plan.steps:
        called = [inner for _, inner in walk((step,)) if isinstance(inner, Call)]
        reads = [each for each in called if (tool := registry.get(each.tool)) is None or tool.effect == "read"]
        changes = [each for each in called if not _is_reading(each, registry)]
        # In a loop a reading of the next turn comes after the effect of this one.
        if reads and (changed or (changes and step not in called)):
            return True
        changed = changed or bool(changes)
    return False


def _noted_effects(
    notes: dict[str, list[dict[str, Any]]], plan: Plan, registry: Registry, mentions: Sequence[Mention], label: Label
) -> PlannedEffects:
    steps = [step for _, step in walk(plan.steps) if isinstance(step, Call) and not _is_reading(step, registry)]
    turns_of = noted_turns(notes)
    targets: list[Any] = []
    contents: list[Any] = []
    for step, turns in zip(steps, turns_of, strict=True):
        tool = cast("Tool", registry.get(step.tool))
        for given in turns:
            directing = {name: value for name, value in given.items() if not name.startswith(_CARRIED)}
            targets.append([step.tool, _with_file_name(_without_defaults(directing, tool))])
            carried = {json.dumps(value, sort_keys=True) for name, value in given.items() if name not in directing}
            contents.append(sorted({*carried, *_constant_facts(step, tool, mentions)}))
    # Which of two calls of a plan comes first matters to no reader of a mail or a file.
    order = sorted(range(len(targets)), key=lambda place: json.dumps([targets[place], contents[place]]))
    return PlannedEffects(
        json.dumps([targets[place] for place in order], sort_keys=True),
        json.dumps([contents[place] for place in order], sort_keys=True),
        label,
    )


def _note_place(name: str) -> int:
    return int(name.strip("_").rsplit("_", 1)[1])


def _content_names(tool: Tool) -> frozenset[str]:
    return frozenset(each.name for each in tool.arguments if each.purpose == "carries")


def _computed_parts(exprs: Iterable[Any]) -> Iterator[Any]:
    """The parts of texts that are computed; the others are the planner's wording."""
    for expr in exprs:
        match expr:
            case str() | Const(value=str()):
                continue
            case Format():
                yield from _computed_parts(expr.parts)
            case Shown() | ListOf() | TupleOf() | Arithmetic(op="+"):
                yield from _computed_parts(children(expr))
            case _:
                yield expr


def _constant_texts(exprs: Iterable[Any]) -> Iterator[str]:
    for expr in exprs:
        match expr:
            case str():
                yield expr
            case Const(value=str(text)):
                yield text
            case Format():
                yield from _constant_texts(expr.parts)
            case ListOf() | TupleOf() | Arithmetic(op="+"):
                yield from _constant_texts(children(expr))
            case _:
                continue


def _constant_facts(step: Call, tool: Tool, mentions: Sequence[Mention]) -> frozenset[str]:
    """The facts in the planner's wording of what a call carries."""
    content = _content_names(tool)
    addressed = json.dumps([expr.model_dump(mode="json") for name, expr in step.args.items() if name not in content])
    known = [each for each in mentions if each.verbatim or each.words not in addressed]
    texts = _constant_texts(expr for name, expr in step.args.items() if name in content)
    return frozenset[str]().union(*(text_facts(text, known) for text in texts))


def _without_defaults(given: dict[str, Any], tool: Tool) -> dict[str, Any]:
    """The arguments without those that say what the tool would do anyway: none, false and nothing."""
    required = {each.name for each in tool.arguments if each.required}
    return {name: value for name, value in given.items() if name in required or value not in (None, False, "", [])}


def _with_file_name(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the file in place of the folder that it is put in: there it keeps its name."""
    source, target = given.get("source"), given.get("target")
    if isinstance(source, str) and isinstance(target, str) and target.endswith("/"):
        return given | {"target": f"{target.rstrip('/')}/{PurePosixPath(source).name}"}
    return given


async def _written_effects(
    plan: Plan, registry: Registry, policy: Policy, limits: PlanLimits, mentions: Sequence[Mention]
) -> PlannedEffects:
    """The steps that a dry run leaves out, as they are written, and the values that they use from the others."""
    parts = divide_plan(plan, registry)
    steps = tuple(step for step in parts.left if not isinstance(step, Answer))
    used = sorted(frozenset[str]().union(*(free_names(step) for step in steps)) - parts.missing)
    if not frozenset(used) <= parts.made:
        return PlannedEffects(None, None)
    values: dict[str, Any] = {}
    label = NOTHING
    if used:
        read = await dry_run(end_with_names(plan, parts.kept, used), registry, policy, limits)
        if read.answer is None:
            return PlannedEffects(None, None, read.label)
        values, label = json.loads(read.answer), read.label
    # In place of a variable stands what it is here: two searches that find the same are the same.
    known = {name: json.dumps(values[name], sort_keys=True) for name in used}
    signature = effects_of(plan.model_copy(update={"steps": steps}), registry, mentions, known)
    directing = [[call.tool, call.directing] for call in signature.calls]
    rest = [[call.sources, call.conditions] for call in signature.calls]
    return PlannedEffects(json.dumps(directing), json.dumps([rest, list(map(sorted, signature.contents))]), label)
