"""Journeys of whoever writes and tries: requests, plans, replays, differences, and changes that are taken back."""

from __future__ import annotations

import re

from playwright.sync_api import Route, expect

from benchmarks.console.journey import Stage, journey
from benchmarks.console.world import CHANGE, FIND, FORWARD, wait_until


@journey
def request_to_answer(stage: Stage) -> None:
    """Write a request, run it, and read its answer."""
    server = stage.server
    user = server.new_user("ask")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/runs")
        page.get_by_role("link", name="New request").click()
        expect(page.get_by_label("What do you want?")).to_be_focused()
        page.keyboard.type("Read mail.txt and look at all five")
        page.get_by_role("button", name="Run it").click()
        expect(page).to_have_url(re.compile("/runs/"))
        expect(page.get_by_role("heading", level=1)).to_have_text("Read mail.txt and look at all five")
        expect(page.locator("#run-result .badge.is-finished")).to_be_visible(timeout=15_000)
        expect(page.locator("#run-result")).to_contain_text("looked")


@journey
def plan_appears_as_it_is_written(stage: Stage) -> None:
    """Ask for the plan first: see that it is being written, read it with its proof, and run exactly this one."""
    server = stage.server
    user = server.new_user("plan")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/ask")
        page.get_by_label("What do you want?").fill("Read mail.txt and look at all five, very slowly")
        page.get_by_role("button", name="Write the plan").click()
        expect(page.get_by_role("heading", name="The plan is being written …")).to_be_visible()
        expect(page.get_by_label("The plan", exact=True)).to_have_value(
            re.compile(r"seen0 = look\(0\)"), timeout=15_000
        )
        expect(page.locator("#graph .node")).to_have_count(6)
        expect(page.locator("#ask-checked .badge.is-proved").first).to_be_visible()
        assert server.ask("GET", "/v1/runs", user)["runs"] == []
        page.get_by_role("button", name="Run this plan").click()
        expect(page).to_have_url(re.compile("/runs/"))
        expect(page.locator("#run-result .badge.is-finished")).to_be_visible(timeout=15_000)


@journey
def edit_a_plan_with_findings(stage: Stage) -> None:
    """Write a plan with a mistake, see the finding at its line, mend it, and run it."""
    server = stage.server
    user = server.new_user("edit")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/ask")
        box = page.get_by_label("A plan of your own")
        box.fill('lines = read_lines("mail.txt")\nanswer(grep(lines, 7))\n')
        finding = page.locator("#ask-checked .fault")
        expect(finding).to_contain_text("plan.")
        expect(page.get_by_role("button", name="Run this plan")).to_have_count(0)
        box.fill('lines = read_lines("mail.txt")\nanswer(grpe(lines, "invoice"))\n')
        expect(page.locator("#ask-checked")).to_contain_text("plan.unknown-tool")
        expect(page.locator("#ask-checked")).to_contain_text("grep")
        # The focus stays where one types.
        expect(box).to_be_focused()
        box.fill('lines = read_lines("mail.txt")\nanswer(grep(lines, "invoice"))\n')
        expect(page.locator("#ask-checked .badge.is-proved").first).to_be_visible()
        page.get_by_role("button", name="Run this plan").click()
        expect(page.locator("#run-result .badge.is-finished")).to_be_visible(timeout=15_000)
        expect(page.locator("#run-result")).to_contain_text("invoice 9 is paid")


@journey
def edit_the_plan_of_a_run(stage: Stage) -> None:
    """Take the plan of a run, see what it would change, change it, and run it again."""
    server = stage.server
    user = server.new_user("again")
    name = f"{user}.txt"
    server.write(name, "old words\n")
    run = server.finished(user, plan=CHANGE.format(name=name))
    server.write(name, "old words\n")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open(f"/runs/{run}")
        page.get_by_role("link", name="Edit the plan and run it").click()
        box = page.get_by_label("A plan of your own")
        expect(box).to_have_value(re.compile("write_text"))
        box.fill((box.input_value()).replace("new words", "other words"))
        page.get_by_role("button", name="What would it change?").click()
        expect(page.locator("#ask-preview")).to_contain_text("+other words")
        assert (server.folder / name).read_text() == "old words\n"
        page.get_by_role("button", name="Run this plan").click()
        expect(page.locator("#run-result .badge.is-finished")).to_be_visible(timeout=15_000)
    assert (server.folder / name).read_text() == "other words\n"


