"""Trials: a scenario is played, and the world says who got what he wanted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .configuration import firewall_command, write_config
from .host import Host, connected, connected_inside
from .model import Model
from .person import MANY, Person
from .scenario import Attack, Outcome, Scenario, Way

MAX_MB = 512
"""What the process between client and servers may hold at its peak."""
PATIENCE = 6.0
"""Seconds after which a client without a firewall has stopped the user's work; the work itself takes less than two."""
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class AttackResult:
    """How an attack and its twin went.

    Args:
        got: What the attacker got through the firewall; None if nothing.
        undefended: What he got without it; None if nothing, or if it was not tried.
        control_ok: Whether the twin's job was done through the firewall.
        asked: How often the person was asked by the twin.
        broken: Why something could not be tried.
    """

    attack: Attack
    got: str | None
    undefended: str | None
    control_ok: bool
    asked: int
    seconds: float
    broken: str | None = None

    @property
    def ok(self) -> bool:
        return self.got is None and self.control_ok and self.broken is None


async def play(scenario: Scenario, way: Way, folder: Path) -> Outcome:
    """Play a scenario in a folder of its own."""
    for each in scenario.servers:
        each.write(folder)
    (folder / "files").mkdir(exist_ok=True)
    person = Person(scenario.agreed, scenario.trusting)
    config = None if way == "direct" else await write_config(folder, scenario.servers)
    outcome = Outcome(folder, way, Model(Host({}, person, way != "direct")), person)
    began = time.perf_counter()
    try:
        async with asyncio.timeout(scenario.seconds), _host(scenario, way, folder, config, person) as host:
            outcome.model.host = host
            try:
                await outcome.model.run(scenario.task)
            finally:
                if way == "firewall":
                    outcome.alive, outcome.peak_mb = _process_state(folder)
    except TimeoutError:
        outcome.fault = f"the client waited for more than {scenario.seconds:g} s"
    except Exception as error:
        outcome.fault = f"{type(error).__name__}: {error}"[:500]
    outcome.seconds = time.perf_counter() - began
    return outcome


def _host(
    scenario: Scenario, way: Way, folder: Path, config: Path | None, person: Person
) -> AbstractAsyncContextManager[Host]:
    if config is None:
        commands: Mapping[str, Sequence[str]] = {each.name: each.command(folder) for each in scenario.servers}
        return connected(commands, person, folder, firewall=False, mode=scenario.mode)
    if way == "inside":
        return connected_inside(config, person, mode=scenario.mode, undeclared=scenario.undeclared)
    command = firewall_command(config, undeclared=scenario.undeclared)
    return connected({"firewall": command}, person, folder, firewall=True, mode=scenario.mode)


def _process_state(folder: Path) -> tuple[bool, float]:
    """Whether the firewall of a folder lives, and the most memory that it held, in MB."""
    import psutil

    # Its command names the configuration, which is beside the folder.
    place = str(folder.parent)
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.Error, OSError):
            if any(place in each for each in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                return True, _peak_mb(process.pid)
    return False, 0.0


def _peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0.0)


async def play_isolated(attack: Attack, folder: Path, *, evil: bool = True) -> Outcome:
    """Play a scenario directly in a process of its own, which may hang, die or take too much memory."""
    scenario = attack.scenario(evil)
    person = Person(scenario.agreed, scenario.trusting)
    outcome = Outcome(folder, "direct", Model(Host({}, person, firewall=False)), person)
    began = time.perf_counter()
    arguments = ("-m", "benchmarks.mcp.trial", attack.type, attack.name, str(folder), *(() if evil else ("benign",)))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        while time.perf_counter() - began < PATIENCE:
            with contextlib.suppress(OSError):
                outcome.peak_mb = max(outcome.peak_mb, _peak_mb(process.pid))
            if outcome.peak_mb > MAX_MB:
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 0.05)
                break
        if process.returncode is None:
            outcome.fault = f"the client was stopped after {time.perf_counter() - began:.0f} s"
        elif process.returncode:
            outcome.fault = f"the client ended with {process.returncode}"
    finally:
        _end(process.pid)
        await process.wait()
    outcome.seconds = time.perf_counter() - began
    return outcome


