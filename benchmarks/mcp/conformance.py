"""The reference conformance suite of MCP, over everything of ours that speaks the protocol.

    python -m benchmarks.mcp.conformance --install    # the suite and a Node for it, from npm, once
    python -m benchmarks.mcp.conformance

`server` is `bicameral mcp serve`, `firewall` is `bicameral mcp firewall` before the server that the suite prescribes,
`fixture` is that server alone, and `client` is the client of `[mcp.NAME]`. Each is held against the requirements of
2025-11-25 and 2026-07-28, and every message on the wire against the schema of its version. Most scenarios are about
tools, resources and prompts with prescribed names; a check does not apply to whoever has none of these. It counts as
not applicable only if it is listed here with a reason and says itself that something is missing; else it has failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bicameral.mcp import McpSettings

from .configuration import Configuration, firewall_command

ROOT = Path(__file__).parents[2]
PACKAGES = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22")
"""The suite that has the requirements of 2026-07-28, and the Node that it needs."""
REVISIONS = ("2025-11-25", "2026-07-28")
TOOLS_FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bicameral-benchmarks" / "conformance"
RUN_SECONDS = 300.0
START_SECONDS = 90.0
MODULE = "benchmarks.mcp.conformance"
OWN_TOOLS = "it is about tools that the suite prescribes"
TASKS = "the extension for tasks, which is optional, is not offered"

_ABSENT = re.compile(
    r"there is no (such )?tool|no result|[Mm]ethod not found|Not testable|not found\. Available tools|-32601|"
    r"MUST be advertised|fixture from Check \d unavailable|Prerequisite failed|Expected InputRequiredResult"
)
"""What a failed check says if it has not found what it is about."""


@dataclass(frozen=True, slots=True)
class Exemption:
    """Scenarios, or single checks of them, that do not apply, and why; `says` is what a failed check must say then."""

    scenario: str
    why: str
    says: re.Pattern[str] = _ABSENT


ANYTHING = re.compile("")
SERVER_EXEMPTIONS = (
    Exemption("tools-call-|elicitation-sep|json-schema-2020-12|input-required-result-|server-stateless", OWN_TOOLS),
    Exemption("resources-|sep-2164-", "there are no resources"),
    Exemption("prompts-", "there are no prompts"),
    Exemption("caching", "there are no resources and no prompts"),
    Exemption("completion-complete", "nothing is completed"),
    Exemption("logging-set-level", "no log is sent to clients"),
    Exemption("http-custom-header-server-validation", "no tool has arguments in headers"),
    Exemption("tasks-", TASKS, ANYTHING),
)
FIXTURE_EXEMPTIONS = (
    Exemption("logging-set-level|tools-call-with-logging|tools-call-sampling|elicitation-sep", "deprecated, left out"),
    Exemption("resources-(un)?subscribe", "deprecated, left out"),
    Exemption("server-stateless", "diagnostic tools, left out"),
    Exemption("input-required-result-(basic-sampling|basic-list|multiple|capability)", "deprecated, left out"),
    Exemption("http-custom-header-server-validation", "no tool has arguments in headers"),
    Exemption("tasks-", TASKS, ANYTHING),
)
_UNLISTED = re.compile("did not request|Tool call failed|test_missing_capability|Not testable")
"""What a failed check says if the firewall has told it in a result that there is no such tool."""
SHOWN = "results that others may have written are shown as typed summaries, and never as they are"
DOCUMENTS = "resources and prompts are documents of strangers, offered under addresses of the firewall's own"
QUESTIONS = "what a server asks is put to the person in the firewall's own words"
FIREWALL_EXEMPTIONS = (
    Exemption("tools-call-(simple-text|image|audio|embedded-resource|mixed-content)", SHOWN, ANYTHING),
    Exemption("tools-call-error", SHOWN, ANYTHING),
    Exemption(
        "tools-call-with-progress",
        "progress tells that a call is under way, and not what a server says of it",
        ANYTHING,
    ),
    Exemption("tools-call-elicitation|input-required-result-", QUESTIONS, ANYTHING),
    Exemption("tools-call-|elicitation-sep|server-stateless|server-sse-polling", OWN_TOOLS, _UNLISTED),
    Exemption("json-schema-2020-12", "a schema is made anew from the types that were reviewed", ANYTHING),
    Exemption("resources-|prompts-|sep-2164-|caching", DOCUMENTS, ANYTHING),
    Exemption("completion-complete", "nothing is completed"),
    Exemption("logging-set-level|tools-call-with-logging", "no log is sent to clients"),
    Exemption("http-custom-header-server-validation", "no tool has arguments in headers"),
    Exemption("tasks-", TASKS, ANYTHING),
)
CLIENT_EXEMPTIONS = (
    Exemption("auth/", "a client has its token by reference; there is no OAuth", ANYTHING),
    Exemption("elicitation-sep1034", "a person answers every field of a form; nothing is filled in for them", ANYTHING),
    Exemption("sep-2322-client-request-state", "nobody is there to answer, so that nothing is sent back", ANYTHING),
    Exemption("sep-2640", "the extension for skills is not offered", ANYTHING),
)


@dataclass(frozen=True, slots=True)
class Target:
    """What is tested: a server at an address, or the command of a client."""

    name: str
    exemptions: Sequence[Exemption]
    address: str | None = None
    command: str | None = None


@dataclass(slots=True)
class Tally:
    """The scenarios of one target: how many passed, which failed and which do not apply."""

    passed: list[str] = field(default_factory=list[str])
    partly: dict[str, str] = field(default_factory=dict[str, str])
    """Those that passed as far as they apply, with what does not."""
    failed: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    not_applicable: dict[str, str] = field(default_factory=dict[str, str])
    checks: Counter[str] = field(default_factory=Counter[str])

    def to_json(self) -> dict[str, Any]:
        return {
            "passed": len(self.passed) + len(self.partly),
            "partly": self.partly,
            "failed": len(self.failed),
            "not_applicable": len(self.not_applicable),
            "checks": dict(sorted(self.checks.items())),
            "failures": self.failed,
            "reasons": dict(sorted(Counter(self.not_applicable.values()).items())),
        }


def judge(tally: Tally, scenario: str, checks: Sequence[Mapping[str, Any]], exemptions: Sequence[Exemption]) -> None:
    """Add a scenario: it has failed if a check did that is not exempt, and does not apply if no check passed."""
    mine = [each for each in exemptions if re.match(each.scenario, scenario.partition(" ")[0])]
    failures: list[str] = []
    reasons: list[str] = []
    # Messages are held against the schema in every scenario, also where nothing else can be tried.
    tried = any(each["status"] == "SUCCESS" and not each["id"].startswith("wire-schema") for each in checks)
    for check in checks:
        status, words = check["status"], str(check.get("errorMessage") or check.get("details") or "")
        if status == "SUCCESS":
            tally.checks["passed"] += 1
        elif status == "FAILURE":
            reason = next((each.why for each in mine if each.says.search(words)), None)
            tally.checks["failed" if reason is None else "not_applicable"] += 1
            if reason is None:
                failures.append(f"{check['id']}: {words[:200]}")
            else:
                reasons.append(reason)
    if failures:
        tally.failed[scenario] = failures
    elif reasons and tried:
        tally.partly[scenario] = reasons[0]
    elif reasons:
        tally.not_applicable[scenario] = reasons[0]
    else:
        tally.passed.append(scenario)


# The suite


def install(folder: Path = TOOLS_FOLDER) -> None:
    """Fetch the suite and its Node from npm."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}\n')
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", *PACKAGES], cwd=folder, check=True)


