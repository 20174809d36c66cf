"""Who gets in, from where, and for how long: sessions, cookies, origins, host names and frames."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from console_world import Person
from server_world import Served

from bicameral.console._admission import MAX_FIELDS, SIGN_INS_A_MINUTE, SessionAdmission, parse_form
from bicameral.console._sessions import MAX_USER_SESSIONS, SESSION_SECONDS, Sessions
from bicameral.console._sign_in import own_address
from bicameral.server import TokenFile, new_token
from bicameral.server.surface import HttpError


def test_nobody_sees_a_page_before_signing_in_and_the_way_back_is_kept(served: Served) -> None:
    with Person(served, sign_in=False) as stranger:
        for path in ("/", "/runs", "/runs/x/journal/file", "/approvals", "/ask"):
            answer = stranger.http.get(path)
            assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/login"), path
        assert "next=%2Fapprovals" in stranger.http.get("/approvals").headers["location"]
        answer = stranger.send("/login", {"token": served.tokens["ana"], "next": "/approvals"}, csrf=False)
        assert answer.headers["location"] == "/approvals"
        assert stranger.get("/approvals").has("h1")


def test_a_wrong_token_lets_nobody_in_and_is_not_repeated(served: Served) -> None:
    with Person(served, sign_in=False) as stranger:
        answer = stranger.send("/login", {"token": "bic_not-a-token"}, csrf=False)
        assert answer.status_code == 401
        assert "does not hold" in answer.text
        assert "bic_not-a-token" not in answer.text
        assert "set-cookie" not in answer.headers
        assert stranger.http.get("/runs").status_code == 303


def test_the_cookie_is_out_of_the_reach_of_scripts_and_of_other_sites(served: Served) -> None:
    with Person(served, sign_in=False) as person:
        fields = {"token": served.tokens["ana"]}
        cookie = person.send("/login", fields, csrf=False).headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert "secure" not in cookie
        proxied = {"Origin": served.address.replace("http:", "https:")}
        found = person.http.post("/login", data=fields | {"csrf": person.csrf()}, headers=person.origin | proxied)
        assert "secure" in found.headers["set-cookie"].lower()


def test_a_session_is_worth_nothing_at_the_api(ana: Person) -> None:
    for path in ("/v1/runs", "/metrics"):
        assert ana.http.get(path).status_code == 401
    # And a token in a header is none at the pages.
    header = {"Authorization": f"Bearer {ana.served.tokens['ana']}"}
    assert httpx.get(f"{ana.served.address}/runs", headers=header).status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_form_of_another_site_does_nothing(ana: Person, headers: dict[str, str]) -> None:
    run = ana.served.submit(plan="answer(1)")
    answer = ana.send(f"/runs/{run}/cancel", {}, headers=headers)
    assert answer.status_code == 403
    assert "console.other-origin" in answer.text
    # The same form of a page of its own.
    assert ana.send(f"/runs/{run}/cancel", {}).status_code == 303


@pytest.mark.parametrize("secret", ["", "x", "stolen-from-another-session"])
def test_a_form_without_the_secret_of_the_session_does_nothing(ana: Person, ben: Person, secret: str) -> None:
    run = ana.served.submit(plan="answer(1)")
    given = ben.csrf() if secret.startswith("stolen") else secret
    answer = ana.send(f"/runs/{run}/cancel", {"csrf": given}, csrf=False)
    assert answer.status_code == 403
    assert "console.stale-page" in answer.text
    assert ana.send(f"/runs/{run}/cancel", {}).status_code == 303


def test_a_body_of_another_kind_is_refused(ana: Person) -> None:
    answer = ana.http.post("/logout", json={"csrf": ana.csrf()}, headers=ana.origin)
    assert answer.status_code == 415
    assert ana.get("/runs").has("h1")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "a@b", "[::1"])
def test_a_name_that_is_not_this_servers_reaches_nothing(ana: Person, host: str) -> None:
    for path in ("/runs", "/login", ana.get("/login").attribute("link[rel=stylesheet]", "href")):
        answer = ana.http.get(path, headers={"Host": host})
        assert answer.status_code in (400, 421), (host, path)
        assert "ana" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:9", "[::1]:8417", "192.0.2.7", "localhost."])
def test_addresses_and_localhost_are_this_server(ana: Person, host: str) -> None:
    assert ana.http.get("/login", headers={"Host": host}).status_code == 200


def test_no_page_can_be_framed_or_runs_anything_but_its_own_files(ana: Person) -> None:
    for path in ("/login", "/runs", "/nothing", "/runs/nothing", "/approvals/nothing"):
        answer = ana.http.get(path)
        policy = answer.headers.get("content-security-policy", "")
        if path == "/nothing":
            # No page of the console: the API answers, and asks for a token.
            assert answer.status_code == 401
            continue
        assert "frame-ancestors 'none'" in policy
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"


def test_pages_load_only_files_of_the_server_and_have_nothing_inline(ana: Person) -> None:
    page = ana.get("/runs")
    addresses = [
        node.attributes.get("src") or node.attributes.get("href") for node in page.tree.css("script, link, img")
    ]
    assert addresses
    assert all(address and address.startswith("/static/") for address in addresses)
    assert not page.has("style, [style], script:not([src])")
    for address in addresses:
        answer = ana.http.get(str(address))
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert ana.http.get("/static/console.000000000000.css").status_code == 404


def test_signing_out_ends_the_session_and_not_that_of_others(served: Served, ana: Person) -> None:
    with Person(served) as person:
        kept = dict(person.http.cookies)
        assert person.send("/logout", {}).headers["location"] == "/login"
        assert httpx.get(f"{served.address}/runs", cookies=kept).status_code == 303
    assert ana.get("/runs").has("h1")


def test_a_session_ends_with_its_token(served: Served) -> None:
    file = TokenFile(served.folder / "xdg_config_home" / "bicameral" / "tokens.json")
    token, text = file.add("ana")
    with Person(served, token=text) as person:
        assert person.get("/runs").has("h1")
        file.remove(token.id)
        assert person.http.get("/runs").status_code == 303


def test_a_link_of_somebody_else_signs_nobody_in(ana: Person) -> None:
    """The token stands behind `#`, which no server sees: a person has to send the form."""
    page = ana.get("/login")
    assert page.attribute("#token", "type") == "password"
    # Whoever is signed in already must have been shown this very form.
    answer = ana.send("/login", {"token": ana.served.tokens["ben"]}, csrf=False)
    assert answer.status_code == 403
    assert "console.stale-page" in answer.text


def test_attempts_to_sign_in_are_limited_by_address() -> None:
    admission = SessionAdmission(Sessions(TokenFile(None)), ())

    def attempt(address: str) -> None:
        headers = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"sec-fetch-site", b"same-origin")]
        scope = {"method": "POST", "path": "/login", "headers": headers, "client": (address, 1), "server": ("", 1)}
        assert admission.find_holder(scope) is None

    for _ in range(SIGN_INS_A_MINUTE // 4):
        attempt("192.0.2.1")
    with pytest.raises(HttpError, match="too many"):
        attempt("192.0.2.1")
    attempt("192.0.2.2")


@pytest.mark.parametrize(
    "address",
    [
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "/a\\b",
        "/\t/e",
        "runs",
        "",
        "/ü",
    ],
)
def test_the_way_back_leads_to_no_other_site(address: str) -> None:
    assert own_address(address) == ""
    assert own_address("/runs?q=a&state=failed") == "/runs?q=a&state=failed"


def test_roles_open_only_their_pages(served: Served) -> None:
    file = TokenFile(served.folder / "xdg_config_home" / "bicameral" / "tokens.json")
    wanted = {"see": ("/runs", "/approvals"), "run": ("/ask",), "approve": ("/approvals",)}
    for role in ("see", "run", "approve"):
        with Person(served, token=file.add("ana", roles=(role,))[1]) as person:
            for path in ("/runs", "/approvals", "/ask"):
                assert person.http.get(path).status_code == (200 if path in wanted[role] else 403), (role, path)
            assert person.http.get("/").headers["location"] == wanted[role][0]


def test_sessions_end_in_time_and_are_bounded() -> None:
    now = [0.0]
    token, _ = new_token("ana")
    sessions = Sessions(TokenFile(None, [token]), clock=lambda: now[0])
    first, cookie = sessions.begin(token)
    assert sessions.find(cookie) is first
    now[0] = SESSION_SECONDS + 1
    assert sessions.find(cookie) is None
    cookies = [sessions.begin(token)[1] for _ in range(MAX_USER_SESSIONS + 3)]
    assert [sessions.find(each) is not None for each in cookies] == [False] * 3 + [True] * MAX_USER_SESSIONS
    assert sessions.find("") is None


def test_a_session_of_a_token_that_has_ended_is_none() -> None:
    token, _ = new_token("ana")
    other, _ = new_token("ana")
    sessions = Sessions(TokenFile(None, [other]))
    _, cookie = sessions.begin(token)
    assert sessions.find(cookie) is None
    assert sessions.find(sessions.begin(other)[1]) is not None


def test_forms_are_read_strictly() -> None:
    assert parse_form(b"a=1&a=2&b=x%0D%0Ay") == {"a": ["1", "2"], "b": ["x\ny"]}
    for body in (b"\xff=1", b"&".join(b"a=1" for _ in range(MAX_FIELDS + 1)), b"a=%FF"):
        with pytest.raises(HttpError):
            parse_form(body)


def test_no_template_marks_anything_as_safe() -> None:
    """Whatever is shown is escaped by the engine; a template that escapes nothing would not be noticed by eye."""
    folder = Path(__file__).parents[2] / "src" / "bicameral" / "console" / "templates"
    templates = sorted(folder.glob("*.html"))
    assert len(templates) > 15
    for file in templates:
        text = file.read_text()
        assert not re.search(r"\|\s*safe|autoescape|Markup|xmlattr|\bstyle=|\bon[a-z]+=|hx-on|js:", text), file.name
        # Values stand in quotes: without them a blank would begin another attribute.
        assert not re.search(r"[ \n][\w-]+=\{\{", text), file.name


def test_a_token_of_a_link_signs_in_once_and_opens_nothing_else(tmp_path: Path) -> None:
    now = [1000.0]
    tokens = TokenFile(tmp_path / "tokens.json", clock=lambda: now[0])
    stored, text = tokens.add("ana", 300, all_users=True, link=True)
    other = TokenFile(tokens.file, clock=lambda: now[0])
    assert tokens.find_holder(text, restricted=True) is None
    assert tokens.exchange_link(text + "x", 60) is None
    signed_in = tokens.exchange_link(text, 60)
    assert signed_in is not None
    assert (signed_in.user, signed_in.all_users, signed_in.link, signed_in.expires) == ("ana", True, False, 1060.0)
    assert tokens.is_valid(signed_in)
    assert not tokens.is_valid(stored)
    for each in (tokens, other):
        assert each.exchange_link(text, 60) is None
    # Nobody else has it: no other process, and no text that could be presented.
    assert not other.is_valid(signed_in)
    now[0] += 61
    assert not tokens.is_valid(signed_in)
    late = tokens.add("ana", 300, link=True)[1]
    now[0] += 301
    assert tokens.exchange_link(late, 60) is None
    # An ordinary token is not used up, and signing out ends only what a link was exchanged for.
    ordinary, again = tokens.add("ben")
    assert tokens.exchange_link(again, 60) is None
    tokens.end_sign_in(ordinary)
    assert tokens.find_holder(again) == ordinary


def test_a_page_of_another_site_cannot_ask_for_pages(ana: Person) -> None:
    """It reads nothing of them, but could hold all watches of a person."""
    for site in ("same-site", "cross-site"):
        for path in ("/runs", "/approvals/live", "/approvals/count"):
            answer = ana.http.get(path, headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"})
            assert (answer.status_code, "console.other-origin" in answer.text) == (403, True), (site, path)
        # A link that a person follows opens a page, and no stream.
        followed = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
        assert ana.http.get("/runs", headers=followed).status_code == 200
        assert ana.http.get("/approvals/live", headers=followed).status_code == 400
    own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    assert ana.http.get("/approvals/count", headers=own).status_code == 200


def test_a_form_that_was_still_on_its_way_does_nothing_after_signing_out(served: Served) -> None:
    run = served.submit(plan="answer(1)")
    with Person(served) as person:
        body = f"csrf={person.csrf()}".encode()
        cookie = "; ".join(f"{name}={value}" for name, value in person.http.cookies.items())
        host = urlsplit(served.address).netloc
        head = (
            f"POST /runs/{run}/cancel HTTP/1.1\r\nHost: {host}\r\nOrigin: {served.address}\r\nCookie: {cookie}\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        name, port = host.split(":")
        with socket.create_connection((name, int(port)), timeout=20) as connection:
            connection.sendall(head.encode() + body[:5])
            # The server has the head once it answers anybody else.
            assert person.get("/runs").has("h1")
            assert person.send("/logout", {}).status_code == 303
            connection.sendall(body[5:])
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 401"), answer[:300]


@pytest.mark.parametrize("path", ["/login?next=//[", "/login?next=http://[", "/runs/", "/runs/x/?next=//["])
def test_broken_addresses_are_answered_without_an_error_of_ours(served: Served, path: str) -> None:
    with Person(served, sign_in=False) as stranger:
        answer = stranger.http.get(path)
        assert answer.status_code in (200, 303, 404), path
        assert "http" not in answer.headers.get("location", "")
        assert stranger.http.post("/login", data={}, headers={"Origin": "http://["}).status_code == 403