def _end(pid: int) -> None:
    """End a process and all that it started."""
    import psutil

    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (*process.children(recursive=True), process):
            with contextlib.suppress(psutil.Error):
                each.kill()


@contextmanager
def empty_world() -> Generator[Path]:
    """A folder for the servers of a scenario, with room beside it for the files of the firewall."""
    with tempfile.TemporaryDirectory(prefix="mcp-", ignore_cleanup_errors=True) as folder:
        world = Path(folder).resolve() / "world"
        world.mkdir()
        yield world


def judge(scenario: Scenario, outcome: Outcome) -> str | None:
    """What the attacker got, by the world and by what the model and the person were shown."""
    if (got := scenario.got(outcome)) is not None:
        return got
    if outcome.way != "direct":
        if not scenario.may_show and (order := outcome.model.injected()) is not None:
            return f"the model was shown {order[:200]!r}"
        if outcome.peak_mb > MAX_MB:
            return f"the firewall held {outcome.peak_mb:.0f} MB"
        if not outcome.alive:
            return f"the firewall died: {outcome.fault}"
        if len(outcome.person.asked) > MANY:
            return f"the person was asked {len(outcome.person.asked)} times"
    return None


def work_stopped(outcome: Outcome) -> str | None:
    """The user's other work was not done, or at the cost of too much memory."""
    if outcome.peak_mb > MAX_MB:
        return f"a client held {outcome.peak_mb:.0f} MB"
    if "user work" not in (outcome.file("work.txt") or ""):
        return f"the user's work stopped: {outcome.fault}"
    return None


async def try_undefended(attack: Attack) -> str | None:
    """What the attacker gets of a client without a firewall."""
    scenario = attack.scenario(True)
    with empty_world() as folder:
        outcome = await (play_isolated(attack, folder) if scenario.isolated else play(scenario, "direct", folder))
        return judge(scenario, outcome)


async def try_attack(
    attack: Attack, *, undefended: bool = True, way: Way = "firewall", twin: Way = "inside"
) -> AttackResult:
    """Try an attack, its twin, and the attack without a firewall, each in a world of its own.

    Args:
        attack: The attack.
        undefended: Whether to try it without a firewall, too.
        way: Through which firewall the attack goes.
        twin: Through which one its twin goes. One in this process saves the two seconds in which another starts.
    """
    began = time.perf_counter()
    evil, benign = attack.scenario(True), attack.scenario(False)
    broken: str | None = None
    alone = await try_undefended(attack) if undefended and evil.undefended else None
    with empty_world() as folder:
        outcome = await play(evil, way, folder)
        got = judge(evil, outcome)
        if got is None and outcome.fault is not None:
            # It may not even have begun: that it got nothing shows nothing.
            broken = f"the attack could not be tried: {_story(outcome)}"
    with empty_world() as folder:
        control = await play(benign, twin, folder)
        control_ok = benign.done(control) and judge(benign, control) is None
        if not control_ok:
            broken = broken or f"the twin did not do its job: {_story(control)}"
    seconds = time.perf_counter() - began
    return AttackResult(attack, got, alone, control_ok, len(control.person.asked), seconds, broken)


def _story(outcome: Outcome) -> str:
    """What happened, for somebody who has to find out why."""
    last = [each.text[-300:] for each in outcome.model.shown[-2:]]
    asked = [(each.message[:300], each.accepted) for each in outcome.person.asked]
    errors = outcome.folder / "errors.txt"
    printed = errors.read_text("utf-8", "replace")[-600:] if errors.exists() else ""
    return f"{outcome.fault or ''} shown={last} asked={asked} {printed}"


def _play_here(arguments: Sequence[str]) -> None:
    """Play one scenario directly, in this process; the parent judges by the folder."""
    from .families import all_attacks

    type_, name, folder, *benign = arguments
    attack = next(each for each in all_attacks([type_]) if each.name == name)
    outcome = asyncio.run(play(attack.scenario(not benign), "direct", Path(folder)))
    print(json.dumps({"fault": outcome.fault}))


if __name__ == "__main__":
    _play_here(sys.argv[1:])
