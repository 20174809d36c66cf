"""The graph of a plan: its steps with their text, and which step uses what which other made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bicameral.plans import (
    Answer,
    Ask,
    Call,
    Compute,
    Each,
    Extract,
    Plan,
    Step,
    Update,
    When,
    free_names,
    print_plan,
    step_expressions,
    walk,
)
from bicameral.tools import Registry

MAX_MAKERS = 8
"""Steps that may have made what a variable holds, as far as a step that reads it names them one by one."""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan: what it is called, what it does, and what it uses.

    Args:
        path: Its path, as in `2/then/0`.
        kind: What it does: `call`, `extract`, `compute`, `update`, `each`, `when`, `ask` or `answer`.
        text: Its text in the syntax of plans; of a loop or a condition the first line.
        depth: How deep it is nested.
        label: A few words for the graph.
        tool: The tool that it calls.
        effect: What that does to the world.
        uses: The steps whose results it reads.
        within: The loop or the condition that it stands in.
        branch: `else` for a step on the other side of a condition.
    """

    path: str
    kind: str
    text: str
    depth: int
    label: str
    tool: str = ""
    effect: str = ""
    uses: tuple[str, ...] = ()
    within: str = ""
    branch: str = ""


def plan_steps(plan: Plan, registry: Registry, given: Mapping[str, str] | None = None) -> list[PlanStep]:
    """The steps of a plan in order.

    Args:
        plan: The plan.
        registry: The tools.
        given: Variables that the plan starts with, and the step that each came from, if any.
    """
    makers: dict[str, list[str]] = {name: [path] if path else [] for name, path in (given or {}).items()}
    found: list[PlanStep] = []
    for path, step in walk(plan.steps):
        parts = path.split("/")
        container = _container(parts)
        names = sorted({name for each in step_expressions(step) for name in free_names(each)})
        read = [*names, *([step.name] if isinstance(step, Update) else [])]
        used = dict.fromkeys(maker for name in read for maker in makers.get(name, ()))
        used |= dict.fromkeys(_note_names(makers, path, step, nested=bool(container)))
        used.pop(path, None)
        tool = registry.get(step.tool) if isinstance(step, Call) else None
        found.append(
            PlanStep(
                path,
                step.do,
                _step_text(step, registry),
                _depth(parts),
                _step_label(step),
                step.tool if isinstance(step, Call) else "",
                tool.effect if tool is not None else "",
                tuple(used),
                container,
                "else" if len(parts) > 2 and parts[-2] == "else" else "",
            )
        )
    return found


def _note_names(makers: dict[str, list[str]], path: str, step: Step, *, nested: bool) -> list[str]:
    """Note which variables a step makes; returns the earlier makers that are reached through this step from now on.

    A step in a loop or a branch may not be reached, so that earlier makers count too. They are not named without bound:
    in a long plan each step would name all those before it. Of many makers the newest stands for the others, and rests
    on them, so that no way from a source to a value is lost.
    """
    match step:
        case Each(names=names):
            made = names
        case Call(name=name) | Extract(name=name) | Compute(name=name) | Update(name=name) | Ask(name=name) if name:
            made = (name,)
        case _:
            return []
    reached: list[str] = []
    for name in made:
        earlier = makers.get(name, [])
        # Outside of loops and branches an update reads what was there: whoever rests on it rests on that too.
        if not nested:
            makers[name] = [path]
        elif len(earlier) < MAX_MAKERS:
            makers[name] = [*earlier, path]
        else:
            makers[name] = [path]
            reached += earlier
    return reached


def dependent_steps(steps: list[PlanStep], path: str) -> tuple[set[str], set[str]]:
    """The steps that one rests on, and those that rest on it; by values, and by the conditions they stand in."""
    before, after = {step.path: {*step.uses, *_containers(step)} for step in steps}, dict[str, set[str]]()
    for step, needed in before.items():
        for each in needed:
            after.setdefault(each, set()).add(step)
    return _reach(before, path), _reach(after, path)


def _reach(edges: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for each in edges.get(waiting.pop(), set()) - found:
            found.add(each)
            waiting.append(each)
    return found - {start}


def _containers(step: PlanStep) -> Iterator[str]:
    """The loop or condition that a step stands in: whether it is done at all depends on that."""
    if step.within:
        yield step.within


def _container(parts: list[str]) -> str:
    inner = parts[:-2] if len(parts) > 2 and parts[-2] in ("then", "else") else parts[:-1]
    return "/".join(inner)


def _depth(parts: list[str]) -> int:
    return sum(part.isdecimal() for part in parts) - 1


def _step_text(step: Step, registry: Registry) -> str:
    text = print_plan(Plan(steps=(step,)), registry).rstrip("\n")
    return text.split("\n", 1)[0] if isinstance(step, Each | When) else text


def _step_label(step: Step) -> str:
    match step:
        case Call():
            return f"{step.name} = {step.tool}" if step.name else step.tool
        case Extract():
            return f"{step.name} = extract"
        case Compute() | Update():
            return step.name
        case Each():
            return f"for each {', '.join(step.names)}"
        case When():
            return "if"
        case Ask():
            return f"{step.name} = ask you"
        case Answer():
            return "answer"
