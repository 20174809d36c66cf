"""`bicameral doctor`: health checks of the configuration, the machine, submitted runs and the journal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from bicameral.cli._options import CommonOptions, common_options
from bicameral.cli._output import FAILED, OK
from bicameral.cli._run_records import has_submitted_runs, open_submitted_runs
from bicameral.config import HealthCheck
from bicameral.display import wrap_line
from bicameral.errors import BicameralError, ConfigError, DurableError, missing_packages
from bicameral.postgres import masked_address

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.runs import Journal


_VERIFIED_RUNS = 50
"""Runs whose journal is verified here; `bicameral runs verify` verifies all."""


def durable_checks(config: Config) -> list[HealthCheck]:
    """Checks of submitted runs and the journal. If nothing was submitted, the extra need not be installed."""
    try:
        there = has_submitted_runs(config)
    except BicameralError as error:
        return [_failed_check("submitted runs", error)]
    if not there:
        missing = missing_packages("sqlalchemy", "dbos", "psycopg")
        hint = '; submitting needs `pip install "bicameral[durable]"`' if missing else ""
        return [HealthCheck("submitted runs", "ok", f"none yet{hint}"), *_check_journal(config)]
    try:
        return [*asyncio.run(_check_database(config)), *_check_journal(config)]
    except DurableError as error:
        return [_failed_check("submitted runs", error), *_check_journal(config)]


async def _check_database(config: Config) -> list[HealthCheck]:
    from bicameral.durable import check_workers

    async with open_submitted_runs(config) as runs:
        counts = {state: number for state, number in (await runs.counts()).items() if number}
        states = ", ".join(f"{number} {state}" for state, number in counts.items()) or "none yet"
        checks = [HealthCheck("submitted runs", "ok", f"{masked_address(config.durable_database)}: {states}")]
        open_ = counts.get("queued", 0) + counts.get("running", 0)
        checks.append(check_workers(await runs.workers(), open_))
        if not runs.database.sqlite:
            checks += await asyncio.to_thread(_verify_record, runs.run_journal)
        return checks


def _check_journal(config: Config) -> list[HealthCheck]:
    """The check of the journal on this machine, if there is one."""
    from bicameral.config import open_journal

    if not config.journal_file.exists():
        return []
    try:
        with open_journal(config) as journal:
            return _verify_record(journal)
    except BicameralError as error:
        return [_failed_check("record", error)]


def _verify_record(journal: Journal) -> list[HealthCheck]:
    runs = [each.run for each in journal.runs(_VERIFIED_RUNS)]
    breaks = [line for run in runs for line in journal.verify(run)]
    if breaks:
        fix = "`bicameral runs verify` shows all of it. What was changed can not be trusted any more."
        return [HealthCheck("record", "bad", f"{journal.path}: {breaks[0]}", fix)]
    return [HealthCheck("record", "ok", f"{journal.path}: the newest {len(runs)} runs are as they were written")]


def _failed_check(name: str, error: BicameralError) -> HealthCheck:
    return HealthCheck(name, "bad", f"{error.message} [{error.code}]", error.fix or "")


_MARKS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "bad": ("bad ", "red")}


@click.command(short_help="Check the configuration and the machine, and say what to mend.")
@common_options
def command(chosen: CommonOptions) -> int:
    """Check the configuration and the machine, and say what to mend.

    The exit code is 1 if something is bad; a warning is about something that only some requests need.
    """
    from bicameral.config import Config, doctor

    found: Config | ConfigError
    try:
        found = chosen.config()
    except ConfigError as error:
        found = error

    checks, out = doctor(found, chosen.folder), chosen.out
    usable = found if isinstance(found, Config) else Config.defaults(chosen.folder)
    checks += durable_checks(usable)
    for check in checks:
        out.show("\n".join(wrap_line(f"{_MARKS[check.status][0]}  {check.name}: {check.detail}", out.width, "      ")))
        if check.fix and check.status != "ok":
            out.show(f"      {check.fix}")
    bad = sum(check.status == "bad" for check in checks)
    out.show("\nEverything that is needed is there." if not bad else f"\n{bad} to mend.")
    out.write_json({"ok": not bad, "folder": str(usable.base), "checks": [check.to_json() for check in checks]})
    return FAILED if bad else OK
