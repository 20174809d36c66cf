"""The inbox: cards, answers bound to what was shown, offers, replies, other people, and time."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from console_world import HOSTILE, Page, Person, served_console, wait_for_question, wait_until
from httpx import Response
from server_world import ASKING, FORWARD, MAIL, Served

from bicameral.console._approval_pages import (
    MAX_CALL_CHARS,
    MAX_CARD_CHARS,
    MAX_LISTED,
    Card,
    question_hash,
    reply_choices,
)
from bicameral.console._pages import render
from bicameral.durable import Approval
from bicameral.labels import Label, label_tree_to_json
from bicameral.server import AccessToken
from bicameral.types import BOOL, STR, ListType, LiteralType, OptionalType, type_to_json, value_to_json

TWO = """text = read_text("mail.txt")
post("kim@example.com", text)
post("eve@example.com", text)
answer("done")
"""


def card(person: Person, question: dict[str, Any]) -> Page:
    return person.get(f"/approvals/{question['id']}")


def answer(person: Person, question: dict[str, Any], **fields: Any) -> Any:
    shown = card(person, question).attribute("[name=shown]", "value")
    return person.send(f"/approvals/{question['id']}", {"shown": shown} | fields)


def call_of(**facts: Any) -> dict[str, Any]:
    """A call of a question as it is stored."""
    made = {"step": "0", "tool": "post", "effect": "send", "arguments": {"to": "kim@example.com"}, "hash": "a" * 64}
    return made | {"why": "it asks", "untrusted": [], "rules": [], "carries": ["text"]} | facts


def question_of(*calls: dict[str, Any], **facts: Any) -> Approval:
    now = datetime.now(UTC)
    return replace(Approval("q", "r", "ana", "calls", calls, "", now, now, "open"), **facts)


def shown_card(asked: Approval) -> Page:
    """The card of a question, without a server."""
    token = AccessToken("t", "ana", "0" * 64, 0.0)
    html = render("approval_card.html", card=Card.of(asked), token=token, session=SimpleNamespace(csrf="secret"))
    return Page(Response(200, text=html))


def untrusted(*arguments: str) -> list[dict[str, Any]]:
    return [{"argument": each, "sources": [{"tool": "read_text", "part": "", "step": "0"}]} for each in arguments]


def posted(served: Served) -> str:
    file = served.folder / "posted.txt"
    return file.read_text() if file.exists() else ""


def test_a_card_says_what_would_be_done_to_whom_and_what_is_untrusted(ana: Person) -> None:
    question = wait_for_question(ana, ana.served.submit(plan=FORWARD))
    page = card(ana, question)
    assert page.texts("h2")[0] == "post: one call needs your yes"
    assert "kim@example.com" in page.texts(".text")
    assert page.has(".arguments .value.trust-untrusted")
    assert [" ".join(MAIL.split())] == [text for text in page.texts(".trust-untrusted .text") if "invoice" in text]
    assert "read_text (step 0)" in page.text
    assert "strangers-text-in-your-name" in page.text
    assert "A yes is for exactly this, once" in page.text
    assert f"/runs/{question['run']}" in page.html
    # A page that leaves out the fraction calls a question expired that can still be answered.
    shown, real = (
        datetime.fromisoformat(each) for each in (page.attribute("[data-expires]", "data-expires"), question["expires"])
    )
    assert abs((shown - real).total_seconds()) <= 0.001
    assert question["id"] in ana.get("/approvals").html
    assert "1" in ana.part("/approvals/count").html
    answer(ana, question, answer="none")


def test_yes_does_it_and_no_does_not(ana: Person) -> None:
    served = ana.served
    question = wait_for_question(ana, served.submit(plan=FORWARD.replace("kim", "yes")))
    assert answer(ana, question, answer="all").status_code == 303
    assert served.settled(question["run"])["state"] == "finished"
    assert "yes@example.com" in posted(served)
    refused = wait_for_question(ana, served.submit(plan=FORWARD.replace("kim", "no")))
    assert answer(ana, refused, answer="none").status_code == 303
    assert served.settled(refused["run"])["state"] == "failed"
    assert "no@example.com" not in posted(served)
    page = card(ana, refused)
    assert "denied" in page.texts(".badge")
    assert "by ana" in page.text
    assert not page.has("button[data-answer]")
    assert refused["id"] in ana.get("/approvals?all=1").html


def test_of_several_calls_only_those_that_are_ticked(ana: Person) -> None:
    served = ana.served
    question = wait_for_question(ana, served.submit(plan=TWO.replace("kim", "ticked").replace("eve", "unticked")))
    page = card(ana, question)
    assert not page.has("input[name=approve][checked]")
    ticked = [call["hash"] for call in question["calls"] if call["arguments"]["to"] == "ticked@example.com"]
    answer(ana, question, answer="ticked", approve=ticked)
    served.settled(question["run"])
    assert "unticked@example.com" not in posted(served)
    assert card(ana, question).texts(".call .badge").count("✓ denied") == 0
    assert "partly" in card(ana, question).texts(".badge")


@pytest.mark.parametrize("shown", ["", "0" * 64, "another"])
def test_an_answer_to_something_else_than_was_shown_does_not_count(ana: Person, shown: str) -> None:
    question = wait_for_question(ana, ana.served.submit(plan=FORWARD))
    other = wait_for_question(ana, ana.served.submit(plan=TWO))
    given = card(ana, other).attribute("[name=shown]", "value") if shown == "another" else shown
    found = ana.send(f"/approvals/{question['id']}", {"shown": given, "answer": "all"})
    assert (found.status_code, "console.other-question" in found.text) == (409, True)
    assert ana.served.ask("GET", f"/v1/approvals/{question['id']}")["state"] == "open"
    assert answer(ana, question, answer="none").status_code == 303
    answer(ana, other, answer="none")


@pytest.mark.parametrize("fields", [{}, {"answer": "perhaps"}, {"answer": "ticked", "approve": "0" * 64}])
def test_what_is_no_answer_changes_nothing(ana: Person, fields: dict[str, str]) -> None:
    question = wait_for_question(ana, ana.served.submit(plan=FORWARD))
    assert answer(ana, question, **fields).status_code in (409, 422)
    assert ana.served.ask("GET", f"/v1/approvals/{question['id']}")["state"] == "open"
    answer(ana, question, answer="none")


def test_what_is_offered_for_later_calls_counts_only_if_it_is_ticked(ana: Person) -> None:
    plan = 'lines = read_lines("to.txt")\nfor line in ["a", "b"]:\n    post(lines[0], line)\nanswer("done")\n'
    (ana.served.folder / "to.txt").write_text("kim@example.com\n")
    question = wait_for_question(ana, ana.served.submit(plan=plan))
    page = card(ana, question)
    assert not page.has("input[name=for_run][checked]")
    if page.has("input[name=for_run]"):
        assert "For later calls too" in page.text
        answer(ana, question, answer="all")
        assert ana.served.ask("GET", f"/v1/approvals/{question['id']}")["for_run"] == []
    else:
        answer(ana, question, answer="none")


def test_a_question_with_a_reply_takes_only_its_type(ana: Person) -> None:
    question = wait_for_question(ana, ana.served.submit(plan=ASKING))
    assert answer(ana, question, reply="Kim").status_code == 303
    assert ana.served.settled(question["run"])["answer"] == "for Kim"
    number = wait_for_question(ana, ana.served.submit(plan='n = ask("How many?", int)\nanswer(n + 1)\n'))
    assert "a whole number" in card(ana, number).text
    wrong = answer(ana, number, reply="many")
    assert (wrong.status_code, "durable.wrong-answer" in wrong.text) == (409, True)
    assert answer(ana, number, reply="6").status_code == 303
    assert ana.served.settled(number["run"])["answer"] == 7
    choice = wait_for_question(ana, ana.served.submit(plan='b = ask("Sure?", bool)\nanswer(b)\n'))
    assert card(ana, choice).texts("label.check") == ["yes", "no"]
    answer(ana, choice, choice="0")
    assert ana.served.settled(choice["run"])["answer"] is True


def test_of_two_people_one_answer_counts_and_the_other_is_told(ana: Person, ops: Person) -> None:
    question = wait_for_question(ana, ana.served.submit(plan=FORWARD.replace("kim", "first")))
    path, fields = f"/approvals/{question['id']}", {"answer": "none"}
    mine, theirs = (card(person, question).attribute("[name=shown]", "value") for person in (ana, ops))
    assert mine == theirs
    ops.send(path, fields | {"shown": theirs})
    late = ana.send(path, {"answer": "all", "shown": mine})
    assert late.headers["location"] == path
    page = ana.get(path)
    assert "Your answer does not count" in page.text
    assert "by ops" in page.text
    assert "first@example.com" not in posted(ana.served)


def test_questions_of_others_are_seen_and_answered_by_nobody_else(ana: Person, ben: Person, ops: Person) -> None:
    question = wait_for_question(ana, ana.served.submit(plan=FORWARD))
    assert question["id"] not in ben.get("/approvals?all=1").html
    assert ben.http.get(f"/approvals/{question['id']}").status_code == 404
    shown = card(ana, question).attribute("[name=shown]", "value")
    assert ben.send(f"/approvals/{question['id']}", {"shown": shown, "answer": "all"}).status_code == 404
    assert ben.part("/approvals/count").text == ""
    # One for all users sees whose it is.
    assert "of ana" in card(ops, question).text
    answer(ana, question, answer="none")


def test_an_answer_that_comes_too_late_is_a_no(ana: Person) -> None:
    question = wait_for_question(ana, ana.served.submit(plan=FORWARD.replace("kim", "late"), answer_within=1.5))
    shown = card(ana, question).attribute("[name=shown]", "value")
    wait_until(lambda: ana.served.ask("GET", f"/v1/approvals/{question['id']}")["state"] == "expired")
    late = ana.send(f"/approvals/{question['id']}", {"shown": shown, "answer": "all"})
    assert late.headers["location"] == f"/approvals/{question['id']}"
    assert "expired" in card(ana, question).texts(".badge")
    assert "late@example.com" not in posted(ana.served)


def test_the_inbox_says_what_is_new_and_moves_no_card(ana: Person) -> None:
    seen = wait_for_question(ana, ana.served.submit(plan=FORWARD))
    with ana.http.stream("GET", f"/approvals/live?seen={seen['id']}") as stream:
        lines = stream.iter_lines()
        new = wait_for_question(ana, ana.served.submit(plan=ASKING))
        told = next(line for line in lines if "new question" in line)
        assert "1 new question" in re.sub("<[^>]+>", "", told)
        assert new["id"] not in told
        answer(ana, seen, answer="none")
        gone = next(line for line in lines if "not open any more" in line)
        assert f"state-{seen['id']}" in gone
    answer(ana, new, reply="x")


def test_hostile_texts_in_a_question_are_shown_as_they_are(ana: Person) -> None:
    (ana.served.folder / "hostile-mail.txt").write_text(HOSTILE, encoding="utf-8")
    plan = 'text = read_text("hostile-mail.txt")\npost("kim@example.com", text)\nanswer("sent")\n'
    question = wait_for_question(ana, ana.served.submit(plan=plan))
    asked = wait_for_question(
        ana, ana.served.submit(plan='t = read_text("hostile-mail.txt")\nn = ask(t, str)\nanswer(n)\n')
    )
    for page in (card(ana, question), card(ana, asked), ana.get("/approvals")):
        assert page.is_free_of()
        assert "‹200b›" in page.text
        assert "‹202e›" in page.text
    answer(ana, question, answer="none")
    assert answer(ana, asked, reply=HOSTILE.replace("\u200b", "").replace("\u202e", "")).status_code == 303


def test_nothing_that_a_person_decides_on_is_cut(ana: Person) -> None:
    long = "see www.example.org " + "word " * 3_900 + "the end"
    (ana.served.folder / "long.txt").write_text(long)
    plan = 'text = read_text("long.txt")\npost("kim@example.com", text)\nanswer("sent")\n'
    question = wait_for_question(ana, ana.served.submit(plan=plan))
    page = card(ana, question)
    assert any(text.endswith("the end") for text in page.texts(".text"))
    assert "not shown" not in page.text
    assert "SHA-256" not in page.text
    answer(ana, question, answer="none")


def test_the_hash_of_a_question_covers_everything_that_is_shown() -> None:
    asked = question_of(call_of())
    [call] = asked.calls
    changed = (
        asked,
        replace(asked, calls=({**call, "arguments": {"to": "eve@example.com"}},)),
        replace(asked, calls=({**call, "why": "nothing"},)),
        replace(asked, calls=(call, call)),
        replace(asked, id="other"),
        replace(asked, run="other"),
        replace(asked, user="eve"),
        replace(asked, question="another"),
        replace(asked, type="int"),
        replace(asked, request="another"),
        replace(asked, before=True),
        replace(asked, asked=asked.asked + timedelta(seconds=1)),
        replace(asked, expires=asked.expires + timedelta(seconds=1)),
    )
    hashes = {question_hash(each) for each in changed}
    assert len(hashes) == len(changed)
    # The same question, read again.
    assert question_hash(replace(asked, calls=(dict(call),))) in hashes


def test_a_token_that_only_sees_reads_the_cards_and_answers_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    from bicameral.server import TokenFile

    folder = tmp_path_factory.mktemp("roles")
    with served_console(folder) as served:
        file = TokenFile(folder / "xdg_config_home" / "bicameral" / "tokens.json")
        with Person(served) as owner, Person(served, token=file.add("ana", roles=("see",))[1]) as viewer:
            question = wait_for_question(owner, served.submit(plan=FORWARD))
            page = card(viewer, question)
            assert "Your token may not answer" in page.text
            shown = page.attribute("[name=shown]", "value")
            refused = viewer.http.post(
                f"/approvals/{question['id']}",
                data={"shown": shown, "answer": "all", "csrf": page.attribute("[name=csrf]", "value")},
                headers=viewer.origin,
            )
            assert refused.status_code == 403
            assert answer(owner, question, answer="none").status_code == 303


@pytest.mark.parametrize("calls", [1, 2])
def test_the_first_button_of_a_card_does_nothing(calls: int) -> None:
    # Enter in a field of a form presses its first button: that must be no yes.
    page = shown_card(question_of(*(call_of(hash=str(number) * 64) for number in range(calls))))
    first, *others = page.tree.css("form button")
    # A form that is sent to a dialog, where there is none, is sent nowhere.
    assert (first.attributes["formmethod"], "hidden" in first.attributes) == ("dialog", True)
    assert not {"name", "value"} & first.attributes.keys()
    assert all("formmethod" not in each.attributes for each in others)
    asked = question_of(kind="ask", question="Who?", type=type_to_json(STR))
    assert shown_card(asked).texts("form button") == ["Reply"]


def test_a_call_that_is_too_long_to_be_shown_is_not_approved(ana: Person) -> None:
    plan = 'to = read_lines("to.txt")\npost(to[0], "hello")\nanswer("sent")\n'
    for length, has_yes in ((MAX_CALL_CHARS + 1, False), (MAX_CALL_CHARS - 1_000, True)):
        (ana.served.folder / "to.txt").write_text("a" * (length - 12) + "@example.com\n")
        question = wait_for_question(ana, ana.served.submit(plan=plan))
        page = card(ana, question)
        assert page.has("button.yes") == has_yes
        assert ("too long to be shown" in page.text) == (not has_yes)
        if not has_yes:
            hashed = question["calls"][0]["hash"]
            for fields in ({"answer": "all"}, {"answer": "ticked", "approve": hashed}):
                refused = answer(ana, question, **fields)
                assert (refused.status_code, "console.not-shown" in refused.text) == (409, True)
            assert ana.served.ask("GET", f"/v1/approvals/{question['id']}")["state"] == "open"
        assert answer(ana, question, answer="none").status_code == 303


def test_of_many_long_calls_those_that_are_shown_can_be_approved() -> None:
    calls = [
        call_of(hash=f"{number:064}", arguments={"to": f"{number}" * (MAX_CALL_CHARS - 1_000)})
        for number in range(2 * MAX_CARD_CHARS // MAX_CALL_CHARS)
    ]
    many = Card.of(question_of(*calls))
    assert 0 < len(many.whole_calls) < len(many.calls) < len(calls)
    assert not many.is_whole
    page = shown_card(question_of(*calls))
    assert not page.has("button.yes")
    assert "more calls are not shown" in page.text
    assert len(page.tree.css("input[name=approve]")) == len(many.whole_calls)
    few = Card.of(question_of(*calls[:2]))
    assert few.is_whole
    assert shown_card(question_of(*calls[:2])).has("button.yes")


def test_long_content_is_shown_with_its_end_and_is_a_file_as_a_whole(ana: Person, ben: Person) -> None:
    long = "see www.example.org " + "word " * 8_000 + "the end"
    (ana.served.folder / "longer.txt").write_text(long)
    plan = 'text = read_text("longer.txt")\npost("kim@example.com", text)\nanswer("sent")\n'
    question = wait_for_question(ana, ana.served.submit(plan=plan))
    page = card(ana, question)
    assert any(text.endswith("the end") for text in page.texts(".text"))
    assert "more characters are not shown here" in page.text
    assert hashlib.sha256(long.encode()).hexdigest() in page.text
    assert f"{len(long):,} bytes" in page.text
    # Content is no reason against a yes.
    assert page.has("button.yes")
    address = page.attribute("a[download]", "href")
    whole = ana.http.get(address)
    assert whole.text == long
    assert whole.headers["content-disposition"].startswith("attachment")
    assert ben.http.get(address).status_code == 404
    assert ana.http.get(address.replace("name=text", "name=other")).status_code == 404
    answer(ana, question, answer="none")


def test_a_text_of_hidden_characters_makes_no_long_page(ana: Person) -> None:
    (ana.served.folder / "hidden.txt").write_text("\u200b" * 300_000 + "\u200b\u2060" * 50_000, encoding="utf-8")
    plan = 'text = read_text("hidden.txt")\npost("kim@example.com", text)\nanswer("sent")\n'
    question = wait_for_question(ana, ana.served.submit(plan=plan))
    began = time.monotonic()
    page = card(ana, question)
    assert "‹200b ×" in page.text
    assert len(page.html) < 200_000
    assert time.monotonic() - began < 5
    answer(ana, question, answer="none")


def test_what_directs_is_not_said_to_come_from_the_user() -> None:
    page = shown_card(
        question_of(call_of(untrusted=untrusted("text"), arguments={"to": "kim@example.com", "text": ""}))
    )
    assert "from the user" not in page.text
    assert page.text.count("no untrusted text in it") == 1
    assert "from read_text" in page.text


def test_look_alikes_and_odd_blanks_in_what_directs_are_written_out() -> None:
    call = call_of(
        tool="p\u043est",
        arguments={"to": "k\u0456m@example.com", "folder": "a\u00a0b", "text": "\u0456\u00a0b/c"},
        files=[{"name": "r\u0435port.txt", "bytes": 1, "sha256": "0" * 64}],
        untrusted=untrusted("text"),
    )
    page = shown_card(question_of(call))
    for words in ("letter byelorussian-ukrainian i", "cyrillic small letter o)", "cyrillic small letter ie"):
        assert words in page.text
    assert page.text.count("‹00a0›") == 1
    plain = shown_card(question_of(call_of(arguments={"to": "kim@example.com", "text": "Grüße an Ivo"})))
    assert not plain.has(".hidden")


def test_what_is_decided_on_is_shown_exactly() -> None:
    values = {"at": dt.time(14, 30, 59), "sum": 0.1 + 0.2, "none": None, "word": "nothing", "all": True, "say": "yes"}
    call = call_of(arguments={name: value_to_json(value) for name, value in values.items()})
    page = shown_card(question_of(call))
    assert page.texts(".leaf") == [
        "14:30:59(a time)",
        "0.30000000000000004(a number)",
        "nothing(no value)",
        "nothing",
        "yes(true)",
        "yes",
    ]


def test_a_choice_is_taken_by_its_number(ana: Person) -> None:
    plan = 'what = ask("Which?", Literal["Delete", "delete", " x "])\nanswer("<" + what + ">")\n'
    for number, value in enumerate(("Delete", "delete", " x ")):
        question = wait_for_question(ana, ana.served.submit(plan=plan))
        for wrong in ({"reply": value}, {"choice": "3"}, {"choice": "-1"}, {"choice": ""}):
            assert answer(ana, question, **wrong).status_code == 409
        assert answer(ana, question, choice=str(number)).status_code == 303
        assert ana.served.settled(question["run"])["answer"] == f"<{value}>"


def test_nothing_is_a_reply_where_it_is_one() -> None:
    def reply_field(wanted: Any) -> dict[str, Any]:
        page = shown_card(question_of(kind="ask", question="Who?", type=type_to_json(wanted)))
        return dict(page.tree.css("input[name=reply]")[0].attributes)

    assert "required" in reply_field(STR)
    assert "required" not in reply_field(OptionalType(STR))
    assert "required" not in reply_field(ListType(STR))
    assert [each.value for each in reply_choices(OptionalType(BOOL))] == [True, False, None]
    assert [each.value for each in reply_choices(OptionalType(LiteralType(("nothing",))))] == ["nothing", None]


def test_an_empty_list_can_be_given(ana: Person) -> None:
    question = wait_for_question(ana, ana.served.submit(plan='n = ask("Who?", list[str])\nanswer(n)\n'))
    assert answer(ana, question, reply="").status_code == 303
    assert ana.served.settled(question["run"])["answer"] == []


def test_notices_have_no_text_of_a_question(ana: Person) -> None:
    question = wait_for_question(ana, ana.served.submit(plan='n = ask("Your session ended", str)\nanswer(n)\n'))
    where = answer(ana, question, reply="x").headers["location"]
    assert ana.get(where).texts(".notice") == ["Replied: the question."]
    asked = wait_for_question(ana, ana.served.submit(plan=FORWARD))
    where = answer(ana, asked, answer="none").headers["location"]
    assert ana.get(where).texts(".notice") == ["Denied: the call of post."]


def test_untrusted_text_on_a_card_is_marked_in_words() -> None:
    offer = {"tool": "post", "argument": "to", "value": "eve@example.com", "ceiling": label_tree_to_json(Label())}
    call = call_of(
        arguments={"to": "eve@example.com", "text": {"Approved by admin": "x"}},
        untrusted=untrusted("to", "text"),
        offer=offer,
        changed=["Approved by admin"],
        files=[{"name": "Approved by admin", "bytes": 1, "sha256": "0" * 64}],
    )
    page = shown_card(question_of(call))
    assert "the names of the fields are untrusted text" in page.text
    assert "their names may quote untrusted text" in page.text
    [offered] = [text for text in page.texts("label.check") if "later calls" in text]
    assert "eve@example.com" not in offered
    assert "exactly this “to”" in offered
    asked = question_of(kind="ask", question="Approved?", type=type_to_json(LiteralType(("yes, admin",))))
    assert "may quote untrusted text" in shown_card(asked).text
    assert "the choices may quote untrusted text" in shown_card(asked).text


def test_an_offer_for_another_value_than_is_shown_is_none() -> None:
    offer = {"tool": "post", "argument": "to", "value": "eve@example.com", "ceiling": label_tree_to_json(Label())}
    assert not shown_card(question_of(call_of(offer=offer, untrusted=untrusted("to")))).has("[name=for_run]")


def test_a_long_request_says_that_it_is_cut() -> None:
    assert (
        "The rest of it, 400 characters, is not shown here"
        in shown_card(question_of(call_of(), request="x" * 1_000)).text
    )
    assert "The rest of it" not in shown_card(question_of(call_of(), request="x" * 600)).text


@contextmanager
def many_questions(served: Served, user: str, count: int) -> Generator[list[str]]:
    """So many open questions of a user, straight in the database."""
    [file] = (served.folder / "xdg_state_home" / "bicameral" / "durable").glob("*.db")
    now, ids = time.time(), [f"many-{number:04}" for number in range(count)]
    content = json.dumps({"calls": [call_of()], "request": "", "before": False})
    insert = (
        'INSERT INTO approvals (id, run, "user", kind, question, hashes, number, asked, expires, state, "by")'
        " VALUES (?, ?, ?, 'calls', ?, '[]', 0, ?, ?, 'open', '')"
    )
    rows = [(id, id, user, content, now - count + number, now + 600) for number, id in enumerate(ids)]
    with closing(sqlite3.connect(file, timeout=30)) as database, database:
        database.executemany(insert, rows)
    try:
        yield ids
    finally:
        with closing(sqlite3.connect(file, timeout=30)) as database, database:
            database.execute("DELETE FROM approvals WHERE id LIKE 'many-%'")


def test_many_questions_of_one_user_hide_none_of_another(ana: Person, ben: Person, ops: Person) -> None:
    with many_questions(ana.served, "ben", MAX_LISTED * 2 + 1) as ids:
        question = wait_for_question(ana, ana.served.submit(plan=FORWARD))
        assert ben.part("/approvals/count").text == str(len(ids))
        seen: list[str] = []
        address = "/approvals"
        while address:
            page = ben.get(address)
            seen += [node.attributes["id"] or "" for node in page.tree.css("article.question")]
            links = [node for node in page.tree.css("nav a.button") if node.text() == "Later ones"]
            address = links[0].attributes["href"] or "" if links else ""
        assert seen == [f"question-{id}" for id in ids]
        first = ops.get("/approvals")
        assert question["id"] not in first.html
        assert "ana (1)" in first.texts("#of-user option")
        assert question["id"] in ops.get("/approvals?user=ana").html
        # The filter of somebody else's questions is for those who may see them.
        assert "many-" not in ana.get("/approvals?user=ben").html
        assert ana.part("/approvals/count").text == "1"
        with ben.http.stream("GET", f"/approvals/live?seen={ids[0]}&since={time.time()}") as stream:
            told = next(line for line in stream.iter_lines() if "inbox-news" in line)
            assert "new question" not in told
        answer(ana, question, answer="none")
