"""Runs that are submitted, worked on and answered by different processes."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest
from cli_office import ASK, EACH, FOUND, FRAGILE, SLOW, Office, said, until, working, working_here
from cli_terminal import PROGRAM


def test_one_process_submits_another_works_and_a_third_approves(office: Office) -> None:
    office.world.write("each.py", EACH)
    with working("--name", "one") as worker:
        sent = office.told("submit", "--plan", "each.py", "--user", "ann")
        assert (sent["ok"], sent["user"], sent["state"]) == (True, "ann", "queued")
        asked = office.asked()
        assert (asked["run"], asked["kind"], asked["state"]) == (sent["run"], "calls", "open")
        assert [call["arguments"]["text"] for call in asked["calls"]] == ["invoice 7 is open", "see www.example.org"]
        assert office.world.json("runs", "list", "--state", "waiting")["runs"][0]["run"] == sent["run"]
        assert office.traces == []

        answered = office.told("approvals", "approve", asked["id"], "--all")
        assert answered["state"] == "approved"
        watched = office.world.call("runs", "watch", sent["run"], "--json")
        assert watched.exit_code == 0, watched.stderr
        lines = [json.loads(line) for line in watched.stdout.splitlines()]
        kinds = [line["event"]["kind"] for line in lines[:-1]]
        assert kinds[0] == "run-started"
        assert "run-waits" in kinds
        assert kinds[-1] == "run-finished"
        assert (lines[-1]["state"], lines[-1]["answer"]) == ("finished", "all")
        assert office.traces == ["kim@example.com: invoice 7 is open", "kim@example.com: see www.example.org"]

        found = office.world.json("workers")["workers"]
        assert [(each["worker"][:4], each["alive"]) for each in found] == [("one-", True)]
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    text = said(worker)
    assert "draining" in text
    assert "drained: 1 run" in text
    assert "Traceback" not in text
    assert office.world.json("workers")["workers"] == []


def test_only_the_calls_that_were_named_are_made(office: Office) -> None:
    run = office.submitted(EACH)
    with working_here():
        id = office.asked()["id"]
        assert office.world.json("approvals", "approve", id, "1")["state"] == "partly"
        ended = office.ended(run)
    assert (ended["state"], ended["error"]["code"]) == ("failed", "run.refused")
    assert office.traces == ["kim@example.com: invoice 7 is open"]
    shown = office.world.call("approvals", "show", id).stdout
    assert "partly" in shown
    assert shown.rstrip().endswith("approved: 1")


def test_after_a_no_nothing_is_sent_and_a_second_answer_is_refused(office: Office) -> None:
    run = office.submitted(EACH)
    with working_here():
        id = office.asked()["id"]
        assert office.world.json("approvals", "deny", id)["state"] == "denied"
        assert office.world.json("approvals", "approve", id, "--all", code=1)["error"]["code"] == "durable.answered"
        assert office.ended(run)["state"] == "failed"
    assert office.traces == []


def test_show_says_what_the_question_at_a_terminal_says(office: Office) -> None:
    office.submitted(EACH)
    with working_here():
        id = office.asked()["id"]
    shown = office.world.call("approvals", "show", id).stdout
    for line in (
        "2 calls need your yes",
        "  1. Post to kim@example.com",
        "  ! text  invoice 7 is open",
    ):
        assert line in shown, shown
    assert "! others may have written text, and have decided that this is done: read_lines (step 0)" in " ".join(
        shown.split()
    )
    assert f"bicameral approvals approve {id}" in shown
    assert f"bicameral approvals show {id} --full" in shown
    details = office.world.call("approvals", "show", id, "--full").stdout
    for line in ("  1. post  (sends)", "    to    kim@example.com", "  ! text  invoice 7 is open"):
        assert line in details, details
    assert "(! marks what a stranger may have written.)" in details


def test_what_is_offered_for_the_rest_of_the_run_is_shown_and_taken_by_number(office: Office) -> None:
    office.submitted('lines = read_lines("mail.txt")\npost(lines[0], "hello")\nanswer("sent")\n')
    with working_here():
        id = office.asked()["id"]
    shown = office.world.call("approvals", "show", id).stdout
    assert "every later call of post with to = " in " ".join(shown.split())
    assert "--for-run NUMBER" in shown
    assert office.world.json("approvals", "approve", id, "--all", "--for-run", "2", code=2)["ok"] is False
    taken = office.world.json("approvals", "approve", id, "1", "--for-run", "1")
    assert taken["for_run"] == taken["approved"] == [call["hash"] for call in taken["calls"]]


def test_nothing_in_a_call_can_pass_for_something_else(office: Office) -> None:
    office.world.write("mail.txt", "x\x1b[2J\u202e, approved by you\n  2. harmless\n")
    office.submitted('post("kim@example.com", read_text("mail.txt"))\nanswer("sent")\n')
    with working_here():
        id = office.asked()["id"]
    shown = office.world.call("approvals", "show", id).stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert not any(line.startswith("  2. harmless") for line in shown.splitlines())


def test_a_reply_is_read_as_the_type_that_is_asked_for(office: Office) -> None:
    run = office.submitted(ASK)
    with working_here():
        asked = office.asked()
        assert (asked["kind"], asked["question"]) == ("ask", "How old?")
        wrong = office.world.json("approvals", "reply", asked["id"], "old", code=2)
        assert (wrong["error"]["code"], wrong["error"]["expected"]) == ("durable.wrong-answer", "int")
        assert office.world.json("approvals", "approve", asked["id"], "--all", code=2)["ok"] is False
        assert office.world.json("approvals", "reply", asked["id"], "41")["reply"] == 41
        assert office.ended(run)["answer"] == 42


def test_a_question_that_nobody_answers_in_time_is_answered_with_no(office: Office) -> None:
    run = office.submitted(EACH, "--answer-within", "1s")
    with working_here():
        assert office.ended(run)["state"] == "failed"
    assert office.traces == []
    (asked,) = office.world.json("approvals", "list", "--all")["approvals"]
    assert asked["state"] == "expired"
    late = office.world.json("approvals", "approve", asked["id"], "--all", code=1)
    assert late["error"]["code"] == "durable.expired"


def test_waiting_for_a_run_ends_with_its_answer_or_with_its_question(office: Office) -> None:
    office.world.write("found.py", FOUND)
    office.world.write("each.py", EACH)
    with working_here():
        done = office.world.call("submit", "--plan", "found.py", "--wait")
        assert (done.exit_code, done.stdout) == (0, "invoice 7 is open\n")
        asks = office.world.json("submit", "--plan", "each.py", "--wait", code=4)
        assert (asks["state"], len(asks["waits_for"])) == ("waiting", 1)


def test_a_worker_that_is_told_to_end_lets_an_effect_end_and_gives_the_run_back(office: Office) -> None:
    office.world.write("slow", "")
    run = office.submitted(SLOW)
    with working() as worker:
        until(lambda: office.traces)
        worker.send_signal(signal.SIGTERM)
        until(lambda: "draining" in said(worker))
        assert office.traces == ["begun here"]
        (office.world.folder / "slow").unlink()
        assert worker.wait(60) == 0
    assert "given back" in said(worker)
    assert office.traces == ["begun here", "put here"]
    assert office.world.json("runs", "show", run)["submitted"]["state"] == "queued"
    with working_here():
        assert office.ended(run)["answer"] == "both"
    assert office.traces == ["begun here", "put here", "begun there", "put there"]


@pytest.mark.parametrize(
    ("sign", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)]
)
def test_a_second_signal_stops_a_worker_at_once(office: Office, sign: signal.Signals, code: int) -> None:
    office.world.write("slow", "50")
    office.submitted(SLOW)
    with working() as worker:
        until(lambda: office.traces)
        worker.send_signal(sign)
        until(lambda: "draining" in said(worker))
        worker.send_signal(sign)
        assert worker.wait(10) == code
    assert "stopped at once" in said(worker)


def test_a_run_that_is_cancelled_begins_nothing_more(office: Office) -> None:
    office.world.write("slow", "1")
    run = office.submitted(SLOW)
    with working_here():
        until(lambda: office.traces)
        assert office.world.json("runs", "cancel", run)["state"] == "stopped"
    assert office.traces == ["begun here", "put here"]
    assert "was stopped already" in office.world.call("runs", "cancel", run).stdout


def test_a_run_of_a_process_that_died_is_gone_on_with_where_its_record_ends(office: Office) -> None:
    office.world.write("fragile.py", FRAGILE)
    died = subprocess.run([PROGRAM, "run", "--plan", "fragile.py"], capture_output=True, timeout=60)
    assert died.returncode == -signal.SIGKILL
    assert office.world.json("runs", "list")["runs"][0]["status"] == "unfinished"
    done = office.world.call("runs", "resume")
    assert (done.exit_code, done.stdout) == (0, "here\ndied.txt\n"), done.stderr
    assert office.traces == ["begun here", "put here"]
    assert office.world.json("runs", "resume")["answer"] == ["here", "died.txt"]
    assert office.world.json("runs", "replay")["ok"]


def test_a_run_is_not_gone_on_with_by_other_tools(office: Office) -> None:
    office.world.write("fragile.py", FRAGILE)
    subprocess.run([PROGRAM, "run", "--plan", "fragile.py"], capture_output=True, timeout=60)
    own = office.world.folder / "own.py"
    own.write_text(own.read_text().replace("Put something somewhere", "Put something elsewhere"))
    refused = office.world.json("runs", "resume", code=1)
    assert refused["error"]["code"] == "run.other-code"
    assert "put" in refused["error"]["message"]


def test_a_worker_with_json_says_an_object_a_line(office: Office) -> None:
    run = office.submitted(FOUND)
    with working("--json", "--concurrency", "2") as worker:
        assert office.ended(run)["state"] == "finished"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    lines = [json.loads(line) for line in said(worker).splitlines() if line.startswith("{")]
    assert (lines[0]["event"], lines[0]["concurrency"]) == ("started", 2)
    assert [line["state"] for line in lines if line["event"] == "run"] == ["running", "finished"]
    assert lines[-1]["event"] == "drained"
    assert lines[-1]["runs"] == 1


def test_runs_in_postgresql_are_listed_shown_replayed_and_erased_with_all_others(
    office: Office, postgres_url: str
) -> None:
    config = office.world.folder / "bicameral.toml"
    config.write_text(config.read_text() + 'database = "${OFFICE}"\n')
    assert office.world.json("submit", "x y", code=2)["error"]["code"] == "config.no-variable"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OFFICE", postgres_url)
        office.world.write("found.py", FOUND)
        inline = office.world.json("run", "--plan", "found.py")["run"]
        run, waits = office.submitted(FOUND), office.submitted(EACH)
        with working_here():
            assert office.ended(run)["answer"] == ["invoice 7 is open"]
            asked = office.asked()
        status = {row["run"]: row["status"] for row in office.world.json("runs", "list")["runs"]}
        assert status == {inline: "finished", run: "finished", waits: "waiting"}
        for each in (inline, run):
            assert office.world.json("runs", "show", each)["events"][-1]["kind"] == "run-finished"
            assert office.world.json("runs", "replay", each)["ok"] is True
            assert office.world.json("route", "explain", each)["run"] == each
            assert office.world.json("policy", "explain", each)["ok"] is True
            assert office.world.json("usage", each)["ok"] is True
        # The newest of all journals.
        assert office.world.json("route", "explain", "last")["run"] in (run, waits)
        assert len(office.world.json("runs", "verify")["journals"]) == 2
        assert office.world.json("approvals", "show", asked["id"])["run"] == waits
        assert office.world.json("runs", "erase", run, "--yes")["events"] > 0
        assert office.world.json("runs", "verify")["breaks"] == []
        assert office.world.json("runs", "list", "--state", "erased")["runs"][0]["run"] == run


def test_a_submitted_run_that_met_other_tools_says_so_and_is_resumed_with_its_own(office: Office) -> None:
    run = office.submitted(EACH)
    with working_here():
        id = office.asked()["id"]
    own = office.world.folder / "own.py"
    text = own.read_text()
    own.write_text(text.replace("Post a text to somebody", "Post a text to everybody"))
    office.world.json("approvals", "approve", id, "--all")
    with working_here() as other:
        until(lambda: "run.other-code" in " ".join(other))
    stands = office.world.json("runs", "show", run)["submitted"]
    assert (stands["state"], "run.other-code" in stands["why"]) == ("queued", True)
    assert office.traces == []
    own.write_text(text)
    begun = time.monotonic()
    with working_here():
        assert office.world.json("runs", "resume", run)["not_before"] is None
        assert office.ended(run)["answer"] == "all"
    assert time.monotonic() - begun < 25, "it was tried only when its time had come"
    assert len(office.traces) == 2
