"""What pages show of values, plans and runs, without a server: labels part by part, graphs, journals event by event."""

from __future__ import annotations

import datetime as dt
import re
import time
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from bicameral.config import Config, open_registry
from bicameral.console import _run_comparison
from bicameral.console._pages import (
    MOST_CODES,
    duration_text,
    environment,
    money_text,
    render,
    visible_name,
    visible_pieces,
)
from bicameral.console._plan_graph import MAX_MAKERS, StepGraph, plan_steps
from bicameral.console._provenance import find_provenance
from bicameral.console._run_actions import folders_left
from bicameral.console._run_comparison import Comparison, compare_lines, compare_runs
from bicameral.console._run_progress import RunProgress
from bicameral.console._run_stream import stream_message
from bicameral.console._values import (
    FIRST_ITEMS,
    MAX_CHARS,
    MAX_VALUE_CHARS,
    PART_CHARS,
    Room,
    as_table,
    exact_text,
    join_place,
    part_at,
    plain_text,
    read_labels,
    readers_text,
    shown_value,
    split_place,
    trust_of,
    type_words,
)
from bicameral.durable import RunView
from bicameral.errors import RunError, ServerError
from bicameral.labels import UNKNOWN, Label, LabelTree, ListLabels, RecordLabels, Source, label_tree_to_json
from bicameral.plans import parse
from bicameral.policy import Policy
from bicameral.runs import Conflict, Event, LastingEffect, Undo
from bicameral.secrets import isolate_secrets, register_secret
from bicameral.server import AccessToken
from bicameral.tools import Registry

MAIL = Label((Source("third_party", "read_mail", "body", "0"),), {"user"})
MINE = Label((Source("user", "request"),))
NOW = dt.datetime(2026, 3, 1, 12, 0, tzinfo=dt.UTC)
SYSTEM = Label((Source("system", "clock", "", "1"),))


@pytest.fixture(scope="module")
def registry() -> Registry:
    return open_registry(Config.defaults())


def test_each_part_has_its_own_label() -> None:
    tree = ListLabels(MINE, RecordLabels(SYSTEM, {"from": SYSTEM, "body": MAIL}, MAIL))
    shown = shown_value([{"from": "a", "body": "b", "other": 1}], tree)
    first = shown.parts[0]
    assert (shown.trust, first.trust) == ("user", "system")
    assert [(part.name, part.trust) for part in first.parts] == [
        ("from", "system"),
        ("body", "untrusted"),
        ("other", "untrusted"),
    ]
    assert first.parts[1].at == "/0/body"


@pytest.mark.parametrize("written", [None, 7, {"shade": 0}, "x", {"labels": "x", "shade": 0}])
def test_a_value_without_a_label_that_can_be_read_counts_as_untrusted(written: object) -> None:
    labels = read_labels(written)
    assert shown_value("x", labels).trust == "untrusted"
    assert read_labels(label_tree_to_json(MINE)) is MINE


def test_of_several_sources_the_least_trusted_counts() -> None:
    assert trust_of(Label((*MAIL.sources, *MINE.sources))) == "untrusted"
    assert trust_of(Label((*MINE.sources, *SYSTEM.sources))) == "user"
    assert trust_of(Label()) == "plan"
    assert trust_of(UNKNOWN.flat) == "untrusted"
    assert readers_text(MINE) == "everybody"
    assert readers_text(Label((), {"ada@example.com"})) == "the user and ada@example.com"
    assert readers_text(MAIL) == "the user alone"


def test_long_values_are_cut_and_say_so_unless_a_person_decides_on_them() -> None:
    cut = shown_value("x" * (MAX_CHARS + 5), MAIL)
    assert (len(cut.text), cut.left_out) == (MAX_CHARS, 5)
    listed = shown_value(list(range(FIRST_ITEMS + 7)), MAIL)
    assert (len(listed.parts), listed.left_out) == (FIRST_ITEMS, 7)
    wide: list[Any] = [[[index] * 50 for index in range(50)] for _ in range(50)]
    assert _count(shown_value(wide, MAIL)) < 400
    whole = shown_value([["y" * (MAX_CHARS * 2)] * 100], MAIL, whole=True)
    assert whole.left_out == whole.parts[0].left_out == whole.parts[0].parts[99].left_out == 0