def suite_command(folder: Path = TOOLS_FOLDER) -> list[str] | None:
    """How the suite is started; None if it is not installed."""
    node = folder / "node_modules" / "node" / "bin" / "node"
    script = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    return [str(node), str(script)] if node.exists() and script.exists() else None


async def run_suite(suite: Sequence[str], target: Target, tally: Tally) -> None:
    """Run the requirements of both revisions against one target."""
    for revision in REVISIONS:
        if target.address is not None:
            words = ["server", "--url", target.address, "--requirements", revision]
            await run_part(suite, words, target, revision, tally)
            continue
        # One at a time: the suite would start a process for each at once, and not wait for all of them.
        for scenario in client_scenarios(suite, revision):
            if exempt := [
                each for each in target.exemptions if each.says is ANYTHING and re.match(each.scenario, scenario)
            ]:
                tally.not_applicable[f"{scenario} ({revision})"] = exempt[0].why
                continue
            words = ["client", "--command", target.command or "", "--scenario", scenario, "--spec-version", revision]
            await run_part(suite, words, target, revision, tally)


def client_scenarios(suite: Sequence[str], revision: str) -> list[str]:
    """The scenarios for clients that a revision requires."""
    requirements = Path(suite[1]).parents[1] / "requirements" / f"{revision}.yaml"
    return list(yaml.safe_load(requirements.read_text())["client"])


