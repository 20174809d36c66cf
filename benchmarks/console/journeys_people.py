"""Journeys of people as such: signing in and out, whose runs they see, and two of them at once."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from benchmarks.console.journey import Stage, journey, texts
from benchmarks.console.world import FORWARD, wait_until


@journey
def first_visit(stage: Stage) -> None:
    """Come for the first time, mistype the token, sign in, look around, sign out."""
    server = stage.server
    user = server.new_user("first")
    with stage.chromium.visit(server) as visitor:
        page = visitor.open("/")
        expect(page).to_have_url(re.compile("/login$"))
        expect(page.get_by_label("Token")).to_be_focused()
        page.get_by_label("Token").fill("bic_" + "x" * 43)
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("does not hold")
        expect(page.get_by_label("Token")).to_have_value("")
        page.get_by_label("Token").fill(server.tokens[user])
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(re.compile("/runs$"))
        expect(page.get_by_text("There is no run yet.")).to_be_visible()
        expect(page.get_by_role("banner")).to_contain_text(user)
        visitor.open("/approvals")
        expect(page.get_by_text("Nothing waits for an answer.")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_url(re.compile("/login$"))
        visitor.open("/runs")
        expect(page).to_have_url(re.compile("/login"))


@journey
def sign_in_by_link(stage: Stage) -> None:
    """Follow the link that the server has shown: the token is in the form, and nowhere else, and a click signs in."""
    server = stage.server
    user = server.new_user("link")
    asked: list[str] = []
    with stage.chromium.visit(server) as visitor:
        page = visitor.page
        page.on("request", lambda request: asked.append(request.url))
        visitor.open(f"/login#{server.tokens[user]}")
        expect(page.get_by_label("Token")).to_have_value(server.tokens[user])
        expect(page).to_have_url(f"{server.address}/login")
        expect(page.get_by_role("button", name="Sign in")).to_be_focused()
        assert visitor.context.cookies() == []
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{server.address}/runs")
        assert not any(server.tokens[user] in address for address in asked)
        # A cookie that no script reads.
        assert page.evaluate("document.cookie") == ""
        [cookie] = visitor.context.cookies()
        assert cookie.get("httpOnly")
        assert cookie.get("sameSite") == "Lax"


@journey
def back_where_one_was(stage: Stage) -> None:
    """Open a link to a question without being signed in, sign in, and be there."""
    server = stage.server
    user = server.new_user("back")
    _, question = server.waiting(user)
    with stage.chromium.visit(server) as visitor:
        page = visitor.open(f"/approvals/{question}")
        expect(page).to_have_url(re.compile("/login"))
        page.get_by_label("Token").fill(server.tokens[user])
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(f"{server.address}/approvals/{question}")
        expect(page.get_by_role("heading", level=2)).to_contain_text("one call needs your yes")


@journey
def session_ends_with_its_token(stage: Stage) -> None:
    """Watch a run while the token is removed: the page is left, and nothing more is shown."""
    server = stage.server
    user = server.new_user("ended")
    run, _ = server.waiting(user)
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open(f"/runs/{run}")
        expect(page.get_by_text("It waits for an answer")).to_be_visible()
        server.remove_token(user)
        expect(page).to_have_url(re.compile("/login"), timeout=15_000)
        visitor.open("/approvals")
        expect(page).to_have_url(re.compile("/login"))


@journey
def another_user_sees_nothing(stage: Stage) -> None:
    """Look for the runs and questions of another user, also by their addresses: there are none."""
    server = stage.server
    owner, other = server.new_user("owner"), server.new_user("other")
    run, question = server.waiting(owner)
    done = server.finished(owner, plan='answer("a private answer")\n')
    with stage.chromium.visit(server, other) as visitor:
        page = visitor.open("/runs")
        expect(page.get_by_text("There is no run yet.")).to_be_visible()
        visitor.open(f"/runs?user={owner}")
        expect(page.get_by_text(run)).to_have_count(0)
        expect(page.locator("table.runs")).to_have_count(0)
        unknown = _seen_at(visitor.server.address, page, "/runs/20200101-000000-0123456789abcd")
        places = [
            f"/runs/{run}",
            f"/runs/{run}/journal",
            f"/runs/{done}/value?side=answer",
            f"/runs/{done}/journal/file",
        ]
        for path in (*places, f"/runs/{done}/value/file?side=answer", f"/approvals/{question}"):
            found = _seen_at(visitor.server.address, page, path)
            assert "private answer" not in found, path
            assert "Not found" in found, (path, found)
        # The same as for what never was.
        assert _seen_at(visitor.server.address, page, f"/runs/{run}").replace(run, "") == unknown.replace(
            "20200101-000000-0123456789abcd", ""
        )
        visitor.open("/approvals?all=1")
        expect(page.get_by_text("Nothing was asked yet.")).to_be_visible()
    with stage.chromium.visit(server, owner) as visitor:
        visitor.open(f"/runs/{done}")
        expect(visitor.page.get_by_text("a private answer").first).to_be_visible()


def _seen_at(address: str, page: object, path: str) -> str:
    from playwright.sync_api import Page

    assert isinstance(page, Page)
    answer = page.request.get(address + path)
    assert answer.status == 404, (path, answer.status)
    return re.sub(r'name="csrf" value="[^"]*"', "", answer.text())


@journey
def approver_of_all_users(stage: Stage) -> None:
    """See the questions of all users, each with its owner, and answer one for somebody else."""
    server = stage.server
    owner = server.new_user("asker")
    approver = server.new_user("approver", ["see", "approve"], all_users=True)
    run, question = server.waiting(owner)
    with stage.chromium.visit(server, approver) as visitor:
        page = visitor.open("/approvals")
        card = page.locator(f'[id="question-{question}"]')
        expect(card).to_contain_text(owner)
        card.get_by_role("button", name="Yes, do it").click()
        expect(page.get_by_role("status").first).to_contain_text("Approved")
        visitor.open(f"/approvals/{question}")
        expect(page.locator("article.question")).to_contain_text(f"by {approver}")
        visitor.open(f"/runs?user={owner}")
        expect(page.locator("table.runs")).to_contain_text(owner)
    wait_until(lambda: server.state(run, owner) == "finished")


@journey
def roles_limit_what_is_there(stage: Stage) -> None:
    """Look with a token that only sees: there is nothing to click that it may not do."""
    server = stage.server
    user = server.new_user("reader")
    reader = server.add_user(user, ["see"], name=f"{user}-see")
    run, question = server.waiting(user)
    with stage.chromium.visit(server, reader) as visitor:
        page = visitor.open(f"/approvals/{question}")
        expect(page.get_by_text("Your token may not answer questions.")).to_be_visible()
        expect(page.get_by_role("button", name="Yes, do it")).to_have_count(0)
        visitor.open(f"/runs/{run}")
        expect(page.get_by_role("button", name="Stop it")).to_have_count(0)
        assert "Ask" not in texts(visitor, "header nav a")


@journey
def two_people_at_once(stage: Stage) -> None:
    """Two browsers answer the same question: one answer counts, and the other person is told."""
    server = stage.server
    user = server.new_user("both")
    run, question = server.waiting(user, plan=FORWARD)
    with stage.chromium.visit(server, user) as first, stage.chromium.visit(server, user) as second:
        for visitor in (first, second):
            visitor.open("/approvals")
            expect(visitor.page.get_by_role("button", name="Yes, do it")).to_be_enabled()
        # The page of the second is told that the question is gone; it answers all the same, as if it had been faster.
        second.page.route("**/approvals/live*", lambda route: route.abort())
        first.page.get_by_role("button", name="No").click()
        expect(first.page.get_by_role("status").first).to_contain_text("Denied")
        second.page.get_by_role("button", name="Yes, do it").click()
        expect(second.page.get_by_role("status").first).to_contain_text("Your answer does not count")
        expect(second.page.locator("article.question")).to_contain_text("denied")
    found = server.question(question, user)
    assert found["state"] == "denied", found
    wait_until(lambda: server.state(run, user) != "waiting")
    assert not (server.folder / "posted.txt").exists() or run not in (server.folder / "posted.txt").read_text()


@journey
def question_goes_while_it_is_looked_at(stage: Stage) -> None:
    """Look at the inbox while somebody else answers: the card says so by itself, and a new question is announced."""
    server = stage.server
    user = server.new_user("watch")
    _, question = server.waiting(user)
    with stage.chromium.visit(server, user) as visitor:
        page = visitor.open("/approvals")
        expect(page.get_by_role("button", name="Yes, do it")).to_be_visible()
        server.waiting(user)
        expect(page.locator("#inbox-news")).to_contain_text("1 new question")
        assert len(texts(visitor, "article.question")) == 1
        server.ask("POST", f"/v1/approvals/{question}/answer", user, json={"approve": "none"})
        expect(page.locator(f'[id="state-{question}"]')).to_contain_text("not open any more")