def test_all_texts_of_a_value_share_one_bound() -> None:
    shown = shown_value(["x" * MAX_CHARS] * FIRST_ITEMS, MAIL)
    assert sum(len(part.text) for part in shown.parts) <= MAX_VALUE_CHARS
    assert shown.left_out + sum(part.left_out for part in shown.parts) > 0
    names = shown_value({"n" * 100_000: 1, "m" * 100_000: {"k" * 100_000: 2}}, MAIL)
    assert _name_chars(names) < 1_000
    few = shown_value(["x" * 100] * FIRST_ITEMS, MAIL)
    assert few.left_out + sum(part.left_out for part in few.parts) == 0


def _name_chars(part: Any) -> int:
    return len(part.name) + sum(_name_chars(each) for each in part.parts)


def test_room_within_room_counts_for_both() -> None:
    whole = Room(10)
    part = Room(8, whole)
    assert (part.take("abcdef"), part.left, whole.left) == ("abcdef", 2, 4)
    assert (part.take("xyz"), part.was_too_small, whole.was_too_small) == ("xy", True, False)
    assert Room(8, whole).take("123") == "12"


def test_empty_texts_have_a_bound_too() -> None:
    room = Room(4_000)
    shown = shown_value([""] * 100_000, MAIL, whole=True, room=room)
    assert 0 < len(shown.parts) < 4_000 // PART_CHARS
    assert room.was_too_small


def test_a_text_that_does_not_fit_is_shown_with_its_end() -> None:
    room = Room(1_000 + PART_CHARS)
    shown = shown_value("a" * 5_000 + "the end", MAIL, whole=True, room=room)
    assert shown.text.startswith("aaa")
    assert shown.tail.endswith("the end")
    assert len(shown.text) + len(shown.tail) + shown.left_out == 5_007


def test_half_of_a_secret_is_not_shown_where_a_text_is_cut() -> None:
    with isolate_secrets():
        register_secret("key", "correct-horse-battery")
        shown = shown_value("x" * (MAX_CHARS - 8) + "correct-horse-battery", MAIL)
    assert "correct" not in shown.text


def test_values_that_are_decided_on_are_exact() -> None:
    exact = {
        0.1 + 0.2: "0.30000000000000004",
        1e16: "1e+16",
        dt.time(14, 30, 59): "14:30:59",
        dt.datetime(2026, 3, 1, 14, 30, 59, 5): "2026-03-01 14:30:59.000005",
        dt.timedelta(days=1): "1 day, 0:00:00",
        None: "nothing",
    }
    assert {value: exact_text(value) for value in exact} == exact
    assert [type_words(each) for each in ("nothing", None, True, 1, 1.5)] == ["", "no value", "true", *["a number"] * 2]
    assert shown_value(0.1 + 0.2, MAIL).text == "0.3"


def _count(part: Any) -> int:
    return 1 + sum(_count(each) for each in part.parts)


def test_places_name_any_part() -> None:
    tree: LabelTree = RecordLabels(MINE, {"a/b": MAIL, "": MAIL}, MINE)
    place = join_place("", "a/b")
    assert split_place(place) == ["a/b"]
    assert part_at({"a/b": 1, "": 2, "~": 3}, tree, place) == (1, MAIL)
    assert part_at({"a/b": 1, "": 2, "~": 3}, tree, "/") == (2, MAIL)
    assert part_at({"~": 3}, tree, join_place("", "~")) == (3, MINE)
    for value, place in (
        ({"a": 1}, "/b"),
        ([1], "/1"),
        ([1], "/-1"),
        ([1], "/x"),
        ("text", "/0"),
        ([1], "/00000000000"),
    ):
        with pytest.raises((LookupError, TypeError)):
            part_at(value, MAIL, place)


