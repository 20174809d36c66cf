"""Submitted runs at the command line: where they are, how they stand in words and as JSON, and their exit codes."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicameral.errors import DurableError

from ._exits import FAILED, NEEDS_A_PERSON, OK, QUESTIONS
from ._output import Output
from ._periods import clock
from ._values import answer_text, readable

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import Runs, RunView


_IN_FOLDER = ".bicameral/durable.db"
"""The file that a folder may bring along, and that is used only if the configuration names it."""


def is_there(config: Config) -> bool:
    """Whether anything can have been submitted: a PostgreSQL is named, or the SQLite file exists."""
    return in_postgres(config) or Path(config.durable_database.removeprefix("sqlite:///")).exists()


def in_postgres(config: Config) -> bool:
    """Whether submitted runs are kept, and recorded, elsewhere than in files of this machine."""
    address = config.durable_database
    return "://" in address and not address.startswith("sqlite:")


def shown_address(config: Config) -> str:
    """The database without its password."""
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:…@", config.durable_database)


def _unused_database_hint(config: Config) -> str:
    """What to do about a database that lies in the folder and is not named."""
    if config.durable.database is not None or not (config.base / _IN_FOLDER).exists():
        return ""
    return f' If {_IN_FOLDER} here is yours, name it: database = "{_IN_FOLDER}" under [durable] in bicameral.toml.'


@asynccontextmanager
async def submitted_runs(config: Config, *, make: bool = False) -> AsyncGenerator[Runs]:
    """The runs of the configured database. Whoever only looks does not make one."""
    from bicameral.durable import Runs

    if not make and not is_there(config):
        hint = _unused_database_hint(config)
        raise DurableError(
            "durable.no-runs",
            f"no run was submitted yet: there is no {shown_address(config)}",
            fix="`bicameral submit` submits one; --folder and --config say where to look." + hint,
        )
    async with await Runs.open(config) as runs:
        yield runs


def whoever() -> str:
    """Who answers: the user of this machine."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody at the command line"


def answer_of(view: RunView) -> Any:
    from bicameral.types import value_from_json

    return None if view.answer is None else value_from_json(view.answer)


def run_facts(view: RunView) -> dict[str, Any]:
    """A submitted run for a program; the answer as `bicameral run --json` gives it."""
    return view.to_json() | {"answer": readable(answer_of(view))}


def state_text(view: RunView) -> str:
    """How a run stands, in a line, and what to do about it."""
    why = f": {view.why}" if view.why else ""
    match view.state:
        case "queued" if view.not_before is not None:
            return f"queued until {clock(view.not_before)}{why}"
        case "running" if view.worker:
            return f"running at {view.worker}"
        case "waiting":
            asked = ", ".join(view.waits_for)
            return f"waiting for an answer: bicameral approvals show {asked}" if asked else "waiting for an answer"
        case state:
            return f"{state}{why}"


def show_run(out: Output, view: RunView) -> None:
    """How a run ended, with the answer on standard output; or how it stands."""
    match view.state:
        case "finished":
            done = _done(view)
            took = f" in {view.seconds:.1f} s" if view.seconds is not None else ""
            out.say(f"done{took}{f': {done}' if done else ''} (run {view.run})", style="dim")
            if view.answer is not None or not done:
                out.show(answer_text(answer_of(view), out.width))
        case "failed":
            out.say(f"error: {view.why or 'it failed'}", style="red")
            out.say(f"  {_before(view)} (run {view.run})")
        case "stopped":
            out.say(f"stopped: {view.why or 'it was cancelled'} (run {view.run})", style="yellow")
            out.say(f"  {_before(view)}")
        case _:
            out.say(f"run {view.run} is {state_text(view)}", style="yellow")


def _done(view: RunView) -> str:
    from collections import Counter

    counted = Counter(str(effect.get("tool", "")) for effect in view.effects)
    return ", ".join(f"{tool}" + (f" × {times}" if times > 1 else "") for tool, times in counted.items())


def _before(view: RunView) -> str:
    return f"done before that: {_done(view)}" if view.effects else "nothing had been changed"


def run_code(view: RunView) -> int:
    """What the exit code says of a run that somebody waited for."""
    match view.state:
        case "finished":
            return OK
        case "waiting":
            return QUESTIONS
        case "failed" if view.error is not None and view.error.get("code") in NEEDS_A_PERSON:
            return QUESTIONS
        case "failed" | "stopped":
            return FAILED
        case _:
            return OK


async def nobody_works(runs: Runs) -> bool:
    """Whether no worker is there that would take a run."""
    return not any(worker.alive for worker in await runs.workers())
