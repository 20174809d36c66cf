"""References: things of the world in the words of the request, and what becomes of a plan when they are bound."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from flow_world import REGISTRY as WORLD
from test_plans_prove import careful

from bicameral.errors import PlanError
from bicameral.labels import TRUSTED_USER, UNKNOWN, Label, RecordLabels, Source, label_tree_to_json
from bicameral.plans import (
    Answer,
    BoundTo,
    Plan,
    Reference,
    bind_references,
    check,
    evaluate_expr,
    labels_of,
    load_plan,
    open_references,
    parse,
    plan_references,
    print_plan,
    prove,
    reference_sites,
)
from bicameral.plans.evaluate._bounds import EvaluationError
from bicameral.plans.labels._proof import Conditional, Proved
from bicameral.tools import REFERENCE_KINDS, Folders, ReferenceKind, Registry, Surroundings, load_toolboxes, tool

STRANGER = Label(frozenset({Source("third_party", "read_mail", "sender", "")}), TRUSTED_USER.readers)
BILLS = "Amount due,Paid,Category\n12.5,no,Food\n3,yes,Rent\n"


def bound_to(value: str, label: Label = TRUSTED_USER) -> BoundTo:
    return BoundTo(value=value, label=label_tree_to_json(label))


def bind_words(plan: Plan, meanings: dict[str, BoundTo]) -> Plan:
    return bind_references(plan, lambda _, reference: meanings.get(reference.words))


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    (tmp_path / "bills_2026.csv").write_text(BILLS)
    folders = Folders(base=tmp_path, read=(tmp_path,), write=(tmp_path,))
    surroundings = Surroundings(folders, now=lambda: dt.datetime(2026, 3, 1, tzinfo=dt.UTC))
    return load_toolboxes({name: {} for name in ("files", "lines", "tables")}, surroundings)


@pytest.mark.parametrize("kind", REFERENCE_KINDS)
def test_a_reference_of_each_kind_is_written_read_and_saved(kind: ReferenceKind):
    plan = parse(f'answer({kind}("the \\"big\\" one"))').plan
    assert open_references(plan) == (Reference(refers=kind, words='the "big" one'),)
    assert parse(print_plan(plan)).plan == plan == load_plan(plan.to_json())


@pytest.mark.parametrize(
    "written",
    [
        "file()",
        "file(1)",
        'file("")',
        "file('  ')",
        "file(x)",
        'file("a", "b")',
        'file(f"a{x}")',
        f'file("{"a" * 201}")',
    ],
)
def test_the_words_of_a_reference_are_one_literal_text(written: str):
    with pytest.raises(PlanError) as caught:
        parse(f"x = 1\nanswer({written})")
    assert caught.value.code in ("plan.bad-reference", "plan.missing-argument", "plan.unknown-argument")


def test_variables_may_have_the_names_of_references():
    source = 'file = "a"\nanswer([mail for mail in [file] if mail != "b"])\n'
    assert print_plan(parse(source).plan) == source


def test_no_tool_can_be_called_like_a_reference(registry: Registry):
    @tool(effect="pure")
    def person(name: str) -> str:
        "A person."
        return name

    plan = parse('answer(person("Kim"))', Registry([*registry, person])).plan
    assert open_references(plan)


def test_a_plan_with_an_open_reference_is_refused_and_can_be_checked_before_it_is_bound(registry: Registry):
    plan = parse('answer(len(read_csv(file("bills"))))', registry).plan
    assert [finding.code for finding in check(plan, registry).errors] == ["plan.unbound-reference"]
    assert not check(plan, registry, unbound=True).errors
    bound = bind_words(plan, {"bills": bound_to("bills_2026.csv")})
    assert not check(bound, registry).errors
    assert not open_references(bound)


def test_a_reference_has_a_type(registry: Registry):
    plan = parse('answer(filter_rows(file("bills"), "a", "==", 1))', registry).plan
    assert "plan.wrong-type" in [finding.code for finding in check(plan, registry, unbound=True).errors]


def test_an_open_reference_has_no_value_and_the_worst_label():
    open_ = Reference(refers="file", words="bills")
    with pytest.raises(EvaluationError) as caught:
        evaluate_expr(open_, {})
    assert caught.value.code == "run.unbound-reference"
    assert labels_of(open_, {}) is UNKNOWN


def test_a_bound_reference_has_the_value_and_the_label_that_it_was_bound_with():
    bound = Reference(refers="person", words="Kim", bound=bound_to("kim@example.com", STRANGER))
    assert evaluate_expr(bound, {}) == "kim@example.com"
    assert labels_of(bound, {}) is STRANGER


def test_columns_are_looked_for_among_those_of_the_table_that_was_bound(registry: Registry):
    source = """rows = read_csv(file("bills"))