def test_records_with_the_same_fields_are_a_table() -> None:
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    table = as_table(shown_value(rows, MAIL))
    assert table is not None
    assert list(table.columns) == ["a", "b"]
    assert (list(table.trusts), table.names) == (["untrusted", "untrusted"], "untrusted")
    assert as_table(shown_value([*rows, {"a": 3}], MAIL)) is None
    assert as_table(shown_value([{"a": [1]}, {"a": [2]}], MAIL)) is None


def test_values_that_are_no_texts_are_words() -> None:
    words = {None: "nothing", True: "yes", False: "no", 3: "3", dt.datetime(2026, 3, 1, 14, 30): "2026-03-01 14:30"}
    assert {value: plain_text(value) for value in words} == words


def test_invisible_characters_are_written_out() -> None:
    assert list(visible_pieces("a\u200bb\rc")) == [("a", ""), ("", "200b"), ("b", ""), ("", "000d"), ("c", "")]
    assert list(visible_pieces("plain\ntext")) == [("plain\ntext", "")]
    assert visible_name("a\u202eb\nc\u00a0d") == "a<202e>b⏎c<00a0>d"


def test_hidden_characters_in_a_row_are_one_mark() -> None:
    assert list(visible_pieces("a" + "\u200b" * 6_000 + "b")) == [("a", ""), ("", "200b ×6,000"), ("b", "")]
    assert list(visible_pieces("\u200b\u2060\u200b")) == [("", "200b 2060 200b")]
    assert sum(1 for _ in visible_pieces("\u200b\u2060" * 10_000)) == 20_000 // MOST_CODES
    assert list(visible_pieces("a\u00a0b", strict=True)) == [("a", ""), ("", "00a0"), ("b", "")]


def test_what_looks_like_a_hidden_character_is_told_from_one() -> None:
    assert list(visible_pieces("‹200b›")) == [("", "2039"), ("200b›", "")]
    assert next(visible_pieces("‹200b ×6,000›")) == ("", "2039")
    assert list(visible_pieces("‹word›")) == [("‹word›", "")]
    assert visible_name("<200b> <b>") == "<003c>200b> <b>"


MIXED = [{"who": "Kim", "since": 1}, {"who": "Lee", "since": 2}]


def shown_html(value: Any, labels: LabelTree, origin: str = "/o?x=1") -> str:
    template = '{% from "values.html" import value %}{{ value(part, origin) }}'
    return environment().from_string(template).render(part=shown_value(value, labels), origin=origin)


def test_cells_say_in_words_whose_they_are_and_lead_to_where_they_came_from() -> None:
    columns = RecordLabels(SYSTEM, {"who": MAIL, "since": SYSTEM})
    html = shown_html(MIXED, ListLabels(SYSTEM, columns))
    head, _, body = html.partition("<tbody>")
    assert head.count("untrusted text") == 1
    assert "untrusted text" not in body
    assert "the names of the columns" not in head
    assert [f"at=%2F{number}" in body for number in range(3)] == [True, True, False]
    # Where the cells of a column are not all of the same, each says it.
    places = ListLabels(SYSTEM, None, [RecordLabels(SYSTEM, {"who": each, "since": SYSTEM}) for each in (MAIL, MINE)])
    mixed = shown_html(MIXED, places).partition("<tbody>")[2]
    assert (mixed.count("untrusted text"), mixed.count("from the user")) == (1, 1)


def test_names_that_others_have_chosen_are_marked_in_words() -> None:
    assert "the names of the columns are untrusted text" in shown_html(MIXED, MAIL)
    assert "the names of the fields are untrusted text" in shown_html({"a": 1}, MAIL)
    declared = RecordLabels(SYSTEM, {"a": MAIL})
    assert "the names of the fields" not in shown_html({"a": 1}, declared)


def marked_texts(html: str) -> list[str]:
    """The texts that are marked in words as those that may be of others."""
    return re.findall(r'<span class="quoting">(.*?)</span> <span class="whose untrusted">may quote', html)