async def run_part(suite: Sequence[str], words: Sequence[str], target: Target, revision: str, tally: Tally) -> None:
    """Run some scenarios, and judge what they found."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        process = await asyncio.create_subprocess_exec(
            *(*suite, *words, "--output-dir", name),
            cwd=name,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            said, _ = await asyncio.wait_for(process.communicate(), RUN_SECONDS)
        finally:
            if process.returncode is None:
                process.kill()
        found = await asyncio.to_thread(lambda: sorted(Path(name).rglob("checks.json")))
        if not found:
            raise RuntimeError(f"the suite did not run: {said.decode(errors='replace')[-2000:]}")
        for file in found:
            stem = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", str(file.parent.relative_to(name)))
            scenario = stem.removeprefix("server-") if target.address is not None else stem
            judge(tally, f"{scenario} ({revision})", json.loads(file.read_text()), target.exemptions)


# The targets


@asynccontextmanager
async def started(words: Sequence[str], folder: Path) -> AsyncGenerator[str]:
    """A server of ours over HTTP, which says its address and its token; the suite reaches it without one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BICAMERAL_")}
    own = {name: str(folder / name.lower()) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    with (folder / "log.txt").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            *words,
            *("--http", "--port", "0", "--json"),
            cwd=folder,
            env=kept | own | {"PYTHONPATH": str(ROOT), "BICAMERAL_ACCEPT": str(folder)},
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
        if not line:
            raise RuntimeError((folder / "log.txt").read_text()[-2000:])
        told = json.loads(line)
        async with token_proxy(told["address"], told["token"]) as address:
            yield address
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


@asynccontextmanager
async def token_proxy(address: str, token: str) -> AsyncGenerator[str]:
    """An address at which every request gets the token, since the suite cannot send one; one request a connection."""
    port = int(address.rpartition(":")[2].partition("/")[0])
    path = address.rpartition(":")[2].partition("/")[2]

    async def pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while block := await source.read(65_536):
                target.write(block)
                await target.drain()
        except ConnectionError:
            pass
        finally:
            target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            to_server = await asyncio.open_connection("127.0.0.1", port)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        lines = [each for each in head[:-4].split(b"\r\n") if not each.lower().startswith(b"connection:")]
        lines += [b"Connection: close", b"Authorization: Bearer " + token.encode()]
        to_server[1].write(b"\r\n".join(lines) + b"\r\n\r\n")
        await asyncio.gather(pipe(reader, to_server[1]), pipe(to_server[0], writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/{path}"


@asynccontextmanager
async def fixture_address() -> AsyncGenerator[str]:
    """The prescribed server without anything before it."""
    import uvicorn

    from .conformance_server import fixture_server

    server = uvicorn.Server(
        uvicorn.Config(fixture_server().streamable_http_app(), host="127.0.0.1", port=0, log_level="critical")
    )
    serving = asyncio.create_task(server.serve())
    # The library says in no other way that it listens.
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await serving


async def firewall_config(folder: Path) -> Path:
    """The configuration of the firewall before the prescribed server, whose tools a person has declared."""
    from .conformance_server import TOOLS

    written = Configuration(folder)
    command = (sys.executable, "-m", "benchmarks.mcp.conformance_server")
    settings = McpSettings(command=command, env={"PYTHONPATH": str(ROOT)}, read=(str(ROOT),))
    facts = {"effect": "read", "outbound": False}
    await written.add("fixture", settings, {name: {**facts, "name": name} for name in TOOLS})
    return written.write()


async def run_all(suite: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        for target in names:
            folder = Path(name) / target
            folder.mkdir()
            tally = Tally()
            match target:
                case "server":
                    # The suite asks faster than any person.
                    (folder / "bicameral.toml").write_text("[server]\nrate = 1000000\n")
                    async with started([sys.executable, "-m", MODULE, "--serve"], folder) as address:
                        await run_suite(suite, Target(target, SERVER_EXEMPTIONS, address), tally)
                case "firewall":
                    command = firewall_command(await firewall_config(folder))
                    async with started(command, folder) as address:
                        await run_suite(suite, Target(target, FIREWALL_EXEMPTIONS, address), tally)
                case "fixture":
                    async with fixture_address() as address:
                        await run_suite(suite, Target(target, FIXTURE_EXEMPTIONS, address), tally)
                case _:
                    client = f"{sys.executable} -m benchmarks.mcp.conformance_client"
                    await run_suite(suite, Target(target, CLIENT_EXEMPTIONS, command=client), tally)
            results[target] = tally.to_json()
    return results


TARGETS = ("server", "firewall", "fixture", "client")


def run_conformance(names: Sequence[str] = TARGETS, folder: Path = TOOLS_FOLDER) -> dict[str, Any]:
    """Run the suite: for each target what passed, what failed and what does not apply, with reasons."""
    suite = suite_command(folder)
    if suite is None:
        return {"ok": None, "why": "the suite is not installed: python -m benchmarks.mcp.conformance --install"}
    results = asyncio.run(run_all(suite, names))
    return {"ok": not any(each["failed"] for each in results.values()), "suite": PACKAGES[0], **results}


def serve() -> None:
    """`bicameral mcp serve` with a model that the scenarios never ask."""
    from bicameral.agent import Agent
    from bicameral.cli import main
    from bicameral.config import Config
    from bicameral.models import ScriptedProvider

    def make(config: Config) -> Agent:
        privileged, quarantined = (ScriptedProvider([], grammars=False) for _ in range(2))
        return Agent.from_config(config, privileged=privileged, quarantined=quarantined)

    main(["mcp", "serve", *sys.argv[2:]], obj=make)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}; all without any")
    parser.add_argument("--install", action="store_true", help="fetch the suite from npm")
    parser.add_argument("--folder", type=Path, default=TOOLS_FOLDER, help="where it is")
    given = parser.parse_args()
    if unknown := [each for each in given.targets if each not in TARGETS]:
        parser.error(f"there is no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    if given.install:
        if shutil.which("npm") is None:
            sys.exit("npm is not on this machine")
        install(given.folder)
    else:
        print(json.dumps(run_conformance(given.targets or TARGETS, given.folder), indent=1))
