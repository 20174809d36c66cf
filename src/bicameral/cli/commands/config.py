"""`bicameral config`: the configuration that counts, and whether this user has accepted it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bicameral.errors import ConfigError

from .._exits import OK
from .._options import Common, common

if TYPE_CHECKING:
    from bicameral.config import Unaccepted


@click.group(
    short_help="The configuration that counts here, and whether you have accepted it.", invoke_without_command=True
)
@click.pass_context
def command(context: click.Context) -> int | None:
    """The configuration that counts here, and whether you have accepted it. Without a subcommand: `show`."""
    return context.invoke(show) if context.invoked_subcommand is None else None


@command.command("show")
@common
def show(chosen: Common) -> int:
    """Which file counts here, and which of its settings are not used until you accept it."""
    from bicameral.config import find_file

    file = chosen.config_file or find_file(chosen.folder)
    found = None if file is None or chosen.config_file is not None else _unaccepted(file, chosen)
    if file is None:
        chosen.out.show("no file; the defaults serve")
    elif found is None:
        chosen.out.show(f"{file}: used in full")
    else:
        chosen.out.show(f"{file}: not accepted; until you accept it these are not used:")
        for line in found.describe():
            chosen.out.show(f"  {line}")
    withheld = [] if found is None else list(found.withheld)
    chosen.out.object({"ok": True, "file": None if file is None else str(file), "withheld": withheld})
    return OK


@command.command("accept")
@common
def accept(chosen: Common) -> int:
    """Use the working folder's bicameral.toml in full, as it is now, with the code and policies that it names.

    You are asked again when any of that changes.
    """
    from bicameral.config import record_acceptance, what_widens

    file = _file(chosen)
    widening = what_widens(file, _folder(chosen))
    found = _unaccepted(file, chosen)
    for line in [] if found is None else found.describe():
        chosen.out.say(f"  {line}")
    record_acceptance(file, widening)
    chosen.out.show(f"accepted: {file}")
    chosen.out.object(
        {"ok": True, "file": str(file), "settings": sorted(widening.settings), "files": sorted(widening.files)}
    )
    return OK


@command.command("forget")
@common
def forget(chosen: Common) -> int:
    """Accept the working folder's bicameral.toml no longer."""
    from bicameral.config import forget_acceptance

    file = _file(chosen)
    known = forget_acceptance(file)
    chosen.out.show(f"no longer accepted: {file}" if known else f"it was not accepted: {file}")
    chosen.out.object({"ok": True, "file": str(file), "was_accepted": known})
    return OK


def _folder(chosen: Common) -> Path:
    return (chosen.folder or Path.cwd()).absolute()


def _file(chosen: Common) -> Path:
    file = (chosen.config_file or _folder(chosen) / "bicameral.toml").absolute()
    if not file.is_file():
        raise ConfigError(
            "config.unreadable", f"there is no file {str(file)!r}", fix="`bicameral init` writes one, accepted at once."
        )
    return file


def _unaccepted(file: Path, chosen: Common) -> Unaccepted | None:
    from bicameral.config import unaccepted, what_widens

    if file.parent != _folder(chosen):
        # The user's own file, or one that he named.
        return None
    return unaccepted(file, what_widens(file, _folder(chosen)), os.environ)
