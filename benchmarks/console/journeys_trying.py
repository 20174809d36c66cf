"""Journeys of whoever tries things out, or looks after the whole: patterns, architectures, policies, operations."""

from __future__ import annotations

import re
import time

from playwright.sync_api import expect

from benchmarks.console.journey import Stage, journey, texts
from benchmarks.console.world import wait_until

HIDE = """
(isHidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}
"""


@journey
def pattern_run(stage: Stage) -> None:
    """Search the catalogue, read about a pattern, see what it costs, and run it on a request with a knob set."""
    server = stage.server
    user = server.new_user("pattern")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/patterns")
        many = len(texts(visitor, "[data-card]"))
        assert many > 80, many
        page.get_by_role("searchbox").fill("ReWOO")
        expect(page.locator("[data-card]").first).to_contain_text("R5")
        assert len(texts(visitor, "[data-card]")) < many
        expect(page).to_have_url(re.compile("q=ReWOO"))
        page.locator("[data-card] a").first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("R5")
        expect(page.locator("svg.diagram text").first).to_be_visible()
        expect(page.locator("#estimate table")).to_be_visible()
        before = texts(visitor, "#estimate tfoot, #estimate tbody")
        page.locator("#cost input").first.fill("7777")
        expect(page.locator("#estimate")).not_to_have_text(before[0])
        page.get_by_label("Request").fill("Forward mail.txt to kim@example.com")
        page.get_by_role("button", name="Run R5").click()
        expect(page).to_have_url(re.compile("/runs/"))
        expect(page.locator("#run-result")).to_contain_text("R5")
        expect(page.get_by_text("It waits for an answer")).to_be_visible(timeout=15_000)


@journey
def pattern_with_a_wrong_knob(stage: Stage) -> None:
    """Set a knob to what it cannot be: the form says so, and nothing that was typed is lost."""
    server = stage.server
    user = server.new_user("knob")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/patterns/R5")
        page.get_by_label("Request").fill("Forward mail.txt to kim@example.com")
        knobs = page.locator("#run details summary")
        knobs.click()
        field = page.locator("#run details input").first
        field.fill("-3 apples")
        page.get_by_role("button", name="Run R5").click()
        expect(page.get_by_role("alert")).to_be_visible()
        expect(page.get_by_label("Request")).to_have_value("Forward mail.txt to kim@example.com")
        expect(field).to_have_value("-3 apples")
        assert server.ask("GET", "/v1/runs", user)["runs"] == []


@journey
def architecture_lint(stage: Stage) -> None:
    """Write a stack with mistakes, see what the linter finds at which line, and mend it."""
    server = stage.server
    user = server.new_user("lint")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/architecture")
        box = page.get_by_label("The stack, in YAML")
        box.fill("name: Mine\npatterns: [R1, R1x\n")
        expect(page.locator("#findings").get_by_role("alert")).to_contain_text("ine ")
        box.fill("name: Mine\npatterns: [R4]\ntools: {count: 60}\nlegs: [private_data, untrusted_content]\n")
        expect(page.locator("#findings .finding").first).to_contain_text("Why:")
        expect(page.locator("#findings .finding").first).to_contain_text("Mend it:")
        expect(box).to_be_focused()
        page.get_by_role("link", name="Advisor").first.click()
        expect(page.get_by_role("heading", name="Advisor", level=1)).to_be_visible()


@journey
def advice_for_a_task(stage: Stage) -> None:
    """Say what is known of a task, get the smallest stack that is enough, and take it over into the linter."""
    server = stage.server
    user = server.new_user("advice")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/architecture/advice")
        choice = page.locator("select[id^='fact.']").first
        choice.select_option(index=1)
        expect(page.locator("#advice")).to_contain_text("The smallest stack")
        page.get_by_role("button", name="Take it over into the linter").click()
        expect(page.get_by_label("The stack, in YAML")).to_have_value(re.compile("patterns"))


