"""What is kept: who writes it, and whether it can be forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from ...stacks import Store, dotted
from .._rules import Check
from .._scope import Scope
from .._trouble import Trouble, undeclared

_PERSONAL = {"H7", "H10"}
_LASTING = {"H1", "H2", "H4", "H5", "H7", "H9", "H10"}


def _of(scope: Scope, id: str) -> list[Store]:
    return [store for store in scope.stores or () if id in store.patterns]


def _forgets(store: Store) -> Iterator[Trouble]:
    if store.holds != "content" or store.eraser:
        return
    if store.eraser is None:
        yield undeclared("stores", store.path)
    else:
        message = f"nobody can erase a user from the store {store.name!r}"
        wants = (f"{dotted(store.path)}.eraser",)
        yield Trouble(("no eraser", dotted(store.path)), message, store.path, wants=wants, patterns=("H10",))


def personal_stores(scope: Scope, check: Check) -> Iterator[Trouble]:
    """A store of personal data has an eraser."""
    if scope.stores is None and _PERSONAL & scope.present:
        yield undeclared("stores", scope.where(min(_PERSONAL & scope.present)))
    for store in scope.stores or ():
        if store.personal or _PERSONAL & {*store.patterns}:
            yield from _forgets(store)


def erasers(scope: Scope, check: Check) -> Iterator[Trouble]:
    """The stores of these patterns can forget a user."""
    for id in check.of:
        found = _of(scope, id)
        if not found:
            yield undeclared("stores", scope.where(id))
        for store in found:
            yield from _forgets(store)


def separate_stores(scope: Scope, check: Check) -> Iterator[Trouble]:
    """These patterns do not keep what they learn in one store."""
    if not all(_of(scope, id) for id in check.of):
        yield undeclared("stores", scope.where(check.of[0]))
    for store in scope.stores or ():
        if {*check.of} <= {*store.patterns}:
            message = f"{' and '.join(check.of)} share the store {store.name!r}"
            yield Trouble(("one store", dotted(store.path)), message, store.path, patterns=check.of)


def curators(scope: Scope, check: Check) -> Iterator[Trouble]:
    """The session that acts does not write what lasts of it. `agent` is that session, and so is the agent's name."""
    own = {"agent", scope.member.name}
    lasting = [store for store in scope.stores or () if _LASTING & {*store.patterns}]
    if not lasting:
        first = next(id for id in scope.uses if id in _LASTING)
        yield undeclared("stores", scope.where(first))
    for store in lasting:
        if writing := sorted(own & {*store.writers}):
            message = f"the agent itself writes the store {store.name!r}"
            key = ("own curator", dotted(store.path), *writing)
            yield Trouble(key, message, store.path, patterns=store.patterns)
