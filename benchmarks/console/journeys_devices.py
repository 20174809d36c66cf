"""Journeys with what people have: a keyboard alone, a dark screen, no motion, many runs, a connection that breaks."""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Page, expect

from benchmarks.console.journey import Stage, journey
from benchmarks.console.wire import Wire
from benchmarks.console.world import FIND, FORWARD, SLOW, serving_console, wait_until

MANY = 5_000
SLOWEST_MS = 1_500
MAX_TABS = 60
LOST = "The server cannot be reached"


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus, which must be seen."""
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            style: str = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert style != "none", f"the focus on {selector} is not seen"
            return
    raise AssertionError(f"Tab does not lead to {selector}")


@journey
def keyboard_only(stage: Stage) -> None:
    """Sign in, open a run, its values and where one came from, and answer a question, with keys alone."""
    server = stage.server
    user = server.new_user("keys")
    run = server.finished(user, plan=FIND)
    waiting, _ = server.waiting(user, plan=FORWARD)
    with stage.chromium.visit(server) as visitor:
        page, press = visitor.open("/"), visitor.page.keyboard.press
        expect(page.get_by_label("Token")).to_be_focused()
        page.keyboard.type(server.tokens[user])
        press("Enter")
        expect(page).to_have_url(re.compile("/runs$"))
        press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        press("Enter")
        press("j")
        press("j")
        expect(page.locator(f'[id="run-{run}"] a')).to_be_focused()
        press("Enter")
        expect(page).to_have_url(re.compile(run))
        tab_to(page, 'li.step[data-path="1"] summary')
        press("Enter")
        expect(page.locator('li.step[data-path="1"]').get_by_text("Result")).to_be_visible()
        tab_to(page, 'a[hx-target="#panel"]')
        press("Enter")
        expect(page.locator("#panel h2")).to_be_focused()
        press("Escape")
        expect(page.locator("#panel")).to_be_empty()
        press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        press("g")
        press("a")
        expect(page).to_have_url(re.compile("/approvals$"))
        press("j")
        tab_to(page, "button.no")
        press("Enter")
        expect(page.get_by_role("status").first).to_contain_text("Denied")
    wait_until(lambda: server.state(waiting, user) == "failed")


@journey
def keys_do_not_disturb_typing(stage: Stage) -> None:
    """Type words with the letters of keys into a search box: they are letters."""
    server = stage.server
    user = server.new_user("typing")
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/runs")
        page.get_by_role("searchbox").click()
        page.keyboard.type("gr?/jk ga")
        expect(page.get_by_role("searchbox")).to_have_value("gr?/jk ga")
        assert visitor.path.startswith("/runs")


def brightness(page: Page) -> float:
    """Of the background: 0 is black, 255 white."""
    found: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(float, re.findall(r"[\d.]+", found)[:3])) / 3


@journey
def dark_theme(stage: Stage) -> None:
    """Come with a dark system, choose light, and find it light on every page and after loading it again."""
    server = stage.server
    user = server.new_user("dark")
    with stage.chromium.visit(server, user, theme="dark") as visitor:
        page = visitor.open("/runs")
        assert brightness(page) < 60
        page.get_by_role("button", name="Theme").click()
        assert brightness(page) > 200
        visitor.open("/approvals")
        assert brightness(page) > 200
        page.get_by_role("button", name="Theme").click()
        page.reload()
        assert brightness(page) < 60
    with stage.chromium.visit(server, user) as visitor:
        assert brightness(visitor.open("/runs")) > 200


@journey
def reduced_motion(stage: Stage) -> None:
    """Ask the system for no motion: nothing moves, not even a running step."""
    server = stage.server
    user = server.new_user("still")
    moving = "document.getAnimations().filter((each) => each.playState === 'running').length"
    for still in (True, False):
        with stage.chromium.visit(server, user, still=still) as visitor:
            page = visitor.open(f"/runs/{server.submit(user, plan=SLOW)}")
            expect(page.locator('li.step[data-state="running"]')).to_have_count(1)
            found: int = page.evaluate(moving)
            assert (found == 0) is still, (still, found)


@journey
def five_thousand_runs(stage: Stage) -> None:
    """Have 5,000 runs: the list, a search and older pages come as fast as ever."""
    server = stage.server
    user = server.new_user("thousands")
    server.add_finished_runs(user, MANY)
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.page

        def opened(name: str, path: str) -> None:
            taken: list[float] = []
            for _ in range(3):
                began = time.perf_counter()
                visitor.open(path)
                taken.append((time.perf_counter() - began) * 1000)
            stage.figures[name] = round(sorted(taken)[1], 1)

        opened("list_ms", "/runs")
        expect(page.locator("#runs tbody tr")).to_have_count(50)
        expect(page.get_by_role("option", name="finished (5,000)")).to_have_count(1)
        opened("search_ms", "/runs?q=walnuts")
        expect(page.locator("#runs tbody tr")).to_have_count(1)
        visitor.open("/runs")
        seen: set[str] = set()
        for _ in range(5):
            seen |= {
                each or ""
                for each in page.locator("#runs tbody tr").evaluate_all("(rows) => rows.map((row) => row.id)")
            }
            page.get_by_role("link", name="Older runs").click()
            page.wait_for_load_state("load")
        assert len(seen) == 250, len(seen)
        opened("older_ms", visitor.path)
        page.get_by_role("link", name="Newest").click()
        expect(page.locator("#runs tbody tr").first).to_contain_text(f"day {MANY - 1}")
    for name in ("list_ms", "search_ms", "older_ms"):
        assert stage.figures[name] < SLOWEST_MS, (name, stage.figures[name])


@journey
def lost_connection_and_back(stage: Stage) -> None:
    """Lose the connection while a run goes on: the page says so, and knows what was missed once it is back."""
    server = stage.server
    user = server.new_user("lost")
    run, question = server.waiting(user)
    wire = Wire(server.port)
    through = replace(server, address=wire.address)
    try:
        with stage.chromium.visit(through, user, expected="htmx:sse:error") as visitor:
            page = visitor.open(f"/runs/{run}")
            page.evaluate("window.loadedOnce = true")
            expect(page.get_by_text("It waits for an answer")).to_be_visible()
            # The stream is there before it is lost.
            time.sleep(1)
            wire.cut()
            expect(page.locator("#offline")).to_contain_text(LOST, timeout=15_000)
            server.ask("POST", f"/v1/approvals/{question}/answer", user, json={"approve": "all"})
            wait_until(lambda: server.state(run, user) == "finished")
            expect(page.locator("#run-result .badge.is-waiting")).to_be_visible()
            wire.mend()
            expect(page.locator("#offline")).to_be_hidden(timeout=30_000)
            expect(page.locator("#run-result .badge.is-finished")).to_be_visible(timeout=15_000)
            expect(page.locator('li.step[data-path="1"]')).to_have_attribute("data-state", "done")
            assert page.evaluate("window.loadedOnce") is True
    finally:
        wire.close()


@journey
def server_restarts(stage: Stage) -> None:
    """Have the server stopped and started again: the notice, the sign-in, and the page as it is now."""
    with (
        tempfile.TemporaryDirectory(prefix="bicameral-console-", ignore_cleanup_errors=True) as name,
        serving_console(Path(name)) as server,
        stage.chromium.visit(server, "ana", expected="htmx:sse:error") as visitor,
    ):
        run, question = server.waiting("ana")
        page = visitor.open(f"/runs/{run}")
        expect(page.get_by_text("It waits for an answer")).to_be_visible()
        time.sleep(1)
        server.stop()
        expect(page.locator("#offline")).to_contain_text(LOST, timeout=15_000)
        server.start()
        # Sessions end with the process.
        expect(page).to_have_url(re.compile("/login"), timeout=45_000)
        server.ask("POST", f"/v1/approvals/{question}/answer", "ana", json={"approve": "all"})
        page.get_by_label("Token").fill(server.tokens["ana"])
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(f"{server.address}/runs/{run}")
        expect(page.locator("#run-result .badge.is-finished")).to_be_visible(timeout=15_000)
