"""A folder's configuration that the user has not accepted: shown and confirmed at a terminal, told everywhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from bicameral.display import visible

from ._output import Output

if TYPE_CHECKING:
    from bicameral.config import Unaccepted

_FIX = "Look at it, then run `bicameral config accept`, or name it with --config."


def confirm_config(out: Output, found: Unaccepted) -> bool:
    """Whether the person at the terminal accepts a configuration. Nobody there is a no, and is said."""
    if not out.interactive:
        out.notice("unaccepted", unaccepted_json(found))
        out.say(f"warning: {found}. {_FIX} [config.unaccepted]", style="yellow")
        return False
    show_unaccepted(out, found)
    # A plain read: no other part of a command has begun, so there is no loop that a blocking read could hold up.
    sys.stderr.write(visible("Use these settings from now on? [y/N] "))
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    out.say(f"not used: {', '.join(found.withheld)}", style="yellow")
    return False


def show_unaccepted(out: Output, found: Unaccepted) -> None:
    """What a configuration would change, each setting and file on a line of its own."""
    out.heading(f"{found.file} has changed since you accepted it:" if found.before else f"{found.file} is new to you:")
    for line in found.describe():
        out.say(f"  {line}")
    out.say("Whoever wrote this file decides with it what runs as you, what may be reached, and what you are asked.")


def unaccepted_json(found: Unaccepted) -> dict[str, Any]:
    """The same for a program."""
    return {"code": "config.unaccepted", "file": str(found.file), "withheld": list(found.withheld), "fix": _FIX}
