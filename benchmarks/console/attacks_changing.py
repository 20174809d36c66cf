"""Attacks that would change something in the name of a person: framing, forms and links of others, changed forms."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from playwright.sync_api import Page, expect

from benchmarks.console.attack import Attempt, attack
from benchmarks.console.world import ConsoleServer


def answer_form(server: ConsoleServer, question: str, shown: str, **more: str) -> str:
    """The form that answers a question with yes, on a page that sends it by itself."""
    fields = {"shown": shown, "answer": "all"} | more
    inputs = "".join(f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in fields.items())
    form = f'<form method="post" action="{server.address}/approvals/{quote(question)}" id="f">{inputs}</form>'
    return f"{form}<script>document.getElementById('f').submit()</script>"


def shown_hash(page: Page) -> str:
    return page.locator("input[name=shown]").first.input_value()


def answers_for_real(attempt: Attempt) -> None:
    """The person answers the same question on its own page."""
    question = attempt.question()
    with attempt.victim() as visitor:
        page = visitor.open(f"/approvals/{question}")
        page.get_by_role("button", name="Yes, do it").click()
        expect(page.get_by_role("status").first).to_contain_text("Approved")
    assert attempt.question_state(question) == "approved"


def frames_own_page(attempt: Attempt) -> None:
    """A site may frame what is its own."""
    inner = attempt.site.put("<h1>mine</h1>")
    outer = attempt.site.put(f'<iframe src="{inner}" width=600 height=400></iframe>')
    with attempt.victim() as visitor:
        visitor.page.goto(attempt.site.at(outer))
        expect(visitor.page.frame_locator("iframe").get_by_role("heading")).to_have_text("mine")


@attack(frames_own_page)
def framing(attempt: Attempt) -> None:
    """A question in an invisible frame, under a button that somebody wants to click."""
    question = attempt.question()
    with attempt.victim() as visitor:
        for tag in (
            'iframe src="{0}"',
            'embed src="{0}"',
            'object data="{0}"',
            'iframe sandbox="allow-forms allow-same-origin" src="{0}"',
        ):
            shown = tag.format(f"{attempt.server.address}/approvals/{question}")
            for host in ("127.0.0.1", "localhost"):
                path = attempt.site.put(f"<{shown} width=900 height=600></{tag.split()[0]}>")
                visitor.page.goto(attempt.site.at(path, host))
                visitor.page.wait_for_timeout(300)
                for frame in visitor.page.frames[1:]:
                    assert "chrome-error" in frame.url or frame.url in ("", "about:blank"), frame.url
                    assert frame.locator("button").count() == 0


@attack(answers_for_real)
def cross_origin_form(attempt: Attempt) -> None:
    """A form of another origin that answers a question, with the hash of it, and with what cookies the browser adds."""
    question = attempt.question()
    with attempt.victim() as visitor:
        shown = shown_hash(visitor.open(f"/approvals/{question}"))
        csrf = visitor.page.locator("input[name=csrf]").first.input_value()
        for more in ({}, {"csrf": ""}, {"csrf": csrf}):
            for host in ("127.0.0.1", "localhost"):
                path = attempt.site.put(answer_form(attempt.server, question, shown, **more))
                visitor.page.goto(attempt.site.at(path, host))
                expect(visitor.page.get_by_role("heading", level=1)).to_have_text(
                    "Not allowed" if host == "127.0.0.1" or csrf else "Sign in"
                )
                assert attempt.question_state(question) == "open"


@attack(answers_for_real)
def cross_origin_fetch(attempt: Attempt) -> None:
    """The same by a script, with the cookies of the person, and attempts to read what only they may see."""
    question = attempt.question()
    with attempt.victim() as visitor:
        shown = shown_hash(visitor.open(f"/approvals/{question}"))
        csrf = visitor.page.locator("input[name=csrf]").first.input_value()
        page = visitor.page
        page.goto(attempt.site.at(attempt.site.put("<p>x")))
        script = """
        async ([address, body]) => {
          const tried = [];
          const options = [
            { method: "POST", mode: "no-cors", credentials: "include", body: new URLSearchParams(body) },
            { method: "POST", mode: "cors", credentials: "include", body: new URLSearchParams(body) },
            { method: "POST", mode: "no-cors", credentials: "include", body: JSON.stringify(body) },
            { method: "GET", mode: "cors", credentials: "include" },
            { method: "GET", mode: "no-cors", credentials: "include" },
          ];
          for (const each of options) {
            try {
              const answer = await fetch(address, each);
              tried.push((await answer.text()).length);
            } catch (error) { tried.push(0); }
          }
          navigator.sendBeacon(address, new URLSearchParams(body));
          return tried;
        }
        """
        body = {"shown": shown, "answer": "all", "csrf": csrf}
        read: list[int] = page.evaluate(script, [f"{attempt.server.address}/approvals/{question}", body])
        assert read == [0] * len(read), read
        page.wait_for_timeout(300)
    assert attempt.question_state(question) == "open"


@attack(answers_for_real)
def stale_csrf(attempt: Attempt) -> None:
    """A form from before somebody signed in anew, or with the secret of another session."""
    question = attempt.question()
    with attempt.victim() as visitor:
        page = visitor.open(f"/approvals/{question}")
        fresh = attempt.stage.chromium.sign_in(attempt.server, attempt.user, anew=True)
        visitor.context.add_cookies([fresh])
        page.get_by_role("button", name="Yes, do it").click()
        expect(page.get_by_role("alert")).to_contain_text("console.stale-page")
        assert attempt.question_state(question) == "open"
        page = visitor.open(f"/approvals/{question}")
        page.evaluate("document.querySelector('form[action^=\"/approvals\"] [name=csrf]').remove()")
        page.get_by_role("button", name="Yes, do it").click()
        expect(page.get_by_role("alert")).to_contain_text("console.stale-page")
    assert attempt.question_state(question) == "open"


def link_of_ones_own(attempt: Attempt) -> None:
    """A person follows their own link, and signs in with a click."""
    with attempt.stage.chromium.visit(attempt.server, counted=False) as visitor:
        page = visitor.open(f"/login#{attempt.server.tokens[attempt.user]}")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("banner")).to_contain_text(attempt.user)


@attack(link_of_ones_own)
def link_of_another(attempt: Attempt) -> None:
    """A link or a form of a stranger that would sign the person in as the stranger, who then reads what they write."""
    stranger = attempt.server.new_user("stranger")
    token = attempt.server.tokens[stranger]
    with attempt.victim() as visitor:
        page = visitor.page
        page.goto(
            attempt.site.at(
                attempt.site.put(
                    f'<a href="{attempt.server.address}/login#{token}" id=a>x</a><script>a.click()</script>'
                )
            )
        )
        page.wait_for_url("**/login")
        page.wait_for_timeout(300)
        expect(page.get_by_role("banner")).to_contain_text(attempt.user)
        visitor.open("/runs")
        expect(page.get_by_role("banner")).to_contain_text(attempt.user)
        fields = f'<input name=token value="{token}">'
        form = (
            f'<form method=post action="{attempt.server.address}/login" id=f>{fields}</form><script>f.submit()</script>'
        )
        for host in ("127.0.0.1", "localhost"):
            page.goto(attempt.site.at(attempt.site.put(form), host))
            expect(page.get_by_role("heading", level=1)).to_have_text("Not allowed")
            visitor.open("/runs")
            expect(page.get_by_role("banner")).to_contain_text(attempt.user)


@attack(answers_for_real)
def other_question(attempt: Attempt) -> None:
    """A form whose hash is that of another question, or none, or whose address was changed."""
    first, second = attempt.question(), attempt.question()
    with attempt.victim() as visitor:
        other = shown_hash(visitor.open(f"/approvals/{second}"))
        for shown in (other, "", "0" * 64):
            page = visitor.open(f"/approvals/{first}")
            page.evaluate("(shown) => { document.querySelector('[name=shown]').value = shown; }", shown)
            page.get_by_role("button", name="Yes, do it").click()
            expect(page.get_by_role("alert")).to_contain_text("console.other-question")
    assert attempt.question_state(first) == attempt.question_state(second) == "open"


def stopped_by_its_owner(attempt: Attempt) -> None:
    """A person stops a run with the button."""
    run, _ = attempt.server.waiting(attempt.user)
    with attempt.victim() as visitor:
        visitor.open(f"/runs/{run}").get_by_role("button", name="Stop it").click()
        expect(visitor.page.locator("#run-result .badge.is-stopped")).to_be_visible()


@attack(stopped_by_its_owner)
def change_by_an_address(attempt: Attempt) -> None:
    """Addresses that would change something if reading did: nothing is answered, stopped, run or signed out by them."""
    run, question = attempt.server.waiting(attempt.user)
    with attempt.victim() as visitor:
        shown = shown_hash(visitor.open(f"/approvals/{question}"))
        csrf = visitor.page.locator("input[name=csrf]").first.input_value()
        fields = f"csrf={csrf}&shown={shown}&answer=all"
        for path in (
            f"/approvals/{question}?{fields}",
            f"/runs/{run}/cancel?{fields}",
            f"/runs/{run}/replay?{fields}",
            f"/ask/run?{fields}&what=plan&plan=answer(1)",
            f"/logout?{fields}",
        ):
            visitor.open(path)
        visitor.open("/runs")
        expect(visitor.page.get_by_role("banner")).to_contain_text(attempt.user)
    assert attempt.question_state(question) == "open"
    assert len(attempt.server.ask("GET", "/v1/runs", attempt.user)["runs"]) == 1


def answered_with_the_role(attempt: Attempt) -> None:
    """Whoever has the role answers."""
    answers_for_real(attempt)


@attack(answered_with_the_role)
def form_without_the_role(attempt: Attempt) -> None:
    """Somebody who may only look sends the forms that are not on their pages."""
    reader = attempt.server.add_user(attempt.user, ["see"], name=f"{attempt.user}-reader")
    run, question = attempt.server.waiting(attempt.user)
    with attempt.victim() as visitor:
        shown = shown_hash(visitor.open(f"/approvals/{question}"))
    with attempt.stage.chromium.visit(attempt.server, reader, counted=False) as visitor:
        page = visitor.open("/approvals")
        csrf = page.locator("input[name=csrf]").first.input_value()
        for path, fields in (
            (f"/approvals/{question}", {"shown": shown, "answer": "all"}),
            (f"/runs/{run}/cancel", {}),
            ("/ask/run", {"what": "plan", "plan": "answer(1)"}),
            ("/patterns/R5/run", {"request": "Forward mail.txt to kim@example.com"}),
        ):
            status: int = page.evaluate(
                """async ([path, fields]) => {
                  const body = new URLSearchParams(fields);
                  return (await fetch(path, { method: "POST", body })).status;
                }""",
                [path, fields | {"csrf": csrf}],
            )
            assert status == 403, (path, status)
    assert attempt.question_state(question) == "open"
    assert attempt.server.state(run, attempt.user) == "waiting"
