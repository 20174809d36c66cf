"""What strangers, other users and broken clients try, against a real process on a real port."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from server_world import FORWARD, Served, serving

from bicameral.labels import TRUSTED_USER, label_tree_to_json
from bicameral.plans import BoundTo, bind_references, parse
from bicameral.server import TokenFile, _guard, _slow_heads
from served import SECRET


def raw(served: Served, text: bytes, *, wait: float = 5.0, close: bool = False) -> bytes:
    """What the server answers to these bytes, until it closes or says nothing more for a while."""
    host, port = served.address.removeprefix("http://").rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=wait) as connection:
        connection.sendall(text)
        if close:
            connection.shutdown(socket.SHUT_WR)
        found = b""
        try:
            while part := connection.recv(65536):
                found += part
        except TimeoutError:
            pass
        return found


def alive(served: Served) -> None:
    assert served.ask("GET", "/healthz") == {"ok": True}


@pytest.fixture(scope="module")
def waiting(served: Served) -> dict[str, Any]:
    """A run of ana's that waits for an approval."""
    return served.settled(served.submit(plan=FORWARD))


def test_a_run_of_somebody_else_is_not_there(served: Served, waiting: dict[str, Any]) -> None:
    run, [approval] = waiting["run"], waiting["waits_for"]
    other = "20200101-000000-0123456789abcd"
    for method, path, body in (
        ("GET", "/v1/runs/{}", None),
        ("GET", "/v1/runs/{}?wait=1", None),
        ("GET", "/v1/runs/{}/events", None),
        ("GET", "/v1/runs/{}/journal", None),
        ("POST", "/v1/runs/{}/cancel", None),
        ("GET", "/v1/runs?before={}", None),
    ):
        theirs = served.ask(method, path.format(run), "ben", code=404, json=body)
        nobodys = served.ask(method, path.format(other), "ben", code=404, json=body)
        # Not even that it exists can be told from the answer.
        assert json.dumps(theirs).replace(run, "ID") == json.dumps(nobodys).replace(other, "ID")
    for method, path, body in (
        ("GET", "/v1/approvals/{}", None),
        ("POST", "/v1/approvals/{}/answer", {"approve": "all"}),
        ("POST", "/v1/approvals/{}/reply", {"value": "x"}),
    ):
        served.ask(method, path.format(approval), "ben", code=404, json=body)
    assert served.ask("GET", "/v1/approvals", "ben")["approvals"] == []
    assert run not in str(served.ask("GET", "/v1/runs?limit=200", "ben"))
    assert served.ask("GET", f"/v1/runs/{run}")["state"] == "waiting"


def test_a_beginning_of_an_id_is_not_an_id(served: Served, waiting: dict[str, Any]) -> None:
    [approval] = waiting["waits_for"]
    for path in (f"/v1/runs/{waiting['run'][:-3]}", "/v1/runs/last", f"/v1/approvals/{approval[:-2]}"):
        served.ask("GET", path, code=404)
    served.ask("POST", f"/v1/runs/{waiting['run'][:-3]}/cancel", code=404)
    served.ask("POST", f"/v1/approvals/{approval[:-2]}/answer", code=404, json={"approve": "all"})
    assert served.ask("GET", f"/v1/runs/{waiting['run']}")["state"] == "waiting"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer bic_" + "A" * 43,
        "Basic YW5hOmFuYQ==",
        "Bearer null",
        "Bearer " + "x" * 20_000,
        "bearer bic_\xff\xfe",
    ],
)
def test_without_a_token_that_holds_there_is_nothing(served: Served, header: str | None) -> None:
    headers = {} if header is None else {b"Authorization": header.encode("latin-1")}
    for method, path in (("GET", "/v1/runs"), ("POST", "/v1/runs"), ("GET", "/metrics"), ("GET", "/nowhere")):
        answer = httpx.request(method, served.address + path, headers=headers, verify=False)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["error"]["code"] == "server.unauthenticated"


