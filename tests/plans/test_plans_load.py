"""Plans as JSON: what is read back is what was written, and every mistake is told with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from plan_strategies import plans

from bicameral.errors import Place, PlanError
from bicameral.plans._expressions import Clause, Comprehension, Const, DictOf, Expr, ListOf
from bicameral.plans._plan import Answer, Plan, load_plan
from bicameral.plans.syntax._parser import parse
from property_examples import examples
from scripts.plan_schema import plan_schema

PUBLISHED = Path(__file__).parents[2] / "schemas" / "plan.v1.json"
VALIDATOR = Draft202012Validator(plan_schema())
LAW = settings(max_examples=examples(60, quick=30))


def refusal(text: str | Path) -> PlanError:
    with pytest.raises(PlanError) as caught:
        load_plan(text)
    return caught.value


def document(*steps: dict[str, Any]) -> str:
    return json.dumps({"version": "plan/1", "steps": steps})


def fits(value: Any) -> bool:
    """Whether a value is a plan by the schema."""
    return VALIDATOR.is_valid(value)  # pyright: ignore[reportUnknownMemberType]


@LAW
@given(plans())
def test_a_plan_written_as_json_is_read_back(plan: Plan) -> None:
    assert load_plan(plan.to_json()).to_json() == plan.to_json()


# A plan is held against every alternative of a recursive schema: more than a second each.
@settings(LAW, max_examples=examples(15, quick=5))
@given(plans())
def test_every_plan_fits_the_published_schema(plan: Plan) -> None:
    assert fits(json.loads(plan.to_json()))


def test_the_published_schema_is_the_schema_of_the_code() -> None:
    assert json.loads(PUBLISHED.read_text()) == plan_schema(), "write plan_schema() to schemas/plan.v1.json again"
    Draft202012Validator.check_schema(plan_schema())


@pytest.mark.parametrize(
    "step",
    [
        {"do": "answer"},
        {"value": {"kind": "const", "value": 1}},
        {"do": "answer", "value": {"value": 1}},
        {"do": "answer", "value": {"kind": "ref", "name": "if"}},
        {"do": "answer", "value": {"kind": "ref", "name": "a b"}},
        {"do": "answer", "value": {"kind": "const", "value": 1}, "extra": 1},
        {"do": "ask", "name": "x", "question": {"kind": "const", "value": "?"}, "type": "strr"},
        {"do": "each", "names": ["x"], "over": {"kind": "list"}, "steps": []},
    ],
)
def test_what_the_schema_refuses_the_reader_refuses(step: dict[str, Any]) -> None:
    assert not fits({"version": "plan/1", "steps": [step]})
    assert refusal(document(step)).code == "plan.invalid"


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("", "plan.bad-json", Place(line=1, column=1)),
        ('{\n  "version": }', "plan.bad-json", Place(line=2, column=14)),
        ('{"version": "plan/1", "version": "plan/1"}', "plan.bad-json", Place()),
        ('{"version": "plan/1", "goal": NaN}', "plan.bad-json", Place()),
        ('{"version": "plan/1", "goal": "\\ud800"}', "plan.bad-json", Place()),
        (f'{{"version": {"1" * 5000}}}', "plan.bad-json", Place()),
        ("[]", "plan.invalid", Place()),
        ("[" * 100_000, "plan.too-deep", Place()),
        ('{"version": "plan/1", "steps": ' + '{"a":' * 300 + "1" + "}" * 301, "plan.too-deep", Place()),
    ],
)
def test_broken_json_is_refused_with_its_place(text: str, code: str, place: Place) -> None:
    error = refusal(text)
    assert (error.code, error.place) == (code, place)


def test_an_unknown_version_names_the_known_one() -> None:
    error = refusal('{"version": "plan/2", "steps": []}')
    assert (error.code, error.nearest, error.expected) == ("plan.unknown-version", "plan/1", "'plan/1'")
    assert refusal('{"steps": []}').code == "plan.unknown-version"
    assert refusal('{"version": 1}').code == "plan.unknown-version"


def test_a_list_of_tasks_is_recognised() -> None:
    error = refusal('{"plan_id": "1", "tasks": []}')
    assert error.fix is not None
    assert "import_tasks" in error.fix


@pytest.mark.parametrize(
    ("steps", "path", "step"),
    [
        ([{"do": "answer", "value": {"kind": "ref", "name": "1"}}], "steps[0].value.name", "0"),
        (
            [{"do": "each", "names": ["x"], "over": {"kind": "list"}, "steps": [{"do": "answer"}]}],
            "steps[0].steps[0]",
            "0/0",
        ),
        (
            [
                {
                    "do": "when",
                    "condition": {"kind": "const", "value": True},
                    "steps": [{"do": "answer", "value": {"kind": "const", "value": 1}}],
                    "otherwise": [{"do": "answer", "value": {"kind": "list", "items": [{"kind": "nothing"}]}}],
                }
            ],
            "steps[0].otherwise[0].value.items[0]",
            "0/else/0",
        ),
    ],
)
def test_an_error_has_the_path_into_the_document_and_the_step(
    steps: list[dict[str, Any]], path: str, step: str
) -> None:
    error = refusal(document(*steps))
    assert error.code == "plan.invalid"
    assert f"at {path}:" in error.message
    assert error.place == Place(step=step)


def test_a_misspelt_kind_of_step_names_the_nearest() -> None:
    error = refusal(document({"do": "anser", "value": {"kind": "const", "value": 1}}))
    assert error.nearest == "answer"


def test_a_file_is_read_and_named_in_errors(tmp_path: Path) -> None:
    plan = parse("answer(1)").plan
    good = tmp_path / "good.json"
    good.write_text("\ufeff" + plan.to_json())
    assert load_plan(good) == plan
    bad = tmp_path / "bad.json"
    bad.write_bytes(b"\xff\xfe\x00")
    for path in (bad, tmp_path / "missing.json", tmp_path):
        error = refusal(path)
        assert (error.code, error.place) == ("plan.cannot-read", Place(file=str(path)))
    bad.write_text("{")
    assert refusal(bad).place == Place(file=str(bad), line=1, column=2)
    bad.write_text(" " * 4_000_001)
    assert refusal(bad).code == "plan.too-long"


def test_the_deepest_plan_survives_json_and_a_deeper_one_is_refused() -> None:
    def nested(depth: int, shape: str) -> Plan:
        value: Expr = ListOf()
        for _ in range(depth - 2):
            match shape:
                case "dict":
                    value = DictOf(entries=((Const(value=1), value),))
                case _:
                    value = Comprehension(element=Const(value=1), clauses=(Clause(names=("x",), over=value),))
        return Plan(steps=(Answer(value=value),))

    for shape in ("dict", "comprehension"):
        assert load_plan(nested(50, shape).to_json()) == nested(50, shape)
        assert refusal(nested(51, shape).to_json()).code == "plan.too-deep"
