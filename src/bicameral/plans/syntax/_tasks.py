"""Plans as flat lists of tasks: commands with arguments, where one task may read the result of an earlier one.

    {"plan_id": "uuid-5678", "plan_description": "Deduplicate and find invoices",
     "tasks": [{"task_number": 1, "command": "uniq", "args": [], "timeout_secs": 30},
               {"task_number": 2, "command": "grep", "args": ["invoice"], "input_from_task": 1, "timeout_secs": 30}]}

What one task reads of another is data: it becomes the one argument that the tool takes for its input, or the standard
input of a program, and never a word of a command line. The same holds for the standard input of the whole list, which
the plan reads as the variable `input_text` or `input_lines`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bicameral import types as t
from bicameral.errors import Place, PlanError
from bicameral.plans._expressions import Apply, Arithmetic, Choose, Clause, Comprehension, Const, Expr, Ref
from bicameral.plans._plan import MAX_STEP_SECONDS, PLAN_ID_PATTERN, Answer, Ask, Call, Plan, Step
from bicameral.plans._type_rules import is_compatible
from bicameral.plans.syntax._task_words import CommandOperands, is_program, parse_word, resolve_command
from bicameral.tools import Argument, Registry, Tool

INPUT_TEXT = "input_text"
INPUT_LINES = "input_lines"
"""The variables by which a plan reads the text that is piped into its run, as a text and as its lines."""
_ASKED_FILE = "input_file"
_MAX_NUMBER = 10**9
_SHOWN_NUMBERS = 10


class _TaskModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Task(_TaskModel):
    """One command."""

    task_number: Annotated[int, Field(ge=0, le=_MAX_NUMBER)] = Field(
        description="Its number, once in a list; tasks run in the order of their numbers."
    )
    command: Annotated[str, Field(min_length=1)] = Field(
        description="A tool, a program that describes itself, or one of cat, sort, uniq, grep, head, tail, cut, wc."
    )
    args: list[str | bool | int | float] = Field(
        default_factory=list[str | bool | int | float], description="The words after the command, as they stand."
    )
    input_from_task: Annotated[int, Field(ge=0, le=_MAX_NUMBER)] | None = Field(
        default=None,
        description="The number of an earlier task whose result it reads; without it, it reads the standard input if "
        "it reads any.",
    )
    timeout_secs: Annotated[float, Field(gt=0, le=MAX_STEP_SECONDS, allow_inf_nan=False)] | None = Field(
        default=None, description="The seconds after which it is ended, with everything that it started."
    )


class TaskList(_TaskModel):
    """A plan as a list of tasks; the result of the last one is the answer."""

    plan_id: str = Field(
        default="",
        pattern=PLAN_ID_PATTERN.replace("^", "^(", 1)[:-1] + ")?$",
        description="The id of the plan; it is kept in the plan and in the record of its runs.",
    )
    plan_description: str = Field(default="", description="What the plan is for, in a sentence.")
    tasks: list[Task] = Field(min_length=1)


def tasks_schema() -> dict[str, Any]:
    """The JSON Schema of a list of tasks."""
    schema = TaskList.model_json_schema() | {"title": "Task list v1"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


@dataclass(frozen=True, slots=True)
class ImportedTasks:
    """A plan made from tasks, and notes on what of the tasks the plan cannot say."""

    plan: Plan
    notes: tuple[str, ...] = ()


def import_tasks(document: object, registry: Registry, *, piped: bool = False) -> ImportedTasks:
    """The plan that a list of tasks means; the last task's result is the answer.

    A command is the name of a tool, a program that describes itself, or one of `cat sort uniq grep head tail cut wc`
    where the tools for lines are there.

    Args:
        document: The list, as `schemas/tasks.v1.json` describes it.
        registry: The tools.
        piped: Whether a text is piped into the run: a task that reads the standard input then reads the variable
            `input_text` or `input_lines`, which the run starts with. Without, the plan asks which file to read.

    Example:
        >>> import_tasks({"tasks": [{"task_number": 1, "command": "uniq"}]}, registry, piped=True).plan
    """
    tasks = _parse_document(document)
    _check_numbers(tasks)
    importer = _TaskImporter(registry, piped)
    try:
        for task in sorted(tasks.tasks, key=lambda task: task.task_number):
            importer.add_task(task)
        return ImportedTasks(importer.build_plan(tasks), tuple(importer.notes))
    except ValidationError as error:  # a number or a text that no plan can hold
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise PlanError("plan.invalid", f"these tasks cannot be a plan: {message}") from None


def _parse_document(document: object) -> TaskList:
    try:
        return TaskList.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"] if part not in ("int", "float", "str", "bool"))
        raise PlanError(
            "plan.invalid",
            f"this is not a list of tasks: {path}: {first['msg']}",
            fix="schemas/tasks.v1.json says what a list of tasks has.",
        ) from None


def _check_numbers(tasks: TaskList) -> None:
    """Refuse numbers that are used twice, and tasks that read no task, each other, or a later one."""
    inputs: dict[int, int | None] = {}
    for task in tasks.tasks:
        if task.task_number in inputs:
            raise PlanError(
                "plan.duplicate-task",
                f"two tasks have the number {task.task_number}",
                place=_place(task.task_number),
                fix="Give each task a number of its own.",
            )
        inputs[task.task_number] = task.input_from_task
    for number, source in inputs.items():
        if source is None:
            continue
        if source not in inputs:
            raise _unknown_task_error(number, source, inputs)
        if chain := _cycle(number, inputs):
            raise PlanError(
                "plan.task-cycle",
                f"tasks wait for each other: {' → '.join(map(str, chain))}",
                place=_place(number),
                fix="A task can only read the result of an earlier one.",
            )
        if source > number:
            raise PlanError(
                "plan.task-order",
                f"task {number} reads the result of task {source}, which runs later",
                place=_place(number),
                fix="Tasks run in the order of their numbers.",
            )


def _unknown_task_error(number: int, source: int, known: Mapping[int, object]) -> PlanError:
    others = sorted(each for each in known if each < number)
    shown = ", ".join(map(str, others[-_SHOWN_NUMBERS:]))
    return PlanError(
        "plan.unknown-task",
        f"there is no task {source}",
        place=_place(number),
        expected=f"one of {shown}" if others else "no input, as this task is the first",
        nearest=str(min(others, key=lambda each: (abs(each - source), each))) if others else None,
    )


def _cycle(number: int, inputs: Mapping[int, int | None]) -> list[int]:
    """The tasks from one back to itself; empty if it is in no cycle."""
    chain, here = [number], inputs[number]
    while here is not None and here in inputs and here not in chain:
        chain.append(here)
        here = inputs[here]
    return [*chain, number] if here == number else []


def _place(number: int) -> Place:
    return Place(step=f"task {number}")


class _TaskImporter:
    def __init__(self, registry: Registry, piped: bool) -> None:
        self.registry = registry
        self.piped = piped
        self.steps: list[Step] = []
        self.notes: list[str] = []
        self.tools: dict[int, Tool] = {}

    def add_task(self, task: Task) -> None:
        number = task.task_number
        place = _place(number)
        tool, operands = resolve_command(task.command, [_argument_word(arg) for arg in task.args], self.registry, place)
        args = self._call_arguments(task, tool, operands, place)
        if task.timeout_secs is not None and task.timeout_secs > tool.timeout:
            self.notes.append(
                f"{place.step} may take {task.timeout_secs:g} s; "
                f"{tool.name!r} is ended after its own {tool.timeout:g} s"
            )
        self.tools[number] = tool
        name = None if isinstance(tool.result, t.NullType) else result_name(number)
        self.steps.append(Call(name=name, tool=tool.name, args=args, timeout_secs=task.timeout_secs))

    def _call_arguments(self, task: Task, tool: Tool, operands: CommandOperands, place: Place) -> dict[str, Expr]:
        args = dict(operands.named)
        free = [argument for argument in tool.arguments if argument.name not in args]
        sink = next((argument for argument in free if argument.name == operands.input), None)
        if task.input_from_task is not None:
            if sink is None:
                raise PlanError("plan.unknown-argument", f"{tool.name!r} reads no input", place=place)
            args[sink.name] = self._task_input(task.input_from_task, sink, tool, place)
        elif sink is not None and operands.reads_stdin:
            args[sink.name] = self._standard_input(operands, sink, tool, free, place)
        words = list(operands.words)
        for argument in free:
            if argument.name not in args and words:
                args[argument.name] = parse_word(words.pop(0), argument, tool, place)
        known = {argument.name for argument in tool.arguments}
        if extra := [*words, *(name for name in args if name not in known)]:
            raise PlanError(
                "plan.unknown-argument", f"{extra[0]!r} is one too many", place=place, expected=tool.signature
            )
        return {argument.name: args[argument.name] for argument in tool.arguments if argument.name in args}

    def _task_input(self, number: int, sink: Argument, tool: Tool, place: Place) -> Expr:
        source = self.tools[number]
        if isinstance(source.result, t.NullType):
            raise PlanError("plan.wrong-type", f"the task {number} ({source.name!r}) has no result", place=place)
        value = Ref(name=result_name(number))
        between_programs = is_program(source) and is_program(tool) and is_compatible(source.result, t.STR)
        found = ended_text(value) if between_programs else convert_input(value, source.result, sink.type)
        if found is None:
            raise PlanError(
                "plan.wrong-type",
                f"{tool.name!r} cannot read what the task {number} ({source.name!r}) gives",
                place=Place(step=place.step, argument=sink.name),
                expected=f"{sink.type}, not {source.result}",
            )
        return found

    def _standard_input(
        self, operands: CommandOperands, sink: Argument, tool: Tool, free: list[Argument], place: Place
    ) -> Expr:
        """What a task reads without an earlier task: the file it names, what is piped, or a file that is asked for."""
        lines = not is_compatible(t.STR, sink.type)
        needed = sum(argument.required for argument in free if argument is not sink)
        named = operands.names_file and len(operands.words) > needed
        if self.piped and not named:
            return Ref(name=INPUT_LINES if lines else INPUT_TEXT)
        reader = self.registry.get("read_lines" if lines else "read_text")
        if reader is None or not reader.arguments:
            raise PlanError(
                "plan.missing-argument", f"{tool.name!r} has nothing to read", place=place, expected=tool.signature
            )
        path: Expr = Ref(name=_ASKED_FILE)
        if named:
            path = Const(value=operands.words.pop())
        elif not any(isinstance(step, Ask) for step in self.steps):
            self.steps.append(
                Ask(name=_ASKED_FILE, question=Const(value="Which file shall be read?"), type={"str": "path"})
            )
            self.notes.append(f"{place.step} read the standard input; the plan asks for a file instead")
        name = f"input_{len(self.steps)}"
        self.steps.append(Call(name=name, tool=reader.name, args={reader.arguments[0].name: path}))
        return Ref(name=name)

    def build_plan(self, tasks: TaskList) -> Plan:
        last = max(self.tools)
        void = isinstance(self.tools[last].result, t.NullType)
        answer: Expr = Const(value=None) if void else Ref(name=result_name(last))
        return Plan(
            goal=tasks.plan_description, steps=(*self.steps, Answer(value=answer)), plan_id=tasks.plan_id or None
        )


def convert_input(value: Expr, given: t.Type, wanted: t.Type) -> Expr | None:
    """A result as the next task reads it: text and lines become each other, as in a pipe; None if it cannot."""
    if is_compatible(given, wanted):
        return value
    lines = t.ListType(t.STR)
    if is_compatible(given, t.STR) and is_compatible(lines, wanted):
        return Apply(function="splitlines", args=(value,))
    if not is_compatible(t.STR, wanted):
        return None
    if is_compatible(given, lines):
        return lines_text(value)
    scalar = isinstance(given, t.IntType | t.FloatType | t.BoolType | t.DateType | t.TimeType | t.DateTimeType)
    return Apply(function="str", args=(value,)) if scalar else None


def lines_text(lines: Expr) -> Expr:
    """Lines as a text in which each of them ends with a line break, the last one too: programs expect it."""
    ended = Arithmetic(op="+", left=Ref(name="line"), right=Const(value="\n"))
    every = Comprehension(element=ended, clauses=(Clause(names=("line",), over=lines),))
    return Apply(function="join", args=(Const(value=""), every))


def ended_text(text: Expr) -> Expr:
    """What a program printed, as it printed it: the line break at its end is no part of a result.

    A program that reads lines would lose the last one without it.
    """
    ended = Arithmetic(op="+", left=text, right=Const(value="\n"))
    return Choose(condition=text, then=ended, otherwise=Const(value=""))


def input_source(expr: Expr) -> str | None:
    """The variable that an argument reads, directly or converted as `convert_input` does it; None if it is neither."""
    match expr:
        case Ref(name=name) | Apply(function="splitlines" | "str", args=(Ref(name=name),), named=()):
            return name
        case Apply(args=(_, Comprehension(clauses=(Clause(over=Ref(name=name) as lines), *_)))):
            return name if expr == lines_text(lines) else None
        case Choose(condition=Ref(name=name) as text):
            return name if expr == ended_text(text) else None
        case _:
            return None


def _argument_word(value: str | bool | int | float) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def result_name(number: int) -> str:
    """The variable for the result of a task."""
    return f"task_{number}"
