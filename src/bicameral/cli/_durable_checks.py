"""What `doctor` looks at of submitted runs: the packages, the database, the record, and whether anybody works."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bicameral.config import Check
from bicameral.errors import BicameralError, DurableError

from ._durable import is_there, shown_address, submitted_runs

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import Runs
    from bicameral.runs import Journal

_VERIFIED = 50
"""Runs whose record is held against its seals; `bicameral runs verify` looks at all."""


def durable_checks(config: Config) -> list[Check]:
    """How submitted runs stand. Where none were submitted, nothing has to be there."""
    try:
        there = is_there(config)
    except BicameralError as error:
        return [_failed("submitted runs", error)]
    if not there:
        return [Check("submitted runs", "ok", f"none yet{_lacking()}"), *_journal(config)]
    try:
        return [*asyncio.run(_looked(config)), *_journal(config)]
    except DurableError as error:
        return [_failed("submitted runs", error), *_journal(config)]


async def _looked(config: Config) -> list[Check]:
    async with submitted_runs(config) as runs:
        counts = {state: number for state, number in (await runs.counts()).items() if number}
        told = ", ".join(f"{number} {state}" for state, number in counts.items()) or "none yet"
        checks = [Check("submitted runs", "ok", f"{shown_address(config)}: {told}")]
        checks.append(await _workers(runs, open_=counts.get("queued", 0) + counts.get("running", 0)))
        if not runs.database.sqlite:
            checks += await asyncio.to_thread(_verified, runs.record)
        return checks


async def _workers(runs: Runs, open_: int) -> Check:
    found = await runs.workers()
    alive = [each for each in found if each.alive]
    if alive:
        return Check("workers", "ok", f"{len(alive)} alive: {', '.join(each.worker for each in alive)}")
    if open_:
        todo = f"none is there, and {open_} submitted run{'' if open_ == 1 else 's'} to do"
        return Check("workers", "warn", todo, "`bicameral worker` starts one.")
    return Check("workers", "ok", "none is there, and there is nothing to do")


def _journal(config: Config) -> list[Check]:
    """The record on this machine, if there is one."""
    from bicameral.config import open_journal

    if not config.journal_file.exists():
        return []
    try:
        with open_journal(config) as journal:
            return _verified(journal)
    except BicameralError as error:
        return [_failed("record", error)]


def _verified(journal: Journal) -> list[Check]:
    runs = [each.run for each in journal.runs(_VERIFIED)]
    breaks = [line for run in runs for line in journal.verify(run)]
    if breaks:
        fix = "`bicameral runs verify` shows all of it. What was changed can not be trusted any more."
        return [Check("record", "bad", f"{journal.path}: {breaks[0]}", fix)]
    return [Check("record", "ok", f"{journal.path}: the newest {len(runs)} runs are as they were written")]


def _lacking() -> str:
    from importlib.util import find_spec

    missing = any(find_spec(name) is None for name in ("sqlalchemy", "dbos", "psycopg"))
    return '; submitting needs `pip install "bicameral[durable]"`' if missing else ""


def _failed(name: str, error: BicameralError) -> Check:
    return Check(name, "bad", f"{error.message} [{error.code}]", error.fix or "")
