"""The code of expressions that name, take apart or put together values.

Each has a short way for what is usual, and leaves everything else, and every failure, to the operator that it stands
for: so both ways come to the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bicameral.errors import nearest

from ._bounds import (
    MAX_TEXT,
    SINGLE,
    WORK,
    bounded_number,
    charge,
    check_length,
    deep_cost,
    flat_cost,
    too_large,
    weighed,
)
from ._calls import Code, Env, failing
from ._expressions import Const
from ._failure import EvaluationError
from ._library_lists import dict_key
from ._operators import get_field, get_item, get_slice
from ._show import show, show_as


def nothing(env: Env) -> None:
    return None


def const(expr: Const) -> Code:
    value = expr.value
    try:
        if isinstance(value, str):
            check_length("the text", len(value), MAX_TEXT)
        elif value is not None:
            bounded_number(value)
    except EvaluationError as error:
        code, message = error.code, error.message
        return failing(lambda: EvaluationError(code, message))
    return lambda env: value


def ref(name: str) -> Code:
    def run(env: Env) -> Any:
        try:
            return env[name]
        except KeyError:
            raise EvaluationError(
                "run.unbound", f"{name!r} has no value yet", nearest=nearest(name, env), fix="Assign it before."
            ) from None

    return run


def get(value: Code, field: str) -> Code:
    def run(env: Env) -> Any:
        found = value(env)
        if type(found) is dict and field in found:
            return found[field]  # pyright: ignore[reportUnknownVariableType]
        return get_field(found, field)

    return run


def get_of(name: str, field: str) -> Code:
    """A field of a variable."""
    at_length = get(ref(name), field)

    def run(env: Env) -> Any:
        if name in env:
            found = env[name]
            if type(found) is dict and field in found:
                return found[field]  # pyright: ignore[reportUnknownVariableType]
        return at_length(env)

    return run


def index(value: Code, at: Code) -> Code:
    return lambda env: get_item(value(env), at(env))


def slice_of(value: Code, start: Code, stop: Code, step: Code) -> Code:
    return lambda env: get_slice(value(env), start(env), stop(env), step(env))


def list_of(items: list[Code]) -> Code:
    return lambda env: weighed([item(env) for item in items])


def dict_of(entries: list[tuple[str | Code, Code]]) -> Code:
    """A dict; its keys are mostly written in the plan, as texts."""
    written = [(key, value) for key, value in entries if isinstance(key, str)]
    if len(written) == len(entries):
        return lambda env: weighed({key: value(env) for key, value in written})
    computed = [(_always(key) if isinstance(key, str) else key, value) for key, value in entries]
    return lambda env: weighed({dict_key(key(env)): value(env) for key, value in computed})


def _always(text: str) -> Code:
    return lambda env: text


def counted(code: Code) -> Code:
    """The same code; the size of what it makes counts as work."""

    def run(env: Env) -> Any:
        value = code(env)
        work = env[WORK]
        work.left -= 2 if type(value) in SINGLE else deep_cost(value)
        if work.left < 0:
            work.spend(0)
        return value

    return run


def charged(code: Code) -> Code:
    """The same code; the size of what it makes counts as work of the run."""

    def run(env: Env) -> Any:
        value = code(env)
        charge(flat_cost(value))
        return value

    return run


def format_of(parts: list[str | tuple[Code, str]], *, looped: bool) -> Code:
    """A text with values in it; inside loops its length counts as work."""
    texts = [part if isinstance(part, str) else _shown(*part) for part in parts]

    def run(env: Env) -> str:
        found = [text if isinstance(text, str) else text(env) for text in texts]
        length = sum(map(len, found))
        if length > MAX_TEXT:
            raise too_large("the text", MAX_TEXT)
        if looped:
            env[WORK].spend(length // 64)
        else:
            charge(length // 64)
        return "".join(found)

    return run


def _shown(value: Code, spec: str) -> Callable[[Env], str]:
    if spec:
        return lambda env: show_as(value(env), spec)

    def run(env: Env) -> str:
        found = value(env)
        return str(found) if type(found) is int else show(found)

    return run
