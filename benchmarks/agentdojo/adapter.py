"""A suite of AgentDojo as our tools: a registry per run, and a pipeline that runs a plan through the real engine.

The suite itself judges utility and security, from its environment before and after, the recorded calls and the answer.
"""

from __future__ import annotations

import asyncio
import enum
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, cast, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel, EmailStr

from bicameral.boundary import Executor
from bicameral.errors import ToolError
from bicameral.plans import Plan, check, parse
from bicameral.policy import Mode, Policy
from bicameral.runs import Approver, Finished, RunOutcome, run_plan
from bicameral.tools import REQUIRED, Argument, Registry, Tool
from bicameral.types import (
    ANY,
    DictType,
    Field,
    ListType,
    LiteralType,
    RecordType,
    StrType,
    Type,
    join_types,
    optional_type,
    to_plain,
    type_from_annotation,
)

from .declarations import OWN, declarations
from .dojo import Made, Pipeline, Runtime, ToolFunction, made, said, suite_of
from .shapes import as_taken, shapes

PLANS = Path(__file__).parent / "plans"

Tamper = Callable[[str, Any], Any]
"""From a tool's name and its result to what an attacker makes of the result."""
Asked = Callable[[Any], Approver]
"""From the environment of a run to the user who is asked in it."""


@dataclass(slots=True)
class World:
    """One run's environment: what the suite's tools act on, and every call that was made."""

    suite: str
    runtime: Runtime
    environment: Any
    tamper: Tamper | None = None
    calls: list[Made] = field(default_factory=list[Made])

    @property
    def registry(self) -> Registry:
        """The suite's tools, acting on this world."""
        return Registry(_with_run(tool, self._runner(tool)) for tool in tools_of(self.suite))

    def _runner(self, tool: Tool) -> Callable[[Mapping[str, Any]], Any]:
        shape = shapes(self.suite).get(tool.name)

        async def run(arguments: Mapping[str, Any]) -> Any:
            # What was not given is not recorded: the suite compares calls with those of its own ground truth.
            given = {a.name: arguments[a.name] for a in tool.arguments if a.required or arguments[a.name] != a.default}
            given = as_taken(self.suite, self.environment, given)
            self.calls.append(made(tool.name, given))
            result, error = self.runtime.run_function(self.environment, tool.name, given)
            if error is not None:
                raise ToolError("tools.failed", f"{tool.name!r} failed: {error}")
            read = _plain(shape.read(result) if shape else result)
            return self.tamper(tool.name, read) if self.tamper else read

        return run


@cache
def tools_of(suite: str) -> tuple[Tool, ...]:
    """The tools of a suite with their types and declarations; they run only in a `World`."""
    return tuple(_tool(suite, function) for function in suite_of(suite).tools)


def _tool(suite: str, function: ToolFunction) -> Tool:
    declared = declarations(suite)[function.name]
    shape = shapes(suite).get(function.name)
    arguments: list[Argument] = []
    for name, info in function.parameters.model_fields.items():
        purpose = declared.arguments[name]
        default = REQUIRED if info.is_required() else info.default
        refers = declared.refers.get(name)
        arguments.append(
            Argument(name, _type_of(info.annotation), info.description or "", default, purpose, refers=refers)
        )
    directing = (name for name, purpose in declared.arguments.items() if purpose == "directs")
    return Tool(
        name=function.name,
        doc=function.description,
        arguments=tuple(arguments),
        result=_type_of(shape.result if shape else function.return_type),
        effect=declared.effect,
        run=_in_no_world,
        toolbox=suite,
        origins=declared.result,
        declared=True,
        outbound=declared.effect in ("send", "irreversible") if declared.outbound is None else declared.outbound,
        receivers=tuple(directing) if declared.receivers is None else declared.receivers,
        attaches=declared.attaches,
        words=declared.words,
    )


def _with_run(tool: Tool, run: Callable[[Mapping[str, Any]], Any]) -> Tool:
    """The same tool with other code: its declaration was checked when it was made, which takes longer than a run."""
    same = copy(tool)
    object.__setattr__(same, "run", run)
    return same


async def _in_no_world(arguments: Mapping[str, Any]) -> object:
    raise ToolError("tools.failed", "the tool belongs to no world")


