"""Whether a policy can be judged before a run.

Before a run a label is known only at its worst: when the call is made, its sources may be fewer and its readers more,
and only then it is known whom it names. A condition *falls* if it can only turn from true to false between the two,
and *rises* if it can only turn from false to true; a condition on declarations does both, since it does not turn.
A forbid whose conditions fall, and a permit whose conditions rise, say before the run what they will say in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag

from cedarpy import pst


class Turn(Flag):
    """The ways in which a condition, or a set, may be relied upon not to change."""

    NONE = 0
    FALLS = 1
    RISES = 2
    STILL = 3


_FACTS = {
    "trusted": Turn.RISES,
    "from_user": Turn.RISES,
    "public": Turn.RISES,
    "strangers_text": Turn.FALLS,
    "sources": Turn.FALLS,
    "fields": Turn.FALLS,
    # Readers may become more, but what everyone may read has no list of readers.
    "readers": Turn.NONE,
}


def steady(clause: pst.Clause, effect: pst.Effect, *, named: bool, placed: bool = True) -> bool:
    """Whether a clause can be judged before a run; `named` if those whom the call names are known already, `placed` if
    it is known what kind of file it writes.

    What a text holds that could be followed is never known before.
    """
    wanted = Turn.FALLS if effect == "forbid" else Turn.RISES
    known = _Known(named, placed)
    found = _turn(clause.expr, known)
    return wanted in (found if isinstance(clause, pst.When) else _other(found))


def _other(turn: Turn) -> Turn:
    """The way of what is the opposite."""
    return {Turn.FALLS: Turn.RISES, Turn.RISES: Turn.FALLS}.get(turn, turn)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a call before the run: whom it names, and what kind of file it writes."""

    named: bool
    placed: bool


def _turn(expr: pst.Expr, known: _Known) -> Turn:
    match expr:
        case pst.GetAttr(base=pst.Var(name="context"), attr="lures"):
            return Turn.NONE
        case pst.GetAttr(base=pst.Var(name="context"), attr="executed"):
            return Turn.STILL if known.placed else Turn.NONE
        case pst.GetAttr(base=pst.Var(name="context")):
            return Turn.STILL if known.named else Turn.NONE
        case pst.GetAttr(base=pst.GetAttr(base=pst.Var(name="resource")), attr=fact):
            return _FACTS.get(fact, Turn.NONE)
        case pst.GetAttr(base=pst.BinaryOp(op="get_tag", left=pst.Var(name="resource"), right=name), attr=fact):
            return _FACTS.get(fact, Turn.NONE) if _turn(name, known) is Turn.STILL else Turn.NONE
        case pst.GetAttr(base=pst.Var(name="resource"), attr="acts" | "outbound" | "declared" | "strict" | "assembled"):
            return Turn.STILL
        case pst.BinaryOp():
            return _binary(expr, known)
        case pst.UnaryOp(op="not" | "is_empty", arg=arg):
            return _other(_turn(arg, known))
        case pst.IfThenElse(cond=cond, then_expr=then, else_expr=otherwise):
            both = _turn(then, known) & _turn(otherwise, known)
            return both if _turn(cond, known) is Turn.STILL else Turn.NONE
        case pst.Set(elements=elements):
            return Turn.STILL if all(_turn(each, known) is Turn.STILL for each in elements) else Turn.NONE
        case pst.BoolLit() | pst.LongLit() | pst.StringLit() | pst.EntityLit():
            return Turn.STILL
        case pst.Var(name="principal" | "action") | pst.Is(base=pst.Var(name="resource"), in_expr=None):
            return Turn.STILL
        case _:
            return Turn.NONE


def _binary(expr: pst.BinaryOp, known: _Known) -> Turn:
    # Which tool is called and which arguments are given does not change.
    of_call = expr.op in ("in", "has_tag") and isinstance(expr.left, pst.Var)
    left, right = Turn.STILL if of_call else _turn(expr.left, known), _turn(expr.right, known)
    match expr.op:
        case "and" | "or" | "contains_any":
            return left & right
        case "contains":
            return left if right is Turn.STILL else Turn.NONE
        case "contains_all":
            return left & _other(right)
        case "eq" | "not_eq" if isinstance(expr.right, pst.BoolLit):
            return left if expr.right.value is (expr.op == "eq") else _other(left)
        case _:
            return Turn.STILL if left is right is Turn.STILL else Turn.NONE
