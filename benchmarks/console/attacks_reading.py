"""Attacks that would read what is somebody else's: foreign names, the API, downloads, windows, cookies, ways out."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import quote

import httpx
from playwright.sync_api import Error, expect

from benchmarks.console.attack import Attempt, attack
from benchmarks.console.browser import FOREIGN_NAME
from benchmarks.console.world import OTHER_NAME

HOSTILE_FILE = "<html><body><script>xss('download')</script><h1 id=rendered>x</h1></body></html>"


def known_under_its_name(attempt: Attempt) -> None:
    """The server answers under the name that its settings give it."""
    with attempt.stage.chromium.visit(attempt.server, counted=False) as visitor:
        page = visitor.page
        page.goto(f"http://{OTHER_NAME}:{attempt.server.port}/login")
        page.get_by_label("Token").fill(attempt.server.tokens[attempt.user])
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("There is no run yet.")).to_be_visible()


@attack(known_under_its_name)
def foreign_name(attempt: Attempt) -> None:
    """A name of the stranger that leads to this machine (DNS rebinding): nothing is answered under it."""
    done = attempt.server.finished(attempt.user, plan='answer("a private answer")\n')
    with attempt.victim() as visitor:
        page = visitor.page
        home = f"http://{FOREIGN_NAME}:{attempt.server.port}"
        for path in ("/login", f"/runs/{done}", "/static/theme.js"):
            page.goto(home + path)
            assert "private answer" not in page.content()
            assert page.get_by_label("Token").count() == 0, path
        found: list[int] = page.evaluate(
            """async (path) => {
              const options = { method: "POST", body: new URLSearchParams({ token: "x" }) };
              return [(await fetch(path)).status, (await fetch("/login", options)).status];
            }""",
            f"/runs/{done}",
        )
        assert found == [421, 421], found


def token_at_the_api(attempt: Attempt) -> None:
    """A token in a header is answered."""
    assert attempt.server.ask("GET", "/v1/runs", attempt.user) == {"runs": []}


@attack(token_at_the_api)
def cookie_at_the_api(attempt: Attempt) -> None:
    """The cookie of a session is worth nothing to the API, from the console's own pages neither."""
    with attempt.victim() as visitor:
        page = visitor.open("/runs")
        found: list[int] = page.evaluate(
            """async () => {
              const paths = ["/v1/runs", "/v1/approvals", "/v1/models", "/metrics"];
              const ask = async (path, options) => (await fetch(path, { credentials: "include", ...options })).status;
              const headers = { "Content-Type": "application/json" };
              const found = await Promise.all(paths.map((path) => ask(path, {})));
              return [...found, await ask("/v1/runs", { method: "POST", headers, body: '{"plan": "answer(1)"}' })];
            }"""
        )
        assert found == [401] * 5, found
    assert attempt.server.ask("GET", "/v1/runs", attempt.user) == {"runs": []}


def saved_as_it_is(attempt: Attempt) -> None:
    """Whoever clicks on a download gets the file, byte for byte."""
    attempt.server.write("page.html", HOSTILE_FILE)
    run = attempt.server.finished(attempt.user, plan='answer(read_text("page.html"))\n')
    with attempt.victim() as visitor:
        page = visitor.open(f"/runs/{run}/value?side=answer")
        with page.expect_download() as saving:
            page.get_by_role("link", name="Download it").click()
        assert saving.value.path().read_text() == HOSTILE_FILE


@attack(saved_as_it_is)
def download_that_renders(attempt: Attempt) -> None:
    """A download of a page that a stranger wrote, opened as an address: it is saved, and never shown."""
    attempt.server.write("page.html", HOSTILE_FILE)
    run = attempt.server.finished(attempt.user, plan='answer(read_text("page.html"))\n')
    with attempt.victim() as visitor:
        page = visitor.page
        for path in (
            f"/runs/{run}/value/file?side=answer",
            f"/runs/{run}/value/file?side=output&step=0",
            f"/runs/{run}/journal/file",
        ):
            address = attempt.server.address + path
            answer = page.request.get(address)
            assert answer.headers["content-disposition"].startswith("attachment;"), answer.headers
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "html" not in answer.headers["content-type"], answer.headers
            # The navigation ends as the download begins.
            with page.expect_download(), suppress(Error):
                page.goto(address)
            assert page.locator("#rendered").count() == 0
        assert not visitor.watch.executed, visitor.watch.executed


def back_to_a_page(attempt: Attempt) -> None:
    """After signing in one is where one wanted to be."""
    with attempt.stage.chromium.visit(attempt.server, counted=False) as visitor:
        page = visitor.open("/login?next=/approvals?all=1")
        page.get_by_label("Token").fill(attempt.server.tokens[attempt.user])
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(f"{attempt.server.address}/approvals?all=1")


@attack(back_to_a_page)
def way_out_after_signing_in(attempt: Attempt) -> None:
    """A link to the sign-in that leads elsewhere after it."""
    here, there = attempt.server.address, attempt.site.at("/stolen")
    with attempt.stage.chromium.visit(attempt.server, counted=False) as visitor:
        for wanted in (
            *(
                there,
                "//" + there.removeprefix("http://"),
                "/\\" + there.removeprefix("http://"),
                "///" + there.removeprefix("http://"),
            ),
            *(
                "javascript:alert(1)",
                "data:text/html,x",
                "\t//evil.example",
                "/\t/evil.example",
                "/%09/evil.example",
                "/.//evil.example",
            ),
            *(
                "/login/../..//evil.example",
                "http:evil.example",
                "/@evil.example",
                "\\\\evil.example",
                "/\\\\evil.example",
            ),
        ):
            page = visitor.open(f"/login?next={quote(wanted, safe='')}")
            page.get_by_label("Token").fill(attempt.server.tokens[attempt.user])
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_load_state("load")
            assert page.url.startswith(f"{here}/"), (wanted, page.url)
            visitor.context.clear_cookies()
    assert "/stolen" not in attempt.site.asked