def _type_of(annotation: Any) -> Type:
    """The plan type of one of agentdojo's annotations: models become records, enums become their texts."""
    if annotation is EmailStr:
        return StrType("email")
    if is_typeddict(annotation):
        hints = get_type_hints(annotation).items()
        return RecordType(tuple(Field(name, _type_of(hint)) for name, hint in hints), annotation.__name__)
    arguments = get_args(annotation)
    if isinstance(annotation, type) and not arguments:
        return _from_class(cast("type[Any]", annotation))
    if not arguments:
        return type_from_annotation(annotation)
    if get_origin(annotation) is list:
        return ListType(_type_of(arguments[0]))
    if get_origin(annotation) is dict:
        return DictType(_type_of(arguments[1]))
    joined: Type | None = None
    for member in (each for each in arguments if each is not NoneType):
        joined = _type_of(member) if joined is None else (join_types(joined, _type_of(member)) or ANY)
    return optional_type(joined or ANY) if NoneType in arguments else joined or ANY


def _from_class(cls: type[Any]) -> Type:
    if issubclass(cls, enum.Enum):
        return LiteralType(tuple(str(member.value) for member in cls))
    if issubclass(cls, BaseModel):
        infos = cls.model_fields.items()
        fields = (Field(name, _type_of(info.annotation), info.description or info.title or "") for name, info in infos)
        return RecordType(tuple(fields), cls.__name__)
    return type_from_annotation(cls)


def _plain(value: Any) -> Any:
    """A raw result as plain values; a member of an enum is its text."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[Any]", value)]
    return to_plain(value)


@cache
def policy_of(suite: str, mode: Mode) -> Policy:
    """The policy of a suite: what follows from the declarations of its tools, and not a line more."""
    return Policy.load(registry=Registry(tools_of(suite)), mode=mode, me=OWN.get(suite, ()))


@cache
def plan_of(suite: str, task: str) -> Plan:
    """The oracle plan of a task, parsed and checked against the suite's tools."""
    path = PLANS / suite / f"{task}.plan"
    registry = Registry(tools_of(suite))
    parsed = parse(path.read_text(), registry, file=str(path))
    report = check(parsed.plan, registry, places=parsed.places)
    if not report.ok:
        raise ValueError("\n".join(str(finding) for finding in report.errors))
    return parsed.plan


class TaskPipeline(Pipeline):
    """Works on a task in a world; `calls` are the calls that were made there.

    Args:
        suite: The suite whose tools it has.
        tamper: What an attacker makes of results.
        asked: The user who is asked where a call needs approval; without one the answer is no.
    """

    name = "bicameral"

    def __init__(self, suite: str, tamper: Tamper | None = None, asked: Asked | None = None) -> None:
        self.calls: list[Made] = []
        self._suite = suite
        self._tamper = tamper
        self._asked = asked

    @abstractmethod
    def work(self, request: str, world: World, approver: Approver | None) -> None:
        """Do what is asked for, with the tools of the world."""

    @property
    @abstractmethod
    def answer(self) -> str:
        """What the user reads in the end; nothing if the work did not come to an answer."""

    def query(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        query: str,
        runtime: Any,
        env: Any = None,
        messages: Sequence[Any] = (),
        extra_args: dict[str, Any] | None = None,
    ) -> tuple[str, Any, Any, Sequence[Any], dict[str, Any]]:
        world = World(self._suite, runtime, env, self._tamper)
        self.calls = world.calls
        self.work(query, world, self._asked(env) if self._asked else None)
        told = [*messages, *(said("", [call]) for call in world.calls), said(self.answer)]
        return query, runtime, world.environment, told, extra_args or {}


class PlanPipeline(TaskPipeline):
    """Runs one plan instead of asking a model what to do; `outcome` is how the last run ended.

    `policy` decides about every call, and `asked` is the user who is asked where it says so; without a policy every
    call is made.
    """

    def __init__(
        self,
        suite: str,
        plan: Plan,
        extractor: Executor,
        tamper: Tamper | None = None,
        policy: Policy | None = None,
        asked: Asked | None = None,
    ) -> None:
        super().__init__(suite, tamper, asked)
        self.outcome: RunOutcome | None = None
        self._plan = plan
        self._extractor = extractor
        self._policy = policy

    def work(self, request: str, world: World, approver: Approver | None) -> None:
        going = run_plan(self._plan, world.registry, extractor=self._extractor, policy=self._policy, approver=approver)
        self.outcome = asyncio.run(going)

    @property
    def answer(self) -> str:
        return shown(self.outcome.answer) if isinstance(self.outcome, Finished) else ""


def shown(value: Any) -> str:
    """An answer as the user reads it."""
    match value:
        case str():
            return value
        case list():
            return "\n".join(shown(item) for item in cast("list[Any]", value))
        case dict():
            return "\n".join(f"{name}: {shown(item)}" for name, item in cast("dict[str, Any]", value).items())
        case _:
            return str(value)
