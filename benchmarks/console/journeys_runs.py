"""Journeys through runs: live, with values and where they came from, journals, replays and differences."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from benchmarks.console.journey import Stage, journey, texts
from benchmarks.console.world import FIND, SLOW, wait_until


@journey
def live_graph(stage: Stage) -> None:
    """Watch a run that takes a while: steps and nodes change their state, without loading the page again."""
    server = stage.server
    user = server.new_user("live")
    with stage.chromium.visit(server, user) as visitor:
        run = server.submit(user, plan=SLOW)
        page = visitor.open(f"/runs/{run}")
        page.evaluate("window.loadedOnce = true")
        seen: set[tuple[str, ...]] = set()

        def is_over() -> bool:
            found: list[str] = page.evaluate(
                "[...document.querySelectorAll('#graph .node')].map((node) => node.dataset.state || '')"
            )
            seen.add(tuple(found))
            return page.locator("#run-result .badge.is-finished").count() > 0

        wait_until(is_over)
        assert page.evaluate("window.loadedOnce") is True
        states = [set(each) for each in seen if each]
        assert any("running" in each for each in states), seen
        assert len([each for each in states if "running" in each]) >= 2, seen
        expect(page.locator('#graph .node[data-state="done"]')).to_have_count(4)
        expect(page.locator("#run-result")).to_contain_text("after after after what was seen at 1")


@journey
def run_is_seen_from_its_beginning(stage: Stage) -> None:
    """Open a run that no worker has begun, and see its plan come by itself."""
    server = stage.server
    user = server.new_user("early")
    run = server.submit(user, request="look at all five")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open(f"/runs/{run}")
        expect(page.locator("#run-plan li.step")).to_have_count(6)
        expect(page.locator("#run-result .badge.is-finished")).to_be_visible()
        expect(page.locator("#graph .node")).to_have_count(6)


@journey
def pattern_is_seen_step_by_step(stage: Stage) -> None:
    """Watch a run without a plan: each step appears once it begins, in order, and what is open stays open."""
    server = stage.server
    user = server.new_user("steps")
    with stage.chromium.visit(server, user) as visitor:
        run = server.submit(user, request="look three times", model="pattern:R5")
        page = visitor.open(f"/runs/{run}")
        page.evaluate("window.loadedOnce = true")
        steps = page.locator("#run-plan li.step")
        expect(page.locator('li.step[data-path="E1/call 1"][data-state="done"]')).to_be_visible()
        opened = open_values(page, "E1/call 1")
        seen: set[int] = set()

        def is_over() -> bool:
            seen.add(steps.count())
            return page.locator("#run-result .badge.is-finished").count() > 0

        wait_until(is_over)
        assert len(seen & {1, 2, 3}) >= 2, seen
        assert page.evaluate("window.loadedOnce") is True
        paths: list[str] = steps.evaluate_all("rows => rows.map((row) => row.dataset.path)")
        assert paths == ["E1/call 1", "E2/call 1", "E3/call 1"], paths
        expect(page.locator('li.step[data-state="done"]')).to_have_count(3)
        expect(opened.get_by_text("Result")).to_be_visible()
        # What the second call was given is a use of what the first one gave, and both are highlighted.
        opened.get_by_role("link", name="Where from?").last.click()
        expect(page.locator("#panel .flow .badge").first).to_be_visible()
        expect(page.locator("li.step.in-flow")).to_have_count(3)


@journey
def changed_record_is_said_to_be_one(stage: Stage) -> None:
    """Open a run whose record was changed behind the back of the server, and go from the warning to what is wrong."""
    server = stage.server
    user = server.new_user("changed")
    run = server.finished(user, plan=FIND)
    with server.changed_record(run, 1), stage.chromium.visit(server, user) as visitor:
        page = visitor.open(f"/runs/{run}")
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("has been changed, or is damaged")
        alert.get_by_role("link").click()
        expect(page.get_by_role("alert")).to_contain_text("event 1")
        assert texts(visitor, "tbody td:nth-child(3)") == ["run-started"]


def open_values(page: Page, step: str) -> Locator:
    """The inputs and outputs of a step, opened."""
    row = page.locator(f'li.step[data-path="{step}"]')
    row.locator("summary").first.click()
    expect(row.get_by_text("Result")).to_be_visible()
    return row


@journey
def provenance_of_a_value(stage: Stage) -> None:
    """Open a result, ask where it came from, see the way highlighted in the list and in the graph, and go back."""
    server = stage.server
    user = server.new_user("where")
    run = server.finished(user, plan=FIND)
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open(f"/runs/{run}")
        row = open_values(page, "1")
        link = row.get_by_role("link", name="Where from?").last
        link.click()
        panel = page.locator("#panel")
        expect(panel.get_by_role("heading", level=2)).to_be_focused()
        expect(panel).to_contain_text("untrusted text")
        expect(panel).to_contain_text("read_lines")
        expect(page.locator('li.step.in-flow[data-path="0"]')).to_have_count(1)
        assert page.locator("#graph .node.in-flow").count() >= 2
        assert page.locator("#graph .edge.in-flow").count() >= 1
        page.keyboard.press("Escape")
        expect(panel).to_be_empty()
        expect(page.locator(".in-flow")).to_have_count(0)
        expect(link).to_be_focused()
        # The same as a page of its own, for whoever opens it in another tab.
        visitor.open((link.get_attribute("href") or "").replace("&amp;", "&"))
        expect(page.get_by_role("heading", level=2)).to_contain_text("Where from")


@journey
def values_of_a_step_that_goes_on(stage: Stage) -> None:
    """Open the values of a step while it runs: they stay open, and its result comes by itself."""
    server = stage.server
    user = server.new_user("opened")
    with stage.chromium.visit(server, user) as visitor:
        run = server.submit(user, plan=SLOW)
        page = visitor.open(f"/runs/{run}")
        row = page.locator('li.step[data-path="1"][data-state="running"]')
        row.locator("summary").click(timeout=20_000)
        step = page.locator('li.step[data-path="1"]')
        expect(step.get_by_text("loading")).to_have_count(0)
        expect(page.locator("#run-result .badge.is-finished")).to_be_visible(timeout=20_000)
        expect(step.get_by_text("Result")).to_be_visible()
        assert step.locator("details").first.get_attribute("open") is not None


@journey
def refused_and_failed_runs_say_why(stage: Stage) -> None:
    """Open a run that failed, and go from the error to its step."""
    server = stage.server
    user = server.new_user("why")
    run = server.submit(user, plan='answer(fail_at("mail.txt"))\n')
    assert server.settled(run, user)["state"] == "failed"
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open(f"/runs/{run}")
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("tools.failed")
        alert.get_by_role("link").click()
        expect(page).to_have_url(re.compile("#step-0"))
        expect(page.locator('li.step[data-path="0"]')).to_contain_text("invoice 7 is open")
        expect(page.locator('#graph .node[data-state="failed"]')).to_have_count(1)


@journey
def stop_a_run(stage: Stage) -> None:
    """Stop a run that waits."""
    server = stage.server
    user = server.new_user("stop")
    run, question = server.waiting(user)
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open(f"/runs/{run}")
        page.get_by_role("button", name="Stop it").click()
        expect(page.locator("#run-result .badge.is-stopped")).to_be_visible()
        visitor.open(f"/approvals/{question}")
        expect(page.locator("article.question")).to_contain_text("withdrawn")


@journey
def journal_and_download(stage: Stage) -> None:
    """Read the journal of a run, see that its seals hold, and save it as a file."""
    server = stage.server
    user = server.new_user("journal")
    run = server.finished(user, plan=FIND)
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open(f"/runs/{run}")
        page.get_by_role("link", name=re.compile("^Journal")).click()
        expect(page.get_by_text("Every entry fits its seal.")).to_be_visible()
        kinds = texts(visitor, "tbody td:nth-child(3)")
        assert kinds[0] == "run-started", kinds
        assert kinds[-1] == "run-finished", kinds
        page.get_by_role("link", name="Back to the run").click()
        with page.expect_download() as saving:
            page.get_by_role("link", name="Download the journal").click()
        assert saving.value.suggested_filename == f"{run}.jsonl"
        lines = saving.value.path().read_text("utf-8").splitlines()
        assert len(lines) == len(kinds)


@journey
def search_and_filter(stage: Stage) -> None:
    """Search the list as one types, filter by state, and come back by the address."""
    server = stage.server
    user = server.new_user("search")
    server.finished(user, request="Count the lines of mail.txt")
    server.finished(user, request="look at all five")
    server.waiting(user, request="forward mail.txt to kim@example.com")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/runs")
        expect(page.locator("#runs tbody tr")).to_have_count(3)
        page.keyboard.press("/")
        expect(page.get_by_role("searchbox")).to_be_focused()
        page.keyboard.type("FIVE")
        expect(page.locator("#runs tbody tr")).to_have_count(1)
        expect(page).to_have_url(re.compile("q=FIVE"))
        page.get_by_role("searchbox").fill("")
        page.get_by_label("State").select_option("waiting")
        expect(page.locator("#runs tbody tr")).to_have_count(1)
        expect(page.locator("#runs")).to_contain_text("forward mail.txt")
        page.reload()
        expect(page.get_by_label("State")).to_have_value("waiting")
        expect(page.locator("#runs tbody tr")).to_have_count(1)
        page.get_by_role("searchbox").fill("nothing like this")
        expect(page.get_by_text("No run fits these filters.")).to_be_visible()


@journey
def list_shows_new_runs(stage: Stage) -> None:
    """Leave the list open: a new run and its end appear by themselves."""
    server = stage.server
    user = server.new_user("list")
    server.finished(user, request="Count the lines of mail.txt")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/runs")
        expect(page.locator("#runs tbody tr")).to_have_count(1)
        server.finished(user, request="look at all five")
        expect(page.locator("#runs tbody tr")).to_have_count(2, timeout=12_000)
        expect(page.locator("#runs tbody tr").first).to_contain_text("look at all five")
