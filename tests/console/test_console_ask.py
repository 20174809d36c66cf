"""Writing and trying: plans as they are written, edited and checked, and what runs in the end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from console_world import HOSTILE, Page, Person
from server_world import FOUND, REQUEST

from bicameral.console._drafts import MAX_OWN_DRAFTS, Drafts

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
    answer = ana.send("/ask/run", {"what": "plan", "plan": OWN})
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
    mine = [drafts.add("a", planned) for _ in range(MAX_OWN_DRAFTS + 2)]
    other = drafts.add("b", planned)
    assert [drafts.find("a", each.id) is not None for each in mine] == [False] * 2 + [True] * MAX_OWN_DRAFTS
    assert drafts.find("a", other.id) is None
    assert drafts.find("b", other.id) is other
    assert other.is_unchanged("answer(1)")
    assert not other.is_unchanged("answer(2)")