def seen_by_whoever_may(attempt: Attempt) -> None:
    """Their own pages show people what is theirs."""
    done = attempt.server.finished(attempt.user, plan='answer("a private answer")\n')
    with attempt.victim() as visitor:
        expect(visitor.open(f"/runs/{done}").get_by_text("a private answer").first).to_be_visible()


@attack(seen_by_whoever_may)
def included_as_a_part(attempt: Attempt) -> None:
    """Pages and downloads as scripts, styles, pictures and streams of another origin, and a window that was opened."""
    done = attempt.server.finished(attempt.user, plan='answer("a private answer")\n')
    with attempt.victim() as visitor:
        page = visitor.page
        page.goto(attempt.site.at(attempt.site.put("<p>x")))
        script = """
        async ([address, run]) => {
          const loads = (tag, key, path) => new Promise((resolve) => {
            const each = document.createElement(tag);
            each.onload = () => resolve(true);
            each.onerror = () => resolve(false);
            each[key] = address + path;
            if (tag === "link") each.rel = "stylesheet";
            document.head.append(each);
          });
          const found = [];
          const paths = [`/runs/${run}`, `/runs/${run}/value/file?side=answer`, `/runs/${run}/journal/file`];
          for (const [tag, key] of [["script", "src"], ["link", "href"], ["img", "src"]])
            for (const path of paths) found.push(await loads(tag, key, path));
          const stream = await new Promise((resolve) => {
            const source = new EventSource(`${address}/runs/${run}/live`, { withCredentials: true });
            source.onmessage = source.onopen = () => resolve(true);
            source.onerror = () => { source.close(); resolve(false); };
          });
          return [...found, stream];
        }
        """
        found: list[bool] = page.evaluate(script, [attempt.server.address, done])
        assert not any(found), found
        with visitor.context.expect_page() as opening:
            page.evaluate(
                "(address) => { window.other = window.open(address); }", f"{attempt.server.address}/runs/{done}"
            )
        opening.value.wait_for_load_state("load")
        expect(opening.value.get_by_text("a private answer").first).to_be_visible()
        assert page.evaluate("window.other.closed || window.other.length === 0") is True
        # The stranger's page cannot lead the window elsewhere: it has no hold on it.
        page.evaluate("() => { try { window.other.location = '/moved'; } catch { } }")
        page.wait_for_timeout(300)
        assert opening.value.url.startswith(attempt.server.address), opening.value.url


def sessions_of_two_ports(attempt: Attempt) -> None:
    """A session goes on beside another site of the same host that sets cookies of its own."""
    path = attempt.site.put("<script>document.cookie = 'mine=1; path=/'</script>")
    with attempt.victim() as visitor:
        visitor.page.goto(attempt.site.at(path))
        visitor.open("/runs")
        expect(visitor.page.get_by_role("banner")).to_contain_text(attempt.user)


@attack(sessions_of_two_ports)
def cookie_of_a_neighbour(attempt: Attempt) -> None:
    """A site on another port of the same host, which shares its cookies, writes one with the name of the session's."""
    stranger = attempt.server.new_user("stranger")
    cookie = attempt.stage.chromium.sign_in(attempt.server, stranger)
    name, value = cookie.get("name"), cookie.get("value")
    question = attempt.question()
    with attempt.victim() as visitor:
        page = visitor.page
        for more in ("path=/", "path=/approvals", "path=/approvals; max-age=9999"):
            script = f"document.cookie = '{name}={value}; {more}'"
            page.goto(attempt.site.at(attempt.site.put(f"<script>{script}</script>")))
            # The person is never somebody else: signed out at worst.
            for path in ("/runs", "/approvals", f"/approvals/{question}", "/ask"):
                assert stranger not in page.request.get(attempt.server.address + path).text(), (more, path)
            assert attempt.user in page.request.get(f"{attempt.server.address}/runs").text()


def host_header(attempt: Attempt) -> None:
    """An ordinary request is answered."""
    assert httpx.get(f"{attempt.server.address}/login").status_code == 200


@attack(host_header)
def odd_host_headers(attempt: Attempt) -> None:
    """Names in the header that are nearly the server's: none of them is answered, or repeated in an address."""
    cookie = attempt.stage.chromium.sign_in(attempt.server, attempt.user)
    headers = {"Cookie": f"{cookie.get('name')}={cookie.get('value')}"}
    for host in (
        FOREIGN_NAME,
        f"localhost.{FOREIGN_NAME}",
        f"127.0.0.1.{FOREIGN_NAME}",
        "localhost@evil.example",
        f"{OTHER_NAME}.evil.example",
        f"evil{OTHER_NAME}",
    ):
        answer = httpx.get(f"{attempt.server.address}/runs", headers=headers | {"Host": host})
        assert answer.status_code in (400, 421), (host, answer.status_code)
        assert "location" not in answer.headers