@journey
def replay_and_compare(stage: Stage) -> None:
    """Replay a run from its record, and compare it with another one."""
    server = stage.server
    user = server.new_user("compare")
    first = server.finished(user, plan=FIND)
    second = server.finished(user, plan=FIND.replace("invoice", "hello"))
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open(f"/runs/{first}")
        page.get_by_role("button", name="Replay").click()
        expect(page.get_by_text("Everything came out as recorded.")).to_be_visible()
        page.get_by_role("link", name="Back to the run").click()
        page.get_by_label("Compare with").fill(second)
        page.get_by_role("button", name="Compare").click()
        expect(page.get_by_role("heading", name=re.compile("^Answer"))).to_contain_text("differs")
        expect(page.locator(".compared-left").first).to_contain_text("invoice")
        expect(page.locator(".compared-right").first).to_contain_text("hello")
        visitor.open(f"/runs/{first}/diff?with={first}")
        expect(page.get_by_text("Both did the same")).to_be_visible()


@journey
def undo_a_change_of_a_file(stage: Stage) -> None:
    """See what a run changed in a file, put it back, and find the old words there."""
    server = stage.server
    user = server.new_user("undo")
    name = f"{user}.txt"
    server.write(name, "old words\n")
    run = server.finished(user, plan=CHANGE.format(name=name))
    assert (server.folder / name).read_text() == "new words\n"
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open(f"/runs/{run}")
        page.get_by_role("link", name="Undo its changes of files").click()
        expect(page.locator("pre")).to_contain_text("+old words")
        page.get_by_role("button", name="Put it back").click()
        expect(page.get_by_role("status").first).to_contain_text("taken back")
    assert (server.folder / name).read_text() == "old words\n"


@journey
def own_plan_that_asks(stage: Stage) -> None:
    """Run a plan of one's own that sends something, and be led to the question."""
    server = stage.server
    user = server.new_user("own")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/ask")
        page.get_by_label("A plan of your own").fill(FORWARD)
        expect(page.locator("#ask-checked .badge.is-conditional").first).to_be_visible()
        expect(page.locator("#ask-checked")).to_contain_text("send: post")
        page.get_by_role("button", name="Run this plan").click()
        page.get_by_role("link", name="one call needs a yes").click(timeout=15_000)
        expect(page.get_by_role("button", name="Yes, do it")).to_be_visible()


@journey
def mistake_in_a_request(stage: Stage) -> None:
    """Send a request with a character that nobody can type: the page says so, and what was typed is still there."""
    server = stage.server
    user = server.new_user("mistake")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/ask")
        checks: list[Route] = []
        page.route("**/ask/check", lambda route: checks.append(route))
        page.get_by_label("A plan of your own").fill(FORWARD)
        wait_until(lambda: (page.wait_for_timeout(20), bool(checks))[1])
        page.get_by_label("What do you want?").fill("Read mail.txt\x07 and look at all five")
        page.get_by_role("button", name="Write the plan").click()
        expect(page.get_by_role("alert")).to_contain_text("a request is needed")
        # What was asked before, and is answered only now, does not take the error away.
        checks[0].continue_()
        page.unroute("**/ask/check")
        expect(page.locator("#ask-checked .badge.is-conditional").first).to_be_visible()
        expect(page.get_by_role("alert")).to_contain_text("a request is needed")
        expect(page.locator("#plan")).to_have_value(FORWARD)
        page.get_by_label("What do you want?").fill("Read mail.txt and look at all five")
        page.get_by_role("button", name="Write the plan").click()
        expect(page.locator("#plan")).to_have_value(re.compile(r"seen0 = look\(0\)"), timeout=15_000)
