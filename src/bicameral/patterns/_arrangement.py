"""The tree of patterns that a stack describes: what runs inside of what, and what the runtime brings.

A stack that says it with `inner` is taken at its word. A plain list is arranged by what the patterns do: guards are
around everything, O6 or O4 is around the agents or around the pattern that does the work, and a form comes last. A
pattern without a place in that is an error, and is never left out silently.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from bicameral.catalog.costs import nestings
from bicameral.catalog.facts import catalog
from bicameral.catalog.stacks import PatternUse, Stack, StackMember, runtime_guarantees
from bicameral.errors import CatalogError
from bicameral.patterns._implementations import IMPLEMENTED, pattern_class
from bicameral.patterns.kernel import Pattern, Role
from bicameral.patterns.orchestration.chain import Chain

FORM, FAN_OUTS = "S6", ("O6", "O4")
SlotKind: TypeAlias = Literal["one", "sequence", "mapping", "records"]


@dataclass(frozen=True, slots=True)
class Slot:
    """The field of a pattern in which other patterns are.

    Args:
        kind: One pattern, a sequence, a mapping by name, or a sequence of records with a pattern in each.
        takes_role: Whether a role can be there instead of a pattern.
        record: The class of the records, and `by`, their field with the pattern.
    """

    name: str
    kind: SlotKind
    takes_role: bool
    record: type[Any] | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class BuildNode:
    """A pattern to build: its class, the knobs that are set, and the patterns inside of it with their names."""

    id: str
    kind: type[Pattern[..., Any]]
    knobs: Mapping[str, Any]
    slot: Slot | None = None
    inner: tuple[tuple[str, BuildNode | None], ...] = ()
    """None is a role that is asked once."""
    brought: tuple[str, ...] = field(default=(), compare=False)
    """At the root: the patterns of the stack that the runtime brings, or that are part of another."""


def arrange_stack(stack: Stack) -> BuildNode:
    """The tree of a stack. Raises `stack.no-place` or `catalog.not-implemented` for what cannot be built."""
    present = frozenset(use.id for member in stack.members for use in member.all_uses)
    brought: list[str] = []
    root = _arrange_member(stack, stack.whole, present, brought)
    if stack.agents:
        workers = [(each.name, _arrange_member(stack, each, present, brought)) for each in stack.agents]
        root = _around_agents(stack, root, workers)
    if root is None:
        raise _no_place(stack, stack.whole.uses[0], "the runtime brings all that it lists", "Add what does the work.")
    return replace(root, brought=tuple(dict.fromkeys(brought)))


def _around_agents(stack: Stack, root: BuildNode | None, workers: Sequence[tuple[str, BuildNode | None]]) -> BuildNode:
    """The pattern of the whole around its agents, with guards and a form where it has them."""
    if root is None or (len(workers) == 1 and root.id not in FAN_OUTS and not _fan_out_in(root)):
        only = workers[0][1]
        if root is None and len(workers) == 1 and only is not None:
            return only
        raise _no_place(
            stack, stack.agents[0].uses[0], "nothing says how the agents work together", "Add O6 or O4 to the whole."
        )
    return _put_inside(root, tuple(workers))


def _fan_out_in(node: BuildNode) -> bool:
    return node.id in FAN_OUTS or any(each is not None and _fan_out_in(each) for _, each in node.inner)


def _put_inside(node: BuildNode, workers: tuple[tuple[str, BuildNode | None], ...]) -> BuildNode:
    """The same tree with these inside of its fan-out."""
    inner = (
        workers
        if node.id in FAN_OUTS
        else tuple((name, each and _put_inside(each, workers)) for name, each in node.inner)
    )
    return replace(node, inner=inner)


def _arrange_member(stack: Stack, member: StackMember, present: frozenset[str], brought: list[str]) -> BuildNode | None:
    uses: list[PatternUse] = []
    for use in member.uses:
        if not use.inner and _is_brought(use.id, present):
            brought.append(use.id)
        else:
            uses.append(use)
    if not uses and not stack.agents:
        # What the runtime brings can be the work itself, where nothing else is.
        uses = [use for use in member.uses if use.id in IMPLEMENTED and _slot(use.id) is None]
        brought[:] = [id for id in brought if id not in {use.id for use in uses}]
    if len(uses) <= 1:
        return _node(stack, uses[0]) if uses else None
    return _arrange_list(stack, uses, brought)


def _is_brought(id: str, present: frozenset[str]) -> bool:
    """Whether the runtime brings a listed pattern. A listed form is that of the answer, which nothing brings."""
    if id == FORM:
        return False
    found = runtime_guarantees().get(id)
    return found is not None and found.holds_for(present - {id})


def _arrange_list(stack: Stack, uses: Sequence[PatternUse], brought: list[str]) -> BuildNode:
    """A plain list: guards, then what divides the work, then what does it, and a form behind it."""
    around = [use for use in uses if not use.inner and _slot_kind(use.id) == "one"]
    fans = [use for use in uses if not use.inner and use.id in FAN_OUTS]
    forms = [use for use in uses if use.id == FORM]
    work = [use for use in uses if use not in (*around, *fans, *forms)]
    loops = [use for use in work if nestings()[use.id].manner == "wraps" or use.inner]
    if loops:
        # What hosts the model's calls is part of a pattern that makes several of them.
        brought += [use.id for use in work if use not in loops and nestings()[use.id].manner == "hosts"]
        work = [use for use in work if use in loops or nestings()[use.id].manner != "hosts"]
    for several in (work, fans, forms):
        if len(several) > 1:
            raise _no_place(stack, several[1], f"{several[0].id} is there already", _SAY_WHERE)
    done = _node(stack, work[0]) if work else None
    if fans:
        done = replace(_node(stack, fans[0], empty=True), inner=(("worker", done),))
    if forms:
        form = _node(stack, forms[0])
        done = (
            form
            if done is None
            else BuildNode(Chain.id, pattern_class(Chain.id), {}, _slot(Chain.id), (("", done), ("", form)))
        )
    for use in sorted(around, key=lambda each: (each.id != "V5", each.id), reverse=True):
        if done is None:
            raise _no_place(stack, use, "there is nothing for it to work on", _SAY_WHERE)
        done = replace(_node(stack, use, empty=True), inner=(("", done),))
    assert done is not None
    return done


_SAY_WHERE = "Say with `inner` what works inside of what."


def _node(stack: Stack, use: PatternUse, *, empty: bool = False) -> BuildNode:
    """A use of a pattern as it is built. `empty`: what goes inside is added later."""
    if use.id not in IMPLEMENTED:
        raise CatalogError(
            "catalog.not-implemented",
            f"{use.id} cannot be run yet",
            place=stack.place(use.path),
            expected=f"one of {', '.join(IMPLEMENTED)}",
            fix="Take another pattern, or write this one as a `Pattern` of your own.",
        )
    slot = _slot(use.id)
    if use.inner and slot is None:
        raise _no_place(stack, use.inner[0], f"{use.id} runs no other pattern", "Put it beside that, in a chain (O2).")
    if slot is not None and slot.kind == "one" and not slot.takes_role and not use.inner and not empty:
        raise _no_place(stack, use, "it is around another pattern, and none is there", _SAY_WHERE)
    inner: list[tuple[str, BuildNode | None]] = []
    for each in use.inner:
        assert slot is not None
        if slot.kind == "sequence" and "." in each.place:
            raise _no_place(stack, each, f"it is one way of a step of {use.id}", "Write this step in Python.")
        is_role = each.id == "S1" and not each.inner and slot.takes_role
        inner.append((_inner_name(each), None if is_role else _node(stack, each)))
    if slot is not None and slot.kind == "one" and len(inner) > 1:
        raise _no_place(stack, use.inner[1], f"{use.id} is around one pattern", _SAY_WHERE)
    knobs = {name: value for name, value in use.knobs.items() if name in catalog().pattern(use.id).knobs}
    return BuildNode(use.id, pattern_class(use.id), knobs, slot, tuple(inner))


def _inner_name(use: PatternUse) -> str:
    """The name of a part or worker: its task, or the last name of its place."""
    task = use.knobs.get("task")
    if isinstance(task, str):
        return task
    head, _, last = use.place.rpartition(".")
    return last if head and not head.endswith("]") else ""


def _slot_kind(id: str) -> SlotKind | None:
    slot = _slot(id) if id in IMPLEMENTED else None
    return None if slot is None or (slot.kind == "one" and slot.takes_role) else slot.kind


def _slot(id: str) -> Slot | None:
    """The field of a pattern's class that holds patterns, by its type."""
    kind: type[Any] = pattern_class(id)
    for each in fields(kind):
        if (found := _slot_of(each.name, _field_type(kind, each.name))) is not None:
            return found
    return None