@pytest.mark.parametrize("state", ["queued", "failed"])
def test_the_result_of_a_run_marks_what_may_quote_others(state: Literal["queued", "failed"]) -> None:
    cost = SimpleNamespace(calls=0)
    html = render(
        "run_result.html",
        progress=SimpleNamespace(request="", started=None, seconds=None, cost=cost, rounds=(), alerts=()),
        view=RunView("r", "ana", "", state, NOW, NOW, 1, why="a reason"),
        doubts=[{"text": "a doubt"}],
        error={"message": "an error", "code": "tool.failed", "fix": "a fix"} if state == "failed" else None,
        token=AccessToken("t", "ana", "0" * 64, 0.0),
        session=SimpleNamespace(csrf="secret"),
        found=SimpleNamespace(run="r"),
        state=state,
        **dict.fromkeys(("questions", "citations", "effects"), ()),
        answer=None,
        currency="EUR",
    )
    wanted = {"queued": ["a reason", "a doubt"], "failed": ["a doubt", "an error", "a fix"]}
    assert marked_texts(html) == wanted[state]


def test_what_stands_in_the_way_of_taking_back_is_marked() -> None:
    undo = Undo("r", (), (Conflict("a file", "it was changed"),), (LastingEffect("0", "post", "a mail was sent"),))
    found = SimpleNamespace(run="r", address="/runs/r")
    html = render("run_undo.html", undo=undo, found=found, shown="", session=None, token=None, page_path="/")
    assert ["a file" in text or "a mail" in text for text in marked_texts(html)] == [True, True]


def test_an_error_of_a_run_on_a_page_of_its_own_is_marked() -> None:
    shared = {"session": None, "token": None, "page_path": "/", "code": 409}
    conflict = RunError("run.undo-conflict", "run r cannot be taken back: a file", fix="a fix")
    assert marked_texts(render("error.html", error=conflict, **shared)) == [
        "run r cannot be taken back: a file",
        "a fix",
    ]
    assert marked_texts(render("error.html", error=ServerError("server.x", "ours", fix="ours"), **shared)) == []


def test_a_notice_names_no_folder_of_others() -> None:
    assert folders_left([]) == ""
    assert folders_left(["Your session has ended"]) == " One folder is not empty, and stays."
    assert folders_left(["a", "b"]) == " 2 folders are not empty, and stay."


def test_no_text_ends_a_message_of_a_stream_or_begins_a_field() -> None:
    message = stream_message("a\r\revent: end\ndata: x\n\nid: 9", number=3).decode()
    assert message.endswith("\n\n")
    assert "\r" not in message
    lines = message.rstrip("\n").split("\n")
    assert lines[0] == "id: 3"
    assert all(line.startswith("data: ") for line in lines[1:])


def test_times_and_money_are_told_in_one_unit() -> None:
    assert [duration_text(each) for each in (0.0004, 0.012, 3.14159, 75, 7300, 200_000, None)] == [
        *("0 ms", "12 ms", "3.1 s", "1 min", "2 h", "2 d", "")
    ]
    assert [money_text(each, "USD") for each in (None, 0, 0.01234, 1234.5)] == [
        *("price not known", "0.00 USD", "0.0123 USD", "1,234.50 USD")
    ]


def test_the_graph_follows_values_and_conditions(registry: Registry) -> None:
    text = """lines = read_lines("mail.txt")
limit = 3
kept = []
for line in lines:
    if len(line) > limit:
        kept.append(line)
other = read_lines("todo.txt")
answer(kept)
"""
    steps = plan_steps(parse(text, registry).plan, registry)
    by_path = {step.path: step for step in steps}
    assert by_path["3"].uses == ("0",)
    assert set(by_path["3/0"].uses) == {"3", "1"}
    assert by_path["3/0/then/0"].within == "3/0"
    assert set(by_path["5"].uses) == {"2", "3/0/then/0"}
    graph = StepGraph(steps)
    assert graph.before("5") == {"0", "1", "2", "3", "3/0", "3/0/then/0"}
    assert graph.after("5") == set()
    assert graph.after("0") == {"3", "3/0", "3/0/then/0", "5"}
    assert graph.before("4") == graph.after("4") == set()


