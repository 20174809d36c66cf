"""Tools from typed Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args, overload

from pydantic import BaseModel

from bicameral.errors import ToolError, nearest
from bicameral.types import Type, annotation_doc, from_annotation, mismatch, plain, signature_hints

from ._attached import Attaches, origins_of_named
from ._code import code_of_function
from ._executed import FindTarget
from ._folders import Folders
from ._origins import Origin, Origins
from ._tool import EFFECTS, PURPOSES, REQUIRED, UNSAID, Argument, Effect, Owned, Purpose, Refine, Tool

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pydantic import TypeAdapter


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    effect: Effect = ...,
    name: str | None = ...,
    timeout: float = ...,
    idempotent: bool | None = ...,
    keyed: bool = ...,
    purpose: Mapping[str, Purpose] | None = ...,
    words: tuple[str, ...] = ...,
    field_of: Mapping[str, str] | None = ...,
    refine: Refine | None = ...,
    origins: Origin | Origins | None = ...,
    outbound: bool | None = ...,
    receivers: tuple[str, ...] | None = ...,
    attaches: Attaches | Sequence[str] | None = ...,
    hosts: tuple[str, ...] = ...,
    keeps: str | None = ...,
    owned: Owned | None = ...,
    attached_in: Folders | None = ...,
    target: FindTarget | None = ...,
    toolbox: str = ...,
    version: str = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    effect: Effect = "irreversible",
    name: str | None = None,
    timeout: float = 30.0,
    idempotent: bool | None = None,
    keyed: bool = False,
    purpose: Mapping[str, Purpose] | None = None,
    words: tuple[str, ...] = (),
    field_of: Mapping[str, str] | None = None,
    refine: Refine | None = None,
    origins: Origin | Origins | None = None,
    outbound: bool | None = None,
    receivers: tuple[str, ...] | None = None,
    attaches: Attaches | Sequence[str] | None = None,
    hosts: tuple[str, ...] = (),
    keeps: str | None = None,
    owned: Owned | None = None,
    attached_in: Folders | None = None,
    target: FindTarget | None = None,
    toolbox: str = "",
    version: str = "1",
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function; its docstring and `Annotated[T, "what it is"]` document it.

    A tool that does not say its effect is taken for the worst one (`irreversible`), and then each of its arguments
    is taken to direct that effect. Pure and reading tools are idempotent unless they say otherwise; a `keyed` one does
    the same thing once for one `call_key()`. A single origin counts for the whole result. What else is not said is
    taken for the worst, too: see `Tool`.

    Example:
        >>> @tool(effect="pure")
        ... def shout(text: str) -> str:
        ...     "Upper case, with feeling."
        ...     return text.upper() + "!"
        >>> shout.signature
        'shout(text: str) -> str'
    """

    def wrap(function: Callable[..., Any]) -> Tool:
        return _from_function(
            function,
            effect=effect,
            name=name or function.__name__,
            timeout=timeout,
            idempotent=effect in ("pure", "read") if idempotent is None else idempotent,
            keyed=keyed,
            purpose=purpose or {},
            words=words,
            field_of=field_of or {},
            refine=refine,
            origins={"": origins} if isinstance(origins, Origin) else origins or {},
            outbound=UNSAID if outbound is None else outbound,
            receivers=UNSAID if receivers is None else tuple(receivers),
            attaches=UNSAID if attaches is None else origins_of_named(attaches),
            hosts=tuple(hosts),
            keeps=keeps,
            owned=owned,
            attached_in=attached_in,
            target=target,
            toolbox=toolbox,
            version=version,
        )

    return wrap(function) if function is not None else wrap