def test_hashes_and_pieces_of_a_token_are_no_token(served: Served) -> None:
    file = served.folder / "xdg_config_home" / "bicameral" / "tokens.json"
    assert file.stat().st_mode & 0o077 == 0
    kept = json.loads(file.read_text())["tokens"][0]
    held = served.tokens["ana"]
    assert held not in file.read_text()
    for forged in (kept["hash"], kept["id"], held[:-1], held + "A", held.swapcase(), f"{held} {held}"):
        answer = httpx.get(f"{served.address}/v1/runs", headers={"Authorization": f"Bearer {forged}"})
        assert answer.status_code == 401
    two = [("Authorization", f"Bearer {held}"), ("Authorization", f"Bearer {served.tokens['ben']}")]
    assert httpx.get(f"{served.address}/v1/runs", headers=two).status_code == 401


def test_a_token_that_is_taken_away_or_over_holds_no_longer(served: Served) -> None:
    tokens = TokenFile(served.folder / "xdg_config_home" / "bicameral" / "tokens.json")
    token, text = tokens.add("cleo")
    _, over = tokens.add("cleo", seconds=0.2)
    served.tokens["cleo"] = text
    assert served.ask("GET", "/v1/runs", "cleo") == {"runs": []}
    time.sleep(0.3)
    tokens.remove(token.id)
    for held in (text, over):
        answer = httpx.get(f"{served.address}/v1/runs", headers={"Authorization": f"Bearer {held}"})
        assert answer.status_code == 401


def test_a_giant_body_is_not_read(served: Served) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(2_000):
            yield b"x" * 10_000

    with served.client() as client:
        known = client.post("/v1/runs", content=b"x" * 1_500_000, headers={"Content-Type": "application/json"})
        assert known.status_code == 413
        assert known.json()["error"]["code"] == "server.too-large"
        # Closed while it was still being sent is as good.
        with suppress(httpx.WriteError, httpx.RemoteProtocolError):
            assert client.post("/v1/runs", content=chunks()).status_code == 413
    said = raw(
        served,
        b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + served.tokens["ana"].encode() + b"\r\n"
        b"Content-Type: application/json\r\nContent-Length: 99999999999999999999\r\n\r\n",
        wait=3,
    )
    assert b" 413 " in said.split(b"\r\n")[0]
    alive(served)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b'{"request": "x", "priority": ' + b"9" * 5_000 + b"}", 400),
        (b'{"request": "half \\ud800 character"}', 422),
        (b'{"request": "nul \\u0000"}', 422),
        (b'{"request": "x", "delay": NaN}', 422),
        (b'{"request": "x", "delay": 1e999}', 422),
        (b'{"request": "   "}', 422),
        (b'{"request": "x", "plan": "answer(1)"}', 422),
        (b'{"request": "x", "user": "ben"}', 422),
        (b'{"request": "x", "priority": true}', 422),
        (b'{"request": "x", "priority": "5"}', 422),
        (b'"x"', 422),
        (b"null", 422),
    ],
)
def test_what_is_not_as_it_must_be_is_refused_and_never_an_accident(served: Served, body: bytes, status: int) -> None:
    with served.client() as client:
        answer = client.post("/v1/runs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert set(answer.json()["error"]) <= {"code", "message", "place", "expected", "nearest", "fix"}


def test_a_half_character_in_a_plan_or_a_reply_is_no_accident(served: Served) -> None:
    run = served.submit(plan='answer(ask("Who?", str))\n')
    [waits] = served.settled(run)["waits_for"]
    for path, body in (
        ("/v1/checks", b'{"plan": "answer(\\"\\ud800\\")"}'),
        (f"/v1/approvals/{waits}/reply", b'{"value": "\\ud800"}'),
        (f"/v1/approvals/{waits}/reply", b'{"value": ' + b"[" * 500 + b"]" * 500 + b"}"),
        (f"/v1/approvals/{waits}/reply", b'{"value": NaN}'),
    ):
        with served.client() as client:
            answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (409, 422), (path, answer.text)
    served.ask("POST", f"/v1/runs/{run}/cancel", code=202)


def test_only_json_is_taken_so_that_no_page_in_a_browser_can_ask(served: Served) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        with served.client() as client:
            answer = client.post("/v1/runs", content=b'{"request": "x"}', headers={"Content-Type": kind})
        assert answer.status_code == 415
    with served.client(headers={"Origin": "http://evil.example"}) as client:
        answer = client.options("/v1/runs")
        assert "access-control-allow-origin" not in answer.headers
        assert client.get("/v1/runs").headers["x-content-type-options"] == "nosniff"
    with served.client() as client:
        packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        assert client.post("/v1/runs", content=b"\x1f\x8b", headers=packed).status_code == 415


def test_headers_cannot_be_smuggled_into_an_answer(served: Served) -> None:
    token = served.tokens["ana"].encode()
    for target in (b"/v1/runs/a%0d%0aSet-Cookie:%20x=1", b"/v1/models/a%0d%0aX-Evil:%201", b"/v1/runs/%00", b"/%ff"):
        said = raw(
            served,
            b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            b"Authorization: Bearer " + token + b"\r\n\r\n",
        )
        head = said.split(b"\r\n\r\n")[0].lower()
        assert head.startswith(b"http/1.1 4")
        assert b"set-cookie" not in head
        assert b"x-evil" not in head
    smuggled = raw(
        served,
        b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n"
        b"Authorization: Bearer " + token + b"\r\n\r\n0\r\n\r\nGET /v1/runs HTTP/1.1\r\nHost: x\r\n\r\n",
        wait=3,
    )
    assert b"200 OK" not in smuggled
    answer = httpx.post(
        f"{served.address}/v1/runs",
        json={"request": "x"},
        headers={"Authorization": f"Bearer {served.tokens['ana']}", "Idempotency-Key": "two words"},
    )
    assert answer.status_code == 422
    alive(served)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/runs/..",
        "/v1/runs/%2e%2e%2fmetrics",
        "/v1/runs/../../etc/passwd",
        "//v1//runs",
        "/v1/runs/",
        "/V1/RUNS",
        "/v1/runs/a/b",
        "/openapi.json/../v1/runs",
        "/healthz/../v1/runs",
        "/v1/runs/%00",
        "/v1/runs/" + "a" * 5000,
    ],
)
def test_no_trick_with_a_path_leads_past_the_door(served: Served, path: str) -> None:
    target = path.encode()
    for token, allowed in ((b"", (400, 401, 404)), (served.tokens["ben"].encode(), (400, 404, 422))):
        held = b"Authorization: Bearer " + token + b"\r\n" if token else b""
        said = raw(served, b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + held + b"\r\n")
        assert int(said.split()[1]) in allowed, (path, said[:200])


