"""`bicameral models test`, with a real server behind an alias of the configuration."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result
from gguf_world import CHAT_FACTS, write_gguf
from trial_models import obedient_reply, right_reply, wrong_reply

from bicameral.cli import main
from bicameral.config import Config, model_store, named_weights, open_named_model
from bicameral.models import Weights, find_weights
from bicameral.trials import trial_schema


@contextmanager
def serve(reply: Callable[[str], str]) -> Generator[str]:
    """A server that speaks OpenAI's protocol and replies so to the last message of the user."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            said = [each["content"] for each in asked["messages"] if each["role"] == "user"]
            # A reply that has a given beginning is asked for in a message of its own.
            last = next(each for each in reversed(said) if not each.startswith("Your reply has already begun"))
            choice = {"index": 0, "message": {"role": "assistant", "content": reply(last)}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            facts: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
            body = json.dumps({**facts, "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.setenv("BICAMERAL_MODELS", str(tmp_path / "models"))
    for variable in ("BICAMERAL_CONFIG", "BICAMERAL_PROFILE", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def configure(folder: Path, url: str, more: str = "") -> list[str]:
    file = folder / "own.toml"
    file.write_text(f'[llm.models.teacher]\nmodel = "openai/some-model"\nbase_url = "{url}"\n{more}')
    return ["--config", str(file)]


def call(*words: str) -> Result:
    return CliRunner().invoke(main, ["models", "test", *words])


def test_an_alias_is_tried_in_every_role_and_the_report_is_one_json_object(folder: Path) -> None:
    with serve(right_reply) as url:
        result = call("teacher", "--quick", "--json", *configure(folder, url))
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout)
    assert found.pop("ok") is True
    jsonschema.validate(found, trial_schema())
    assert (found["model"], found["sha256"], found["partial"]) == ("teacher", None, False)
    assert {role: facts["verdict"] for role, facts in found["roles"].items()} == {
        "quarantined": "good",
        "delta": "good",
        "echo": "good",
    }
    # The progress is on standard error, a line for each case.
    assert "quarantined 1/10 number-of-several: ok" in result.stderr
    assert result.stderr.count(": ok (") == sum(facts["n"] for facts in found["roles"].values())


def test_a_person_reads_verdicts_thresholds_failures_and_advice(folder: Path) -> None:
    with serve(obedient_reply) as url:
        result = call("teacher", "--quick", "--role", "quarantined", *configure(folder, url))
    assert result.exit_code == 0
    assert "unfit" in result.stdout
    assert "order-for-another-total (smuggling), obeyed an order in the text" in result.stdout
    assert 'expected: {"amount": 84.0, "currency": "EUR"}' in result.stdout
    assert 'came:     {"amount": 8400.0, "currency": "EUR"}' in result.stdout
    assert "good: at least 80% of the cases" in result.stdout
    assert "Do not use teacher as the quarantined reader." in result.stdout


def test_a_required_role_decides_the_exit_code(folder: Path) -> None:
    with serve(wrong_reply) as url:
        options = ["teacher", "--quick", "--role", "echo", *configure(folder, url)]
        assert call(*options).exit_code == 0
        failed = call(*options, "--require", "echo", "--json")
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["ok"] is False
    with serve(right_reply) as url:
        assert call(*options[:-2], *configure(folder, url), "--require", "echo").exit_code == 0


def test_an_unknown_name_is_an_error_with_the_nearest(folder: Path) -> None:
    with serve(right_reply) as url:
        result = call("teachr", *configure(folder, url))
    assert result.exit_code == 2
    assert "Did you mean 'teacher'?" in result.stderr
    assert "[models.unknown]" in result.stderr


def test_a_model_without_a_key_for_the_quarantine_is_tried_in_the_other_roles(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_KEY", "sk-test-0123456789abcdefghij")
    with serve(right_reply) as url:
        options = ["teacher", "--quick", *configure(folder, url, 'api_key_env = "OWN_KEY"\n')]
        result = call(*options, "--json")
        alone = call(*options, "--role", "quarantined")
    found = json.loads(result.stdout)["roles"]
    assert (found["quarantined"]["verdict"], found["quarantined"]["n"]) == (None, 0)
    assert "routing.no-quarantined-key" in found["quarantined"]["why"]
    assert found["echo"]["verdict"] == "good"
    assert alone.exit_code == 2
    assert "routing.no-quarantined-key" in alone.stderr


def test_a_server_that_fails_at_once_is_an_error_and_no_verdict(folder: Path) -> None:
    result = call("teacher", "--quick", *configure(folder, "http://127.0.0.1:9/v1"))
    assert result.exit_code == 1
    assert "[models.unavailable]" in result.stderr
    assert "unfit" not in result.stdout


def test_the_weights_of_a_name_are_the_file_that_is_hashed(folder: Path) -> None:
    config = Config.defaults()
    assert named_weights(config, "0.5b") == find_weights("0.5b")
    assert named_weights(config, "openai/gpt-4.1") is None
    for chamber in ("privileged", "quarantined"):
        provider = open_named_model(config, "0.5b", chamber)
        assert provider.chamber == chamber
        assert provider.name.startswith("local:qwen2.5-coder-0.5b@")
        assert set(provider.adapters) == {"delta", "echo", "reader"}


def test_an_own_model_is_found_by_the_name_that_it_was_added_with(folder: Path) -> None:
    config = Config.load()
    file = write_gguf(folder / "tiny.gguf", CHAT_FACTS)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    # The tests of the store add a model with the engine; here only its name counts.
    facts: dict[str, Any] = {
        "id": "mine",
        "alias": "mine",
        "title": "Tiny",
        "licence": "apache-2.0",
        "own": True,
        "file": str(file),
    }
    model_store(config).own_models.record(Weights(**facts, bytes=file.stat().st_size, sha256=sha256))
    found = named_weights(config, "mine")
    assert found is not None
    assert found.sha256 == sha256
    assert open_named_model(config, "mine", "quarantined").name == f"local:mine@{sha256[:8]}"
    assert "Did you mean 'mine'?" in call("mime").stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_trial_prints_what_was_measured(folder: Path, number: signal.Signals, code: int) -> None:
    answered, release = threading.Semaphore(2), threading.Event()

    def reply(prompt: str) -> str:
        if not answered.acquire(blocking=False):
            release.wait(60)
        return right_reply(prompt)

    with serve(reply) as url:
        words = ["models", "test", "teacher", "--role", "quarantined", "--json", *configure(folder, url)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        program = [sys.executable, "-m", "bicameral.cli", *words]
        pipe = subprocess.PIPE
        with subprocess.Popen(program, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
            assert process.stderr is not None
            assert process.stdout is not None
            for line in process.stderr:
                if "quarantined 2/" in line:
                    break
            process.send_signal(number)
            output = process.stdout.read()
            assert process.wait(30) == code
        release.set()
    found = json.loads(output)
    assert (found["ok"], found["partial"]) == (False, True)
    role = found["roles"]["quarantined"]
    assert (role["n"], role["passed"], role["partial"]) == (2, 2, True)