def _field_type(kind: type[Any], name: str) -> Any:
    """The type of a field; None if it needs a name that is imported for type checkers only."""
    owner = next(each for each in kind.__mro__ if name in vars(each).get("__annotations__", {}))
    alone = type("_Alone", (), {"__annotations__": {name: owner.__annotations__[name]}})
    try:
        return get_type_hints(alone, vars(sys.modules[owner.__module__]))[name]
    except NameError:
        return None


def _slot_of(name: str, hint: Any) -> Slot | None:
    if _holds_pattern(hint):
        return Slot(name, "one", _holds_role(hint))
    origin, args = get_origin(hint), get_args(hint)
    if not isinstance(origin, type) or not args:
        return None
    if issubclass(origin, Mapping):
        return Slot(name, "mapping", _holds_role(args[1])) if _holds_pattern(args[1]) else None
    if not issubclass(origin, Sequence):
        return None
    if _holds_pattern(args[0]):
        return Slot(name, "sequence", _holds_role(args[0]))
    if isinstance(args[0], type) and is_dataclass(args[0]):
        for each in fields(args[0]):
            if _holds_pattern(inside := _field_type(args[0], each.name)):
                return Slot(name, "records", _holds_role(inside), args[0], each.name)
    return None


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _holds_pattern(hint: Any) -> bool:
    return any((get_origin(each) or each) is Pattern for each in _members(hint))


def _holds_role(hint: Any) -> bool:
    return Role in _members(hint)


def _no_place(stack: Stack, use: PatternUse, why: str, fix: str) -> CatalogError:
    return CatalogError(
        "stack.no-place", f"{use.id} has no place in what is to be built: {why}", place=stack.place(use.path), fix=fix
    )
