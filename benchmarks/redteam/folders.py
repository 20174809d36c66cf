"""A folder to work in with the standard toolboxes, for cases about files, tables and configurations."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bicameral import Agent, ScriptedProvider, parse
from bicameral.agent import Checked
from bicameral.config import Config, load_config, open_policy, open_registry
from bicameral.runs import Approver, RunOutcome, run_plan

from .case import World

HOMES = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")


@contextmanager
def user_of(world: World) -> Generator[Path]:
    """A user of the case's own, with a home outside of the working folder; gives the working folder."""
    before = {name: os.environ.get(name) for name in (*HOMES, "BICAMERAL_ACCEPT", "BICAMERAL_CONFIG")}
    work = world.folder / "work"
    work.mkdir(exist_ok=True)
    for name in before:
        os.environ.pop(name, None)
    for name in HOMES:
        os.environ[name] = str(world.folder / "home" / name.lower())
    try:
        yield work
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def chosen_config(work: Path) -> Config:
    """The folder's configuration as its user names it; without a file, the defaults."""
    file = work / "bicameral.toml"
    return load_config(file if file.exists() else None, base=work, environment={})


def agent_in(work: Path, config: Config | None = None) -> Agent:
    """An agent with the standard toolboxes, and models that are never asked."""
    nobody = [ScriptedProvider([("", "{}")], grammars=False) for _ in range(2)]
    return Agent(config=config or chosen_config(work), privileged=nobody[0], quarantined=nobody[1])


async def run_in(work: Path, source: str, approver: Approver | None = None) -> RunOutcome:
    """Run a plan in a folder; its check is not asked, so that the run has to hold by itself."""
    config = chosen_config(work)
    registry = open_registry(config)
    plan = parse(source, registry).plan
    return await run_plan(plan, registry, policy=open_policy(config, registry), approver=approver)


async def check_in(work: Path, source: str) -> Checked:
    """What is known of a plan before it runs."""
    async with agent_in(work) as agent:
        return agent.check(parse(source, agent.registry).plan)
