"""Pages of runs: lists, the live page, values with where they came from, files, and what is done with a run."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from console_world import HOSTILE, Page, Person, served_console
from server_world import Served

from bicameral.journal import Journal, NewEvent

LOOP = """lines = read_lines("mail.txt")
kept = []
for line in lines:
    if "invoice" in line:
        kept.append(line)
write_lines("kept.txt", kept)
answer(kept)
"""


@pytest.fixture(scope="module")
def run(served: Served) -> str:
    """A run that has ended."""
    run = served.submit(plan=LOOP)
    assert served.settled(run)["state"] == "finished"
    return run


def test_a_run_has_its_plan_as_text_and_as_a_graph_with_states_times_and_verdicts(ana: Person, run: str) -> None:
    page = ana.get(f"/runs/{run}")
    steps = page.tree.css(".step")
    assert [step.attributes["data-path"] for step in steps] == ["0", "1", "2", "2/0", "2/0/then/0", "3", "4"]
    assert [step.attributes["data-state"] for step in steps] == ["done", *["planned"] * 4, "done", "planned"]
    assert steps[2].attributes["data-uses"] == "0"
    assert set((steps[5].attributes["data-uses"] or "").split()) == {"1", "2/0/then/0"}
    assert 'lines = read_lines("mail.txt")' in page.text
    assert "proved" in page.text
    assert "mode strict" in page.text
    assert re.search(r"\d+ ms|\d\.\d s", page.texts(".step .row")[0])


def test_an_answer_is_marked_as_untrusted_and_leads_to_its_origin(ana: Person, run: str) -> None:
    page = ana.get(f"/runs/{run}")
    assert page.texts("#run-result .text") == ["invoice 7 is open", "invoice 7 is open", "invoice 9 is paid"]
    assert page.has("#run-result .value.trust-untrusted .text")
    found = ana.part(f"/runs/{run}/value?side=answer&at=%2F0")
    assert json.loads(found.attribute("[data-flow]", "data-flow")) == ["0", "2", "2/0", "2/0/then/0", "4"]
    assert "read_lines read at step 0" in found.text
    assert "the user alone" in found.text


def test_an_input_says_which_policy_judged_it(ana: Person, run: str) -> None:
    found = ana.part(f"/runs/{run}/value?side=input&step=3&name=lines")
    assert "At this step: allowed" in found.text
    whole = ana.get(f"/runs/{run}/value?side=input&step=3&name=lines")
    assert whole.has("nav")
    assert "untrusted text" in whole.text


BRANCHES = """lines = read_lines("mail.txt")
found = grep(lines, "invoice")
if len(found) > 0:
    answer(found)
else:
    answer("none")
