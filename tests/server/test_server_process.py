"""`bicameral serve` as a process: where it listens, whom it knows, how it stops, and what it leaves to go on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import chdir
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result
from server_world import HERE, REQUEST, Served, serving, settings

from bicameral.cli import main

PROGRAM = str(Path(sys.executable).with_name("bicameral"))


def called(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = settings(folder)
    return subprocess.run(
        [PROGRAM, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def called_here(folder: Path, *words: str) -> Result:
    """The same in this process: what a command says of its arguments and files does not hang on whose process it is."""
    environment: dict[str, str | None] = {name: None for name in os.environ if name.startswith("BICAMERAL_")}
    with chdir(folder):
        return CliRunner().invoke(main, list(words), env=environment | settings(folder))


def test_without_tokens_it_listens_on_this_machine_alone(tmp_path: Path) -> None:
    def words(host: str) -> list[str]:
        return ["serve", "--host", host, "--port", "0", "--no-worker", "--json"]

    started = called(tmp_path, *words("0.0.0.0"))
    assert started.returncode == 1
    assert json.loads(started.stdout)["error"]["code"] == "server.no-tokens"
    for host in ("::", "192.0.2.1", "example.com"):
        done = called_here(tmp_path, *words(host))
        assert done.exit_code == 1, host
        assert json.loads(done.stdout)["error"]["code"] == "server.no-tokens", host


def test_a_token_for_this_process_alone_is_made_where_there_is_none(tmp_path: Path) -> None:
    with serving(tmp_path / "one", "rate = 1000\n", "--no-worker", users=()) as served:
        assert served.ask("GET", "/v1/runs", "local") == {"runs": []}
        assert httpx.get(f"{served.address}/v1/runs").status_code == 401
        held = served.tokens["local"]
    with serving(tmp_path / "one", "rate = 1000\n", "--no-worker", users=()) as served:
        assert httpx.get(f"{served.address}/v1/runs", headers={"Authorization": f"Bearer {held}"}).status_code == 401
    assert not (tmp_path / "one" / "xdg_config_home").exists()


def test_tokens_are_made_listed_and_removed(tmp_path: Path) -> None:
    made = called(tmp_path, "serve", "token", "add", "ana", "--days", "1")
    assert re.fullmatch(r"bic_[\w-]{43}\n", made.stdout)
    assert called_here(tmp_path, "serve", "token", "add", "../ana").exit_code == 1
    [found] = json.loads(called_here(tmp_path, "serve", "token", "list", "--json").stdout)["tokens"]
    assert found["user"] == "ana"
    assert found["expires"] is not None
    assert made.stdout.strip() not in called_here(tmp_path, "serve", "token", "list").stdout
    wrong = called_here(tmp_path, "serve", "token", "remove", "nope", "--json")
    assert json.loads(wrong.stdout)["error"]["code"] == "server.unknown-token"
    assert called_here(tmp_path, "serve", "token", "remove", found["id"]).exit_code == 0
    assert json.loads(called_here(tmp_path, "serve", "token", "list", "--json").stdout)["tokens"] == []


def test_a_broken_file_of_tokens_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "xdg_config_home" / "bicameral" / "tokens.json"
    file.parent.mkdir(parents=True)
    for text in ("{", "[]", '{"version": 1, "tokens": [{"user": "ana", "hash": ""}]}', '{"version": 3, "tokens": []}'):
        file.write_text(text)
        done = called_here(tmp_path, "serve", "--port", "0", "--no-worker", "--json")
        assert json.loads(done.stdout)["error"]["code"] == "server.bad-tokens"


def test_a_port_that_is_taken_is_said_so(tmp_path: Path) -> None:
    with serving(tmp_path / "one", "rate = 1000\n", "--no-worker") as served:
        port = served.address.rsplit(":", 1)[1]
        (tmp_path / "two").mkdir()
        environment = settings(tmp_path / "two")
        words = [sys.executable, str(HERE / "served.py"), "serve", "--port", port, "--no-worker", "--json"]
        done = subprocess.run(words, cwd=tmp_path / "two", env=environment, capture_output=True, text=True, timeout=60)
        assert json.loads(done.stdout)["error"]["code"] == "server.cannot-listen"


@pytest.mark.parametrize("sign", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_told_to_stop_it_ends_watches_and_chats_and_the_run_goes_on_elsewhere(
    tmp_path: Path, sign: signal.Signals
) -> None:
    chats: list[httpx.Response] = []

    def chat(served: Served) -> None:
        with served.client() as client:
            wanted = {"model": "bicameral", "messages": [{"role": "user", "content": "Say hello"}]}
            chats.append(client.post("/v1/chat/completions", json=wanted))

    folder = tmp_path / "one"
    with serving(folder, "rate = 1000\n", "--no-worker") as served:
        run = served.submit(request=REQUEST)
        asking = threading.Thread(target=chat, args=(served,))
        asking.start()
        with served.client() as client, client.stream("GET", f"/v1/runs/{run}/events") as watch:
            time.sleep(1)
            started = time.monotonic()
            served.process.send_signal(sign)
            assert "end" not in watch.read().decode()
        asking.join()
        assert served.process.wait(20) == 0
        assert time.monotonic() - started < 8
        # Not an error: a client would try again, and the run would be there twice.
        assert chats[0].status_code == 200
        assert chats[0].json()["bicameral"]["state"] == "queued"
    assert "Traceback" not in served.log()
    with serving(folder, "rate = 1000\n", users=("ana2",)) as again:
        again.tokens["ana"] = served.tokens["ana"]
        assert again.settled(run)["state"] == "finished"


def test_help_and_import_do_not_load_the_server(tmp_path: Path) -> None:
    code = (
        "import sys, bicameral.server, bicameral.cli.commands.serve\n"
        "print([name for name in ('fastapi', 'uvicorn', 'dbos', 'sqlalchemy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
