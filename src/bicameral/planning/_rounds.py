"""Plans in rounds: what a planner learns of earlier plans, and `look`, with which it asks to see a result.

A plan in rounds ends with `answer(value)`, which ends the work, or with `look(name, …)`: then the planner gets the
privileged view of these variables and writes the next plan. `look` exists only for the planner: the plan that runs
answers with the variables that later plans may use, and the plan language has no rounds.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bicameral.errors import PlanError
from bicameral.labels import NOTHING, Label
from bicameral.planning._neutral_names import NeutralNames
from bicameral.planning._origins import ValueOrigin
from bicameral.plans import Answer, Call, Const, DictOf, Plan, Ref, Scope, branch_names, check_step, print_plan
from bicameral.tools import Effect, Registry
from bicameral.types import ANY, Type

LOOK = "look"
"""The name of the pseudo-call; a tool of this name cannot be used in rounds."""
MAX_LOOKS = 8

_LOOK_HINT = (
    "If you must know a result before you can go on, end with look(name) instead of answer(value): "
    "you are told its numbers, dates and yes or no, never its texts, and write the next plan."
)
_LAST_PLAN_HINT = "This is the last plan: end with answer(value)."


@dataclass(frozen=True, slots=True)
class EarlierRounds:
    """What a plan continues from: a summary of earlier rounds, and the variables that they left.

    Args:
        summary: What the planner reads of earlier rounds.
        variables: The types of the variables that earlier plans left.
        effects: The effects that have happened.
        literals: The literals of the earlier plans.
        may_look: Whether the plan may end with `look` instead of an answer.
        names: The neutral names of all rounds.
        shown_types: The types of the variables as a planner may read them.
        read_label: The label of what the planner has read.
        origins: The constants of earlier plans in the variables that they left: these direct as little as literals do.
        opening: The statements with which the planner's reply begins, if the provider supports grammars. They are its
            own, of an earlier plan, or read the given values, and no part of this plan: what they computed is in the
            variables. The planner then reads neither the summary nor a hint.
        given: Whether the variables are what the request is about, and no results of earlier plans.
    """

    summary: str = ""
    variables: Mapping[str, Type] = field(default_factory=dict[str, Type])
    effects: frozenset[Effect] = frozenset()
    literals: tuple[str, ...] = ()
    may_look: bool = True
    names: NeutralNames | None = None
    shown_types: Mapping[str, Type] = field(default_factory=dict[str, Type])
    read_label: Label = NOTHING
    origins: Mapping[str, ValueOrigin] = field(default_factory=dict[str, ValueOrigin])
    opening: str = ""
    given: bool = False

    @property
    def for_planner(self) -> EarlierRounds:
        """The same with the types that a planner may read; a variable without one has any type."""
        return replace(self, variables={name: self.shown_types.get(name, ANY) for name in self.variables})

    @property
    def fixed_names(self) -> frozenset[str]:
        """The variables that a plan may not assign: the given ones."""
        return frozenset(self.variables) if self.given else frozenset()

    def with_request(self, request: str) -> str:
        """The request and the summary of earlier rounds, as the planner reads them."""
        return "\n".join(
            part for part in (request, self.summary, _LOOK_HINT if self.may_look else _LAST_PLAN_HINT) if part
        )


@dataclass(frozen=True, slots=True)
class PlannerCode:
    """A planner's code in the plan language, and the variables it asks to see; None if it answers."""

    text: str
    looks: tuple[str, ...] | None = None


def replace_look(code: str) -> PlannerCode:
    """The code with an answer in place of its `look`; a PlanError if the `look` is not at the end."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return PlannerCode(code)
    match body[-1:]:
        case [ast.Expr(value=ast.Call(func=ast.Name(id="look")) as call)]:
            pass
        case _:
            call = None
    if _count_calls(body, LOOK) > (call is not None):
        raise _misplaced_look("look(…) stands only at the end of a plan, not inside a branch or loop")
    if call is None:
        return PlannerCode(code)
    if _count_calls(body, "answer"):
        raise _misplaced_look("a plan ends with answer(…) or with look(…), not with both")
    before = "".join(code.splitlines(keepends=True)[: body[-1].lineno - 1])
    named, looks = _name_arguments(call)
    shown = ", ".join(f"{name!r}: {name}" for name in looks)
    return PlannerCode(f"{before}{named}answer({{{shown}}})\n", looks)


def _count_calls(body: Sequence[ast.stmt], name: str) -> int:
    nodes = (node for statement in body for node in ast.walk(statement))
    return sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name for node in nodes
    )


def _name_arguments(call: ast.Call) -> tuple[str, tuple[str, ...]]:
    """Statements that name the unnamed arguments, and all the names."""
    lines: list[str] = []
    looks: list[str] = []
    for number, node in enumerate(call.args, 1):
        match node:
            case ast.Name(id=name):
                looks.append(name)
            case ast.Starred():
                raise _misplaced_look("look(…) takes names of variables")
            case _:
                looks.append(f"shown_{number}")
                lines.append(f"shown_{number} = {ast.unparse(node)}\n")
    for keyword in call.keywords:
        if keyword.arg is None:
            raise _misplaced_look("look(…) takes names of variables")
        looks.append(keyword.arg)
        lines.append(f"{keyword.arg} = {ast.unparse(keyword.value)}\n")
    if not 1 <= len(set(looks)) <= MAX_LOOKS:
        raise _misplaced_look(f"look(…) takes 1 to {MAX_LOOKS} names of variables")
    return "".join(lines), tuple(dict.fromkeys(looks))


def _misplaced_look(message: str) -> PlanError:
    return PlanError("plan.misplaced-look", message, fix="End with look(name) or with answer(value).")


def with_left_variables(plan: Plan, looks: tuple[str, ...], registry: Registry, earlier: EarlierRounds) -> Plan:
    """The plan with an answer of all variables that later plans may use: those it looks at, and all other bound ones.

    Whether a variable is bound must not depend on the branch that was taken: that would reveal the branch. The result
    of a call with effects is left only if the plan looks at it: such a call may wait for a person.
    """
    before, scope, changed, given = plan.steps[:-1], Scope.from_types(earlier.variables), set[str](), set[str]()
    for step in before:
        _, scope = check_step(step, scope, registry, "")
        changed |= branch_names(step)
        given -= branch_names(step)
        if isinstance(step, Call) and step.name is not None and (tool := registry.get(step.tool)) and tool.changes:
            given.add(step.name)
    kept = [name for name in bound_names(scope) if name in changed - given and not name.startswith("_")]
    names = dict.fromkeys((*looks, *kept))
    entries = tuple((Const(value=name), Ref(name=name)) for name in names)
    return plan.model_copy(update={"steps": (*before, Answer(value=DictOf(entries=entries)))})


def bound_names(scope: Scope) -> list[str]:
    """The variables that are bound on every path."""
    found = scope.variables.items()
    return [name for name, variable in found if not variable.maybe_unbound and variable.void_of is None]


def round_source(plan: Plan, looks: tuple[str, ...] | None, registry: Registry) -> str:
    """The source text of a plan of a round, with the `look` that the planner wrote."""
    if looks is None:
        return print_plan(plan, registry)
    before = plan.model_copy(update={"steps": plan.steps[:-1]})
    return f"{print_plan(before, registry)}look({', '.join(looks)})\n"
