"""Plans as flat lists of tasks: commands with arguments, where one task may read what an earlier one gave."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bicameral.errors import Place, PlanError, nearest
from bicameral.tools import Argument, Registry, Tool
from bicameral.types import ListType, NullType, OptionalType

from ._expressions import Const, Expr, Ref
from ._plan import Answer, Ask, Call, Plan, Step
from ._task_commands import COMMANDS, Operands, tool_for
from ._task_values import from_word, to_word

_INPUT = "input_file"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Task(_Part):
    """One command; `input_from_task` is the number of the task whose result it reads."""

    task_number: int
    command: str
    args: list[str | bool | int | float] = Field(default_factory=list[str | bool | int | float])
    input_from_task: int | None = None
    timeout_secs: int | float | None = None


class TaskList(_Part):
    """The document: a description and the tasks in the order of their numbers."""

    plan_id: str = ""
    plan_description: str = ""
    tasks: list[Task] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class ImportedTasks:
    """A plan made from tasks, and what of the tasks a plan does not say."""

    plan: Plan
    notes: tuple[str, ...] = ()


def import_tasks(document: object, registry: Registry) -> ImportedTasks:
    """The plan that a list of tasks means; the last task's result is the answer.

    A command is the name of a tool, or one of `cat sort uniq grep head tail cut wc` where the tools for lines are
    there. A task that reads no other task and has no file to read asks for one.
    """
    tasks = _document(document)
    importing = _Importing(registry)
    try:
        for task in sorted(tasks.tasks, key=lambda task: task.task_number):
            importing.add(task)
        return ImportedTasks(importing.plan(tasks.plan_description), tuple(importing.notes))
    except ValidationError as error:  # a number or a text that no plan can hold
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise PlanError("plan.invalid", f"these tasks cannot be a plan: {message}") from None


def _document(document: object) -> TaskList:
    try:
        return TaskList.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise PlanError("plan.invalid", f"this is not a list of tasks: {path}: {first['msg']}") from None


class _Importing:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.steps: list[Step] = []
        self.notes: list[str] = []
        self.tools: dict[int, Tool] = {}

    def add(self, task: Task) -> None:
        number = task.task_number
        place = Place(step=f"task {number}")
        if number in self.tools or number < 0:
            raise PlanError("plan.invalid", f"the task number {number} is used twice or negative", place=place)
        tool, operands = tool_for(task.command, [_word(arg) for arg in task.args], self.registry, place)
        args = self._arguments(task, tool, operands, place)
        self._note_timeout(task, tool)
        self.tools[number] = tool
        name = None if isinstance(tool.result, NullType) else _variable(number)
        self.steps.append(Call(name=name, tool=tool.name, args=args))

    def _arguments(self, task: Task, tool: Tool, operands: Operands, place: Place) -> dict[str, Expr]:
        args = dict(operands.named)
        free = [argument for argument in tool.arguments if argument.name not in args]
        if task.input_from_task is not None:
            args |= self._result(task.input_from_task, free, tool, place)
        elif free and operands.reads_input and _reads_lines(free[0]):
            args[free[0].name] = self._lines(operands, tool, free, place)
        words = list(operands.words)
        for argument in free:
            if argument.name not in args and words:
                args[argument.name] = from_word(words.pop(0), argument, tool, place)
        known = {argument.name for argument in tool.arguments}
        if extra := [*words, *(name for name in args if name not in known)]:
            raise PlanError(
                "plan.unknown-argument", f"{extra[0]!r} is one too many", place=place, expected=tool.signature
            )
        return {argument.name: args[argument.name] for argument in tool.arguments if argument.name in args}

    def _result(self, number: int, free: list[Argument], tool: Tool, place: Place) -> dict[str, Expr]:
        source = self.tools.get(number)
        if source is None:
            raise PlanError(
                "plan.unknown-task",
                f"there is no earlier task {number}",
                place=place,
                expected=f"one of {sorted(self.tools)}" if self.tools else "no input, as this task is the first",
            )
        if isinstance(source.result, NullType):
            raise PlanError("plan.wrong-type", f"the task {number} ({source.name!r}) has no result", place=place)
        if not free:
            raise PlanError("plan.unknown-argument", f"{tool.name!r} reads no input", place=place)
        return {free[0].name: Ref(name=_variable(number))}

    def _lines(self, operands: Operands, tool: Tool, free: list[Argument], place: Place) -> Expr:
        """What a task for lines reads without an earlier task: the file it names, or one that the person names."""
        reader = self.registry.get("read_lines")
        if reader is None or not reader.arguments:
            raise PlanError(
                "plan.missing-argument", f"{tool.name!r} has nothing to read", place=place, expected=tool.signature
            )
        needed = sum(argument.required for argument in free[1:])
        path: Expr = Ref(name=_INPUT)
        if len(operands.words) > needed:
            path = Const(value=operands.words.pop())
        elif not any(isinstance(step, Ask) for step in self.steps):
            self.steps.append(Ask(name=_INPUT, question=Const(value="Which file shall be read?"), type={"str": "path"}))
            self.notes.append(f"{place.step} read the standard input; the plan asks for a file instead")
        name = f"input_{len(self.steps)}"
        self.steps.append(Call(name=name, tool=reader.name, args={reader.arguments[0].name: path}))
        return Ref(name=name)

    def _note_timeout(self, task: Task, tool: Tool) -> None:
        if task.timeout_secs is not None and task.timeout_secs != tool.timeout:
            self.notes.append(
                f"task {task.task_number} has a timeout of {task.timeout_secs} s; "
                f"{tool.name!r} keeps its own {tool.timeout:g} s"
            )

    def plan(self, goal: str) -> Plan:
        last = max(self.tools)
        void = isinstance(self.tools[last].result, NullType)
        answer: Expr = Const(value=None) if void else Ref(name=_variable(last))
        return Plan(goal=goal, steps=(*self.steps, Answer(value=answer)))


def _word(value: str | bool | int | float) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _variable(number: int) -> str:
    return f"task_{number}"


def _reads_lines(argument: Argument) -> bool:
    type_ = argument.type.item if isinstance(argument.type, OptionalType) else argument.type
    return argument.required and isinstance(type_, ListType)


def export_tasks(plan: Plan, registry: Registry) -> dict[str, Any]:
    """The plan as a list of tasks; a PlanError says which step has no place in one."""
    numbers: dict[str, int] = {}
    tasks: list[dict[str, Any]] = []
    *steps, last = plan.steps or (None,)
    for path, step in enumerate(steps):
        if not isinstance(step, Call):
            raise _cannot(path, f"a step that does {step.do!r} cannot be a task" if step else "")
        tasks.append(_task(step, path, len(tasks) + 1, numbers, registry))
        if step.name is not None:
            numbers[step.name] = len(tasks)
    if not tasks or not _answers_last(last, steps[-1] if steps else None):
        raise _cannot(len(steps), "the answer must be the result of the last task")
    return {
        "plan_id": str(uuid.UUID(plan.hash[:32])),
        "plan_description": plan.goal,
        "tasks": tasks,
    }


def _answers_last(step: Step | None, last: Step | None) -> bool:
    match step, last:
        case Answer(value=Ref(name=name)), Call(name=result):
            return name == result
        case Answer(value=Const(value=None)), Call(name=None):
            return True
        case _:
            return False


def _cannot(path: int, reason: str) -> PlanError:
    return PlanError("plan.cannot-export", reason, place=Place(step=str(path)))


def _task(step: Call, path: int, number: int, numbers: Mapping[str, int], registry: Registry) -> dict[str, Any]:
    tool = registry.get(step.tool)
    if tool is None:
        raise PlanError(
            "plan.unknown-tool",
            f"there is no tool {step.tool!r}",
            place=Place(step=str(path)),
            nearest=nearest(step.tool, registry.names),
        )
    task: dict[str, Any] = {"task_number": number, "command": tool.name, "args": []}
    given = dict(step.args)
    arguments = list(tool.arguments)
    if arguments and isinstance(first := given.get(arguments[0].name), Ref):
        if first.name not in numbers:
            raise _cannot(path, f"{first.name!r} is not the result of an earlier task")
        task["input_from_task"] = numbers[first.name]
        del given[arguments.pop(0).name]
    elif tool.name in COMMANDS and COMMANDS[tool.name].reads_input:
        raise _cannot(path, f"{tool.name!r} must read the result of an earlier task")
    words = _words(given, arguments, path)
    # These commands have options: a word that looks like one must not be taken for it.
    guarded = tool.name in COMMANDS and any(word.startswith("-") for word in words)
    task["args"] = ["--", *words] if guarded else words
    timeout = tool.timeout
    return task | {"timeout_secs": int(timeout) if timeout == int(timeout) else timeout}


def _words(given: dict[str, Expr], arguments: list[Argument], path: int) -> list[str]:
    """The arguments by position; the ones left out in between are filled with their defaults."""
    words: list[str] = []
    for argument in arguments:
        if not given:
            break
        value = given.pop(argument.name, None)
        if value is None and argument.required:
            raise _cannot(path, f"the argument {argument.name!r} is missing")
        word = to_word(value) if value is not None else to_word(Const(value=argument.default))
        if word is None:
            raise _cannot(path, f"the argument {argument.name!r} is not a plain value")
        words.append(word)
    if given:
        raise _cannot(path, f"there is no argument {next(iter(given))!r}")
    return words
