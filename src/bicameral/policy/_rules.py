"""Rules: single policies that parsed, fit the schema and may say what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from cedarpy import Schema, pst

from bicameral.errors import PolicyError, nearest
from bicameral.tools import Registry

from ._mistakes import parsed, validated
from ._reads import walk
from ._texts import Piece, packaged, pieces

ANNOTATIONS = ("id", "ask", "reason", "overrides")


@dataclass(frozen=True, slots=True)
class Rule:
    """One policy: its name, what it does, and where it is written.

    `ask` is the question that a `forbid` puts to a person instead of refusing; `reason` says in plain words why it
    stops a call; `overrides` are the defaults that a `permit` lifts.
    """

    id: str
    effect: str
    text: str
    file: str
    line: int
    ask: str | None = None
    reason: str | None = None
    overrides: tuple[str, ...] = ()
    default: bool = False
    node: pst.Template = field(kw_only=True, repr=False)

    @property
    def where(self) -> str:
        """Its place, as a person reads it."""
        return f"{Path(self.file).name}, line {self.line}"

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "effect": self.effect,
            **({"ask": self.ask} if self.ask is not None else {}),
            **({"reason": self.reason} if self.reason is not None else {}),
            **({"overrides": list(self.overrides)} if self.overrides else {}),
            "default": self.default,
            "file": self.file,
            "line": self.line,
            "text": self.text,
        }


@cache
def schema() -> Schema:
    """The schema that every policy and every request must fit."""
    return Schema.from_str(packaged("schema.cedarschema"))


@cache
def defaults() -> tuple[Rule, ...]:
    """The policies that hold without a line written by hand."""
    found = pieces(packaged("default.cedar"), "default.cedar")
    return tuple(_rule(piece, _node(piece), default=True) for piece in found)


def users_rules(texts: Iterable[tuple[str, str]], registry: Registry | None) -> tuple[Rule, ...]:
    """The rules of a user's own texts, given with the names of their files; the first mistake ends it."""
    taken = {rule.id: rule for rule in defaults()}
    rules: list[Rule] = []
    for file, text in texts:
        for piece in pieces(text, file):
            rule = _rule(piece, _node(piece))
            for mistake in _mistakes(rule, piece, registry):
                raise mistake
            if other := taken.get(rule.id):
                raise PolicyError(
                    "policy.duplicate-id",
                    f"there is already a policy {rule.id!r}, in {other.where}",
                    place=piece.place,
                    fix="Give one of them another @id.",
                )
            taken[rule.id] = rule
            rules.append(rule)
    return tuple(rules)


def _node(piece: Piece) -> pst.Template:
    node = parsed(piece)
    validated(piece, node, schema())
    return node


def _rule(piece: Piece, node: pst.Template, *, default: bool = False) -> Rule:
    said = node.annotations
    return Rule(
        said.get("id") or f"{Path(piece.file).name}:{piece.line}",
        node.effect,
        piece.text,
        piece.file,
        piece.line,
        said.get("ask"),
        said.get("reason"),
        tuple(name.strip() for name in said["overrides"].split(",")) if "overrides" in said else (),
        default,
        node=node,
    )


def _mistakes(rule: Rule, piece: Piece, registry: Registry | None) -> Iterator[PolicyError]:
    """What is wrong with a rule that Cedar itself would take."""
    yield from _wrong_annotations(rule, piece)
    if rule.effect == "permit":
        yield from _wrong_override(rule, piece)
    yield from _wrong_case(rule, piece)
    if registry is not None:
        yield from _unknown_tools(rule, piece, registry)


def _wrong_annotations(rule: Rule, piece: Piece) -> Iterator[PolicyError]:
    for name in rule.node.annotations:
        if name not in ANNOTATIONS:
            yield PolicyError(
                "policy.unknown-annotation",
                f"there is no annotation @{name}",
                place=piece.place,
                expected=f"one of {', '.join(f'@{each}' for each in ANNOTATIONS)}",
                nearest=nearest(name, ANNOTATIONS),
            )
    for name, effect, instead in (("ask", "forbid", "a forbid asks"), ("overrides", "permit", "a permit lifts")):
        if name in rule.node.annotations and rule.effect != effect:
            yield PolicyError(
                "policy.misplaced-annotation",
                f"@{name} means nothing on a {rule.effect}",
                place=piece.place,
                expected=f"it on a {effect}: only {instead}",
            )


def _wrong_override(rule: Rule, piece: Piece) -> Iterator[PolicyError]:
    liftable = [each.id for each in defaults() if each.ask is not None]
    if not rule.overrides:
        yield PolicyError(
            "policy.changes-nothing",
            "this permit changes nothing: what no policy forbids is allowed already",
            place=piece.place,
            expected="the default that it lifts, by name",
            fix=f'Write @overrides("{liftable[0]}"), or another of: {", ".join(liftable[1:])}.',
        )
    for name in rule.overrides:
        if name not in liftable:
            yield PolicyError(
                "policy.unknown-default",
                f"there is no default {name!r} that could be lifted",
                place=piece.place,
                expected=f"one of {', '.join(liftable)}",
                nearest=nearest(name, liftable),
            )
    if not _names_a_tool(rule.node.resource):
        yield PolicyError(
            "policy.too-wide",
            "this would lift a default for every tool there is",
            place=piece.place,
            expected='`resource in Tool::"…"` or `resource in Toolbox::"…"` in the head of the policy',
        )


def _names_a_tool(scope: pst.PrincipalOrResourceConstraint) -> bool:
    match scope:
        case pst.ScopeIn(pst.EntityUid(type=kind)) | pst.ScopeIsIn(entity=pst.EntityUid(type=kind)):
            return str(kind) in ("Tool", "Toolbox")
        case _:
            return False


def _unknown_tools(rule: Rule, piece: Piece, registry: Registry) -> Iterator[PolicyError]:
    """A tool that is not there: most often a slip of the pen, and the policy would protect nothing."""
    known = {"Tool": set(registry.names), "Toolbox": {tool.toolbox for tool in registry}}
    for uid in sorted(pst.entity_uids(rule.node), key=str):
        names = known.get(str(uid.type))
        if names is not None and uid.id not in names:
            yield PolicyError(
                "policy.unknown-tool",
                f"there is no {str(uid.type).lower()} {uid.id!r}",
                place=piece.place,
                nearest=nearest(uid.id, names),
                fix="`bicameral tools list` shows what there is.",
            )


_NAMES = ("receivers", "domains", "readers")


def _wrong_case(rule: Rule, piece: Piece) -> Iterator[PolicyError]:
    """A name in capitals would never be found: names are compared in lower case."""
    compared = (
        (node.left, node.right)
        for clause in rule.node.clauses
        for node in walk(clause.expr)
        if isinstance(node, pst.BinaryOp)
    )
    for sides in compared:
        if any(isinstance(side, pst.GetAttr) and side.attr in _NAMES for side in sides):
            yield from _upper_case(sides, piece)


def _upper_case(sides: tuple[pst.Expr, pst.Expr], piece: Piece) -> Iterator[PolicyError]:
    for text in _literals(sides):
        if text.isascii() and text != text.lower():
            yield PolicyError(
                "policy.upper-case",
                f"{text!r} would never be found: names are compared in lower case",
                place=piece.place,
                fix=f"Write {text.lower()!r}.",
            )


def _literals(sides: Iterable[pst.Expr]) -> Iterator[str]:
    for side in sides:
        for each in side.elements if isinstance(side, pst.Set) else (side,):
            if isinstance(each, pst.StringLit):
                yield each.value
