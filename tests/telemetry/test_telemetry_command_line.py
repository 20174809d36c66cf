"""The command line: sent where OTEL_* variables say, shown in a quiet line, and ended properly when told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from telemetry_world import ORDER

from bicameral.agent import Agent
from bicameral.cli import main
from bicameral.config import Config
from bicameral.models import ScriptedProvider
from bicameral.telemetry import export_from_environment

PROGRAM = str(Path(sys.executable).with_name("bicameral"))
SECRET = "canary-4711"
READ = "t = read_text('note.txt')\nn = extract(t, 'the number', int)\nanswer(n)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("OTEL_", "BICAMERAL_"))]:
        if name != "BICAMERAL_ACCEPT":
            monkeypatch.delenv(name)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "note.txt").write_text(f"There are 12 of them, {SECRET}. {ORDER}\n")
    (folder / "read.py").write_text(READ)
    (folder / "lines.py").write_text(f"x = read_lines('note.txt')\ny = grep(x, '{SECRET}')\nanswer(len(y))\n")
    return folder


def called(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **variables}
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60, env=environ)


def scripted(config: Config) -> Agent:
    return Agent.from_config(
        config,
        privileged=ScriptedProvider([READ], name="scripted:large", grammars=False),
        quarantined=ScriptedProvider([("", '{"value": 12}')], name="scripted:small", grammars=False),
    )


def invoked(*words: str) -> Any:
    from click.testing import CliRunner

    return CliRunner().invoke(main, list(words), obj=scripted)


# Sent ----------------------------------------------------------------------------------------------------------------


@dataclass
class Receiver:
    """A collector of OTLP over HTTP on this machine; it keeps what it was sent."""

    server: ThreadingHTTPServer
    received: list[tuple[str, bytes, dict[str, str]]] = field(default_factory=list[tuple[str, bytes, dict[str, str]]])

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def spans(self) -> list[Any]:
        found: list[Any] = []
        for path, body, _ in self.received:
            if path == "/v1/traces":
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    found += [span for scope in resource.scope_spans for span in scope.spans]
        return found

    @property
    def metrics(self) -> set[str]:
        return {
            metric.name
            for path, body, _ in self.received
            if path == "/v1/metrics"
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.received.append((self.path, _plain(body, self.headers.get("Content-Encoding")), dict(self.headers)))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Receiver(server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


def _plain(body: bytes, encoding: str | None) -> bytes:
    import gzip

    return gzip.decompress(body) if encoding == "gzip" else body


def test_a_run_is_sent_to_a_collector_and_holds_no_secret(folder: Path, receiver: Receiver) -> None:
    done = called(
        "run",
        "--plan",
        "lines.py",
        OTEL_EXPORTER_OTLP_ENDPOINT=receiver.address,
        OTEL_EXPORTER_OTLP_HEADERS="x-api-key=canary-key",
        EXAMPLE_TOKEN="canary-token",
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert "telemetry" not in done.stderr
    names = {span.name for span in receiver.spans}
    assert {"run", "step read_lines", "decide read_lines", "execute_tool grep"} <= names
    assert len({span.trace_id for span in receiver.spans}) == 1
    by_id = {span.span_id: span.name for span in receiver.spans}
    parents = {span.name: by_id.get(span.parent_span_id) for span in receiver.spans}
    assert parents["execute_tool grep"] == "step grep"
    assert parents["step grep"] == "run"
    assert "bicameral.runs" in receiver.metrics
    # The key that the collector asks for goes into the header, and nowhere else.
    assert {headers.get("x-api-key") for _, _, headers in receiver.received} == {"canary-key"}
    assert b"canary" not in b"".join(body for _, body, _ in receiver.received)


def test_a_collector_that_is_not_there_is_told_in_one_line_and_holds_nothing_up(folder: Path) -> None:
    started = time.monotonic()
    done = called("run", "--plan", "lines.py", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert time.monotonic() - started < 20
    assert done.stderr.count("telemetry") == 1
    assert "Traceback" not in done.stderr


def test_the_console_is_standard_error(folder: Path) -> None:
    done = called("run", "--plan", "lines.py", OTEL_TRACES_EXPORTER="console")
    assert done.stdout == "1\n"
    assert '"name": "execute_tool grep"' in done.stderr
    assert SECRET not in done.stderr.split("done in")[1]


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "otlp, console or none"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
        ({"OTEL_TRACES_EXPORTER": "none"}, None),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"}, None),
        ({}, None),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_else_happens(variables: dict[str, str], problem: str | None) -> None:
    with export_from_environment(variables) as exporting:
        assert (exporting.traces, exporting.metrics) == ((), ())
    assert [problem in each for each in exporting.problems] if problem else exporting.problems == []


def test_without_the_packages_it_is_said_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_there(*names: str) -> list[str]:
        return list(names)

    monkeypatch.setattr("bicameral.telemetry._export.missing_packages", nothing_there)
    with export_from_environment({"OTEL_TRACES_EXPORTER": "console"}) as exporting:
        pass
    assert exporting.problems == ["opentelemetry.sdk is not installed: pip install 'bicameral[telemetry]'"]


# Shown ---------------------------------------------------------------------------------------------------------------


def test_a_run_tells_its_alerts_and_its_tokens_in_a_quiet_line(folder: Path) -> None:
    result = invoked("run", "Read the number in note.txt", "--deterministic")
    assert result.exit_code == 0, result.output
    assert result.stdout == "12\n"
    [alerts] = [line for line in result.stderr.splitlines() if "alert" in line]
    assert alerts.startswith("1 alert: an order to ignore instructions in read_text")
    assert alerts.endswith("(step 1)")
    [tokens] = [line for line in result.stderr.splitlines() if line.startswith("tokens: ")]
    assert "reasoner" in tokens
    assert "executor" in tokens


def test_json_has_every_alert_and_every_figure(folder: Path) -> None:
    result = invoked("run", "Read the number in note.txt", "--deterministic", "--json")
    facts = json.loads(result.stdout)
    assert facts["usage"]["executor_calls"] == 1
    assert facts["usage"]["executor_tokens"] > 0
    assert facts["planning"]["reasoner_tokens"] > 0
    assert facts["usage"]["alerts"] == len(facts["alerts"]) > 0
    assert facts["alerts"][0]["step"] == "1"
    shown = json.loads(invoked("runs", "show", "last", "--json").stdout)
    assert shown["usage"] == facts["usage"]
    assert shown["alerts"] == facts["alerts"]
    assert shown["events"][0]["body"]["planning"] == facts["planning"]


def test_a_recorded_run_shows_them_again(folder: Path) -> None:
    invoked("run", "Read the number in note.txt", "--deterministic")
    lines = invoked("runs", "show", "last").stdout.splitlines()
    assert any("step-finished" in line and "(1 alert) 12" in line for line in lines)
    assert "1 alert: an order to ignore instructions (step 1)" in lines
    assert lines[-1].startswith("tokens: executor")
    assert invoked("runs", "replay", "last").exit_code == 0


def test_a_run_without_models_says_nothing_of_tokens(folder: Path) -> None:
    done = called("run", "--plan", "lines.py")
    assert "tokens" not in done.stderr
    assert "alert" not in done.stderr


# Ended ---------------------------------------------------------------------------------------------------------------

SLOW = """
import asyncio
from bicameral.tools import tool

@tool(effect="read")
async def doze(seconds: int) -> int:
    "Sleep for a while."
    await asyncio.sleep(seconds)
    return seconds
"""


def test_sigterm_ends_a_run_as_stopped(folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    (folder / "bicameral.toml").write_text('[toolboxes]\nfiles = ["slow.py"]\n')
    (folder / "plan.py").write_text("x = doze(120)\nanswer(x)\n")
    running = subprocess.Popen(
        [PROGRAM, "run", "--plan", "plan.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while "step-started" not in called("runs", "show", "last").stdout:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=40)
    assert running.returncode == 143, err
    assert out == ""
    assert "stopped" in err
    assert "Traceback" not in err
    [run] = json.loads(called("runs", "list", "--json").stdout)["runs"]
    assert run["status"] == "stopped"
