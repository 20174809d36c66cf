"""Which facts policies read, so that Cedar need not be told the others: most of the cost of a new call is telling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from cedarpy import pst

TAGS, PARENTS = "tags", "parents"
TOOL, TOOLBOX, EFFECT = "Tool", "Toolbox", "Effect"

Reads = Mapping[str, Collection[str]]
"""The facts that are read, by their group; the group of what is asked of single arguments is `tags`, and `parents` are
the kinds of what a call may be in: a policy can ask for one only by its name."""


def reads(nodes: Iterable[pst.Template], every: Reads) -> Reads:
    """What these policies read of a call; everything if that cannot be told."""
    nodes = tuple(nodes)
    found: dict[str, set[str]] = defaultdict(set)
    found[PARENTS] = {str(uid.type) for uid in pst.entity_uids(nodes)}
    waiting: list[Any] = [clause.expr for node in nodes for clause in node.clauses]
    while waiting:
        match waiting.pop():
            case pst.GetAttr(
                base=pst.Var(name="resource"), attr="acts" | "outbound" | "declared" | "strict" | "assembled"
            ):
                continue
            case pst.GetAttr(base=pst.GetAttr(base=pst.Var(name="resource"), attr=group), attr=fact):
                found[group].add(fact)
            case pst.GetAttr(base=pst.BinaryOp(op="get_tag", left=pst.Var(name="resource"), right=name), attr=fact):
                found[TAGS].add(fact)
                waiting.append(name)
            case pst.BinaryOp(op="has_tag", left=pst.Var(name="resource"), right=name):
                found[TAGS] |= set()
                waiting.append(name)
            case pst.GetAttr(base=pst.Var(name="resource")) | pst.BinaryOp(op="get_tag" | "has_tag") | pst.HasAttr():
                # A whole group, or whether there is one: then nothing may be left out.
                return every
            case other:
                waiting.extend(_inside(other))
    return dict(found)


def walk(expr: pst.Expr) -> Iterator[Any]:
    """Every node of an expression."""
    waiting: list[Any] = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(_inside(node))


def _inside(node: Any) -> Iterable[Any]:
    if isinstance(node, Mapping):
        return node.values()  # pyright: ignore[reportUnknownVariableType]
    if isinstance(node, tuple):
        return node  # pyright: ignore[reportUnknownVariableType]
    if is_dataclass(node):
        return [getattr(node, field.name) for field in fields(node)]
    return ()
