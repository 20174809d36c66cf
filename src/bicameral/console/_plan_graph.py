"""The graph of a plan: its steps with their text, and which step uses what which other made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
    turns = _LoopReads()
    for path, step in walk(plan.steps):
        parts = path.split("/")
        container = _container(parts)
        names = sorted({name for each in step_expressions(step) for name in free_names(each)})
        read = [*names, *([step.name] if isinstance(step, Update) else [])]
        turns.add(found, path, step, read, makers)
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
    turns.close(found, makers)
    return found


class _LoopReads:
    """What steps of a loop read before a later step of it makes it: what an earlier turn left is there in the next one.

    Of nested loops the outermost counts: whatever is made anywhere in it is there when its next turn begins.
    """

    def __init__(self) -> None:
        self._loop = ""
        self._reads: list[tuple[int, str]] = []
        """The numbers of steps with the variables that may be from an earlier turn."""
        self._made: dict[str, set[str]] = {}
        """By variable the blocks that have made it in this turn, so that nothing of an earlier one is left there."""

    def add(
        self, found: list[PlanStep], path: str, step: Step, read: Iterable[str], makers: Mapping[str, list[str]]
    ) -> None:
        """Take in the next step, with what it reads."""
        if self._loop and not path.startswith(self._loop):
            self.close(found, makers)
        if not self._loop:
            self._loop = f"{path}/" if isinstance(step, Each) else ""
            return
        blocks = {path[: place + 1] for place, character in enumerate(path) if character == "/"}
        self._reads += [(len(found), name) for name in read if not blocks & self._made.get(name, set())]
        if not isinstance(step, Update):
            inside = f"{path}/" if isinstance(step, Each) else path[: path.rindex("/") + 1]
            for name in _made_names(step):
                self._made.setdefault(name, set()).add(inside)

    def close(self, found: list[PlanStep], makers: Mapping[str, list[str]]) -> None:
        """Link the steps of the loop that is over with those of its steps that made what they read."""
        for number, name in self._reads:
            step = found[number]
            later = [path for path in makers.get(name, ()) if path.startswith(self._loop) and path != step.path]
            found[number] = replace(step, uses=tuple(dict.fromkeys((*step.uses, *later))))
        self._loop, self._reads, self._made = "", [], {}


def _made_names(step: Step) -> Sequence[str]:
    """The variables that a step makes or changes."""
    match step:
        case Each(names=names):
            return names
        case Call(name=name) | Extract(name=name) | Compute(name=name) | Update(name=name) | Ask(name=name) if name:
            return (name,)
        case _:
            return ()


def _note_names(makers: dict[str, list[str]], path: str, step: Step, *, nested: bool) -> list[str]:
    """Note which variables a step makes; returns the earlier makers that are reached through this step from now on.

    A step in a loop or a branch may not be reached, so that earlier makers count too. They are not named without bound:
    in a long plan each step would name all those before it. Of many makers the newest stands for the others, and rests
    on them, so that no way from a source to a value is lost.
    """
    reached: list[str] = []
    for name in _made_names(step):
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


class StepGraph:
    """Which steps rest on which; by values, and by the conditions they stand in.

    Loops may lead back: what a turn adds to a list is there in the next one.
    """

    def __init__(self, steps: Iterable[PlanStep]) -> None:
        self._before = {step.path: {*step.uses, *_containers(step)} for step in steps}
        self._after: dict[str, set[str]] = {}
        for path, needed in self._before.items():
            for each in needed:
                self._after.setdefault(each, set()).add(path)

    def before(self, *paths: str) -> set[str]:
        """The steps that these rest on."""
        return _reach(self._before, paths)

    def after(self, *paths: str) -> set[str]:
        """The steps that rest on any of these."""
        return _reach(self._after, paths)


def _reach(edges: Mapping[str, set[str]], starts: Iterable[str]) -> set[str]:
    """All that is reached from several places at once: each edge is followed once, however many there are."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        for each in edges.get(waiting.pop(), set()) - found:
            found.add(each)
            waiting.append(each)
    return found


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