def test_a_long_plan_takes_time_in_proportion(registry: Registry) -> None:
    text = (
        "".join(f"v{number} = {f'v{number - 1}' if number else '0'} + 1\n" for number in range(400)) + "answer(v399)\n"
    )
    steps = plan_steps(parse(text, registry).plan, registry)
    assert len(StepGraph(steps).before("400")) == 400


@pytest.mark.parametrize("line", ["total += 1", "if line:\n        total = 1\n    seen = total"])
def test_the_edges_of_a_graph_grow_with_the_plan(registry: Registry, line: str) -> None:
    """In a loop each step may rest on all that were before it: named one by one, they would fill the page."""

    def edges(count: int) -> int:
        lines = "\n".join(f"    {line.replace('seen', f'seen{number}')}" for number in range(count))
        text = f'total = 0\nfor line in read_lines("mail.txt"):\n{lines}\nanswer(total)\n'
        steps = plan_steps(parse(text, registry).plan, registry)
        # No way is lost: the answer still rests on the beginning and on every step that makes the total.
        answer = steps[-1].path
        makers = {step.path for step in steps if step.label == "total"}
        assert makers <= StepGraph(steps).before(answer)
        return sum(len(step.uses) for step in steps)

    assert edges(240) < 2.2 * edges(120)


def test_what_a_turn_leaves_behind_flows_into_the_next_one(registry: Registry) -> None:
    text = """kept = []
last = ""
for name in ["a", "b"]:
    own = read_lines(name)
    found = grep(kept, last)
    if len(own) > 1:
        last = own[0]
    kept.append(found[0])
other = grep(kept, last)
answer(other)
"""
    steps = plan_steps(parse(text, registry).plan, registry)
    uses = {step.path: set(step.uses) for step in steps}
    # The call in a turn is given what the turns before it appended, and what they set in a branch.
    assert uses["2/1"] == {"0", "1", "2/2/then/0", "2/3"}
    # What is made anew in each turn is not from another one.
    assert uses["2/2/then/0"] == uses["2/2"] == {"2/0"}
    graph = StepGraph(steps)
    assert "2/1" in graph.after("2/1")
    assert graph.before("2/1") >= {"2/0", "2/1", "2/3"}


def test_what_loops_carry_grows_with_the_plan(registry: Registry) -> None:
    def edges(count: int) -> int:
        lines = "".join(f"    seen{number} = total\n" for number in range(count))
        lines += "".join("    if line:\n        total = 1\n" for _ in range(count))
        text = f'total = 0\nfor line in read_lines("mail.txt"):\n{lines}answer(total)\n'
        steps = plan_steps(parse(text, registry).plan, registry)
        makers = {step.path for step in steps if step.label == "total"}
        assert makers <= StepGraph(steps).before("2/0")
        return sum(len(step.uses) for step in steps)

    assert edges(40) > 40 * MAX_MAKERS / 2
    assert edges(160) < 2.2 * edges(80)


def event(number: int, kind: Any, step: str = "", **body: Any) -> Event:
    return Event("r", number, 0.0, kind, step, body)


