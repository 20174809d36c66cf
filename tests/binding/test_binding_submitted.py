"""Plans that come as a text: nothing that they say about their own binding is taken over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bicameral.agent import Agent
from bicameral.binding import bind_by_rules
from bicameral.errors import BindError
from bicameral.labels import TRUSTED_USER, label_tree_to_json
from bicameral.models import ScriptedProvider
from bicameral.plans import (
    BoundTo,
    Plan,
    bind_cells,
    bind_references,
    drop_bindings,
    load_plan,
    open_references,
    parse,
    print_plan,
)
from bicameral.runs import run_plan
from bicameral.toolboxes import files, tables
from bicameral.tools import Registry, Surroundings

READ = 'answer(read_text(path=file("mail")))'
FORGED = BoundTo(value="private.txt", label=label_tree_to_json(TRUSTED_USER))


@pytest.fixture
def tools(tmp_path: Path) -> Registry:
    (tmp_path / "mail.txt").write_text("a letter\n")
    (tmp_path / "private.txt").write_text("nobody asked for this\n")
    (tmp_path / "bills.csv").write_text("name;paid\na;ja\nb;nein\nc;nein\n")
    here = Surroundings.here(tmp_path)
    return Registry([*files.toolbox.open(here), *tables.toolbox.open(here)])


def forge(source: str) -> Plan:
    return bind_references(parse(source).plan, lambda path, reference: FORGED)


def test_a_text_cannot_say_what_its_words_are_bound_to() -> None:
    plan = forge(READ)
    assert "private.txt" in plan.to_json()
    for steps in (
        READ,
        f"if 1 == 1:\n    {READ}\nelse:\n    {READ}",
        'for name in ["a"]:\n    x = read_text(path=file("mail"))\nanswer([t for t in [file("mail")] if t != ""])',
    ):
        loaded = load_plan(forge(steps).to_json())
        assert loaded == drop_bindings(forge(steps)) == parse(steps).plan
        assert open_references(loaded)
    # What the runtime itself wrote down keeps its bindings.
    assert load_plan(plan.to_json(), keep_bindings=True) == plan


async def test_words_are_bound_anew_by_the_runtime(tools: Registry) -> None:
    bound = await bind_by_rules(forge(READ), tools)
    assert [str(each) for each in bound.bindings] == ["*mail* → mail.txt"]
    outcome: Any = await run_plan(bound.plan, registry=tools)
    assert outcome.answer == "a letter\n"


async def test_an_agent_runs_what_the_words_mean(tools: Registry) -> None:
    agent = Agent(list(tools), privileged=ScriptedProvider([]), quarantined=ScriptedProvider([]), cache={})
    outcome: Any = await agent.run(load_plan(forge(READ).to_json()))
    assert outcome.answer == "a letter\n"


async def test_without_a_world_an_open_plan_fails_closed() -> None:
    plan = load_plan(forge('answer(file("mail"))').to_json())
    with pytest.raises(BindError) as caught:
        await bind_by_rules(plan, Registry([]))
    assert caught.value.code in ("bind.nothing-found", "bind.no-place")
    outcome: Any = await run_plan(plan, registry=Registry([]))
    assert not outcome.ok


CELLS = 'rows = read_csv(path="bills.csv")\nanswer([r["name"] for r in rows if {}])'
WRITTEN = (
    'cell_matches(r["paid"], "==", False, "yes/no: x", "other")',
    'cell_matches(r["paid"], "==", False, "number", "paid")',
    'cell_matches(cell_value(r["paid"], "number", "x", True), "==", False, "yes/no", "paid")',
    'cell_value(r["paid"], "yes/no", "paid") == False',
)


@pytest.mark.parametrize("condition", WRITTEN)
async def test_a_written_cell_is_read_as_the_table_has_it(tools: Registry, condition: str) -> None:
    plan = parse(CELLS.format(condition), tools).plan
    honest = bind_cells(parse(CELLS.format('r["paid"] == False'), tools).plan, tools)
    assert bind_cells(plan, tools) == honest
    bound = await bind_by_rules(load_plan(plan.to_json()), tools)
    outcome: Any = await run_plan(bound.plan, registry=tools)
    assert outcome.answer == ["b", "c"]


@pytest.mark.parametrize(
    "condition",
    [
        'cell_matches(cell=r["paid"], op="!=", value=None, notation="yes/no", column="paid")',
        'cell_matches(r["paid"], r["name"], False, "yes/no", "paid")',
        'cell_value(cell=r["paid"], notation="yes/no", column="paid")',
    ],
)
def test_a_written_cell_in_no_form_of_binding_is_refused(tools: Registry, condition: str) -> None:
    with pytest.raises(BindError) as caught:
        bind_cells(parse(CELLS.format(condition), tools).plan, tools)
    assert (caught.value.code, caught.value.place.step if caught.value.place else None) == ("bind.written-cells", "1")


def test_written_cells_are_undone_also_without_a_table() -> None:
    plan = parse('rows = [{"n": "1"}]\nanswer([r for r in rows if cell_matches(r["n"], "==", 1, "number", "n")])').plan
    assert 'r["n"] == 1' in print_plan(bind_cells(plan, Registry([])))