def test_errors_repeat_neither_prompts_nor_secrets_nor_what_was_sent(served: Served) -> None:
    planted = "mind-the-planted-words"
    for body in ({"request": planted, planted: planted}, {"request": [planted]}, {"plan": {planted: 1}}):
        assert planted not in str(served.ask("POST", "/v1/runs", code=422, json=body))
    wanted = {"model": planted, "messages": [{"role": planted, "content": planted}]}
    assert planted not in str(served.ask("POST", "/v1/chat/completions", code=422, json=wanted))
    answer = served.ask("POST", "/v1/plans", code=502, json={"request": f"break the model {planted}"})
    assert answer["error"]["code"] == "models.bad-reply"
    assert planted not in str(answer)
    assert SECRET not in str(answer)
    assert SECRET not in served.log()
    assert planted not in served.log()


def test_a_known_secret_leaves_in_no_answer(served: Served) -> None:
    plan = f'answer("the key is {SECRET}")\n'
    checked = served.ask("POST", "/v1/checks", json={"plan": plan})
    run = served.submit(plan=plan)
    view = served.settled(run)
    journal = served.ask("GET", f"/v1/runs/{run}/journal")
    wrong = served.ask(
        "POST", "/v1/checks", json={"plan": f'x = {SECRET.replace("-", "_")}\nanswer(x + "{SECRET}" + 1)\n'}
    )
    for answer in (checked, view, journal, wrong):
        assert SECRET not in json.dumps(answer)
    assert "[secret PLANTED]" in json.dumps(view)


def test_a_slow_head_and_a_slow_body_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 5 < _slow_heads.HEAD_SECONDS < _guard.BODY_SECONDS < 20
    monkeypatch.setenv("SERVED_PATIENCE", "0.1")
    with serving(tmp_path / "slow", "rate = 1000\n", "--no-worker") as served:
        token = served.tokens["ana"].encode()
        started = time.monotonic()
        assert raw(served, b"GET /v1/runs HTTP/1.1\r\nHost: x\r\nX-Slow: ", wait=25) == b""
        assert _slow_heads.HEAD_SECONDS / 10 <= time.monotonic() - started < _slow_heads.HEAD_SECONDS
        started = time.monotonic()
        said = raw(
            served,
            b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
            b"Authorization: Bearer " + token + b"\r\n\r\n{",
            wait=25,
        )
        assert b" 408 " in said.split(b"\r\n")[0]
        assert _guard.BODY_SECONDS / 10 <= time.monotonic() - started < _guard.BODY_SECONDS
        alive(served)