def test_events_change_only_their_steps(registry: Registry) -> None:
    plan = parse('for name in ["a", "b"]:\n    write_lines(name, [])\nanswer("ok")\n', registry).plan
    progress = RunProgress("r", registry)
    assert progress.apply([event(0, "run-started", request="do it", plan=plan.to_json())]) == {"", "0", "0/0", "1"}
    assert progress.apply([event(1, "step-started", "0[0]/0", tool="write_lines")]) == {"0/0"}
    assert progress.apply([event(2, "step-finished", "0[0]/0", result=None, seconds=0.5)]) == {"0/0"}
    assert (progress.steps["0/0"].state, progress.steps["0/0"].begun) == ("done", 1)
    assert progress.apply([event(3, "call-waits", "0[1]/0", tool="write_lines")]) == {"0/0"}
    assert progress.steps["0/0"].state == "waiting"
    assert progress.apply([event(4, "run-resumed", attempt=2)]) == {"", "0/0"}
    progress.apply([event(5, "step-started", "0[1]/0"), event(6, "step-failed", "0[1]/0", error={"message": "no"})])
    assert progress.steps["0/0"].state == "failed"
    assert "" in progress.apply([event(7, "run-failed", error={"code": "x"})])
    assert (progress.has_ended, progress.last) == (True, 7)


def test_a_run_without_a_plan_has_the_steps_that_it_did(registry: Registry) -> None:
    progress = RunProgress("r", registry)
    progress.apply([event(0, "run-started", request="x", pattern="R5")])
    assert progress.apply([event(1, "step-started", "a/0", tool="grep", what="grep")]) == {"a/0"}
    assert progress.steps["a/0"].step.text == "grep"
    broken = RunProgress("r", registry)
    broken.apply([event(0, "run-started", plan="{not json")])
    assert broken.plan_fault


# Where a value came from ---------------------------------------------------------------------------------------------


def recorded(registry: Registry, events: list[Event]) -> RunProgress:
    progress = RunProgress("r", registry)
    progress.apply(events)
    return progress


def test_a_record_that_does_not_say_which_answer_was_reached_leads_to_none(registry: Registry) -> None:
    """Records of earlier versions do not."""
    text = 'lines = read_lines("mail.txt")\nif lines:\n    answer("some")\nelse:\n    answer("none")\n'
    plan = parse(text, registry).plan
    policy = Policy.load((), registry)
    labels = label_tree_to_json(MAIL)

    def flow(**said: str) -> tuple[list[str], bool, str]:
        end = event(1, "run-finished", answer="some", shade=labels, **said)
        events = [event(0, "run-started", plan=plan.to_json()), end]
        progress = recorded(registry, events)
        shown = find_provenance(progress, events, policy, "", "answer")
        page = render(
            "provenance_part.html", shown=shown, steps=progress.steps, found=SimpleNamespace(**FOUND), here=""
        )
        return list(shown.flow), shown.place_known, page

    assert flow(answered_at="1/then/0")[:2] == (["0", "1", "1/then/0"], True)
    assert flow(answered_at="1/else/0")[:2] == (["0", "1", "1/else/0"], True)
    old = flow()
    assert old[:2] == ([], False)
    assert "Which step gave the answer was not recorded" in old[2]


FOUND = {"run": "r", "part": "r", "address": "/runs/r"}


def test_many_sources_take_time_in_proportion(registry: Registry) -> None:
    policy = Policy.load((), registry)

    def seconds(count: int) -> float:
        label = Label(Source("third_party", "read_lines", "", str(number)) for number in range(count))
        text = "".join(f'v{number} = read_lines("mail.txt")\n' for number in range(count)) + "answer(v0)\n"
        end = event(1, "run-finished", answer="x", shade=label_tree_to_json(label), answered_at=str(count))
        events = [event(0, "run-started", plan=parse(text, registry).plan.to_json()), end]
        progress = recorded(registry, events)
        began = time.perf_counter()
        shown = find_provenance(progress, events, policy, "", "answer")
        assert len(shown.sources) == count
        return time.perf_counter() - began

    seconds(10)
    # Eight times as many would take 64 times as long if each were looked for by itself.
    assert min(seconds(800) for _ in range(3)) < 24 * min(seconds(100) for _ in range(3))


# Two runs -------------------------------------------------------------------------------------------------------------


def compared_plans(registry: Registry, left: str, right: str) -> Comparison:
    sides: list[tuple[RunProgress, list[Event]]] = []
    for text in (left, right):
        events = [event(0, "run-started", plan=parse(text, registry).plan.to_json())]
        sides.append((recorded(registry, events), events))
    return compare_runs(sides[0], sides[1], registry)


