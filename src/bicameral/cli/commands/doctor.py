"""`bicameral doctor`: what is well, what is not, and how to mend it."""

from __future__ import annotations

import click

from bicameral.errors import ConfigError

from .._exits import FAILED, OK
from .._options import Common, common

_MARKS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "bad": ("bad ", "red")}


@click.command(short_help="Check the configuration and the machine, and say what to mend.")
@common
def command(chosen: Common) -> int:
    """Check the configuration and the machine, and say what to mend.

    The exit code is 1 if something is bad; a warning is about something that only some requests need.
    """
    from bicameral.config import Config, doctor

    found: Config | ConfigError
    try:
        found = chosen.config()
    except ConfigError as error:
        found = error
    from .._durable_checks import durable_checks

    checks, out = doctor(found), chosen.out
    checks += durable_checks(found if isinstance(found, Config) else Config.defaults())
    for check in checks:
        out.show(f"{_MARKS[check.status][0]}  {check.name}: {check.detail}")
        if check.fix and check.status != "ok":
            out.show(f"      {check.fix}")
    bad = sum(check.status == "bad" for check in checks)
    out.show("\nEverything that is needed is there." if not bad else f"\n{bad} to mend.")
    out.object({"ok": not bad, "checks": [check.to_json() for check in checks]})
    return FAILED if bad else OK
