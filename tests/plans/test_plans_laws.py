"""The law that ties the check to the run: what the check lets through cannot fail for its types."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, event, given, settings, strategies as st
from plan_strategies import expressions, plans
from typed_plans import SCOPE, VARIABLES, typed_expressions, values_of

from bicameral.plans import EvaluationError, Finding, Plan, Scope, check, evaluate_expr, type_of
from bicameral.plans._type_rules import BottomType, limit_size
from bicameral.plans.check._inference import Inference
from bicameral.tools import Registry, tool
from bicameral.types import AnyType, DictType, ListType, OptionalType, RecordType, TupleType, Type, mismatch
from property_examples import examples


@tool(effect="read")
def look(place: str, limit: int = 10) -> list[dict[str, str]]:
    """Look at a place."""
    return [{"place": place}] * limit


@tool(effect="send")
def tell(to: list[str], text: str) -> None:
    """Tell someone something."""


SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
REGISTRY = Registry([look, tell])
VARIABLE_VALUES = st.fixed_dictionaries({name: values_of(type_) for name, type_ in VARIABLES.items()})


class _Witness(Inference):
    """An inference that notices whether anything of unknown type takes part."""

    saw_any = False

    def infer(self, expr: Any, scope: Scope) -> Type:
        found = super().infer(expr, scope)
        self.saw_any |= _has_any(found)
        return found

    def iteration_type(self, expr: Any, type_: Type) -> Type:
        found = super().iteration_type(expr, type_)
        self.saw_any |= _has_any(found)
        return found


def _has_any(type_: Type) -> bool:
    match type_:
        case BottomType():
            return False
        case AnyType():
            return True
        case ListType(item=item) | OptionalType(item=item):
            return _has_any(item)
        case DictType(value=value):
            return _has_any(value)
        case TupleType(items=items):
            return any(map(_has_any, items))
        case RecordType(fields=fields):
            return any(_has_any(field.type) for field in fields)
        case _:
            return False


@settings(max_examples=examples(200, quick=50), suppress_health_check=SLOW)
@given(typed_expressions(), VARIABLE_VALUES)
def test_what_the_check_lets_through_never_fails_for_its_types(expr: Any, variables: dict[str, Any]) -> None:
    witness = _Witness()
    type_ = witness.infer(expr, SCOPE)
    assume(not any(finding.severity == "error" for finding in witness.findings))
    assume(not witness.saw_any)
    outcome = _outcome(expr, variables)
    if isinstance(outcome, EvaluationError):
        event(outcome.code)
        assert outcome.code not in {"run.type", "run.bad-call", "run.unbound"}, str(outcome)
        warned = any(finding.code == "plan.none-value" for finding in witness.findings)
        assert outcome.code != "run.none" or warned, str(outcome)
    else:
        assert _of_type(outcome, type_), f"{outcome!r} is not {type_}"


def _outcome(expr: Any, variables: dict[str, Any]) -> Any:
    try:
        return evaluate_expr(expr, variables)
    except EvaluationError as error:
        return error


def _of_type(found: Any, type_: Type) -> bool:
    return isinstance(type_, BottomType) or mismatch(found, type_) is None


@settings(max_examples=examples(300, quick=50), suppress_health_check=SLOW)
@given(st.one_of(plans(), plans(REGISTRY)))
def test_the_check_of_any_plan_ends_in_a_report(plan: Plan) -> None:
    report = check(plan, REGISTRY)
    assert report.ok == (not report.errors)
    assert report.to_json()["ok"] == report.ok
    for finding in report.findings:
        assert str(finding)


@settings(max_examples=examples(300, quick=50), suppress_health_check=SLOW)
@given(expressions())
def test_any_expression_has_a_type(expr: Any) -> None:
    findings: list[Finding] = []
    type_ = type_of(expr, SCOPE, findings)
    assert limit_size(type_) == type_
    assert all(finding.code.startswith("plan.") for finding in findings)
