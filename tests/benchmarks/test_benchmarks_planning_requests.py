"""The planning benchmark's requests, world and judges hold what they promise, before any model is asked."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from email.message import EmailMessage
from pathlib import Path
from smtplib import SMTP
from time import process_time
from typing import Any
from urllib.request import urlopen

import pytest

from benchmarks.planning import ORACLE, REQUESTS, Outcome, Request, World, read_blank
from benchmarks.planning.content.mails import LETTERS
from benchmarks.planning.facts import Fact, mentions, numbers

LEVELS = Counter(request.level for request in REQUESTS)
each_request = pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.id)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World() as made:
        yield made


def request_called(id: str) -> Request:
    return next(request for request in REQUESTS if request.id == id)


def test_there_are_enough_requests_and_each_has_its_own_id_and_text() -> None:
    assert len(REQUESTS) >= 60
    assert len({request.id for request in REQUESTS}) == len({request.text for request in REQUESTS}) == len(REQUESTS)


def test_a_third_is_sloppy_and_a_third_is_unseen() -> None:
    assert 3 * sum(request.sloppy for request in REQUESTS) >= len(REQUESTS)
    assert 3 * sum(request.unseen for request in REQUESTS) >= len(REQUESTS)


def test_the_levels_go_from_one_step_to_five_and_none_dominates() -> None:
    total = len(REQUESTS)
    assert set(LEVELS) == {1, 2, 3, 4, 5}
    assert 0.33 <= (LEVELS[1] + LEVELS[2]) / total <= 0.47
    assert 0.23 <= LEVELS[3] / total <= 0.37
    assert 0.23 <= (LEVELS[4] + LEVELS[5]) / total <= 0.37


def test_the_unseen_requests_are_as_hard_as_the_others() -> None:
    features = {feature for request in REQUESTS for feature in request.needs}
    assert {"loop", "condition", "extraction", "join", "group", "send", "calendar", "web"} <= features
    for level, count in LEVELS.items():
        assert abs(sum(r.unseen for r in REQUESTS if r.level == level) - count / 3) <= 1.01
    for feature in features:
        with_it = [request.unseen for request in REQUESTS if feature in request.needs]
        assert abs(sum(with_it) - len(with_it) / 3) <= 1.01, feature
    assert not request_called("dedupe-invoices").unseen, "the README shows it"


@each_request
def test_a_world_where_nothing_happened_serves_no_request(world: World, request_: Request) -> None:
    nothing: tuple[Any, ...] = (None, "", " ", [], {}, 0, True, "done", "ok", [None], {"answer": ""})
    assert [answer for answer in nothing if request_.judge(Outcome(world, answer)).ok] == []


@each_request
def test_an_answer_that_says_everything_serves_no_request(world: World, request_: Request) -> None:
    files = {str(path): path.read_text() for path in sorted(world.folder.rglob("*")) if path.is_file()}
    mail = [f"{letter.sender} {letter.subject} {letter.body}" for letter in LETTERS]
    everything = [*files, *files.values(), *mail, *map(str, world.events())]
    for answer in (everything, "\n".join(everything)):
        assert not request_.judge(Outcome(world, answer)).ok


@each_request
def test_a_verdict_against_an_outcome_says_why(world: World, request_: Request) -> None:
    assert request_.judge(Outcome(world, None)).why
    assert "broke" in request_.judge(Outcome(world, "an answer", error="it broke")).why


@each_request
def test_every_request_has_a_plan_by_hand_in_the_language_of_plans(request_: Request) -> None:
    tree = ast.parse(ORACLE[request_.id])
    forbidden = (ast.While, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Try, ast.With)
    assert not [node for node in ast.walk(tree) if isinstance(node, forbidden)]
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    assert isinstance(last.value, ast.Call)
    assert ast.unparse(last.value.func) == "answer"


def test_no_plan_is_left_over() -> None:
    assert set(ORACLE) == {request.id for request in REQUESTS}


def test_the_flagship_takes_a_list_or_text_and_nothing_more_or_less() -> None:
    flagship = request_called("dedupe-invoices")
    with World() as world:
        lines = list(dict.fromkeys(line for line in world.before("mail.txt").splitlines() if "invoice" in line.lower()))
        assert len(lines) == 4
        assert flagship.judge(Outcome(world, lines)).ok
        assert flagship.judge(Outcome(world, "\n".join(reversed(lines)) + "\n")).ok
        assert not flagship.judge(Outcome(world, lines[1:])).ok
        assert not flagship.judge(Outcome(world, [*lines, lines[0]])).ok
        (world.folder / "mail.txt").write_text("gone\n")
        assert not flagship.judge(Outcome(world, lines)).ok


def test_a_stray_file_mail_or_event_spoils_a_right_answer() -> None:
    total = request_called("total-expenses")
    with World() as world:
        assert total.judge(Outcome(world, "The total is 2,247.20 EUR.")).ok
        assert "mails" in total.judge(Outcome(world, 2247.2, [EmailMessage()])).why
        (world.folder / "stray.txt").write_text("x")
        assert "stray.txt" in total.judge(Outcome(world, 2247.2)).why
        (world.folder / "stray.txt").unlink()
        world.calendar.write_text(world.calendar.read_text().replace("Team lunch", "Lunch"))
        assert "calendar" in total.judge(Outcome(world, 2247.2)).why


def test_two_worlds_are_the_same_and_leave_nothing_behind() -> None:
    def everything(root: Path) -> dict[str, bytes]:
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    with World() as one, World() as other:
        assert everything(one.root) == everything(other.root)
        assert one.now == other.now == datetime(2026, 3, 11, 10)
        assert not one.changed()
        assert one.events() == other.events()
        assert len(one.events()) >= 12
        assert len(LETTERS) >= 25
        folder = one.root
    assert not folder.exists()


def test_a_world_is_up_in_half_a_second() -> None:
    def seconds() -> float:
        start = process_time()
        with World():
            return process_time() - start

    assert min(seconds() for _ in range(5)) < 0.5


def test_the_website_and_the_sink_are_real(world: World) -> None:
    with urlopen(f"{world.site}/about.html") as reply:
        assert b"1987" in reply.read()
    with World() as other:
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = "me@example.com", "ops@example.com", "Hello"
        message.set_content("It works.")
        smtp = other.settings["mail"]["smtp"]
        with SMTP(smtp["host"], smtp["port"]) as client:
            client.send_message(message)
        (sent,) = other.sent()
        assert sent["To"] == "ops@example.com"
        assert sent.get_content().strip() == "It works."


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("The total is 1,284.50 EUR", 1284.5),
        ("1284.5", 1284.5),
        ("due on 27 March 2026", date(2026, 3, 27)),
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
    ],
)
def test_a_fact_that_is_not_there_is_not_found(text: str, fact: Fact) -> None:
    assert not mentions(text, fact)


def test_numbers_leave_dates_times_and_names_alone() -> None:
    assert numbers("2026-03-11 10:00 db-2 failed 3 times, cost 1,250.75 EUR (-4)") == [3, 1250.75, -4]


def test_the_perfect_reader_knows_what_it_was_told_and_owns_up_to_the_rest() -> None:
    northwind = next(letter for letter in LETTERS if letter.name == "Northwind Supplies")
    assert read_blank(northwind.body, "due") - date(2026, 3, 2) == timedelta(days=25)
    with pytest.raises(KeyError, match="colour"):
        read_blank(northwind.body, "colour")
