"""What users do over HTTP: submit, plan, check, watch, approve, reply, cancel, read the journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from server_world import ASKING, FORWARD, FOUND, REQUEST, Served, serving


def events(served: Served, run: str, user: str = "ana", **options: Any) -> list[tuple[str | None, str, Any]]:
    """Every event of a watch until the server ends it: id, kind and facts."""
    found: list[tuple[str | None, str, Any]] = []
    with served.client(user) as client, client.stream("GET", f"/v1/runs/{run}/events", **options) as stream:
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in stream.iter_lines():
            name, _, value = line.partition(": ")
            if line and name:
                fields[name] = value
            elif "data" in fields:
                found.append((fields.get("id"), fields.get("event", ""), json.loads(fields["data"])))
                fields = {}
    return found


def test_a_request_is_planned_run_and_answered(served: Served) -> None:
    view = served.settled(served.submit(request=REQUEST))
    assert (view["state"], view["answer"], view["effects"]) == ("finished", FOUND, [])
    assert view["request"] == REQUEST
    assert "worker" not in view


def test_a_plan_is_run_as_it_is_and_a_bad_one_never(served: Served) -> None:
    assert served.settled(served.submit(plan="answer(6 * 7)\n"))["answer"] == 42
    error = served.ask("POST", "/v1/runs", code=409, json={"plan": 'x = read_linse("mail.txt")\nanswer(x)\n'})["error"]
    assert (error["code"], error["nearest"]) == ("plan.unknown-tool", "read_lines")
    assert error["place"]["line"] == 1


def test_doubts_about_an_answer_come_before_it(served: Served) -> None:
    view = served.settled(
        served.submit(plan='lines = read_lines("mail.txt")\nanswer([x for x in lines if x == "no such"])\n')
    )
    assert (view["state"], view["answer"]) == ("finished", [])
    [doubt] = view["doubts"]
    assert doubt["code"] == "empty-selection"
    assert "nothing was selected" in doubt["text"]
    assert list(view).index("doubts") < list(view).index("answer")
    sure = served.settled(served.submit(plan="answer(6 * 7)\n"))
    assert sure["doubts"] == []


def test_the_same_key_means_the_same_run_and_no_other_request(served: Served) -> None:
    with served.client(headers={"Idempotency-Key": "k-1"}) as client:
        first, second = (client.post("/v1/runs", json={"request": REQUEST}) for _ in range(2))
        other = client.post("/v1/runs", json={"request": "Say hello"})
    assert first.json()["run"] == second.json()["run"]
    assert first.headers["location"] == f"/v1/runs/{first.json()['run']}"
    assert other.status_code == 409
    assert other.json()["error"]["code"] == "server.key-reused"
    with served.client("ben", headers={"Idempotency-Key": "k-1"}) as client:
        assert client.post("/v1/runs", json={"request": REQUEST}).json()["run"] != first.json()["run"]


def test_planning_and_checking_run_nothing(served: Served) -> None:
    before = [view["run"] for view in served.ask("GET", "/v1/runs?limit=200")["runs"]]
    planned = served.ask("POST", "/v1/plans", json={"request": REQUEST})
    assert planned["ok"]
    assert "grep(" in planned["source"]
    checked = served.ask("POST", "/v1/checks", json={"plan": FORWARD})
    assert checked["ok"]
    assert [call["verdict"] for call in checked["proof"]["calls"]] == ["proved", "conditional"]
    wrong = served.ask("POST", "/v1/checks", json={"plan": "answer(nothing)\n"})
    assert not wrong["ok"]
    assert wrong["report"]["findings"][0]["code"] == "plan.unknown-name"
    assert served.ask("POST", "/v1/checks", json={"plan": "import os\n"})["error"]["code"] == "plan.not-in-language"
    assert [view["run"] for view in served.ask("GET", "/v1/runs?limit=200")["runs"]] == before
    assert not (served.folder / "posted.txt").exists()


def test_a_watch_tells_everything_and_goes_on_from_the_last_event(served: Served) -> None:
    run = served.submit(request=REQUEST)
    found = events(served, run)
    *told, (last_id, kind, view) = found
    assert (last_id, kind, view["state"]) == (None, "end", "finished")
    assert [int(number or -1) for number, _, _ in told] == list(range(len(told)))
    kinds = [kind for _, kind, _ in told]
    assert kinds[0] == "run-started"
    assert kinds[-1] == "run-finished"
    assert events(served, run, headers={"Last-Event-ID": "2"}) == found[3:]
    assert events(served, run, params={"after": 2}) == found[3:]
    last = str(len(told) - 1)
    with served.client() as client:
        assert client.get(f"/v1/runs/{run}/events", headers={"Last-Event-ID": last}).status_code == 204


def test_the_journal_is_what_was_watched(served: Served) -> None:
    run = served.submit(plan="answer(1)\n")
    served.settled(run)
    journal = served.ask("GET", f"/v1/runs/{run}/journal")
    assert journal["run"] == run
    assert journal["events"] == [facts for number, _, facts in events(served, run) if number is not None]


@pytest.mark.parametrize(("approve", "state", "ends"), [("all", "approved", "finished"), ("none", "denied", "failed")])
def test_a_call_waits_for_a_yes_and_is_made_only_after_it(served: Served, approve: str, state: str, ends: str) -> None:
    posted = served.folder / "posted.txt"
    before = posted.read_text() if posted.exists() else ""
    run = served.submit(plan=FORWARD)
    view = served.settled(run)
    assert view["state"] == "waiting"
    [waits] = view["waits_for"]
    approval = served.ask("GET", f"/v1/approvals/{waits}")
    assert approval in served.ask("GET", "/v1/approvals")["approvals"]
    [call] = approval["calls"]
    assert (call["tool"], call["arguments"]["to"]) == ("post", "kim@example.com")
    assert (posted.read_text() if posted.exists() else "") == before
    wrong = served.ask("POST", f"/v1/approvals/{waits}/answer", code=409, json={"approve": ["0" * 64]})
    assert wrong["error"]["code"] == "durable.wrong-answer"
    chosen = [call["hash"]] if approve == "all" else "none"
    answered = served.ask("POST", f"/v1/approvals/{waits}/answer", json={"approve": chosen})
    assert (answered["state"], answered["by"]) == (state, "ana")
    other = "none" if approve == "all" else "all"
    again = served.ask("POST", f"/v1/approvals/{waits}/answer", code=409, json={"approve": other})
    assert again["error"]["code"] == "durable.answered"
    assert served.settled(run)["state"] == ends
    after = posted.read_text() if posted.exists() else ""
    assert after == before + ("kim@example.com: invoice 7 is open\n" if approve == "all" else "")


def test_what_is_offered_for_the_rest_of_the_run_is_taken_only_by_name(served: Served) -> None:
    run = served.submit(plan='lines = read_lines("mail.txt")\npost(lines[0], "hello")\nanswer("posted")\n')
    [waits] = served.settled(run)["waits_for"]
    [call] = served.ask("GET", f"/v1/approvals/{waits}")["calls"]
    assert (call["steps"], call["times"]) == (["1"], 1)
    assert "until the end of this run" in call["offer"]["scope"]
    path = f"/v1/approvals/{waits}/answer"
    for body in ({"approve": "none", "for_run": [call["hash"]]}, {"approve": "all", "for_run": ["0" * 64]}):
        assert served.ask("POST", path, code=409, json=body)["error"]["code"] == "durable.wrong-answer"
    answered = served.ask("POST", path, json={"approve": "all", "for_run": [call["hash"]]})
    assert (answered["state"], answered["for_run"]) == ("approved", [call["hash"]])
    assert served.settled(run)["state"] == "finished"
    journal = served.ask("GET", f"/v1/runs/{run}/journal")["events"]
    [approval] = [event for event in journal if event["kind"] == "approval"]
    assert [each["argument"] for each in approval["body"]["granted"]] == ["to"]


def test_a_plan_that_asks_goes_on_with_the_reply(served: Served) -> None:
    run = served.submit(plan=ASKING)
    [waits] = served.settled(run)["waits_for"]
    asked = served.ask("GET", f"/v1/approvals/{waits}")
    assert (asked["kind"], asked["question"]) == ("ask", "Who is it for?")
    assert served.ask("POST", f"/v1/approvals/{waits}/reply", code=409, json={"value": 7})["error"]["code"]
    assert served.ask("POST", f"/v1/approvals/{waits}/reply", json={"value": "Kim"})["state"] == "replied"
    assert served.settled(run)["answer"] == "for Kim"


def test_a_run_that_waits_or_is_not_due_can_be_cancelled(served: Served) -> None:
    waiting = served.submit(plan=FORWARD)
    [waits] = served.settled(waiting)["waits_for"]
    later = served.submit(plan="answer(1)\n", delay=3600)
    for run in (waiting, later):
        served.ask("POST", f"/v1/runs/{run}/cancel", code=202)
        assert served.settled(run)["state"] == "stopped"
    assert served.ask("POST", f"/v1/approvals/{waits}/answer", code=409, json={"approve": "all"})


def test_runs_are_listed_newest_first_and_on_from_one(served: Served) -> None:
    mine = [served.submit(plan=f"answer({number})\n") for number in range(3)]
    found = [view["run"] for view in served.ask("GET", "/v1/runs?limit=3")["runs"]]
    assert found == mine[::-1]
    rest = served.ask("GET", f"/v1/runs?limit=1&before={mine[1]}")["runs"]
    assert [view["run"] for view in rest] == [mine[0]]
    for run in mine:
        served.settled(run)
    assert all(view["state"] == "finished" for view in served.ask("GET", "/v1/runs?state=finished")["runs"])


def test_a_cap_that_is_asked_for_holds(served: Served) -> None:
    view = served.settled(
        served.submit(plan='for n in range(9):\n    x = read_lines("mail.txt")\nanswer(1)\n', caps={"calls": 2})
    )
    assert (view["state"], view["error"]["code"]) == ("failed", "run.cap")


def test_health_and_metrics_count_and_quote_nothing(served: Served) -> None:
    served.settled(served.submit(request=REQUEST))
    assert served.ask("GET", "/healthz") == {"ok": True}
    assert served.ask("GET", "/readyz") == {"ok": True}
    with served.client() as client:
        answer = client.get("/metrics")
        client.request("BREW", "/v1/runs")
        client.get("/v1/runs/secret-words")
        again = client.get("/metrics").text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'bicameral_http_requests_total{method="POST",route="/v1/runs",status="202"}' in again
    assert 'bicameral_runs{state="finished"}' in again
    assert "bicameral_workers 1" in again
    for word in ("ana", "invoice", "BREW", "secret-words", served.tokens["ana"]):
        assert word not in again


def test_a_watch_lasts_only_so_long_and_whoever_comes_again_misses_nothing(tmp_path: Path) -> None:
    with serving(tmp_path / "short", "rate = 10000\nwatch_seconds = 0.5\n") as served:
        run = served.submit(plan=ASKING)
        [waits] = served.settled(run)["waits_for"]
        before = events(served, run)
        assert "end" not in [kind for _, kind, _ in before]
        served.ask("POST", f"/v1/approvals/{waits}/reply", json={"value": "Kim"})
        assert served.settled(run)["state"] == "finished"
        after = events(served, run, headers={"Last-Event-ID": str(before[-1][0])})
        numbers = [int(number) for number, _, _ in before + after if number is not None]
        assert numbers == list(range(len(numbers)))
        assert after[-1][1] == "end"


def test_the_server_reads_with_the_configured_variant_of_the_quarantine(tmp_path: Path) -> None:
    plan = 'text = read_text("mail.txt")\nfound = extract(text, "how many invoices there are", int)\nanswer(found)\n'
    with serving(tmp_path / "triple", 'rate = 1000000\n[quarantine]\nvariant = "triple"\n') as served:
        run = served.submit(plan=plan)
        assert served.settled(run)["answer"] == 12
        began = next(facts for _, _, facts in events(served, run) if facts.get("kind") == "run-started")
        assert began["body"]["executor"]["variant"] == "triple"
