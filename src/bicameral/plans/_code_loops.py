"""The code of comprehensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._bounds import inner_environment, weighed
from ._calls import Code, Env
from ._library_lists import dict_key
from ._operators import items_to_go_over, unpacked

Clause = tuple[tuple[str, ...], Code, list[Code]]
"""The names of a `for`, what it goes over, and its conditions."""


def comprehension(element: Code, key: Code | None, clauses: list[Clause]) -> Code:
    """A list, or with a key a dict, of what an expression gives for all items that the conditions let through."""
    if key is None and len(clauses) == 1 and len(clauses[0][0]) == 1 and len(clauses[0][2]) <= 1:
        return _one_list(element, *clauses[0])
    return _nested(element, key, clauses)


def _one_list(element: Code, names: tuple[str, ...], over: Code, conditions: list[Code]) -> Code:
    """The usual one: `[f(x) for x in xs if g(x)]`."""
    (name,) = names
    condition = conditions[0] if conditions else None

    def run(env: Env) -> Any:
        inner, work = inner_environment(env)
        found = items_to_go_over(over(env))
        work.spend(len(found) + 1)
        items: list[Any] = []
        for item in found:
            inner[name] = item
            if condition is None or condition(inner):
                items.append(element(inner))
        return weighed(items)

    return run


def _nested(element: Code, key: Code | None, clauses: list[Clause]) -> Code:
    (_, outermost, _), *_ = clauses

    def run(env: Env) -> Any:
        inner, work = inner_environment(env)
        items: list[Any] = []
        entries: dict[str, Any] = {}

        def go(number: int, over: Any) -> None:
            names, _, conditions = clauses[number]
            found = items_to_go_over(over)
            work.spend(len(found) + 1)
            for item in found:
                _bind(inner, names, item)
                for condition in conditions:
                    if not condition(inner):
                        break
                else:
                    emit() if number + 1 == len(clauses) else go(number + 1, clauses[number + 1][1](inner))

        def emit() -> None:
            if key is None:
                items.append(element(inner))
            else:
                entries[dict_key(key(inner))] = element(inner)

        go(0, outermost(env))
        return weighed(items if key is None else entries)

    return run


def _bind(inner: dict[str, Any], names: tuple[str, ...], item: Any) -> None:
    if len(names) == 1:
        inner[names[0]] = item
    else:
        inner.update(zip(names, unpacked(item, len(names)), strict=True))


def lambda_of(body: Code, names: tuple[str, ...]) -> Code:
    """The code that makes a function of the environment that it stands in."""

    def make(env: Env) -> Callable[..., Any]:
        inner, work = inner_environment(env)

        def call(*values: Any) -> Any:
            work.spend(1)
            inner.update(zip(names, values, strict=True))
            return body(inner)

        return call

    return make