def numbered(name: str, count: int) -> str:
    return "".join(f"{name}{number} = {number}\n" for number in range(count)) + "answer(1)\n"


def test_lines_of_plans_are_matched_and_what_is_left_out_is_counted(registry: Registry) -> None:
    left = "a = 1\nb = 2\nc = 3\nanswer(a)\n"
    right = "a = 1\nd = 4\nc = 3\ne = 5\nanswer(a)\n"
    kinds = [(line.kind, line.text) for line in compared_plans(registry, left, right).plan]
    assert kinds == [
        *(("same", "a = 1"), ("left", "b = 2"), ("right", "d = 4"), ("same", "c = 3")),
        *(("right", "e = 5"), ("same", "answer(a)")),
    ]
    same = compared_plans(registry, left, left)
    assert {line.kind for line in same.plan} == {"same"}
    assert same.same


def test_answers_of_different_origin_are_not_the_same(registry: Registry) -> None:
    plan = parse("answer(1)\n", registry).plan.to_json()

    def side(label: Label) -> tuple[RunProgress, list[Event]]:
        end = event(1, "run-finished", answer="x", shade=label_tree_to_json(label), answered_at="0")
        events = [event(0, "run-started", plan=plan), end]
        return recorded(registry, events), events

    assert compare_runs(side(MAIL), side(MAIL), registry).same
    assert not compare_runs(side(MAIL), side(MINE), registry).same


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": {"path": "other.txt"}},
        {"shades": {"path": label_tree_to_json(MINE)}},
        {"control": label_tree_to_json(MINE)},
        {"decision": {"said": "asked", "rules": ["a"]}},
        {"decision": {"said": "allowed", "rules": ["b"]}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_difference_of_a_step_counts(registry: Registry, change: dict[str, Any]) -> None:
    labels = label_tree_to_json(MAIL)
    same: dict[str, Any] = {
        "tool": "read_lines",
        "arguments": {"path": "mail.txt"},
        "shades": {"path": labels},
        "control": labels,
        "decision": {"said": "allowed", "rules": ["a"]},
    }

    def side(**facts: Any) -> tuple[RunProgress, list[Event]]:
        begun = event(1, "step-started", "0", **facts)
        events = [event(0, "run-started", pattern="R5"), begun, event(2, "step-finished", "0", result=1, shade=labels)]
        return recorded(registry, events), events

    assert compare_runs(side(**same), side(**same), registry).same
    found = compare_runs(side(**same), side(**same | change), registry)
    assert not found.same
    assert not found.steps[0].same


def test_a_request_in_rounds_is_not_compared_by_its_own_record(registry: Registry) -> None:
    events = [event(0, "reason-started", request="x"), event(1, "reason-planned", run="r-1")]
    found = compare_runs((recorded(registry, events), events), (recorded(registry, events), events), registry)
    assert (found.in_rounds, found.same) == (True, False)


def test_plans_of_which_only_a_part_is_compared_say_so(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_run_comparison, "MAX_LINES", 10)
    found = compared_plans(registry, numbered("a", 15), numbered("a", 12))
    assert (len(found.plan), found.lines_left_out, found.plan_same) == (10, 9, False)


@pytest.mark.parametrize("kind", ["unlike", "repeating"])
def test_comparing_plans_takes_less_than_the_square_of_their_lines(registry: Registry, kind: str) -> None:
    def seconds(count: int) -> float:
        left, right = (
            [f"{name}{number} = {number}" if kind == "unlike" or number % 2 else "x = 1" for number in range(count)]
            for name in "ab"
        )
        began = time.perf_counter()
        lines = list(compare_lines(left, right))
        assert len(lines) <= 2 * count
        return time.perf_counter() - began

    # Eight times as many.
    assert min(seconds(1600) for _ in range(3)) < 40 * min(seconds(200) for _ in range(3))


def test_a_page_that_names_what_is_not_there_is_a_fault_and_no_empty_text() -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        render("error.html")