"""


@pytest.mark.parametrize(
    ("plan", "reached", "other"),
    [(BRANCHES, "2/then/0", "2/else/0"), (BRANCHES.replace("> 0", "> 99"), "2/else/0", "2/then/0")],
)
def test_the_answer_that_was_reached_is_on_the_way_and_not_the_other(
    ana: Person, plan: str, reached: str, other: str
) -> None:
    run = ana.served.submit(plan=plan)
    ana.served.settled(run)
    flow = json.loads(ana.part(f"/runs/{run}/value?side=answer").attribute("[data-flow]", "data-flow"))
    assert reached in flow
    assert other not in flow


def forwarded_by_a_pattern(person: Person) -> str:
    """The run of a pattern that reads a file at `E1/call 1` and posts it at `E2/call 1`."""
    served = person.served
    run = served.submit(request="forward mail.txt to kim@example.com", model="pattern:R5")
    [waits] = served.settled(run)["waits_for"]
    served.ask("POST", f"/v1/approvals/{waits}/answer", json={"approve": "all"})
    assert served.settled(run)["state"] == "finished"
    return run


def test_in_a_run_without_a_plan_the_calls_that_were_given_a_value_are_its_uses(ana: Person) -> None:
    run = forwarded_by_a_pattern(ana)
    found = ana.part(f"/runs/{run}/value?side=output&step=E1/call 1")
    assert json.loads(found.attribute("[data-flow]", "data-flow")) == ["E1/call 1", "E2/call 1"]
    assert found.texts(".flow .badge") == ["asked"]
    # Which calls a value had no part in is not recorded there, so that nothing is said of it.
    last = ana.part(f"/runs/{run}/value?side=output&step=E2/call 1")
    assert "What rests on it is not recorded for this kind of run" in last.text
    assert "No call rests on it" not in last.text
    # Nothing follows an answer, whatever is recorded.
    assert "No call rests on it" in ana.part(f"/runs/{run}/value?side=answer").text


@pytest.mark.parametrize(
    "wanted",
    [
        "side=answer&at=/99",
        "side=answer&at=/0/x",
        "side=input&step=3&name=nothing",
        "side=output&step=77",
        "side=nothing",
        "",
    ],
)
def test_a_value_that_is_not_there_is_an_error_with_a_code(ana: Person, run: str, wanted: str) -> None:
    assert "console.unknown-value" in ana.part(f"/runs/{run}/value?{wanted}", 404).text


def test_the_turns_of_a_step_show_what_went_in_and_out(ana: Person, run: str) -> None:
    part = ana.part(f"/runs/{run}/step?path=0")
    assert "mail.txt" in part.texts(".text")
    assert "hello, see www.example.org" in part.texts(".text")
    assert "Policy: allowed" in part.text
    assert "Nothing of this step is recorded" in ana.part(f"/runs/{run}/step?path=77").text


def test_files_are_saved_and_never_shown(ana: Person, run: str) -> None:
    answer = ana.http.get(f"/runs/{run}/value/file?side=answer")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert json.loads(answer.content) == ["invoice 7 is open", "invoice 7 is open", "invoice 9 is paid"]
    journal = ana.http.get(f"/runs/{run}/journal/file")
    assert journal.headers["content-disposition"].startswith("attachment")
    events = [json.loads(line) for line in journal.text.splitlines()]
    assert [events[0]["kind"], events[-1]["kind"]] == ["run-started", "run-finished"]
    assert [event["number"] for event in events] == list(range(len(events)))
    # The former content of a changed file is for taking it back, and for nobody's eyes.
    assert "content" not in journal.text


def test_the_journal_is_held_against_its_seals(ana: Person, run: str) -> None:
    page = ana.get(f"/runs/{run}/journal")
    assert "Every entry fits its seal" in page.text
    assert "run-finished" in page.texts("td")


# A record that is not what was written -------------------------------------------------------------------------------


def journal_file(person: Person) -> Path:
    file = person.served.folder / "xdg_state_home" / "bicameral" / "journal.db"
    assert file.exists()
    return file


def change_record(person: Person, run: str, number: int, body: str | None) -> None:
    """Change the body of an event behind the back of the journal, or remove the event."""
    with closing(sqlite3.connect(journal_file(person), timeout=30)) as database, database:
        triggers = database.execute(
            "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'events' AND type = 'trigger'"
        )
        known = triggers.fetchall()
        for name, _ in known:
            database.execute(f"DROP TRIGGER {name}")
        if body is None:
            database.execute("DELETE FROM events WHERE run = ? AND number = ?", (run, number))
        else:
            database.execute("UPDATE events SET body = ? WHERE run = ? AND number = ?", (body, run, number))
        for _, text in known:
            database.execute(text)


def numbers_of(journal: Page) -> list[int]:
    """The numbers of the entries that a page of a journal shows."""
    return [int(each) for each in journal.texts("tbody td.number")]


LONG_ANSWER = 'lines = []\nfor number in range(3000):\n    lines.append("line " + str(number))\nanswer(lines)\n'
DAMAGES = [(1, '{"tool": "post"}'), (0, "not json"), (0, None), (2, ""), (1, None)]
# The run with the long answer has only a beginning and an end: nothing comes after its event 1.
DAMAGED = [*((LOOP, *each) for each in DAMAGES), *((LONG_ANSWER, *each) for each in DAMAGES[:3])]


@pytest.mark.parametrize(("plan", "number", "body"), DAMAGED, ids=range(len(DAMAGED)))
def test_a_changed_record_is_said_to_be_one_and_what_is_intact_is_shown(
    ana: Person, plan: str, number: int, body: str | None
) -> None:
    run = ana.served.submit(plan=plan)
    assert ana.served.settled(run)["state"] == "finished"
    assert number < len(numbers_of(ana.get(f"/runs/{run}/journal"))) - (body is None)
    change_record(ana, run, number, body)
    page = ana.get(f"/runs/{run}")
    assert any("has been changed, or is damaged" in each for each in page.texts("[role=alert]"))
    assert not page.has("[hx-sse\\:connect]")
    journal = ana.get(f"/runs/{run}/journal")
    assert any(run in each for each in journal.texts("[role=alert] li"))
    assert "Every entry fits its seal" not in journal.text
    assert numbers_of(journal) == list(range(number))
    *lines, last = [json.loads(line) for line in ana.http.get(f"/runs/{run}/journal/file").text.splitlines()]
    assert [line["number"] for line in lines] == list(range(number))
    assert last["damaged"]
    assert str(ana.served.folder) not in page.html + journal.html
    ana.part(f"/runs/{run}/step?path=0")
    assert "journal.damaged" in Page(ana.send(f"/runs/{run}/replay", {"part": run})).text
    assert "journal.damaged" in ana.get(f"/runs/{run}/diff?with={run}", 409).text
    assert "journal.damaged" in ana.get(f"/runs/{run}/undo", 409).text
    stream = ana.http.get(f"/runs/{run}/live?after=-1")
    assert (stream.status_code, "event: end" in stream.text) == (200, True)


def test_the_pages_of_a_journal_follow_one_another(ana: Person) -> None:
    calls = "".join(f'line{number} = read_lines("mail.txt")\n' for number in range(105))
    run = ana.served.submit(plan=f"{calls}answer(1)\n")
    ana.served.settled(run)
    first = ana.get(f"/runs/{run}/journal")
    second = ana.get(f"/runs/{run}/journal{first.attribute('a[rel=next]', 'href')}")
    assert numbers_of(first) + numbers_of(second) == list(range(212))
    assert not second.has("a[rel=next]")
    # A change on a page further back is seen there, too.
    change_record(ana, run, 205, '{"tool": "post"}')
    assert len(ana.get(f"/runs/{run}/journal").tree.css("[role=alert] li")) == 1
    damaged = ana.get(f"/runs/{run}/journal?after=199")
    assert "event 205" in damaged.texts("[role=alert] li")[0]
    assert numbers_of(damaged) == [200, 201, 202, 203, 204]


# What is asked for strangely ------------------------------------------------------------------------------------------

ODD = ("", "--5", "-5", "²", "٣", "9" * 400, "1e9", "\x00", "../..", "[0]", "/0/0/0", "\ud800", "%", "💣" * 300, "'")
PARAMETERS = ("after", "first", "path", "side", "step", "name", "at", "part", "with", "q", "state", "user", "before")


def test_no_address_of_a_run_is_a_fault_of_the_server(ana: Person, ops: Person, run: str) -> None:
    from bicameral.console._run_actions import run_action_routes
    from bicameral.console._run_list import run_list_routes
    from bicameral.console._run_pages import run_routes

    routes = [each for each in (*run_routes, *run_action_routes, *run_list_routes) if "GET" in (each.methods or ())]
    assert len(routes) >= 11
    wrong: list[tuple[str, str, str, int]] = []
    for route in routes:
        path = route.path.replace("{run}", run)
        for name in PARAMETERS:
            for odd in ODD:
                # What else the page needs, so that the odd parameter is reached.
                given = {"side": "answer", "step": "0", "with": run, "after": "999999999", name: odd}
                query = "&".join(f"{key}={_quoted(value)}" for key, value in given.items())
                answer = (ops if "recorded" in path else ana).http.get(f"{path}?{query}")
                if answer.status_code >= 500:
                    wrong.append((path, name, odd[:20], answer.status_code))
    assert not wrong


def test_a_database_that_refuses_a_character_is_not_asked_for_it(tmp_path: Path, postgres_url: str) -> None:
    settings = f'rate = 1000000\n[durable]\ndatabase = "{postgres_url}"\n'
    with (
        served_console(tmp_path / "server", settings) as served,
        Person(served) as ana,
        Person(served, "ops") as ops,
    ):
        run = served.submit(plan="answer(1)")
        assert served.settled(run)["state"] == "finished"
        for path in ("/runs", "/runs/recorded", "/runs/a%00b", f"/runs/{run}", f"/runs/{run}/diff"):
            for name in ("q", "user", "state", "before", "part", "with"):
                for person in (ana, ops):
                    assert person.http.get(f"{path}?{name}=a%00b").status_code < 500, (path, name)
        assert ops.get(f"/runs/{run}/journal").has("tbody td")


def test_an_erased_request_in_rounds_has_no_rounds_any_more(ops: Person) -> None:
    run = "20260102-000000-abcdef"
    with Journal(journal_file(ops)) as journal:
        begun = NewEvent(time.time(), "reason-started", "", {"request": "look first"})
        planned = NewEvent(time.time(), "reason-planned", "", {"run": f"{run}-1"})
        ended = NewEvent(time.time(), "reason-ended", "", {})
        journal.append_all(run, [begun, planned, ended])
        ops.get(f"/runs/{run}?part={run}-1")
        journal.erase(run)
    ops.get(f"/runs/{run}")
    ops.get(f"/runs/{run}?part={run}-1", 404)


def test_a_run_of_the_command_line_whose_record_was_changed_is_not_said_to_go_on(ops: Person) -> None:
    run = "20260103-000000-abcdef"
    with Journal(journal_file(ops)) as journal:
        for kind in ("run-started", "note", "run-finished"):
            journal.append(run, kind, "", {"request": "x"})
    change_record(ops, run, 1, "{}")
    page = ops.get(f"/runs/{run}")
    assert "damaged" in page.texts(".badge")
    assert not page.has("[hx-sse\\:connect]")


def test_one_beginning_that_cannot_be_read_does_not_hide_the_other_runs(ops: Person) -> None:
    damaged, intact = "20260104-000000-abcdef", "20260104-000001-abcdef"
    with Journal(journal_file(ops)) as journal:
        for id in (damaged, intact):
            journal.append(id, "run-started", "", {"request": "x"})
    change_record(ops, damaged, 0, "not json")
    page = ops.get("/runs/recorded")
    assert f"/runs/{damaged}" in page.html
    assert f"/runs/{intact}" in page.html
    assert "damaged" in page.texts(".badge")


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))


def test_a_stream_that_begins_at_an_odd_number_begins_at_the_beginning(ana: Person, run: str) -> None:
    for odd in ("--5", "²", "", "9" * 30):
        stream = ana.http.get(f"/runs/{run}/live", headers={b"Last-Event-ID": odd.encode()})
        assert (stream.status_code, "run-plan" in stream.text) == (200, True), odd


def test_runs_are_found_by_words_and_states(ana: Person) -> None:
    served = ana.served
    mine = served.submit(request="Please find lines mentioning invoices in mail.txt")
    assert served.settled(mine)["state"] == "finished"
    assert f"/runs/{mine}" in ana.get("/runs?q=PLEASE+lines").html
    assert f"/runs/{mine}" not in ana.get("/runs?q=please+nothing").html
    assert "No run fits" in ana.get("/runs?q=100%25").text
    own = served.submit(request="Die Übersicht der Rechnungen: find lines mentioning invoices in mail.txt")
    for words in ("Übersicht", "übersicht", "ÜBERSICHT RECHNUNGEN"):
        assert f"/runs/{own}" in ana.get(f"/runs?q={words}").html, words
    assert f"/runs/{mine}" in ana.get("/runs?state=finished").html
    assert f"/runs/{mine}" not in ana.get("/runs?state=failed").html
    assert f"/runs/{mine}" in ana.get("/runs?state=no-such-state").html
    part = ana.part("/runs?q=please")
    assert not part.has("nav[aria-label='Parts of the console']")
    assert part.has("#runs")


def test_older_runs_come_page_by_page(served: Served) -> None:
    with Person(served, "ben") as person:
        runs = [served.submit("ben", plan=f"answer({number})") for number in range(55)]
        first = person.get("/runs")
        assert len(first.tree.css("tr[data-card]")) == 50
        older = person.get(first.attribute("a[rel=next]", "href"))
        assert len(older.tree.css("tr[data-card]")) == 5
        links = {node.attributes["href"] for page in (first, older) for node in page.tree.css("td.request a")}
        assert links == {f"/runs/{run}" for run in runs}


def test_nobody_sees_the_runs_of_others(ana: Person, ben: Person, ops: Person, run: str) -> None:
    paths = (
        "",
        "/step?path=0",
        "/value?side=answer",
        "/value/file?side=answer",
        "/journal",
        "/journal/file",
        "/undo",
        "/live",
    )
    for path in paths:
        assert ben.http.get(f"/runs/{run}{path}").status_code == 404, path
    own = ben.served.submit("ben", plan="answer(1)")
    assert ben.http.get(f"/runs/{own}/diff?with={run}").status_code == 404
    for action in ("cancel", "replay", "undo"):
        assert ben.send(f"/runs/{run}/{action}", {"part": run}).status_code == 404
    # A part that is somebody else's run is none of this one.
    assert ben.http.get(f"/runs/{own}?part={run}").status_code == 404
    assert run not in ben.get("/runs").html
    assert "recorded" not in ben.get("/runs").html
    # Whoever may see the runs of all does, with their owners.
    assert "ana" in ops.get("/runs?q=&user=ana").texts("td[data-name=User]")
    assert ops.get(f"/runs/{run}").has("#run-result")
    assert ana.get(f"/runs/{run}").has("#run-result")


def test_a_run_of_the_command_line_is_for_those_who_may_see_all(ana: Person, ops: Person) -> None:
    """A journal knows no owner: such a run is nobody's, and not everybody's."""
    submitted = ana.served.submit(request="find lines mentioning invoices in Übersicht.txt")
    ana.served.settled(submitted)
    ids = ["20260101-000000-abcdef", "20260101-000001-abcdef", f"{submitted}-1", f"{submitted}-2", f"{submitted}-plan"]
    with Journal(journal_file(ops)) as journal:
        for id in ids:
            journal.append_all(
                id,
                [
                    NewEvent(time.time(), "run-started", "", {"request": "Die Übersicht"}),
                    NewEvent(time.time(), "run-finished", "", {"answer": 1}),
                ],
            )
    for address in ("/runs/recorded", "/runs/recorded?q=übersicht"):
        runs = [node.attributes["href"] or "" for node in ops.get(address).tree.css("td.request a")]
        assert {f"/runs/{id}" for id in ids[:2]} <= set(runs), address
        assert not [run for run in runs if submitted in run], address
    assert "No run fits" in ops.get("/runs/recorded?q=nothing").text
    ops.get(f"/runs/{ids[0]}")
    # What was submitted is in the list of its owner, and its rounds are opened from there.
    assert f"/runs/{submitted}" in ops.get("/runs").html
    assert ana.http.get(f"/runs/{ids[0]}").status_code == 404
    assert "belong to no user" in ana.get("/runs/recorded").text
    assert not ana.get("/runs/recorded").has("td.request a")
    assert ana.http.get("/runs/20260101-000000-000000").status_code == 404


def test_a_live_page_gets_what_changes_and_then_the_end(ana: Person) -> None:
    run = ana.served.submit(plan=LOOP)
    with ana.http.stream("GET", f"/runs/{run}/live?after=-1", headers={"Accept": "text/event-stream"}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = list(stream.iter_lines())
    assert "event: end" in lines
    html = "\n".join(line.removeprefix("data: ") for line in lines if line.startswith("data: "))
    assert 'id="run-result"' in html
    assert 'id="run-plan"' in html
    assert "invoice 9 is paid" in html
    last = max(int(line.removeprefix("id: ")) for line in lines if line.startswith("id: "))
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(last)}
    with ana.http.stream("GET", f"/runs/{run}/live", headers=headers) as again:
        rest = list(again.iter_lines())
    assert "event: end" in rest
    assert not any("run-plan" in line for line in rest)


def test_a_new_step_of_a_run_without_a_plan_is_added_to_the_page(ana: Person) -> None:
    run = forwarded_by_a_pattern(ana)
    lines = ana.http.get(f"/runs/{run}/journal/file").text.splitlines()
    events = {(line["kind"], line["step"]): line["number"] for line in map(json.loads, lines)}

    def sent(after: int) -> str:
        return ana.http.get(f"/runs/{run}/live?after={after}").text

    # A page that has the first step is sent the second one for the end of its list.
    added = sent(events["step-finished", "E1/call 1"])
    assert 'hx-target="#run-steps" hx-swap="beforeend"' in added
    assert added.count("<li ") == 1
    assert 'id="step-E2-call 1"' in added
    # One that has no step yet is sent the list, and one that has both of them the second one in its place.
    assert 'id="run-steps"' in sent(events["run-started", ""])
    known = sent(events["call-waits", "E2/call 1"])
    assert "run-steps" not in known
    assert "[id='step-E2-call 1']" in known


def test_a_stream_ends_with_the_session(served: Served) -> None:
    run = served.submit(plan='name = ask("Who?", str)\nanswer(name)\n')
    served.settled(run)
    with Person(served) as person, Person(served) as other:
        other.http.cookies = person.http.cookies
        with person.http.stream("GET", f"/runs/{run}/live?after=-1") as stream:
            lines = stream.iter_lines()
            assert any("run-result" in line for line in lines)
            other.send("/logout", {})
            assert "event: signed-out" in list(lines)


def test_a_run_is_stopped_replayed_and_compared(ana: Person, run: str) -> None:
    waiting = ana.served.submit(plan='name = ask("Who?", str)\nanswer(name)\n')
    ana.served.settled(waiting)
    assert ana.send(f"/runs/{waiting}/cancel", {}).status_code == 303
    assert "stopped" in ana.get(f"/runs/{waiting}").texts(".badge")
    assert "Everything came out as recorded" in ana.send(f"/runs/{run}/replay", {"part": run}).text
    other = ana.served.submit(plan=LOOP.replace('"invoice"', '"hello"'))
    ana.served.settled(other)
    page = ana.get(f"/runs/{run}/diff?with={other}")
    assert page.texts(".compared-left code")[0].endswith('if "invoice" in line:')
    assert page.texts(".compared-right code")[0].endswith('if "hello" in line:')
    assert "Both did the same" not in page.text
    assert "Both did the same" in ana.get(f"/runs/{run}/diff?with={run}").text
    assert ana.get(f"/runs/{run}/diff?with=nothing", 404).has(".fault")


def compared(person: Person, *plans: str) -> Page:
    """The page that compares the runs of two plans."""
    left, right = (person.served.submit(plan=plan) for plan in plans)
    for run in (left, right):
        person.served.settled(run)
    return person.get(f"/runs/{left}/diff?with={right}")


FAILING = 'lines = read_lines("hostile.txt")\nanswer(read_text(lines[0]))\n'


def test_runs_that_failed_differently_are_not_the_same(ana: Person) -> None:
    file = ana.served.folder / "hostile.txt"
    file.write_text("first-missing.txt\n")
    first = ana.served.submit(plan=FAILING)
    assert ana.served.settled(first)["state"] == "failed"
    file.write_text("second-missing.txt\n")
    second = ana.served.submit(plan=FAILING)
    assert ana.served.settled(second)["state"] == "failed"
    page = ana.get(f"/runs/{first}/diff?with={second}")
    assert "Both did the same" not in page.text
    # The errors are side by side, and so is what led to them.
    errors = [each for each in page.texts(".quoting") if "missing.txt" in each]
    assert any("first-missing" in each for each in errors)
    assert any("second-missing" in each for each in errors)
    inputs = page.texts(".compared-input .text")
    assert inputs == ["first-missing.txt", "second-missing.txt"]
    # The same failure twice is the same.
    again = ana.served.submit(plan=FAILING)
    ana.served.settled(again)
    assert "Both did the same" in ana.get(f"/runs/{second}/diff?with={again}").text


def test_an_answer_of_another_origin_is_not_the_same(ana: Person) -> None:
    (ana.served.folder / "said.txt").write_text("fine")
    read, own = 'word = read_text("said.txt")\nanswer(word)\n', 'word = "fine"\nanswer(word)\n'
    page = compared(ana, read, own)
    assert page.texts("h2 .badge")[-1] == "differs"
    assert "It came from something else" in page.text


def test_a_run_that_was_stopped_is_not_one_that_goes_on(ana: Person) -> None:
    asking = 'name = ask("Who?", str)\nanswer(name)\n'
    stopped, waiting = ana.served.submit(plan=asking), ana.served.submit(plan=asking)
    for run in (stopped, waiting):
        ana.served.settled(run)
    ana.send(f"/runs/{stopped}/cancel", {})
    page = ana.get(f"/runs/{stopped}/diff?with={waiting}")
    assert "Both did the same" not in page.text
    assert "run-stopped" in page.text
    ana.send(f"/runs/{waiting}/cancel", {})
    assert "Both did the same" in ana.get(f"/runs/{stopped}/diff?with={waiting}").text


def test_changes_are_taken_back_as_they_were_shown(ana: Person) -> None:
    served = ana.served
    file = served.folder / "undone.txt"
    run = served.submit(plan='write_lines("undone.txt", ["one", "two"])\nanswer("ok")\n')
    served.settled(run)
    assert file.read_text() == "one\ntwo\n"
    page = ana.get(f"/runs/{run}/undo")
    assert "-one" in page.text
    wrong = ana.send(f"/runs/{run}/undo", {"shown": "0" * 64})
    assert (wrong.status_code, file.exists()) == (409, True)
    assert ana.send(f"/runs/{run}/undo", {"shown": page.attribute("[name=shown]", "value")}).status_code == 303
    assert not file.exists()
    assert "taken back" in ana.get(f"/runs/{run}").text


def test_hostile_texts_are_shown_as_they_are(ana: Person) -> None:
    served = ana.served
    (served.folder / "hostile.txt").write_text(HOSTILE + "\n", encoding="utf-8")
    run = served.submit(plan='lines = read_lines("hostile.txt")\nanswer(lines)\n')
    view = served.settled(run)
    assert view["answer"] == [HOSTILE]
    failed = served.submit(plan='lines = read_lines("hostile.txt")\nanswer(read_text(lines[0]))\n')
    served.settled(failed)
    asked = served.submit(
        request=f"find lines mentioning invoices {HOSTILE}".replace("\u202e", "").replace("\u200b", "")
    )
    served.settled(asked)
    paths = ("", "/step?path=0", "/value?side=answer&at=/0", "/journal")
    for path in (f"/runs/{run}{part}" for part in paths):
        page = ana.get(path)
        assert page.is_free_of(), path
        assert "‹200b›" in page.text, path
        assert "‹202e›" in page.text, path
    for path in (f"/runs/{failed}", f"/runs/{asked}", "/runs", f"/runs?q={HOSTILE[:20]}"):
        assert ana.get(path).is_free_of(), path
    assert "‹200b›" not in ana.get(f"/runs/{served.submit(plan='answer(1)')}").text


def test_an_error_is_marked_since_it_may_quote_what_was_read(ana: Person) -> None:
    (ana.served.folder / "hostile.txt").write_text(f"{HOSTILE}\n", encoding="utf-8")
    failed = ana.served.submit(plan='lines = read_lines("hostile.txt")\nanswer(read_text(lines[0]))\n')
    assert ana.served.settled(failed)["state"] == "failed"
    for path in (f"/runs/{failed}", f"/runs/{failed}/step?path=1", "/runs"):
        page = ana.get(path)
        assert any("<img src=x" in text for text in page.texts(".quoting")), path
        assert "may quote untrusted text" in page.text, path
    calm = ana.served.submit(plan="answer(1)")
    ana.served.settled(calm)
    assert "may quote" not in ana.get(f"/runs/{calm}").text


def test_bad_addresses_have_clear_errors(ana: Person) -> None:
    for path in ("/runs/..%2f..", "/runs/%00", "/runs/" + "a" * 300, "/runs/x?part=y", f"/runs/{'x' * 20}/step?path=0"):
        answer = ana.http.get(path)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"].startswith("text/html")
    assert ana.http.post("/runs", headers=ana.origin, data={"csrf": ana.csrf()}).status_code == 405


def test_a_queued_run_says_that_nobody_has_begun_it(ana: Person) -> None:
    run = ana.served.submit(plan="answer(1)", delay=3600)
    page = ana.get(f"/runs/{run}")
    assert "queued" in page.texts(".badge")
    assert "not before" in page.text
    assert page.has("[hx-sse\\:connect]")
    assert ana.send(f"/runs/{run}/cancel", {}).status_code == 303
