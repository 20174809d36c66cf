"""V8: a program runs confined or not at all, with rights that nothing inside can change, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patterns_world import Table, answered, table

from bicameral.errors import CatalogError
from bicameral.journal import open_journal_at
from bicameral.labels import Label, Source, make_labelled
from bicameral.patterns import GaveUp, ToolSandbox, from_user, untrusted_value
from bicameral.patterns.kernel import NoteEvent, replay_pattern
from bicameral.tools import ProgramRights, Tool, confinement_problem, find_interpreter, interpreter_tool, tool
from invariants import holds

pytestmark = pytest.mark.skipif(confinement_problem() is not None, reason="this kernel cannot confine")
PRIVATE = Label({Source("user", "request")}, {"user"})


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


def run(program: Any, *, rights: ProgramRights | None = None, **options: Any) -> tuple[Table, Any]:
    there = table(tools=[interpreter_tool("run_python", rights)], journal=options.pop("journal", None))
    given = from_user(program) if isinstance(program, str) else program
    return there, asyncio.run(ToolSandbox("run_python", **options).run(there.desk, given))


def code_of(outcome: Any) -> str:
    assert isinstance(outcome, GaveUp), outcome
    return outcome.error.code


def test_a_program_runs_and_what_it_prints_is_not_trusted() -> None:
    _, outcome = run("print(6 * 7)")
    assert answered(outcome).value["output"] == "42"
    assert not outcome.label.trusted
    assert [dict(each.facts) for each in outcome.trace if isinstance(each, NoteEvent)] == [
        {"how": "exited", "status": 0, "cut": 0}
    ]


def test_what_it_prints_has_the_readers_of_the_program() -> None:
    _, outcome = run(make_labelled("print('my secret')", PRIVATE))
    assert answered(outcome).label.readers == frozenset({"user"})


def test_what_a_hostile_program_prints_is_in_no_trace_and_no_error() -> None:
    _, outcome = run(untrusted_value("print('canary'); raise SystemExit('canary')", "mail"))
    assert answered(outcome).value["status"] == 1
    assert "canary" not in str(outcome.trace)


@holds("V8.1")
def test_without_a_sandbox_nothing_starts(tmp_path: Path) -> None:
    bare = interpreter_tool("run_python", probe=lambda: "there is no Landlock")
    there = table(tools=[bare])
    program = from_user(f"open({str(tmp_path / 'ran')!r}, 'w')")
    outcome = asyncio.run(ToolSandbox("run_python").run(there.desk, program))
    assert code_of(outcome) == "tools.cannot-confine"
    assert not (tmp_path / "ran").exists()


@holds("V8.1")
def test_a_tool_that_is_no_confined_interpreter_runs_nothing() -> None:
    ran: list[str] = []

    @tool(effect="pure")
    def run_python(program: str) -> str:
        """A bare interpreter."""
        ran.append(program)
        return ""

    confined = interpreter_tool("run_python")
    disguised = dataclasses.replace(confined, run=run_python.run)
    for each in (run_python, disguised):
        there = table(tools=[each])
        outcome = asyncio.run(ToolSandbox("run_python").run(there.desk, from_user("print(1)")))
        assert code_of(outcome) == "pattern.not-confined"
    assert ran == []


@holds("V8.3")
def test_rights_cannot_be_changed_once_the_tool_is_made() -> None:
    interpreter = find_interpreter(interpreter_tool())
    assert interpreter is not None
    with pytest.raises(dataclasses.FrozenInstanceError):
        interpreter.rights = ProgramRights(memory_mb=4096)  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        interpreter.rights.memory_mb = 4096  # type: ignore[misc]


@holds("V8.3")
def test_no_argument_of_a_call_grants_anything() -> None:
    assert [each.name for each in interpreter_tool().arguments] == ["program"]


@holds("V8.3")
@pytest.mark.parametrize(
    ("rights", "allowed"),
    [
        (ProgramRights(wall_seconds=31), {"wall_seconds": 31}),
        (ProgramRights(memory_mb=513), {"memory_mb": 513}),
        (ProgramRights(cpu_seconds=6), {"cpu_seconds": 6}),
        (ProgramRights(max_output=10_001), {"max_output": 10_001}),
    ],
)
def test_rights_that_are_wider_than_the_pattern_allows_start_nothing(
    rights: ProgramRights, allowed: dict[str, Any]
) -> None:
    assert code_of(run("print(1)", rights=rights)[1]) == "pattern.wide-rights"
    assert answered(run("print(1)", rights=rights, **allowed)[1]).value["output"] == "1"


def test_endpoints_need_a_pattern_that_allows_the_network_and_then_policy_decides() -> None:
    rights = ProgramRights(endpoints=("example.com:443",))
    assert code_of(run("print(1)", rights=rights)[1]) == "pattern.wide-rights"
    _, outcome = run(untrusted_value("print(1)", "mail"), rights=rights, network=True)
    assert code_of(outcome) == "run.needs-approval"


@holds("V8.4")
def test_no_environment_serves_two_runs() -> None:
    program = "import os; print(os.getcwd(), os.getpid(), os.listdir('.')); open('state', 'w').write('x')"
    printed = [answered(run(program)[1]).value["output"].split(" ", 2) for _ in range(2)]
    assert printed[0][0] != printed[1][0]
    assert printed[0][1] != printed[1][1]
    assert [each[2] for each in printed] == ["[]", "[]"]


@holds("V8.6")
@pytest.mark.parametrize(
    ("program", "ended"),
    [
        ("open('a', 'w').write('x')", "exited"),
        ("open('a', 'w').write('x'); raise ValueError", "exited"),
        ("open('a', 'w').write('x'); import time; time.sleep(60)", "time"),
        ("open('a', 'w').write('x'); x = bytearray(2 << 30)", "memory"),
        ("import os\nfor n in range(50):\n  os.mkdir('d', 0o700); os.chdir('d')\nos.symlink('/', 'link')", "exited"),
    ],
)
def test_the_environment_is_destroyed_on_every_path(program: str, ended: str, temporary: Path) -> None:
    _, outcome = run(program, rights=ProgramRights(wall_seconds=2))
    assert answered(outcome).value["ended"] == ended
    assert not list(temporary.iterdir())


def test_a_replay_runs_no_program(tmp_path: Path) -> None:
    with open_journal_at(tmp_path / "journal.db") as journal:
        there, outcome = run("print(6 * 7)", journal=journal)
        bare: Tool = interpreter_tool("run_python", probe=lambda: "a replay needs no sandbox")
        registry = table(tools=[bare]).desk.registry
        again = asyncio.run(replay_pattern(journal, outcome.run, registry, there.desk.policy))
        assert again.identical, again.differences


def test_knobs_below_their_least_value_are_refused() -> None:
    with pytest.raises(CatalogError, match="memory_mb is 1"):
        ToolSandbox("run_python", memory_mb=1)
