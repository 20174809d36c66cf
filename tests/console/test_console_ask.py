"""Writing and trying: plans as they are written, edited and checked, and what runs in the end."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from console_world import HOSTILE, Page, Person, record, tokens_of
from server_world import FOUND, REQUEST

from bicameral.console._drafts import MAX_OWN_DRAFTS, Drafts
from bicameral.console._sessions import Session
from bicameral.journal import NewEvent
from bicameral.labels import USER, Label, Source, label_tree_to_json
from bicameral.plans import parse
from bicameral.server import new_token

OWN = 'lines = read_lines("mail.txt")\nfound = grep(lines, "hello")\nanswer(found)\n'


def stream(person: Person, fields: dict[str, str]) -> list[str]:
    """The messages of a plan that is being written."""
    headers = person.origin | {"HX-Request": "true"}
    data = {"csrf": person.csrf()} | fields
    with person.http.stream("POST", "/ask/plan", data=data, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream"), answer.read()
        text = "\n".join(answer.iter_lines())
    return [message for message in text.split("\n\n") if "data: " in message]


def as_page(message: str) -> str:
    return "\n".join(line.removeprefix("data: ") for line in message.splitlines() if line.startswith("data: "))


def written(person: Person, request: str = REQUEST) -> Page:
    """The page with the plan for a request, without a script."""
    answer = person.send("/ask/plan", {"request": request})
    assert answer.status_code == 200, answer.text
    return Page(answer)


def fields_of(page: Page, plan: str, **more: str) -> dict[str, str]:
    """What the form of a checked plan sends."""
    names = ("draft", "origin", "shown")
    return {"plan": plan} | {name: page.attribute(f"[name={name}]", "value") for name in names} | more


def test_a_plan_appears_as_it_is_written_and_then_with_its_check(ana: Person) -> None:
    messages = stream(ana, {"request": REQUEST})
    last = as_page(messages[-1])
    assert "unique_lines(lines)" in last
    assert "Run this plan" in last
    assert "is-proved" in last
    assert 'name="draft" value=""' not in last


def test_a_plan_runs_as_it_was_shown_and_for_its_request(ana: Person) -> None:
    page = written(ana)
    plan, draft = page.typed("#plan"), page.attribute("[name=draft]", "value")
    answer = ana.send("/ask/run", {"what": "draft", "plan": plan, "draft": draft, "request": REQUEST})
    run = answer.headers["location"].removeprefix("/runs/")
    view = ana.served.settled(run)
    assert (view["state"], view["answer"], view["request"]) == ("finished", FOUND, REQUEST)
    events = ana.served.ask("GET", f"/v1/runs/{run}/journal")["events"]
    # Checked for the request that the model had: its constants are not the person's own.
    assert json.loads(events[0]["body"]["intent"])["request"] == REQUEST


@pytest.mark.parametrize("change", ["text", "session", "unknown"])
def test_a_changed_plan_never_runs_as_that_of_the_model(ana: Person, ben: Person, change: str) -> None:
    page = written(ana)
    plan, draft = page.typed("#plan"), page.attribute("[name=draft]", "value")
    person = ben if change == "session" else ana
    fields = {"what": "draft", "plan": plan, "draft": draft, "request": REQUEST}
    fields |= {"text": {"plan": plan.replace("invoice", "secret")}, "unknown": {"draft": "0" * 16}}.get(change, {})
    answer = person.send("/ask/run", fields)
    assert (answer.status_code, "console.draft-gone" in answer.text) == (409, True)


def test_a_plan_of_ones_own_is_checked_and_run(ana: Person) -> None:
    part = ana.send_part("/ask/check", {"plan": OWN, "draft": ""})
    assert part.texts("button.main") == ["Run this plan"]
    assert part.attribute("button.main", "value") == "plan"
    answer = ana.send("/ask/run", {"what": "plan"} | fields_of(part, OWN))
    run = answer.headers["location"].removeprefix("/runs/")
    assert ana.served.settled(run)["answer"] == ["hello, see www.example.org"]
    assert ana.served.ask("GET", f"/v1/runs/{run}/journal")["events"][0]["body"]["intent"] is None


@pytest.mark.parametrize(
    ("plan", "line", "said"),
    [
        (OWN.replace("grep", "grpe"), 2, "Did you mean grep"),
        (OWN.replace("(lines", "(lines, 7"), 2, "error"),
        ("answer(", 1, "error"),
        ("import os\nanswer(1)", 1, "error"),
        (OWN.replace('"hello"', "nothing"), 2, "error"),
    ],
)
def test_findings_stand_at_their_lines(ana: Person, plan: str, line: int, said: str) -> None:
    part = ana.send_part("/ask/check", {"plan": plan})
    lines = part.tree.css("li.step")
    assert len(lines) == len(plan.rstrip("\n").split("\n"))
    here = " ".join(lines[line - 1].text().split())
    assert said in here, [each.text() for each in lines]
    assert "Run this plan" not in part.text
    # And nothing that was typed is lost when somebody tries to run it all the same.
    answer = ana.send("/ask/run", {"what": "plan", "plan": plan})
    assert answer.status_code == 409
    assert Page(answer).typed("#plan").rstrip("\n") == plan.rstrip("\n")


def test_what_would_change_is_shown_and_not_changed(ana: Person) -> None:
    plan = 'write_lines("shown.txt", ["one"])\nanswer("ok")\n'
    part = ana.send_part("/ask/preview", {"plan": plan})
    assert "+one" in part.text
    assert not (ana.served.folder / "shown.txt").exists()
    assert "write: write_lines" in ana.send_part("/ask/check", {"plan": plan}).text


def test_a_request_is_run_at_once(ana: Person) -> None:
    answer = ana.send("/ask/run", {"what": "request", "request": REQUEST})
    run = answer.headers["location"].removeprefix("/runs/")
    assert ana.served.settled(run)["answer"] == FOUND
    assert "Submitted." in ana.get(f"/runs/{run}").text


@pytest.mark.parametrize(
    "fields", [{"what": "request"}, {"what": "request", "request": "  "}, {"what": "request", "request": "a\x00b"}]
)
def test_an_empty_request_is_an_error(ana: Person, fields: dict[str, str]) -> None:
    answer = ana.send("/ask/run", fields)
    assert (answer.status_code, "a request is needed" in answer.text) == (422, True)
    assert ana.send("/ask/plan", {"request": ""}).status_code == 422


def test_a_request_without_a_plan_says_why(ana: Person) -> None:
    messages = stream(ana, {"request": "break the model, please"})
    last = as_page(messages[-1])
    assert "There is no plan" in last
    assert "models.bad-reply" in last
    assert "sk-planted" not in last


def test_the_plan_of_a_run_can_be_edited(ana: Person, ben: Person) -> None:
    run = ana.served.submit(plan=OWN)
    ana.served.settled(run)
    page = ana.get(f"/ask?run={run}&part={run}")
    assert page.typed("#plan").strip() == OWN.strip()
    assert ben.http.get(f"/ask?run={run}").status_code == 404


def test_what_runs_is_what_was_checked(ana: Person) -> None:
    """The button belongs to the check that is seen: a text that was typed after it is shown with its check first."""
    part = ana.send_part("/ask/check", {"plan": OWN})
    changed = OWN.replace("hello", "invoice")
    fields = {"what": "plan"} | fields_of(part, changed)
    refused = ana.send("/ask/run", fields)
    assert (refused.status_code, "console.other-plan" in refused.text) == (409, True)
    page = Page(refused)
    assert page.typed("#plan").strip() == changed.strip()
    # Seen with its check, it runs.
    assert ana.send("/ask/run", {"what": "plan"} | fields_of(page, changed)).status_code == 303


def test_the_plan_of_a_model_becomes_a_persons_own_only_if_they_say_so(ana: Person) -> None:
    written_page = written(ana)
    changed = written_page.typed("#plan").replace("invoice", "hello")
    fields = {"plan": changed, "draft": written_page.attribute("[name=draft]", "value"), "origin": "model"}
    part = ana.send_part("/ask/check", fields)
    assert part.attribute("[name=draft]", "value") == ""
    assert "its words are mine" in part.text
    sent = {"what": "plan"} | fields_of(part, changed)
    refused = ana.send("/ask/run", sent)
    assert (refused.status_code, "console.not-own-plan" in refused.text) == (409, True)
    assert ana.send("/ask/run", sent | {"own": "1"}).status_code == 303


def test_a_plan_that_may_repeat_untrusted_text_is_not_taken_over(ana: Person, ops: Person) -> None:
    """The author of the second round has read what the first one found, and may write it down as a constant."""
    read = label_tree_to_json(Label((Source("third_party", "read_text"),), {USER}))
    start = {"variables": {}, "written": {}, "read": read}
    plan = parse('post(to="eve@example.com", text="pay 500")\nanswer(1)\n').plan.to_json()
    facts = {"request": "what is in it?", "plan": plan, "intent": None}
    record(ana.served, "20260101-000000-tainted", NewEvent(time.time(), "run-started", "", facts | {"start": start}))
    record(ana.served, "20260101-000000-written", NewEvent(time.time(), "run-started", "", facts | {"start": None}))
    page = ops.get("/ask?run=20260101-000000-tainted", 409)
    assert "console.plan-of-results" in page.text
    assert "eve@example.com" not in page.html
    # One of somebody who had read nothing is taken over, and is not the person's own until they say so.
    page = ops.get("/ask?run=20260101-000000-written")
    assert "eve@example.com" in page.typed("#plan")
    assert page.attribute("[name=origin]", "value") == "other"
    assert "You did not write this plan" in page.text


def test_a_run_without_a_plan_says_that_there_is_none_to_edit(ops: Person) -> None:
    record(ops.served, "20260101-000000-pattern", NewEvent(time.time(), "run-started", "", {"request": "x"}))
    assert "console.no-plan" in ops.get("/ask?run=20260101-000000-pattern", 409).text


def test_who_may_not_see_a_run_does_not_get_its_plan(ana: Person) -> None:
    run = ana.served.submit(plan=OWN)
    ana.served.settled(run)
    token = tokens_of(ana.served).add("ana", roles=["run"])[1]
    with Person(ana.served, token=token) as runner:
        assert "server.not-permitted" in runner.get(f"/ask?run={run}", 403).text
        assert "server.not-permitted" in runner.get(f"/runs/{run}/undo", 403).text
        # What they submit is done, and they are not led to a page that they may not see.
        part = runner.send_part("/ask/check", {"plan": OWN})
        answer = runner.send("/ask/run", {"what": "plan"} | fields_of(part, OWN))
        assert (answer.status_code, answer.headers["location"]) == (303, "/ask")
        assert "Submitted: " in runner.get("/ask").text


def test_a_form_that_is_sent_twice_is_one_run(ana: Person) -> None:
    part, once = (
        ana.send_part("/ask/check", {"plan": OWN}),
        ana.get("/ask").attribute("#plan-form [name=once]", "value"),
    )
    fields = {"what": "plan", "once": once} | fields_of(part, OWN)
    first, second = ana.send("/ask/run", fields), ana.send("/ask/run", fields)
    assert first.headers["location"] == second.headers["location"]
    assert "This form was sent before" in ana.get(second.headers["location"]).text
    # The same plan in another form, or another plan in the same form, is another run.
    other = OWN.replace("hello", "invoice")
    changed = fields | fields_of(ana.send_part("/ask/check", {"plan": other}), other)
    again = fields | {"once": ana.get("/ask").attribute("#plan-form [name=once]", "value")}
    places = {ana.send("/ask/run", each).headers["location"] for each in (fields, changed, again)}
    assert len(places) == 3


def test_a_long_plan_keeps_nobody_waiting(ana: Person, ben: Person) -> None:
    """While it is checked and drawn, and while its changes are rehearsed, others are answered."""
    turns = "    for other in lines:\n        number += 1\n"
    text = f'lines = read_lines("long.txt")\nnumber = 0\nfor line in lines:\n{turns}'
    text += 'write_lines("out.txt", [f"{number}"])\nanswer(number)\n'
    (ana.served.folder / "long.txt").write_text("x\n" * 2_000)
    long = 'number = 0\nfor line in read_lines("mail.txt"):\n' + "    number += 1\n" * 2_500 + "answer(number)\n"
    for path, plan in (("/ask/preview", text), ("/ask/check", long)):
        with ThreadPoolExecutor(1) as pool:
            began = time.monotonic()
            working = pool.submit(ana.send_part, path, {"plan": plan})
            waits: list[float] = []
            while not working.done():
                sent = time.monotonic()
                ben.get("/approvals/count")
                waits.append(time.monotonic() - sent)
            took = time.monotonic() - began
        assert working.result().answer.status_code == 200
        # Nobody waits for the whole of it, however slow the machine is.
        assert max(waits) < max(0.5 * took, 1.0), (path, took, waits)


def test_hostile_texts_in_requests_and_plans_are_shown_as_they_are(ana: Person) -> None:
    typed = HOSTILE.replace("\u200b", "").replace("\u202e", "")
    page = written(ana, f"hello {typed}")
    assert page.is_free_of(typed)
    part = ana.send_part("/ask/check", {"plan": f"answer({json.dumps(HOSTILE)})\n"})
    assert part.is_free_of()
    assert part.has("li.step")
    closing = "</textarea><script>alert(1)</script>"
    found = Page(ana.send("/ask/run", {"what": "plan", "plan": closing}))
    assert found.typed("#plan").strip() == closing
    assert not found.has("script:not([src])")


def test_too_long_a_plan_is_refused(ana: Person) -> None:
    assert ana.send("/ask/check", {"plan": "x" * 70_000}).status_code == 422


def test_drafts_belong_to_their_session_and_are_bounded() -> None:
    planned: Any = type("Planned", (), {"source": "answer(1)\n"})()
    drafts = Drafts()
    ana, ben = Session(new_token("ana")[0], "a", 0.0), Session(new_token("ben")[0], "b", 0.0)
    again = Session(ana.token, "a2", 0.0)
    other = drafts.add(ben, planned)
    mine = [drafts.add(again if number % 2 else ana, planned) for number in range(MAX_OWN_DRAFTS + 2)]
    held = [drafts.find(each.session, each.id) is not None for each in mine]
    # Of all sessions of a person together: by many sessions nobody uses up the room of others.
    assert held == [False] * 2 + [True] * MAX_OWN_DRAFTS
    assert drafts.find("a", other.id) is None
    assert drafts.find("b", other.id) is other
    drafts.forget("a")
    assert [drafts.find(each.session, each.id) is not None for each in mine[2:4]] == [False, True]
    assert other.is_unchanged("answer(1)")
    assert not other.is_unchanged("answer(2)")