@journey
def policy_playground(stage: Stage) -> None:
    """Try a call with untrusted content, see the decision with its rule, and find the rule among those that hold."""
    server = stage.server
    user = server.new_user("policy")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/policy")
        page.get_by_label("Tool", exact=True).select_option("post")
        to, text = page.get_by_role("group", name="to "), page.get_by_role("group", name="text ")
        to.get_by_label("Value").fill("kim@example.com")
        text.get_by_label("Value").fill("hello, see www.example.org")
        expect(page.locator("#verdict .decision")).to_contain_text("allowed", ignore_case=True)
        text.get_by_label("Whose it is").select_option("third_party")
        expect(page.locator("#verdict .decision")).to_contain_text("ask", ignore_case=True)
        rule = page.locator("#verdict a code").first
        name = rule.inner_text()
        rule.click()
        expect(page.locator(f'[id="rule-{name}"]')).to_be_visible()
        to.get_by_label("Whose it is").select_option("third_party")
        expect(page.locator("#verdict")).to_contain_text("directed-by-strangers")
    assert not (server.folder / "posted.txt").exists() or user not in (server.folder / "posted.txt").read_text()


@journey
def operations_tabs(stage: Stage) -> None:
    """Look through the operations: what it costs, who works, what was noticed, whether the record holds."""
    server = stage.server
    keeper = server.new_user("keeper", all_users=True)
    owner = server.new_user("worked")
    server.waiting(owner)
    with stage.chromium.visit(server, keeper) as visitor:
        page = visitor.open("/operations")
        tabs = page.get_by_role("navigation", name="Parts of the operations")
        names = [each.strip() for each in tabs.get_by_role("link").all_inner_texts()]
        assert names == ["Overview", "Models", "Costs", "Workers", "Alerts", "Servers", "Journal"], names
        for name in names[1:]:
            tabs.get_by_role("link", name=name, exact=True).click()
            expect(tabs.get_by_role("link", name=name, exact=True)).to_have_attribute("aria-current", "page")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.get_by_role("button", name="Verify now").click()
        expect(page.locator("#check")).to_contain_text("as it was written", timeout=30_000)
        visitor.open("/operations/workers")
        expect(page.locator("#workers-live")).to_contain_text("alive")
        visitor.open("/operations/models")
        page.get_by_role("button", name="Explain").click()
        expect(page.locator("#route .route-answer")).to_be_visible()
    with stage.chromium.visit(server, owner) as visitor:
        page = visitor.open("/operations")
        names = texts(visitor, "nav.tabs a")
        assert "Servers" not in names, names
        visitor.open("/operations/servers")
        expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()


@journey
def operations_stay_up_to_date(stage: Stage) -> None:
    """Leave the overview open: a run that begins to wait is counted by itself."""
    server = stage.server
    user = server.new_user("overview")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/operations")
        page.evaluate("window.loadedOnce = true")
        expect(page.get_by_text("No question waits for an answer.")).to_be_visible()
        server.waiting(user)
        expect(page.get_by_text("The oldest was asked")).to_be_visible(timeout=15_000)
        assert page.evaluate("window.loadedOnce") is True


@journey
def many_tabs(stage: Stage) -> None:
    """Have ten tabs open, of which one is seen: every page still comes, and a tab that is seen again is up to date."""
    server = stage.server
    user = server.new_user("tabs")
    run, question = server.waiting(user)
    with stage.chromium.visit(server, user) as visitor:
        pages = [visitor.page, *(visitor.new_page() for _ in range(9))]
        began = time.monotonic()
        for page in pages:
            page.goto(f"{server.address}/runs/{run}", wait_until="load")
            expect(page.get_by_text("It waits for an answer")).to_be_visible()
            # A browser without a screen hides no tab by itself; one with a screen keeps six connections at most.
            page.evaluate(HIDE, True)
        page = visitor.new_page()
        page.goto(f"{server.address}/approvals/{question}", wait_until="load")
        page.get_by_role("button", name="No", exact=True).click()
        expect(page.get_by_role("status").first).to_contain_text("Denied")
        assert time.monotonic() - began < 30
        pages[0].evaluate(HIDE, False)
        expect(pages[0].locator("#run-result .badge").first).to_contain_text("failed", timeout=15_000)
    wait_until(lambda: server.state(run, user) == "failed")
