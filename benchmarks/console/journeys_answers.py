"""Journeys through questions: yes, no, some, for later calls too, a reply, too late."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from benchmarks.console.journey import Stage, journey
from benchmarks.console.world import ASK, FORWARD_TWICE, ConsoleServer, wait_until

NAMED = (
    'where = extract(read_text("{name}"), "where to send it", email)\n'
    'post(where, "Here it is.")\nday = today()\npost(where, f"Sent on {{day}}.")\nanswer("sent")\n'
)
"""The same recipient twice, whom a text names."""


def posted(server: ConsoleServer) -> str:
    """What was posted so far."""
    file = server.folder / "posted.txt"
    return file.read_text() if file.exists() else ""


@journey
def approve(stage: Stage) -> None:
    """Read what would be done, say yes, and see that exactly this was done."""
    server = stage.server
    user = server.new_user("yes")
    run, question = server.waiting(
        user, plan=f'text = read_text("mail.txt")\npost("{user}@example.com", text)\nanswer("sent")\n'
    )
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open(f"/runs/{run}")
        expect(page.locator("header .count")).to_have_text("1")
        page.get_by_role("link", name="one call needs a yes").click()
        card = page.locator("article.question")
        expect(card).to_contain_text(f"{user}@example.com")
        expect(card).to_contain_text("sends out of here")
        expect(card).to_contain_text("untrusted text")
        expect(card).to_contain_text("read_text")
        assert posted(server).count(f"{user}@") == 0
        card.get_by_role("button", name="Yes, do it").click()
        expect(page).to_have_url(f"{server.address}/runs/{run}")
        expect(page.get_by_role("status").first).to_contain_text("Approved")
        expect(page.locator("#run-result .badge.is-finished")).to_be_visible()
        expect(page.locator("#run-result")).to_contain_text("What it did to the world")
        visitor.open(f"/approvals/{question}")
        expect(card).to_contain_text(f"by {user}")
    assert posted(server).count(f"{user}@") == 1


@journey
def refuse(stage: Stage) -> None:
    """Say no: nothing is done, and the run says that it was refused."""
    server = stage.server
    user = server.new_user("no")
    run, _ = server.waiting(
        user, plan=f'text = read_text("mail.txt")\npost("{user}@example.com", text)\nanswer("sent")\n'
    )
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/approvals")
        page.get_by_role("button", name="No", exact=True).click()
        expect(page.get_by_role("status").first).to_contain_text("Denied")
        expect(page.locator("#run-result .badge")).not_to_have_text(re.compile("waiting|running|queued"))
        expect(page.locator('li.step[data-path="1"]')).to_have_attribute("data-state", "denied")
    assert server.state(run, user) in ("failed", "stopped")
    assert posted(server).count(f"{user}@") == 0


@journey
def one_of_several_calls(stage: Stage) -> None:
    """Of two calls tick one: only that one is done."""
    server = stage.server
    user = server.new_user("some")
    plan = FORWARD_TWICE.replace("kim@", f"{user}.kim@").replace("lee@", f"{user}.lee@")
    run, question = server.waiting(user, plan=plan)
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/approvals")
        expect(page.locator("article.question h2")).to_contain_text("2 calls need your yes")
        page.get_by_role("group", name=re.compile("^Call 1")).get_by_label("Yes to this call").check()
        page.get_by_role("button", name="Answer as ticked").click()
        expect(page.get_by_role("status").first).to_contain_text("Partly")
        visitor.open(f"/approvals/{question}")
        expect(page.get_by_role("group", name=re.compile("^Call 1"))).to_contain_text("approved")
        expect(page.get_by_role("group", name=re.compile("^Call 2"))).to_contain_text("denied")
    wait_until(lambda: server.state(run, user) not in ("queued", "running", "waiting"))
    assert posted(server).count(f"{user}.lee@") == 0


@journey
def for_later_calls_too(stage: Stage) -> None:
    """Tick the offer for later calls: the second call to the same recipient is not asked about."""
    server = stage.server
    user = server.new_user("later")
    server.write(f"{user}.txt", f"Please send it to {user}@example.com, thank you.")
    server.write("replies.json", f'{{"Please send it to {user}@": "{user}@example.com"}}')
    run, question = server.waiting(user, plan=NAMED.format(name=f"{user}.txt"))
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open(f"/approvals/{question}")
        offer = page.get_by_role("checkbox", name=re.compile("For later calls too"))
        expect(offer).not_to_be_checked()
        offer.check()
        page.get_by_role("button", name="Yes, do it").click()
        expect(page.locator("#run-result .badge.is-finished")).to_be_visible()
        visitor.open(f"/approvals/{question}")
        expect(page.locator("article.question")).to_contain_text("for later calls of this run too")
    assert posted(server).count(f"{user}@") == 2
    assert server.state(run, user) == "finished"


@journey
def enter_answers_nothing(stage: Stage) -> None:
    """Press Enter in every tick of a card: nothing is answered. Enter on a button is an answer."""
    server = stage.server
    user = server.new_user("enter")
    server.write(f"{user}.txt", f"Please send it to {user}@example.com, thank you.")
    server.write("replies.json", f'{{"Please send it to {user}@": "{user}@example.com"}}')
    run, one = server.waiting(user, plan=NAMED.format(name=f"{user}.txt"))
    _, several = server.waiting(user, plan=FORWARD_TWICE.replace("kim@", f"{user}.kim@"))
    with stage.chromium.visit(server, user) as visitor:
        for question in (one, several):
            page = visitor.open(f"/approvals/{question}")
            ticks = page.get_by_role("checkbox")
            assert ticks.count()
            for number in range(ticks.count()):
                for key in ("Enter", "Space", "Enter"):
                    ticks.nth(number).press(key)
                expect(ticks.nth(number)).to_be_checked()
            page.wait_for_timeout(300)
            assert visitor.path == f"/approvals/{question}"
            assert server.question(question, user)["state"] == "open"
        assert posted(server).count(f"{user}@") == 0
        page.get_by_role("button", name="No to all").press("Space")
        expect(page.get_by_role("status").first).to_contain_text("Denied")
        page = visitor.open(f"/approvals/{one}")
        page.get_by_role("checkbox").focus()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Yes, do it")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("status").first).to_contain_text("Approved")
    server.settled(run, user)
    assert posted(server).count(f"{user}@") == 1


@journey
def keys_of_a_card(stage: Stage) -> None:
    """Go through the cards with keys: they move the focus to Yes, No and the ticks, and press nothing."""
    server = stage.server
    user = server.new_user("keys")
    _, several = server.waiting(user, plan=FORWARD_TWICE)
    _, one = server.waiting(user)
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/approvals")
        for key in ("y", "n", "x"):
            page.keyboard.press(key)
            assert page.evaluate("document.activeElement === document.body"), "a key acts on no card"
        page.keyboard.press("j")
        first = page.locator(f"[id='question-{several}']")
        ticks = first.get_by_role("checkbox")
        for number in (0, 1, 0):
            page.keyboard.press("x")
            expect(ticks.nth(number)).to_be_focused()
        page.keyboard.press("n")
        expect(first.get_by_role("button", name="No to all")).to_be_focused()
        page.keyboard.press("y")
        expect(first.get_by_role("button", name="Yes to all")).to_be_focused()
        page.keyboard.press("j")
        second = page.locator(f"[id='question-{one}']")
        page.keyboard.press("y")
        expect(second.get_by_role("button", name="Yes, do it")).to_be_focused()
        page.keyboard.press("n")
        no = second.get_by_role("button", name="No", exact=True)
        expect(no).to_be_focused()
        expect(page.get_by_role("checkbox", checked=True)).to_have_count(0)
        for question in (several, one):
            assert server.question(question, user)["state"] == "open"
        page.keyboard.press("Enter")
        expect(page.get_by_role("status").first).to_contain_text("Denied")
    assert server.question(one, user)["state"] == "denied"


@journey
def reply_to_a_question(stage: Stage) -> None:
    """Reply to what a plan asks, first with something that is no reply."""
    server = stage.server
    user = server.new_user("reply")
    run, _ = server.waiting(user, plan=ASK.replace("str)", "int)").replace('"for " + name', "name + 1"))
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/approvals")
        expect(page.locator("article.question")).to_contain_text("Who is it for?")
        page.get_by_label("Your reply").fill("many")
        page.get_by_role("button", name="Reply").click()
        expect(page.get_by_role("alert")).to_contain_text("no reply to this question")
        visitor.open("/approvals")
        page.get_by_label("Your reply").fill("41")
        page.get_by_role("button", name="Reply").click()
        expect(page.get_by_role("status").first).to_contain_text("Replied")
        expect(page.locator("#run-result")).to_contain_text("42")
    assert server.state(run, user) == "finished"


@journey
def choose_a_reply(stage: Stage) -> None:
    """Choose among the replies that a question allows."""
    server = stage.server
    user = server.new_user("choose")
    plan = 'much = ask("How much?", Literal["little", "more"])\nanswer(much)\n'
    run, _ = server.waiting(user, plan=plan)
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/approvals")
        expect(page.get_by_role("group", name="Your reply")).to_be_visible()
        page.get_by_label("more", exact=True).check()
        page.get_by_role("button", name="Reply").click()
        expect(page.locator("#run-result")).to_contain_text("more")
    assert server.state(run, user) == "finished"


@journey
def too_late(stage: Stage) -> None:
    """Wait too long: the time runs out on the page, the buttons with it, and the answer is no."""
    server = stage.server
    user = server.new_user("late")
    run, question = server.waiting(user, answer_within=4)
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/approvals")
        expect(page.locator("[data-expires]")).to_contain_text(re.compile(r"\d s left"))
        yes = page.get_by_role("button", name="Yes, do it")
        expect(yes).to_be_enabled()
        expect(page.locator("[data-expires]")).to_have_text("expired", timeout=10_000)
        expect(yes).to_be_disabled()
        # The form of somebody whose clock is wrong.
        page.evaluate("document.querySelector('button.yes').disabled = false")
        yes.click()
        expect(page.get_by_role("status").first).to_contain_text("does not count")
        wait_until(lambda: server.question(question, user)["state"] == "expired")
        visitor.open(f"/approvals/{question}")
        expect(page.locator("article.question")).to_contain_text("expired")
    wait_until(lambda: server.state(run, user) in ("failed", "stopped"))
    assert posted(server).count(user) == 0


@journey
def inbox_of_many(stage: Stage) -> None:
    """Answer three questions one after the other, each on its own, until nothing waits."""
    server = stage.server
    user = server.new_user("many")
    runs = [server.waiting(user)[0] for _ in range(3)]
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/approvals")
        for left in (3, 2, 1):
            expect(page.locator("article.question")).to_have_count(left)
            page.get_by_role("button", name="No", exact=True).first.click()
            expect(page.get_by_role("status").first).to_contain_text("Denied")
        visitor.open("/approvals")
        expect(page.get_by_text("Nothing waits for an answer.")).to_be_visible()
        visitor.open("/approvals?all=1")
        expect(page.locator("article.question")).to_have_count(3)
    assert all(server.settled(run, user)["state"] != "waiting" for run in runs)