some = [row for row in rows if row[column("paid")] == value("not yet")]
top = filter_rows(some, column("kind"), "==", value("food"))
few = select_columns(top, [column("kind"), column("due")])
answer(sum([row[column("due")] for row in few]))
"""
    plan = parse(source, registry).plan
    assert all(site.names is None for site in reference_sites(plan, registry))
    plan = bind_words(plan, {"bills": bound_to("bills_2026.csv")})
    columns = ("Amount due", "Paid", "Category")
    found = [(site.path, site.words, site.names) for site in reference_sites(plan, registry) if site.refers == "column"]
    assert [each for each in found if each[0] != "4"] == [
        ("1", "paid", columns),
        ("2", "kind", columns),
        ("3", "kind", columns),
        ("3", "due", columns),
    ]
    meanings = {"paid": bound_to("Paid"), "kind": bound_to("Category"), "due": bound_to("Amount due")}
    plan = bind_references(plan, lambda path, each: meanings.get(each.words) if path < "4" else None)
    (last,) = [site for site in reference_sites(plan, registry) if site.path == "4"]
    # What is known of a table that steps have changed.
    assert last.names == ("Category", "Amount due")
    assert [(each.words, each.column) for each in reference_sites(plan, registry) if each.refers == "value"] == [
        ("not yet", "Paid"),
        ("food", "Category"),
    ]
    # A column selects a part of a value that has a label of its own, so it becomes a literal.
    assert 'row["Paid"] == value("not yet")' in print_plan(plan, registry)


def test_a_reference_in_a_branch_or_a_loop_is_bound_at_its_own_step():
    source = """if now().hour > 12:
    answer(file("bills"))
else:
    for each in [1]:
        x = file("bills")
answer("done")
"""
    plan = parse(source).plan
    seen: list[str] = []

    def find(path: str, reference: Reference) -> BoundTo:
        seen.append(path)
        return bound_to(path)

    bound = bind_references(plan, find)
    assert seen == [site.path for site in reference_sites(plan, Registry())]
    assert [each.bound.value for each in plan_references(bound) if each.bound] == seen
    assert not open_references(bound)


# Attacks, each with its twin ---------------------------------------------------------------------------------------

PAY = 'pay(person("Kim"), 1)\nanswer("done")'


def test_who_is_paid_is_not_proved_where_a_stranger_named_the_candidates():
    plan = bind_words(parse(PAY, WORLD).plan, {"Kim": bound_to("kim", STRANGER)})
    assert isinstance(prove(plan, WORLD, careful).calls[-1].verdict, Conditional)
    own = bind_words(parse(PAY, WORLD).plan, {"Kim": bound_to("kim")})
    assert isinstance(prove(own, WORLD, careful).calls[-1].verdict, Proved)


def test_a_branch_on_a_reference_carries_its_label():
    source = 'if person("Kim") == "kim":\n    pay("bob", 1)\nanswer("done")'
    plan = bind_words(parse(source, WORLD).plan, {"Kim": bound_to("kim", STRANGER)})
    assert isinstance(prove(plan, WORLD, careful).calls[-1].verdict, Conditional)
    own = bind_words(parse(source, WORLD).plan, {"Kim": bound_to("kim")})
    assert isinstance(prove(own, WORLD, careful).calls[-1].verdict, Proved)


def test_a_reference_among_others_keeps_its_label():
    for written in (
        '[person("Kim")][0]',
        'person("Kim") or "bob"',
        "f\"{person('Kim')}\"",
        '{"a": person("Kim")}["a"]',
    ):
        step = bind_words(parse(f"answer({written})").plan, {"Kim": bound_to("kim", STRANGER)}).steps[0]
        assert isinstance(step, Answer)
        assert not labels_of(step.value, {}).flat.trusted, written


def test_the_label_of_a_bound_reference_is_read_strictly():
    plan = parse('answer(person("Kim"))').plan
    labels: list[Any] = [{}, "trusted", {"labels": [], "shade": 0}, label_tree_to_json(RecordLabels(STRANGER, {}))]
    for label in labels:
        text = bind_words(plan, {"Kim": bound_to("kim")}).to_json()
        written = plan.model_dump(mode="json")
        written["steps"][0]["value"]["bound"] = {"value": "kim", "label": label}
        with pytest.raises(PlanError):
            load_plan(json.dumps(written))
        assert load_plan(text)
