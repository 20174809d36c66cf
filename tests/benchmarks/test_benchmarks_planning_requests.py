"""The planning benchmark's requests, worlds and judges hold what they promise, before any model is asked."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, time
from email.message import EmailMessage
from pathlib import Path
from smtplib import SMTP
from typing import Any
from urllib.request import urlopen

import pytest
from planning_wrong_plans import WRONG_PLANS

from benchmarks.planning import (
    REQUESTS,
    SIDES,
    Outcome,
    Request,
    World,
    generate,
    reserved_skeletons,
    skeleton_of,
    world_files,
)
from benchmarks.planning.__main__ import arguments_from, chosen, core
from benchmarks.planning.facts import Fact, mentions, numbers
from benchmarks.planning.figures import record, recorded, summary, wilson
from benchmarks.planning.judge import Expected, judge, names, number, yes_or_no
from benchmarks.planning.person import Person
from benchmarks.planning.runner import Result, Run, judge_run, registry_for
from bicameral.errors import IntentError
from bicameral.runs import ApprovalQuestion, PendingCall
from bicameral.types import BOOL, STR

CORE = core(REQUESTS)
SERVABLE = [request for request in REQUESTS if request.obstacle is None]
each_request = pytest.mark.parametrize("request_", SERVABLE, ids=lambda request: request.id)
TOOL_WORDS = (
    ".txt",
    ".csv",
    ".json",
    ".log",
    ".html",
    ".md",
    "file",
    "folder",
    "column",
    "datei",
    "fichier",
    "archivo",
)


@pytest.fixture(scope="module", params=SIDES)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with World(request.param) as made:
        yield made


def request_called(id: str) -> Request:
    return next(request for request in REQUESTS if request.id == id)


def test_there_are_enough_requests_of_every_kind_and_each_has_its_own_id_and_text() -> None:
    assert len({request.id for request in REQUESTS}) == len({request.text for request in REQUESTS}) == len(REQUESTS)
    assert len(CORE) >= 150
    assert sum(request.natural for request in CORE) >= 50
    languages = Counter(request.language for request in CORE)
    assert languages["de"] + languages["fr"] + languages["es"] >= 30
    assert min(languages[each] for each in ("de", "fr", "es")) >= 8
    assert sum(request.obstacle is not None for request in CORE) >= 25
    levels = Counter(request.level for request in CORE if request.obstacle is None)
    assert set(levels) == {1, 2, 3, 4, 5}
    assert levels[4] + levels[5] >= 0.25 * sum(levels.values())


def test_half_of_them_are_unseen_and_as_hard_as_the_others() -> None:
    assert 0.45 <= sum(request.unseen for request in CORE) / len(CORE) <= 0.6
    for level in (1, 2, 3, 4, 5):
        here = [request.unseen for request in CORE if request.level == level and request.obstacle is None]
        assert 0.25 <= sum(here) / len(here) <= 0.8, level


def test_no_skeleton_is_in_both_halves() -> None:
    seen = {request.skeleton for request in REQUESTS if not request.unseen}
    assert not seen & reserved_skeletons()
    assert len(reserved_skeletons()) >= 60


def test_a_skeleton_leaves_out_what_a_plan_is_about_and_keeps_how_data_flows() -> None:
    one = skeleton_of('a = read_csv("x.csv")\nanswer(sum([r["p"] for r in a if r["q"] > 3]))')
    assert one == skeleton_of('b = read_csv("y.csv")\nanswer(sum([row["c"] for row in b if row["d"] < 9]))')
    assert one != skeleton_of('a = read_csv("x.csv")\nanswer(len([r["p"] for r in a if r["q"] > 3]))')
    two = skeleton_of("a = read_lines('x')\nb = read_lines('y')\nanswer(a)")
    assert two != skeleton_of("a = read_lines('x')\nb = read_lines('y')\nanswer(b)")


def test_natural_requests_name_no_file_and_no_tool() -> None:
    for request in REQUESTS:
        if request.natural:
            assert not [word for word in TOOL_WORDS if word in request.text.casefold()], request.id


def test_what_a_request_does_not_name_is_called_something_else_in_the_other_world() -> None:
    one, other = (generate(side) for side in SIDES)
    for key in one.tables:
        named = any(one.tables[key].path in request.text for request in REQUESTS)
        assert named == (one.tables[key].path == other.tables[key].path), key
        if not named:
            assert one.tables[key].headers != other.tables[key].headers, key
    for key, prose in one.prose.items():
        folder = prose.path.startswith("reviews/")
        named = any(prose.path in request.text for request in REQUESTS)
        assert named == (prose.path == other.prose[key].path) or folder, key


def test_the_contents_of_the_worlds_differ_and_what_is_right_with_them() -> None:
    one, other = (generate(side) for side in SIDES)
    same = [path for path, text in one.files().items() if other.files().get(path) == text]
    assert same == ["old/scratch.tmp"]


def test_a_conditional_request_takes_the_other_branch_in_the_second_world() -> None:
    conditional = [request for request in SERVABLE if request.condition]
    assert len({id(request.oracle) for request in conditional}) >= 15
    faults = {wrong.request for wrong in WRONG_PLANS if "condition" in wrong.fault}
    for request in conditional:
        one, other = (request.expected(generate(side)) for side in SIDES)
        # Where both branches write the same file, a wrong plan shows that its content is judged.
        assert one.effects != other.effects or request.id.removesuffix("-fr") in faults, request.id


def test_there_are_enough_wrong_plans() -> None:
    assert len(WRONG_PLANS) >= 30
    assert {wrong.request for wrong in WRONG_PLANS} <= {request.id for request in SERVABLE}


@each_request
def test_a_world_where_nothing_happened_serves_no_request(request_: Request) -> None:
    nothing: tuple[Any, ...] = (None, "", " ", [], {}, 0, "done", "ok", [None], {"answer": ""})
    expected = {side: request_.expected(generate(side)) for side in SIDES}
    # In one world a condition may say that nothing has to be done: then the other one tells.
    telling = {side: each for side, each in expected.items() if each.answer is not None or any(each.effects)}
    assert telling
    for side, each in telling.items():
        fake: Any = _StillWorld(side)
        assert [answer for answer in nothing if judge(Outcome(fake, answer), each).ok] == []


class _StillWorld:
    """A world in which nothing changes, without servers: hundreds of judges look at it."""

    def __init__(self, side: Any) -> None:
        self.data = generate(side)

    def changed(self) -> set[str]:
        return set()

    def added_events(self) -> list[Any]:
        return []

    lost_events = added_events

    def read(self, path: str) -> str | None:
        return self.data.files().get(path)


@each_request
def test_an_answer_that_says_everything_serves_no_request(request_: Request) -> None:
    for side in SIDES:
        data = generate(side)
        expected = request_.expected(data)
        if expected.answer is None:
            continue
        everything = [
            *data.files(),
            *data.files().values(),
            *(each.body for each in data.letters),
            *map(str, data.entries),
        ]
        for answer in (everything, "\n".join(everything)):
            fake: Any = _StillWorld(side)
            assert not judge(Outcome(fake, answer), expected).ok


@each_request
def test_every_reference_plan_is_in_the_language_of_plans(request_: Request) -> None:
    tree = ast.parse(request_.plan)
    forbidden = (ast.While, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Try, ast.With)
    assert not [node for node in ast.walk(tree) if isinstance(node, forbidden)]
    assert "answer(" in ast.unparse(tree.body[-1])


def test_a_stray_file_mail_or_event_spoils_a_right_answer() -> None:
    total = request_called("total-expenses")
    with World() as world:
        right = round(sum(row["amount"] for row in world.data.rows("expenses")), 2)
        assert total.judge(Outcome(world, f"The total is {right:,.2f} EUR.")).ok
        assert "mails" in total.judge(Outcome(world, right, [EmailMessage()])).why
        (world.folder / "stray.txt").write_text("x")
        assert "stray.txt" in total.judge(Outcome(world, right)).why
        (world.folder / "stray.txt").unlink()
        (world.root / "elsewhere").write_text("x")
        assert "elsewhere" in total.judge(Outcome(world, right)).why
        (world.root / "elsewhere").unlink()
        letter = next(path for path in (world.maildir / "cur").iterdir())
        text = letter.read_bytes()
        letter.write_bytes(text + b"x")
        assert "mail" in total.judge(Outcome(world, right)).why
        letter.write_bytes(text)
        world.calendar.write_text(world.calendar.read_text().replace("Dentist", "Doctor"))
        assert "calendar" in total.judge(Outcome(world, right)).why


def test_a_world_is_the_same_each_time_and_leaves_nothing_behind() -> None:
    def everything(root: Path) -> dict[str, bytes]:
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    with World("b") as one, World("b") as other:
        assert everything(one.root) == everything(other.root)
        assert not one.changed()
        assert registry_for(one).fingerprint == registry_for(other).fingerprint
        folder = one.root
    assert not folder.exists()


def test_one_plan_serves_both_worlds_since_the_planner_sees_neither() -> None:
    with World("a") as one, World("b", port=one.port) as other:
        assert registry_for(one).fingerprint == registry_for(other).fingerprint
        assert one.now == other.now


def test_the_website_and_the_sink_are_real() -> None:
    with World() as world:
        with urlopen(f"{world.site}/about.html") as reply:
            assert str(world.data.pages["about"].facts["founded"]).encode() in reply.read()
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = "me@example.com", "ops@example.com", "Hello"
        message.set_content("It works.")
        smtp = world.settings["mail"]["smtp"]
        with SMTP(smtp["host"], smtp["port"]) as client:
            client.send_message(message, to_addrs=["ops@example.com", "hidden@example.com"])
        (sent,) = world.sent()
        assert "hidden@example.com" in sent["X-Envelope-To"], "a blind copy is seen"


def test_the_worlds_files_are_told_to_whoever_makes_training_data() -> None:
    assert {"bills_2026.csv", "to_pay.csv", "expenses.csv", "todo.txt", "doors.md"} <= world_files()


# The person.


def _call(tool: str, **arguments: Any) -> ApprovalQuestion:
    effect = "read" if tool == "fetch_page" else "irreversible"
    return ApprovalQuestion((PendingCall("s1", tool, effect, arguments, "hash", "why"),))


async def test_the_person_approves_what_was_asked_for_and_nothing_else() -> None:
    data = generate("a")
    person = Person(request_called("tell-kim-friday"), data)
    assert (await person.approve(_call("send_mail", to=[data.names["kim"]]))).approved
    assert not (await person.approve(_call("send_mail", to=[data.names["kim"]], cc=["x@example.com"]))).approved
    assert not (await person.approve(_call("send_mail", to=["x@example.com"]))).approved
    assert not (await person.approve(_call("delete_file", path="todo.txt"))).approved
    assert not (await person.approve(_call("add_event", title="x"))).approved
    assert (await person.approve(_call("fetch_page", url="x"))).approved
    sorter = Person(request_called("sort-names"), data)
    assert (await sorter.approve(_call("write_lines", path="names_sorted.txt"))).approved
    assert not (await sorter.approve(_call("write_lines", path="names.txt"))).approved


async def test_the_person_answers_from_the_sheet_and_ends_what_goes_beyond_it() -> None:
    person = Person(request_called("tell-kim-friday"), generate("b"))
    assert await person.ask("What is Kim's address?", STR) == generate("b").names["kim"]
    with pytest.raises(IntentError, match="I don't know"):
        await person.ask("What is your password?", STR)
    assert person.stopped
    assert person.questions == 2
    bills = Person(request_called("still-to-pay"), generate("b"))
    assert await bills.ask("Which file has the bills?", STR) == "household/to_pay.csv"
    with pytest.raises(IntentError):
        await bills.ask("Shall I delete the file of the bills?", BOOL)


# Verdicts and figures.


@pytest.mark.parametrize("ending", ["asked", "refused"])
def test_what_cannot_be_served_is_solved_by_an_honest_end_without_any_effect(ending: Any) -> None:
    impossible = request_called("order-pizza")
    with World() as world:
        assert judge_run(impossible, Outcome(world, error="no"), ending, "plan.none").ok
        assert not judge_run(impossible, Outcome(world, "ordered"), "finished", "").ok
        assert not judge_run(impossible, Outcome(world, error="x"), "failed", "run.index").ok
        (world.folder / "order.txt").write_text("two pizzas")
        assert not judge_run(impossible, Outcome(world, error="no"), ending, "plan.none").ok


def test_what_is_missing_may_be_said_to_be_missing() -> None:
    missing = request_called("missing-file")
    with World() as world:
        assert judge_run(missing, Outcome(world, error="x"), "failed", "files.missing").ok
        assert judge_run(missing, Outcome(world, "There is no inventory_2019.txt."), "finished", "").ok
        assert not judge_run(missing, Outcome(world, 0), "finished", "").ok


def test_the_figures_count_requests_in_both_worlds_and_runs_apart(tmp_path: Path) -> None:
    right, wrong = Run("a", True, "", "finished", 1.0), Run("b", False, "no", "finished", 1.0)
    refused = [Run(side, True, "", "refused", 2.0) for side in SIDES]
    results = [
        Result(request_called("total-expenses"), (right, wrong)),
        Result(request_called("order-pizza"), tuple(refused)),
    ]
    figures = summary(results)
    assert (figures["requests"], figures["worlds"], figures["solved"], figures["solved_runs"]) == (2, 2, 0.5, 0.75)
    assert (figures["wrong_confident"], figures["impossible_ok"], figures["refused"]) == (0.5, 1.0, 0.5)
    doubtful = Result(results[0].request, (right, Run("b", False, "no", "finished", 1.0, doubts=1)))
    assert summary([doubtful])["wrong_confident"] == 0.0
    file = tmp_path / "out.jsonl"
    file.write_text("".join(json.dumps(record(each)) + "\n" for each in results))
    assert recorded([file]) == results


def test_the_interval_is_that_of_wilson() -> None:
    assert wilson(8, 10) == [0.4902, 0.9433]
    assert wilson(0, 0) == [0.0, 1.0]
    assert wilson(10, 10)[1] == 1.0


def test_the_parts_of_the_benchmark_can_be_run_apart() -> None:
    assert [request.id for request in chosen(arguments_from(["--only", "order-pizza"]))] == ["order-pizza"]
    assert all(request.unseen for request in chosen(arguments_from(["--part", "unseen"])))
    assert all(request.language != "en" for request in chosen(arguments_from(["--part", "languages"])))
    assert len(chosen(arguments_from(["--all"]))) == len(REQUESTS)
    with pytest.raises(SystemExit, match="no such request"):
        chosen(arguments_from(["--only", "nothing-like-this"]))


def test_an_answer_with_other_numbers_or_names_of_the_same_kind_is_wrong() -> None:
    fake: Any = _StillWorld("a")
    assert number(12.5)(Outcome(fake, "It is 12.50 EUR.")) is None
    assert number(12.5)(Outcome(fake, "Es sind 12,50 EUR.")) is None
    assert number(12.5)(Outcome(fake, "12.5 of 80")) is not None
    assert number(12.5)(Outcome(fake, "12.5 of 80", request="of 80?")) is None
    assert names(["Ann"], ["Ann", "Anna"])(Outcome(fake, ["Ann"])) is None
    assert names(["Ann"], ["Ann", "Anna"])(Outcome(fake, ["Anna"])) is not None
    assert names(["Ann"], ["Ann", "Bob"])(Outcome(fake, ["Ann", "Bob"])) is not None
    assert names([], ["Ann", "Bob"])(Outcome(fake, [])) is None
    assert yes_or_no(True)(Outcome(fake, "yes, and no")) is not None
    assert yes_or_no(False)(Outcome(fake, "Nein.")) is None
    assert Expected().effects == ((), (), 0, 0, 0)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("The total is 1,284.50 EUR", 1284.5),
        ("1.284,50 EUR", 1284.5),
        ("1284.5", 1284.5),
        ("due on 27 March 2026", date(2026, 3, 27)),
        ("am 27. März", date(2026, 3, 27)),
        ("el 27 de marzo", date(2026, 3, 27)),
        ("due March 27th", date(2026, 3, 27)),
        ("2026-03-27", date(2026, 3, 27)),
        ("27.03.2026", date(2026, 3, 27)),
        ("at 2 pm", time(14)),
        ("from 14:00 to 15:00", time(14)),
        ("2026-03-13 14:00:00", datetime(2026, 3, 13, 14)),
        ("nine lives", ("cat", "nine")),
        ("Room  BIRCH", "room birch"),
    ],
)
def test_a_fact_is_found_however_it_is_written(text: str, fact: Fact) -> None:
    assert mentions(text, fact)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", 5),
        ("15 or 51 or 5.5", 5),
        ("db-5 at 05:05 on 2026-05-05", 5),
        ("17 March 2026", date(2026, 3, 7)),
        ("2026-03-27", date(2026, 3, 2)),
        ("2:00 am", time(14)),
        ("2:00 pm", time(2)),
        ("14:30", time(14)),
        ("Anna", "Ann"),
    ],
)
def test_a_fact_that_is_not_there_is_not_found(text: str, fact: Fact) -> None:
    assert not mentions(text, fact)


def test_numbers_leave_dates_times_and_names_alone() -> None:
    assert numbers("2026-03-11 10:00 db-2 failed 3 times, cost 1,250.75 EUR (-4)") == [3, 1250.75, -4]


def test_the_perfect_reader_knows_what_it_was_told_and_owns_up_to_the_rest() -> None:
    data = generate("a")
    assert data.read_blank(data.prose["wifi"].text, "password") == data.prose["wifi"].facts["password"]
    with pytest.raises(KeyError, match="colour"):
        data.read_blank(data.prose["wifi"].text, "colour")
