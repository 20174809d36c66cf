"""The inbox: cards, answers bound to what was shown, offers, replies, other people, and time."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from console_world import HOSTILE, Page, Person, served_console, wait_for_question, wait_until
from server_world import ASKING, FORWARD, MAIL, Served

from bicameral.console._approval_pages import question_hash
from bicameral.durable import Approval

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
    assert card(ana, choice).tree.css("input[type=radio]")[0].attributes["value"] == "yes"
    answer(ana, choice, reply="yes")
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
    long = "see www.example.org " + "word " * 4_000 + "the end"
    (ana.served.folder / "long.txt").write_text(long)
    plan = 'text = read_text("long.txt")\npost("kim@example.com", text)\nanswer("sent")\n'
    question = wait_for_question(ana, ana.served.submit(plan=plan))
    page = card(ana, question)
    assert any(text.endswith("the end") for text in page.texts(".text"))
    assert "not shown" not in page.text
    answer(ana, question, answer="none")


def test_the_hash_of_a_question_covers_everything_that_is_shown() -> None:
    call: dict[str, Any] = {
        "tool": "post",
        "arguments": {"to": "kim@example.com"},
        "hash": "a" * 64,
        "why": "it asks",
        "untrusted": [],
    }
    now = datetime.now(UTC)
    asked = Approval("q", "r", "ana", "calls", (call,), "", now, now, "open")
    hashes = {
        question_hash(each)
        for each in (
            asked,
            replace(asked, calls=({**call, "arguments": {"to": "eve@example.com"}},)),
            replace(asked, calls=({**call, "why": "nothing"},)),
            replace(asked, calls=(call, call)),
            replace(asked, id="other"),
            replace(asked, run="other"),
            replace(asked, question="another"),
            replace(asked, type="int"),
        )
    }
    assert len(hashes) == 8
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
