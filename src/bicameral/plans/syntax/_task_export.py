"""Plans as lists of tasks, and what of a plan such a list cannot say.

A list is written only if reading it gives the same plan again: otherwise it would do something else. What is in the
way is told for every step.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from bicameral import types as t
from bicameral.errors import Place, PlanError
from bicameral.plans._expressions import Const, Expr, ListOf, Ref
from bicameral.plans._plan import Answer, Call, Plan, Step, rewrite_steps
from bicameral.plans.syntax._task_words import (
    LINE_COMMANDS,
    default_value,
    input_argument,
    is_program,
    line_command,
    render_word,
    unknown_tool_error,
)
from bicameral.plans.syntax._tasks import INPUT_LINES, INPUT_TEXT, import_tasks, input_source, result_name
from bicameral.tools import Argument, Registry, Tool

GapKind = Literal["loop", "condition", "computation", "model", "question", "argument", "input", "answer", "tool"]
"""What a list of tasks has no words for."""
_STEP_GAPS: Mapping[str, tuple[GapKind, str]] = {
    "each": ("loop", "a task list has no loops"),
    "when": ("condition", "a task list has no conditions"),
    "compute": ("computation", "a task list computes nothing itself"),
    "update": ("computation", "a task list computes nothing itself"),
    "extract": ("model", "a task list has no step that reads with the quarantined model"),
    "ask": ("question", "a task list asks nobody"),
    "answer": ("answer", "a task list has one answer, at its end"),
}


@dataclass(frozen=True, slots=True)
class ExportGap:
    """Something in a plan that a list of tasks cannot say."""

    step: str
    kind: GapKind
    reason: str

    def __str__(self) -> str:
        return f"step {self.step}: {self.reason} ({self.kind})"

    def to_json(self) -> dict[str, str]:
        return {"step": self.step, "kind": self.kind, "reason": self.reason}


class ExportError(PlanError):
    """A plan cannot be a list of tasks; `gaps` has every reason."""

    def __init__(self, gaps: tuple[ExportGap, ...]) -> None:
        first, more = gaps[0], len(gaps) - 1
        message = f"a list of tasks cannot say this plan: {first.reason}"
        super().__init__(
            "plan.cannot-export",
            message + (f" (and {more} more reason{'s' if more > 1 else ''})" if more else ""),
            place=Place(step=first.step),
            fix="Keep the plan as JSON or in Python syntax.",
        )
        self.gaps = gaps

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"gaps": [gap.to_json() for gap in self.gaps]}


def export_tasks(plan: Plan, registry: Registry) -> dict[str, Any]:
    """The plan as a list of tasks; an ExportError says which steps cannot be tasks, and why.

    `import_tasks` with `piped=True` reads the same plan from it, with other names for the results.

    Example:
        >>> export_tasks(parse('lines = read_lines("a.txt")\\nanswer(lines)', registry).plan, registry)["tasks"]
        [{'task_number': 1, 'command': 'read_lines', 'args': ['a.txt']}]
    """
    exporter = _TaskExporter(registry)
    steps, last = plan.steps[:-1], plan.steps[-1] if plan.steps else None
    for path, step in enumerate(steps):
        exporter.add_step(str(path), step)
    if not steps or not _is_answer_of(last, steps[-1]):
        exporter.add_gap(str(len(steps)), "answer", "the answer of a task list is the result of its last task")
    if exporter.gaps:
        raise ExportError(tuple(exporter.gaps))
    plan_id = plan.plan_id or str(uuid.UUID(plan.hash[:32]))
    document = {"plan_id": plan_id, "plan_description": plan.goal, "tasks": exporter.tasks}
    _check_same_plan(document, plan, plan_id, registry)
    return document


class _TaskExporter:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.tasks: list[dict[str, Any]] = []
        self.gaps: list[ExportGap] = []
        self.numbers: dict[str, int] = {}

    def add_gap(self, path: str, kind: GapKind, reason: str) -> None:
        self.gaps.append(ExportGap(path, kind, reason))

    def add_step(self, path: str, step: Step) -> None:
        if not isinstance(step, Call):
            self.add_gap(path, *_STEP_GAPS[step.do])
            return
        tool = self.registry.get(step.tool)
        if tool is None:
            error = unknown_tool_error(step.tool, self.registry.names, Place(step=path))
            self.add_gap(path, "tool", str(error))
            return
        number = len(self.tasks) + 1
        task: dict[str, Any] = {"task_number": number, "command": tool.name, "args": []}
        given = dict(step.args)
        self._add_input(path, task, tool, given)
        usual = None if is_program(tool) else line_command(tool.name, given)
        if usual is not None:
            task["command"], task["args"] = usual
        else:
            task["args"] = self._words(path, tool, given)
        if step.timeout_secs is not None:
            seconds = step.timeout_secs
            task["timeout_secs"] = int(seconds) if seconds.is_integer() else seconds
        self.tasks.append(task)
        if step.name is not None:
            self.numbers[step.name] = number

    def _add_input(self, path: str, task: dict[str, Any], tool: Tool, given: dict[str, Expr]) -> None:
        """Say which task the input comes from, and leave it out of the arguments that become words."""
        name = input_argument(tool)
        source = None if name is None or name not in given else input_source(given[name])
        if name is None or source is None:
            if tool.name in LINE_COMMANDS and LINE_COMMANDS[tool.name].reads_input:
                self.add_gap(path, "input", f"{tool.name!r} reads the result of an earlier task, and nothing else")
            return
        if source in self.numbers:
            task["input_from_task"] = self.numbers[source]
        elif source not in (INPUT_TEXT, INPUT_LINES):
            self.add_gap(path, "input", f"{source!r} is not the result of an earlier task")
        del given[name]

    def _words(self, path: str, tool: Tool, given: Mapping[str, Expr]) -> list[str]:
        known = {argument.name for argument in tool.arguments}
        for name, value in given.items():
            if name not in known:
                self.add_gap(path, "argument", f"there is no argument {name!r}")
            elif render_word(value) is None:
                self.add_gap(path, "argument", f"the argument {name!r} is not a plain value")
        if self.gaps and self.gaps[-1].step == path:
            return []
        if is_program(tool):
            return self._program_words(path, tool, given)
        return self._positional_words(path, tool, given)

    def _program_words(self, path: str, tool: Tool, given: Mapping[str, Expr]) -> list[str]:
        from bicameral.tools import command_words, stdin_argument

        if stdin_argument(tool) in given:
            self.add_gap(path, "input", f"the standard input of {tool.name!r} is not the result of an earlier task")
        values = {name: _plain_value(value) for name, value in given.items()}
        return command_words(tool, values)

    def _positional_words(self, path: str, tool: Tool, given: Mapping[str, Expr]) -> list[str]:
        """The arguments by position; the ones left out in between are filled with their defaults."""
        left, words, fed = dict(given), list[str](), input_argument(tool)
        for argument in tool.arguments:
            if not left:
                break
            value = left.pop(argument.name, None)
            if value is None and argument.name == fed and argument.required:
                continue
            if value is None and argument.required:
                self.add_gap(path, "argument", f"the argument {argument.name!r} is missing")
                return []
            word = render_word(default_value(argument.default) if value is None else value)
            if word is None:
                self.add_gap(
                    path, "argument", f"the argument {argument.name!r} has a default that is not a plain value"
                )
                return []
            words.append(word)
        # These commands have options: a word that looks like one must not be parsed as one.
        guarded = tool.name in LINE_COMMANDS and any(word.startswith("-") for word in words)
        return ["--", *words] if guarded else words


def _plain_value(expr: Expr) -> Any:
    match expr:
        case Const(value=value):
            return value
        case ListOf(items=items):
            return [cast("Const", item).value for item in items]
        case _:
            return None


def _is_answer_of(step: Step | None, last: Step | None) -> bool:
    match step, last:
        case Answer(value=Ref(name=name)), Call(name=result):
            return name == result
        case Answer(value=Const(value=None)), Call(name=None):
            return True
        case _:
            return False


def _check_same_plan(document: dict[str, Any], plan: Plan, plan_id: str, registry: Registry) -> None:
    """Refuse a list that would be read as another plan."""
    wanted = _canonical(plan.model_copy(update={"plan_id": plan_id}), registry)
    try:
        found = _canonical(import_tasks(document, registry, piped=True).plan, registry)
    except PlanError as error:
        step = "0" if error.place is None or error.place.step is None else error.place.step
        raise ExportError(
            (ExportGap(step, "argument", f"the list could not be read again: {error.message}"),)
        ) from None
    if found == wanted:
        return
    pairs = enumerate(zip(found.steps, wanted.steps, strict=False))
    path = next((str(number) for number, (one, other) in pairs if one != other), "0")
    raise ExportError((ExportGap(path, "argument", "the list would be read as another plan"),))


def _canonical(plan: Plan, registry: Registry) -> Plan:
    """The plan with results named by position, arguments in the order of the tools, and without given defaults."""
    names: dict[str, str] = {}

    def rename(expr: Any) -> Any:
        return Ref(name=names[expr.name]) if isinstance(expr, Ref) and expr.name in names else expr

    steps: list[Step] = []
    for number, step in enumerate(plan.steps, 1):
        (renamed,) = rewrite_steps((step,), lambda step: step, rename)
        steps.append(_canonical_step(number, renamed, registry))
        # Only now: a step reads what its name stood for before.
        if isinstance(step, Call) and step.name is not None:
            names[step.name] = result_name(number)
    return plan.model_copy(update={"steps": tuple(steps)})


def _canonical_step(number: int, step: Step, registry: Registry) -> Step:
    tool = registry.get(step.tool) if isinstance(step, Call) else None
    if tool is None or not isinstance(step, Call):
        return step
    args = {
        argument.name: step.args[argument.name]
        for argument in tool.arguments
        if argument.name in step.args and not _is_default(step.args[argument.name], argument)
    }
    name = None if isinstance(tool.result, t.NullType) else result_name(number)
    return step.model_copy(update={"name": name, "args": args})


def _is_default(value: Expr, argument: Argument) -> bool:
    return not argument.required and value == default_value(argument.default)
