"""Declaring tools: `@tool` for typed functions, `Toolbox` for tools with settings, `Registry` for those in use."""

from __future__ import annotations

import hashlib
import inspect
import os
import unicodedata
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from copy import copy
from dataclasses import dataclass, field, is_dataclass, replace
from datetime import datetime
from functools import cache, cached_property, partial
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, cast, get_args, overload

from pydantic import BaseModel, ConfigDict

from bicameral.errors import ToolError, nearest_name
from bicameral.tools._argument import EFFECTS, PURPOSES, REQUIRED, UNDECLARED, Argument, Effect, Purpose, ReferenceKind
from bicameral.tools._call_identity import function_code_hash
from bicameral.tools._call_labels import AttachedOrigins, attached_origins
from bicameral.tools._folders import Folders
from bicameral.tools._function_signature import docstring_arguments, require_function
from bicameral.tools._missing_settings import MissingSetting
from bicameral.tools._origins import Origin, Origins
from bicameral.tools._path_rules import FindTarget
from bicameral.tools._tool import OwnershipTest, RefineResult, Tool
from bicameral.types import (
    Type,
    annotation_doc,
    mismatch,
    nearest_annotation,
    signature_hints,
    to_plain,
    type_from_annotation,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pydantic import TypeAdapter


class ToolFacts(TypedDict, total=False):
    """What `@tool` declares of a function; `Tool` says what each fact means."""

    effect: Effect
    name: str | None
    timeout: float
    idempotent: bool | None
    keyed: bool
    purpose: Mapping[str, Purpose] | None
    words: tuple[str, ...]
    accepts: Sequence[str]
    gives: Sequence[str]
    capabilities: Sequence[str]
    configured: Mapping[str, tuple[str, ...]]
    field_of: Mapping[str, str] | None
    refers: Mapping[str, ReferenceKind] | None
    refine: RefineResult | None
    origins: Origin | Origins | None
    outbound: bool | None
    receivers: tuple[str, ...] | None
    attaches: AttachedOrigins | Sequence[str] | None
    hosts: tuple[str, ...]
    keeps: str | None
    itemised: str | None
    columnar: bool
    owned: OwnershipTest | None
    attached_in: Folders | None
    target: FindTarget | None
    files_only: bool
    toolbox: str
    version: str


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(**facts: Unpack[ToolFacts]) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, **facts: Unpack[ToolFacts]
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function; its docstring and `Annotated[T, "what it is"]` document it.

    A tool that does not declare its effect gets the worst one (`irreversible`), and then each of its arguments is taken
    to direct that effect. Pure and reading tools are idempotent unless they declare otherwise; a `keyed` one does the
    same thing once for one `call_key()`. A single origin counts for the whole result. Every other fact that is left out
    gets the worst case, too: see `Tool`.

    Example:
        >>> @tool(effect="pure")
        ... def shout(text: str) -> str:
        ...     "Upper case, with feeling."
        ...     return text.upper() + "!"
        >>> shout.signature
        'shout(text: str) -> str'
    """
    if unknown := sorted(facts.keys() - ToolFacts.__annotations__.keys()):
        raise TypeError(f"tool() got an unexpected keyword argument {unknown[0]!r}")

    def wrap(function: Callable[..., Any]) -> Tool:
        return _tool_from_function(function, {name: fact for name, fact in facts.items() if fact is not None})

    return wrap(function) if function is not None else wrap


def _tool_from_function(function: Callable[..., Any], facts: dict[str, Any]) -> Tool:
    require_function(function)
    effect, name = facts.pop("effect", "irreversible"), facts.pop("name", "") or function.__name__
    purpose, field_of = facts.pop("purpose", {}), facts.pop("field_of", {})
    refers: Mapping[str, ReferenceKind] = facts.pop("refers", {})
    facts.setdefault("idempotent", effect in ("pure", "read"))
    if isinstance(origin := facts.get("origins"), Origin):
        facts["origins"] = {"": origin}
    if "attaches" in facts:
        facts["attaches"] = attached_origins(facts["attaches"])
    for several in ("receivers", "hosts", "accepts", "gives", "capabilities"):
        if several in facts:
            facts[several] = tuple(facts[several])
    if effect not in EFFECTS:
        raise ToolError("tools.unknown-effect", f"{name!r} has the effect {effect!r}", expected=", ".join(EFFECTS))
    parameters = inspect.signature(function).parameters
    hints = _resolve_hints(function, name)
    for given, kind in purpose.items():
        if given not in parameters:
            raise ToolError(
                "tools.unknown-argument",
                f"{name!r} gives a purpose to {given!r}, which it does not have",
                nearest=nearest_name(given, parameters),
            )
        if kind not in PURPOSES:
            raise ToolError("tools.unknown-purpose", f"{name!r}: {kind!r}", expected=", ".join(PURPOSES))
    arguments: list[Argument] = []
    documented = docstring_arguments(function)
    for parameter in parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolError(
                "tools.bad-signature",
                f"{name!r}: {parameter} cannot be an argument of a tool",
                expected="arguments that can be given by their names",
                fix=f"Take a list: `{parameter.name}: list[str]`."
                if parameter.kind is parameter.VAR_POSITIONAL
                else None,
            )
        if parameter.name not in hints:
            raise ToolError(
                "tools.untyped",
                f"{name!r}: the argument {parameter.name!r} has no type",
                fix=f"Annotate it, such as `{parameter.name}: str`.",
            )
        type_ = _argument_type(hints[parameter.name], name, parameter.name)
        arguments.append(
            Argument(
                parameter.name,
                type_,
                annotation_doc(hints[parameter.name]) or documented.get(parameter.name, ""),
                REQUIRED if parameter.default is parameter.empty else _check_default(parameter, type_, name),
                purpose.get(parameter.name, UNDECLARED),
                field_of.get(parameter.name),
                refers.get(parameter.name),
            )
        )
    if "return" not in hints:
        raise ToolError("tools.untyped", f"{name!r} does not say what it returns", fix="Annotate it with `-> type`.")
    return Tool(
        name=name,
        doc=inspect.getdoc(function) or "",
        arguments=tuple(arguments),
        result=_argument_type(hints["return"], name, "return"),
        effect=effect,
        run=_make_runner(function, _argument_builders(parameters, hints), pure=effect == "pure"),
        code=function_code_hash(function),
        **facts,
    )


def _resolve_hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return signature_hints(function)
    except NameError as error:
        raise ToolError("tools.untyped", f"{name!r} has an annotation that does not resolve: {error}") from None


def _argument_type(annotation: object, tool_name: str, argument: str) -> Any:
    try:
        return type_from_annotation(annotation)
    except (TypeError, NameError) as error:
        raise ToolError(
            "tools.untyped", f"{tool_name!r}, {argument!r}: {error}", nearest=nearest_annotation(annotation)
        ) from None


def _check_default(parameter: inspect.Parameter, type_: Type, tool_name: str) -> Any:
    try:
        reason = mismatch(to_plain(parameter.default), type_, "the default")
    except TypeError as error:
        reason = str(error)
    if reason:
        raise ToolError(
            "tools.bad-default",
            f"{tool_name!r}, {parameter.name!r}: {reason}",
            fix="Mend the default or its annotation.",
        )
    return parameter.default


def _argument_builders(parameters: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, TypeAdapter[Any]]:
    """How to make of a plan's plain value what a function asks for: a Path, a dataclass, a pydantic model."""
    wanted = [name for name in parameters if _needs_builder(hints[name])]
    if not wanted:
        return {}
    from pydantic import TypeAdapter

    return {name: TypeAdapter(hints[name]) for name in wanted}


def _needs_builder(annotation: object) -> bool:
    if isinstance(annotation, type) and not get_args(annotation):
        cls = cast("type[object]", annotation)
        return issubclass(cls, Path | BaseModel) or is_dataclass(cls)
    return any(map(_needs_builder, get_args(annotation)))


def _make_runner(
    function: Callable[..., Any], builders: Mapping[str, TypeAdapter[Any]], *, pure: bool
) -> Callable[[Mapping[str, Any]], Any]:
    def built(arguments: Mapping[str, Any]) -> dict[str, Any]:
        made = {name: builder.validate_python(arguments[name]) for name, builder in builders.items()}
        return {**arguments, **made}

    if inspect.iscoroutinefunction(function):

        async def run_async(arguments: Mapping[str, Any]) -> object:
            return await function(**built(arguments))

        return run_async

    async def run_sync(arguments: Mapping[str, Any]) -> object:
        # A pure function is quick; everything else may wait for a disk or a network and must not hold up the loop.
        ready = built(arguments)
        if pure:
            return function(**ready)
        import asyncio

        context = copy_context()

        def work() -> object:
            with _counted_call():
                return context.run(_convert_stop_iteration, partial(function, **ready))

        return await asyncio.get_running_loop().run_in_executor(_tool_threads(), work)

    return run_sync


def _convert_stop_iteration(work: Callable[[], object]) -> object:
    """No future can hold a StopIteration: whoever waits for it would never hear of it."""
    try:
        return work()
    except StopIteration as error:
        raise RuntimeError("it ran out of items (StopIteration)") from error


_running: set[object] = set()
"""A mark for each call that a thread is in. Adding and removing one are atomic, so that no lock is needed."""


@contextmanager
def _counted_call() -> Generator[None]:
    call = object()
    _running.add(call)
    try:
        yield
    finally:
        _running.discard(call)


def has_running_calls() -> bool:
    """Whether a thread is in a call of a tool, also one that nobody waits for any more.

    A thread cannot be stopped: a program that ends while this is true would wait for the tool, however long it takes.
    """
    return bool(_running)


@cache
def _tool_threads() -> Executor:
    """Threads for tools that wait. The loop's own pool is so small that waiting for it would count as a time-out."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(64, "bicameral-tool")


class Settings(BaseModel):
    """What a user can set for a toolbox in `bicameral.toml`; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def local_now() -> datetime:
    """The time now, with the machine's time zone."""
    return datetime.now().astimezone()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every toolbox may use of the machine: the folders, the clock, the environment for secrets."""

    folders: Folders
    now: Callable[[], datetime] = local_now
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    closers: list[Callable[[], None]] = field(default_factory=list["Callable[[], None]"], repr=False, compare=False)
    """What ends with the agent whose surroundings these are; copies of them share the list."""

    def close(self) -> None:
        """End what toolboxes have begun in the background; called when the agent is closed."""
        while self.closers:
            self.closers.pop()()

    @classmethod
    def here(cls, folder: Path | None = None) -> Surroundings:
        """The defaults: everything under one folder (the working folder) may be read and written."""
        base = folder or Path.cwd()
        return cls(Folders(base=base, read=(base,), write=(base,)))


SettingsT = TypeVar("SettingsT", bound=Settings)


def _no_kept_paths(_settings: Settings) -> Sequence[str]:
    return ()


def _nothing_missing(_settings: Settings, _surroundings: Surroundings) -> Sequence[MissingSetting]:
    return ()


@dataclass(frozen=True, slots=True)
class Toolbox(Generic[SettingsT]):
    """A named group of tools. An entry point or a Python file offers one of these.

    `keeps` are the files and folders that its tools keep themselves, from its settings: no other tool may change them.
    `lacks` says which of its tools cannot work with its settings, and `unready` which cannot since what the settings
    name is not there now.

    Example:
        >>> toolbox = Toolbox("greetings", "Say hello.", Settings, lambda settings, surroundings: [hello])
    """

    name: str
    doc: str
    settings: type[SettingsT]
    build: Callable[[SettingsT, Surroundings], Sequence[Tool]]
    keeps: Callable[[SettingsT], Sequence[str]] = _no_kept_paths
    lacks: Callable[[SettingsT, Surroundings], Sequence[MissingSetting]] = _nothing_missing
    unready: Callable[[SettingsT, Surroundings], Sequence[MissingSetting]] = _nothing_missing

    def open(self, surroundings: Surroundings, settings: Mapping[str, Any] | None = None) -> list[Tool]:
        """The toolbox's tools with these settings; pydantic's ValidationError says what is wrong with them."""
        return self.build_tools(self.settings.model_validate(dict(settings or {})), surroundings)

    def build_tools(self, settings: SettingsT, surroundings: Surroundings) -> list[Tool]:
        """The toolbox's tools with settings that are validated already."""
        if kept := self.keeps(settings):
            surroundings = replace(surroundings, folders=surroundings.folders.exempting(*kept))
        return [_with_toolbox(tool, self.name) for tool in self.build(settings, surroundings)]


def _with_toolbox(tool: Tool, name: str) -> Tool:
    """A copy of a tool, as one of a toolbox. A copy, since several openings of a toolbox may share a tool.

    Not with `replace`, which makes every check of the declaration again: no check and no label reads the toolbox.
    """
    made = copy(tool)
    object.__setattr__(made, "toolbox", name)
    return made


_RESERVED_NAMES = frozenset({"request", "ask", "extract", "lookup", "endorsed", "unknown"})
"""What the runtime itself brings in is labelled with these names: a tool of such a name could pass for the user."""


class Registry:
    """An immutable set of tools with unique names.

    A plain typed function is taken as `@tool` takes it without any fact: as irreversible, with arguments that direct it
    and a result that nobody vouches for. So each of its calls must be asked for or approved.

    Example:
        >>> registry = Registry([grep, sort])
        >>> registry["grep"].signature
        'grep(lines: list[str], pattern: str) -> list[str]'
    """

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for given in tools:
            tool = given if isinstance(given, Tool) else _tool_from_function(given, {})
            if not _is_callable_name(tool.name):
                raise ToolError(
                    "tools.bad-name",
                    f"{tool.name!r} cannot be the name of a tool",
                    expected="a Python identifier that is no keyword and does not begin with '_'",
                )
            if tool.name in _RESERVED_NAMES:
                raise ToolError(
                    "tools.bad-name",
                    f"{tool.name!r} is what the runtime calls its own values, so no tool can be named so",
                )
            if other := self._tools.get(tool.name):
                raise ToolError(
                    "tools.duplicate",
                    f"two tools are named {tool.name!r}: {_where_from(other)}, {_where_from(tool)}",
                    fix="Rename one, such as with @tool(name=…), or leave one out.",
                )
            self._tools[tool.name] = tool

    def __getitem__(self, name: str) -> Tool:
        try:
            return self._tools[name]
        except KeyError:
            raise ToolError(
                "tools.unknown", f"there is no tool {name!r}", nearest=nearest_name(name, self._tools)
            ) from None

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def subset(self, names: Iterable[str]) -> Registry:
        """Only these tools, in the registry's own order."""
        wanted = set(names)
        return Registry(tool for tool in self if tool.name in wanted)

    def without(self, names: Iterable[str]) -> Registry:
        """All tools but these."""
        left_out = set(names)
        return Registry(tool for tool in self if tool.name not in left_out) if left_out else self

    def __add__(self, other: Registry) -> Registry:
        return Registry([*self, *other])

    @cached_property
    def executor_tools(self) -> tuple[Tool, ...]:
        """The tools that the read-only executor may call by itself."""
        return tuple(tool for tool in self if tool.for_executor)

    def with_executor_tools(self, names: Iterable[str]) -> Registry:
        """The same tools, of which the read-only executor may call exactly these by itself."""
        wanted = {self[name].name for name in names}
        marked = {tool.name: tool.name in wanted for tool in self}
        return Registry(
            tool if tool.for_executor is marked[tool.name] else replace(tool, for_executor=marked[tool.name])
            for tool in self
        )

    @cached_property
    def fingerprint(self) -> str:
        """A hash over every tool's description."""
        return hashlib.sha256("".join(tool.fingerprint for tool in self).encode()).hexdigest()


def _where_from(tool: Tool) -> str:
    return f"one of {tool.toolbox!r}" if tool.toolbox else "one of no toolbox"


def _is_callable_name(name: str) -> bool:
    # Python reads every name in its normal form: a tool with any other spelling could never be named by a plan.
    normal = unicodedata.normalize("NFKC", name) == name
    return normal and name.isidentifier() and not iskeyword(name) and not name.startswith("_")