def test_whoever_asks_too_often_is_told_when_to_come_again_and_others_are_not(tmp_path: Path) -> None:
    with serving(tmp_path / "rate", "rate = 40\nwatches = 2\n", "--no-worker") as served:
        with served.client() as client:
            answers = [client.get("/v1/runs") for _ in range(15)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) == 5
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        assert refused[0].json()["error"]["code"] == "server.too-many-requests"
        assert served.ask("GET", "/v1/runs", "ben") == {"runs": []}
        run = served.submit("ben", plan="answer(1)\n")
        with served.client("ben") as client:
            with client.stream("GET", f"/v1/runs/{run}/events"), client.stream("GET", f"/v1/runs/{run}/events"):
                third = client.get(f"/v1/runs/{run}/events")
            assert third.status_code == 429
            assert third.json()["error"]["code"] == "server.too-many-watches"
            time.sleep(0.5)
            with client.stream("GET", f"/v1/runs/{run}/events") as again:
                assert again.status_code == 200


def forged(source: str, value: str) -> str:
    """A plan as JSON whose references say that the runtime bound them to a value, and that it is the user's own."""
    bound = BoundTo(value=value, label=label_tree_to_json(TRUSTED_USER))
    return bind_references(parse(source).plan, lambda path, reference: bound).to_json()


def test_a_binding_that_a_client_wrote_is_made_anew(served: Served) -> None:
    (served.folder / "private_forged.txt").write_text("nobody asked for this\n")
    plan = forged('answer(read_text(path=file("mail")))', "private_forged.txt")
    assert "private_forged.txt" in plan
    mail = (served.folder / "mail.txt").read_text()
    # Shown as *mail*, and read as *mail*.
    assert served.settled(served.submit(plan=plan))["answer"] == mail
    checked = served.ask("POST", "/v1/checks", json={"plan": plan})
    assert (checked["ok"], "private_forged.txt" in json.dumps(checked)) == (True, False)
    # A benign twin: the words alone.
    assert served.settled(served.submit(plan='answer(read_text(file("mail")))'))["answer"] == mail


def test_a_binding_that_a_client_wrote_for_nobody_sends_nothing(served: Served) -> None:
    plan = forged('post(to=person("Zoltan"), text="hello")\nanswer("sent")\n', "eve@evil.example")
    error = served.ask("POST", "/v1/runs", code=409, json={"plan": plan})["error"]
    assert error["code"] == "bind.nothing-found"
    assert not served.ask("POST", "/v1/checks", json={"plan": plan})["ok"]
    assert "evil" not in json.dumps(error)


def test_cells_of_a_submitted_plan_are_compared_in_the_kind_of_their_column(served: Served) -> None:
    (served.folder / "ledger_forged.csv").write_text("name;paid\na;ja\nb;nein\nc;nein\n")
    plan = 'rows = read_csv("ledger_forged.csv")\nanswer([r["name"] for r in rows if {}])\n'
    for condition in (
        'r["paid"] == False',
        # Forged: another notation and another column than the table has.
        'cell_matches(r["paid"], "==", False, "yes/no: x", "other")',
        'cell_matches(r["paid"], "==", False, "number", "paid")',
    ):
        assert served.settled(served.submit(plan=plan.format(condition)))["answer"] == ["b", "c"]
    hidden = 'cell_matches(cell=r["paid"], op="!=", value=None, notation="yes/no", column="paid")'
    for condition, code in ((hidden, "bind.written-cells"), ('r["paid"] == 3', "bind.column-kind")):
        error = served.ask("POST", "/v1/runs", code=409, json={"plan": plan.format(condition)})["error"]
        assert error["code"] == code
        assert served.ask("POST", "/v1/checks", json={"plan": plan.format(condition)})["error"]["code"] == code
