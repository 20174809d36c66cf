"""Plans as flat lists of tasks: commands with arguments, where one task may read the result of an earlier one.

A command is the name of a tool, or one of the usual commands for lines with their usual options.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bicameral import types as t
from bicameral.errors import Place, PlanError, nearest_name
from bicameral.plans._expressions import Apply, Const, Expr, ListOf, Ref
from bicameral.plans._plan import Answer, Ask, Call, Plan, Step
from bicameral.tools import Argument, Registry, Tool

_DATE_FUNCTIONS: dict[type[t.Type], str] = {t.DateType: "date", t.TimeType: "time", t.DateTimeType: "datetime"}


def parse_word(word: str, argument: Argument, tool: Tool, place: Place) -> Expr:
    """The value that a word stands for where this argument is wanted."""
    value = _parse_value(word, argument.type)
    if value is None:
        message = f"{word!r} cannot be the argument {argument.name!r} of {tool.name!r}"
        place = Place(step=place.step, argument=argument.name)
        raise PlanError("plan.wrong-type", message, place=place, expected=str(argument.type))
    return value


def _parse_value(word: str, type_: t.Type) -> Expr | None:
    match type_:
        case t.OptionalType(item=item):
            return Const(value=None) if word == "null" else _parse_value(word, item)
        case t.StrType() | t.AnyType():
            return _make_const(word)
        case t.LiteralType(values=values):
            return _make_const(word) if word in values else None
        case t.BoolType():
            return Const(value=word == "true") if word in ("true", "false") else None
        case t.IntType() | t.FloatType():
            return _parse_number(word, whole=isinstance(type_, t.IntType))
        case t.DateType() | t.TimeType() | t.DateTimeType():
            return Apply(function=_DATE_FUNCTIONS[type(type_)], args=(Const(value=word),))
        case t.ListType(item=item):
            return _parse_list(word, item)
        case _:
            return None


def _make_const(value: str | int | float) -> Expr | None:
    try:
        return Const(value=value)
    except ValueError:
        return None


def _parse_number(word: str, *, whole: bool) -> Expr | None:
    try:
        return _make_const(int(word))
    except ValueError:
        pass
    try:
        return None if whole else _make_const(float(word))
    except ValueError:
        return None


def _parse_list(word: str, item: t.Type) -> Expr | None:
    """A list is written as JSON; a word that is not JSON stands for a list of itself."""
    try:
        found: Any = json.loads(word) if word.startswith("[") else [word]
    except ValueError:
        return None
    values = [
        _parse_value(one if isinstance(one, str) else json.dumps(one), item) for one in cast("Sequence[Any]", found)
    ]
    present = tuple(value for value in values if value is not None)
    return ListOf(items=present) if len(present) == len(values) else None


def _default_value(default: Any) -> Expr | None:
    """The default of an argument as an expression; None for one that no literal can say, such as a date."""
    if isinstance(default, list | tuple):
        items = [_make_const(each) for each in cast("Sequence[Any]", default)]
        return None if None in items else ListOf(items=tuple(item for item in items if item is not None))
    return _make_const(default)


def render_word(value: Expr | None) -> str | None:
    """The word for a value, or None if no word can stand for it."""
    match value:
        case Const(value=str() as text):
            return text
        case Const(value=bool() | None as other):
            return json.dumps(other)
        case Const(value=int() | float() as number):
            return repr(number)
        case Apply(function="date" | "time" | "datetime", args=(Const(value=str() as text),), named=()):
            return text
        case ListOf(items=items) if all(isinstance(item, Const) for item in items):
            return json.dumps([cast("Const", item).value for item in items], ensure_ascii=False)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class LineCommand:
    """A usual command: the tool that does its work, its switches, and its options that take a value."""

    tool: str
    switches: Mapping[str, tuple[str, bool] | None] = field(default_factory=dict[str, "tuple[str, bool] | None"])
    options: Mapping[str, tuple[str, type[int] | type[str]]] = field(
        default_factory=dict[str, "tuple[str, type[int] | type[str]]"]
    )
    reads_input: bool = True


LINE_COMMANDS: Mapping[str, LineCommand] = {
    "cat": LineCommand("read_lines", reads_input=False),
    "sort": LineCommand("sort_lines", {"-r": ("reverse", True), "-n": ("numeric", True)}),
    "uniq": LineCommand("unique_lines"),
    "grep": LineCommand(
        "grep",
        {"-i": ("ignore_case", True), "-v": ("invert", True), "-E": ("regex", True), "-F": ("regex", False)},
        {"-e": ("pattern", str)},
    ),
    "head": LineCommand("head", options={"-n": ("count", int)}),
    "tail": LineCommand("tail", options={"-n": ("count", int)}),
    "cut": LineCommand("cut", options={"-f": ("field", int), "-d": ("delimiter", str)}),
    "wc": LineCommand("count_lines", {"-l": None}),
}


@dataclass(frozen=True, slots=True)
class CommandOperands:
    """The arguments of a command: those given by an option, and the other words in order."""

    named: dict[str, Expr]
    words: list[str]
    reads_input: bool


def resolve_command(name: str, words: list[str], registry: Registry, place: Place) -> tuple[Tool, CommandOperands]:
    """The tool that a command means and its arguments as far as the command line says them."""
    command = LINE_COMMANDS.get(name)
    wanted = command.tool if command else name.replace("-", "_")
    tool = registry.get(wanted)
    if tool is None:
        known = {*registry.names, *(alias for alias, one in LINE_COMMANDS.items() if one.tool in registry)}
        raise _unknown_tool_error(name, sorted(known), place)
    if command is None:
        return tool, CommandOperands({}, list(words), reads_input=False)
    return tool, _parse_operands(name, command, words, place)


def _unknown_tool_error(name: str, known: Sequence[str], place: Place) -> PlanError:
    near = nearest_name(name, known)
    return PlanError("plan.unknown-tool", f"there is no tool {name!r}", place=place, nearest=near)


def _parse_operands(name: str, command: LineCommand, words: list[str], place: Place) -> CommandOperands:
    found = CommandOperands({}, [], command.reads_input)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            found.words.extend(rest)
            break
        if word in command.switches:
            if switch := command.switches[word]:
                found.named[switch[0]] = Const(value=switch[1])
        elif option := command.options.get(word[:2]):
            value = word[2:] or (rest.pop(0) if rest else "")
            found.named[option[0]] = _parse_option_value(word[:2], value, option[1], place)
        elif word.startswith("-") and word[1:].isdigit() and "-n" in command.options:
            found.named[command.options["-n"][0]] = Const(value=int(word[1:]))
        elif word.startswith("-") and len(word) > 1:
            known = ", ".join((*command.switches, *command.options)) or "no option"
            message = f"the option {word!r} of {name!r} is not known"
            raise PlanError("plan.unknown-argument", message, place=place, expected=known)
        else:
            found.words.append(word)
    return found


def _parse_option_value(option: str, value: str, type_: type[int] | type[str], place: Place) -> Expr:
    if type_ is str and value:
        return Const(value=value)
    if value.isascii() and value.isdigit() and len(value) < 10:
        return Const(value=int(value))
    expected = "a whole number" if type_ is int else "a text"
    raise PlanError("plan.wrong-type", f"{value!r} cannot be the value of {option!r}", place=place, expected=expected)


_INPUT_NAME = "input_file"


class _TaskModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Task(_TaskModel):
    """One command; `input_from_task` is the number of the task whose result it reads."""

    task_number: int
    command: str
    args: list[str | bool | int | float] = Field(default_factory=list[str | bool | int | float])
    input_from_task: int | None = None
    timeout_secs: int | float | None = None


class TaskList(_TaskModel):
    """The document: a description and the tasks in the order of their numbers."""

    plan_id: str = ""
    plan_description: str = ""
    tasks: list[Task] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class ImportedTasks:
    """A plan made from tasks, and notes on what of the tasks the plan cannot say."""

    plan: Plan
    notes: tuple[str, ...] = ()


def import_tasks(document: object, registry: Registry) -> ImportedTasks:
    """The plan that a list of tasks means; the last task's result is the answer.

    A command is the name of a tool, or one of `cat sort uniq grep head tail cut wc` where the tools for lines are
    there. A task that reads no other task and has no file to read asks for one.
    """
    tasks = _parse_document(document)
    importing = _TaskImporter(registry)
    try:
        for task in sorted(tasks.tasks, key=lambda task: task.task_number):
            importing.add_task(task)
        return ImportedTasks(importing.build_plan(tasks.plan_description), tuple(importing.notes))
    except ValidationError as error:  # a number or a text that no plan can hold
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise PlanError("plan.invalid", f"these tasks cannot be a plan: {message}") from None


def _parse_document(document: object) -> TaskList:
    try:
        return TaskList.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise PlanError("plan.invalid", f"this is not a list of tasks: {path}: {first['msg']}") from None


class _TaskImporter:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.steps: list[Step] = []
        self.notes: list[str] = []
        self.tools: dict[int, Tool] = {}

    def add_task(self, task: Task) -> None:
        number = task.task_number
        place = Place(step=f"task {number}")
        if number in self.tools or number < 0:
            raise PlanError("plan.invalid", f"the task number {number} is used twice or negative", place=place)
        tool, operands = resolve_command(task.command, [_argument_word(arg) for arg in task.args], self.registry, place)
        args = self._call_arguments(task, tool, operands, place)
        self._note_timeout(task, tool)
        self.tools[number] = tool
        name = None if isinstance(tool.result, t.NullType) else _result_name(number)
        self.steps.append(Call(name=name, tool=tool.name, args=args))

    def _call_arguments(self, task: Task, tool: Tool, operands: CommandOperands, place: Place) -> dict[str, Expr]:
        args = dict(operands.named)
        free = [argument for argument in tool.arguments if argument.name not in args]
        if task.input_from_task is not None:
            args |= self._input_argument(task.input_from_task, free, tool, place)
        elif free and operands.reads_input and _takes_lines(free[0]):
            args[free[0].name] = self._input_lines(operands, tool, free, place)
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

    def _input_argument(self, number: int, free: list[Argument], tool: Tool, place: Place) -> dict[str, Expr]:
        source = self.tools.get(number)
        if source is None:
            expected = f"one of {sorted(self.tools)}" if self.tools else "no input, as this task is the first"
            raise PlanError("plan.unknown-task", f"there is no earlier task {number}", place=place, expected=expected)
        if isinstance(source.result, t.NullType):
            raise PlanError("plan.wrong-type", f"the task {number} ({source.name!r}) has no result", place=place)
        if not free:
            raise PlanError("plan.unknown-argument", f"{tool.name!r} reads no input", place=place)
        return {free[0].name: Ref(name=_result_name(number))}

    def _input_lines(self, operands: CommandOperands, tool: Tool, free: list[Argument], place: Place) -> Expr:
        """What a task for lines reads without an earlier task: the file it names, or one that the person names."""
        reader = self.registry.get("read_lines")
        if reader is None or not reader.arguments:
            raise PlanError(
                "plan.missing-argument", f"{tool.name!r} has nothing to read", place=place, expected=tool.signature
            )
        needed = sum(argument.required for argument in free[1:])
        path: Expr = Ref(name=_INPUT_NAME)
        if len(operands.words) > needed:
            path = Const(value=operands.words.pop())
        elif not any(isinstance(step, Ask) for step in self.steps):
            self.steps.append(
                Ask(name=_INPUT_NAME, question=Const(value="Which file shall be read?"), type={"str": "path"})
            )
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

    def build_plan(self, goal: str) -> Plan:
        last = max(self.tools)
        void = isinstance(self.tools[last].result, t.NullType)
        answer: Expr = Const(value=None) if void else Ref(name=_result_name(last))
        return Plan(goal=goal, steps=(*self.steps, Answer(value=answer)))


def _argument_word(value: str | bool | int | float) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _result_name(number: int) -> str:
    return f"task_{number}"


def _takes_lines(argument: Argument) -> bool:
    type_ = argument.type.item if isinstance(argument.type, t.OptionalType) else argument.type
    return argument.required and isinstance(type_, t.ListType)


def export_tasks(plan: Plan, registry: Registry) -> dict[str, Any]:
    """The plan as a list of tasks; a PlanError says which step cannot be a task."""
    numbers: dict[str, int] = {}
    tasks: list[dict[str, Any]] = []
    *steps, last = plan.steps or (None,)
    for path, step in enumerate(steps):
        if not isinstance(step, Call):
            raise _export_error(path, f"a step that does {step.do!r} cannot be a task" if step else "")
        tasks.append(_export_task(step, path, len(tasks) + 1, numbers, registry))
        if step.name is not None:
            numbers[step.name] = len(tasks)
    if not tasks or not _is_answer_of(last, steps[-1] if steps else None):
        raise _export_error(len(steps), "the answer must be the result of the last task")
    return {"plan_id": str(uuid.UUID(plan.hash[:32])), "plan_description": plan.goal, "tasks": tasks}


def _is_answer_of(step: Step | None, last: Step | None) -> bool:
    match step, last:
        case Answer(value=Ref(name=name)), Call(name=result):
            return name == result
        case Answer(value=Const(value=None)), Call(name=None):
            return True
        case _:
            return False


def _export_error(path: int, reason: str) -> PlanError:
    return PlanError("plan.cannot-export", reason, place=Place(step=str(path)))


def _export_task(step: Call, path: int, number: int, numbers: Mapping[str, int], registry: Registry) -> dict[str, Any]:
    tool = registry.get(step.tool)
    if tool is None:
        raise _unknown_tool_error(step.tool, registry.names, Place(step=str(path)))
    task: dict[str, Any] = {"task_number": number, "command": tool.name, "args": []}
    given = dict(step.args)
    arguments = list(tool.arguments)
    if arguments and isinstance(first := given.get(arguments[0].name), Ref):
        if first.name not in numbers:
            raise _export_error(path, f"{first.name!r} is not the result of an earlier task")
        task["input_from_task"] = numbers[first.name]
        del given[arguments.pop(0).name]
    elif tool.name in LINE_COMMANDS and LINE_COMMANDS[tool.name].reads_input:
        raise _export_error(path, f"{tool.name!r} must read the result of an earlier task")
    words = _export_words(given, arguments, path)
    # These commands have options: a word that looks like one must not be parsed as one.
    guarded = tool.name in LINE_COMMANDS and any(word.startswith("-") for word in words)
    task["args"] = ["--", *words] if guarded else words
    timeout = tool.timeout
    return task | {"timeout_secs": int(timeout) if timeout == int(timeout) else timeout}


def _export_words(given: dict[str, Expr], arguments: list[Argument], path: int) -> list[str]:
    """The arguments by position; the ones left out in between are filled with their defaults."""
    words: list[str] = []
    for argument in arguments:
        if not given:
            break
        value = given.pop(argument.name, None)
        if value is None and argument.required:
            raise _export_error(path, f"the argument {argument.name!r} is missing")
        word = render_word(_default_value(argument.default) if value is None else value)
        if word is None:
            raise _export_error(path, f"the argument {argument.name!r} is not a plain value")
        words.append(word)
    if given:
        raise _export_error(path, f"there is no argument {next(iter(given))!r}")
    return words