def _from_function(
    function: Callable[..., Any],
    *,
    effect: Effect,
    name: str,
    timeout: float,
    idempotent: bool,
    purpose: Mapping[str, Purpose],
    words: tuple[str, ...],
    field_of: Mapping[str, str],
    refine: Refine | None,
    **facts: Any,
) -> Tool:
    if effect not in EFFECTS:
        raise ToolError("tools.unknown-effect", f"{name!r} has the effect {effect!r}", expected=", ".join(EFFECTS))
    parameters = inspect.signature(function).parameters
    hints = _hints(function, name)
    for given, kind in purpose.items():
        if given not in parameters:
            raise ToolError(
                "tools.unknown-argument",
                f"{name!r} gives a purpose to {given!r}, which it does not have",
                nearest=nearest(given, parameters),
            )
        if kind not in PURPOSES:
            raise ToolError("tools.unknown-purpose", f"{name!r}: {kind!r}", expected=", ".join(PURPOSES))
    arguments: list[Argument] = []
    for parameter in parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolError("tools.bad-signature", f"{name!r}: {parameter} cannot be an argument of a tool")
        if parameter.name not in hints:
            raise ToolError("tools.untyped", f"{name!r}: the argument {parameter.name!r} has no type")
        type_ = _plan_type(hints[parameter.name], name, parameter.name)
        arguments.append(
            Argument(
                parameter.name,
                type_,
                annotation_doc(hints[parameter.name]),
                REQUIRED if parameter.default is parameter.empty else _default(parameter, type_, name),
                purpose.get(parameter.name, UNSAID),
                field_of.get(parameter.name),
            )
        )
    if "return" not in hints:
        raise ToolError("tools.untyped", f"{name!r} does not say what it returns", fix="Annotate it with `-> type`.")
    return Tool(
        name=name,
        doc=inspect.getdoc(function) or "",
        arguments=tuple(arguments),
        result=_plan_type(hints["return"], name, "return"),
        effect=effect,
        run=_runner(function, _builders(parameters, hints), pure=effect == "pure"),
        timeout=timeout,
        idempotent=idempotent,
        words=words,
        refine=refine,
        code=code_of_function(function),
        **facts,
    )


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return signature_hints(function)
    except NameError as error:
        raise ToolError("tools.untyped", f"{name!r} has an annotation that does not resolve: {error}") from None


def _plan_type(annotation: object, tool_name: str, argument: str) -> Any:
    try:
        return from_annotation(annotation)
    except (TypeError, NameError) as error:
        raise ToolError("tools.untyped", f"{tool_name!r}, {argument!r}: {error}") from None


def _default(parameter: inspect.Parameter, type_: Type, tool_name: str) -> Any:
    try:
        reason = mismatch(plain(parameter.default), type_, "the default")
    except TypeError as error:
        reason = str(error)
    if reason:
        raise ToolError(
            "tools.bad-default",
            f"{tool_name!r}, {parameter.name!r}: {reason}",
            fix="Mend the default or its annotation.",
        )
    return parameter.default


def _builders(parameters: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, TypeAdapter[Any]]:
    """How to make of a plan's plain value what a function asks for: a Path, a dataclass, a pydantic model."""
    wanted = [name for name in parameters if _is_built(hints[name])]
    if not wanted:
        return {}
    from pydantic import TypeAdapter

    return {name: TypeAdapter(hints[name]) for name in wanted}


def _is_built(annotation: object) -> bool:
    if isinstance(annotation, type) and not get_args(annotation):
        cls = cast("type[object]", annotation)
        return issubclass(cls, Path | BaseModel) or is_dataclass(cls)
    return any(map(_is_built, get_args(annotation)))


def _runner(
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
            return context.run(_without_stop, partial(function, **ready))

        return await asyncio.get_running_loop().run_in_executor(_threads(), work)

    return run_sync


def _without_stop(work: Callable[[], object]) -> object:
    """No future can hold a StopIteration: whoever waits for it would never hear of it."""
    try:
        return work()
    except StopIteration as error:
        raise RuntimeError("it ran out of items (StopIteration)") from error


@cache
def _threads() -> Executor:
    """Threads for tools that wait. The loop's own pool is so small that waiting for it would count as a time-out."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(64, "bicameral-tool")
