"""`bicameral config`: show, accept and forget the configuration file of a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._options import CommonOptions, DefaultGroup, common_options
from bicameral.cli._output import OK
from bicameral.errors import ConfigError

if TYPE_CHECKING:
    from bicameral.config import UnacceptedConfig


@click.group(
    short_help="The configuration that counts here, and whether you have accepted it.", cls=DefaultGroup, default="show"
)
def command() -> None:
    """The configuration that counts here, and whether you have accepted it. Without a subcommand: `show`."""


@command.command("show")
@click.argument("settings", metavar="[SETTING]...", nargs=-1)
@common_options
def show(chosen: CommonOptions, settings: tuple[str, ...]) -> dict[str, Any]:
    """Which file counts here, and which of its settings are not used until you accept it.

    With a SETTING, such as `planning` or `planning.echo_temperature`: the value that counts, and where it comes from.
    """
    from bicameral.config import find_file

    if settings:
        return _show_settings(chosen, settings)
    file = chosen.config_file or find_file(chosen.folder)
    found = None if file is None or chosen.config_file is not None else _find_unaccepted_here(file, chosen)
    if file is None:
        chosen.out.show("no file; the defaults serve")
    elif found is None:
        chosen.out.show(f"{file}: used in full")
    else:
        chosen.out.show(f"{file}: not accepted; until you accept it these are not used:")
        for line in found.describe():
            chosen.out.show(f"  {line}")
    withheld = [] if found is None else list(found.withheld)
    return {"file": None if file is None else str(file), "withheld": withheld}


def _show_settings(chosen: CommonOptions, names: tuple[str, ...]) -> dict[str, Any]:
    from bicameral.config import setting_values

    found = [value for name in names for value in setting_values(chosen.config(), name)]
    for each in found:
        chosen.out.show(f"{each.name} = {each.to_text()}  ({each.origin})")
    return {"settings": {each.name: {"value": each.value, "origin": each.origin} for each in found}}


@command.command("accept")
@common_options
def accept(chosen: CommonOptions) -> int:
    """Use the working folder's bicameral.toml in full, as it is now, with the code and policies that it names.

    You are asked again when any of that changes.
    """
    from bicameral.config import find_widening, record_acceptance

    file = _config_file(chosen)
    widening = find_widening(file, _working_folder(chosen))
    found = _find_unaccepted_here(file, chosen)
    for line in [] if found is None else found.describe():
        chosen.out.say(f"  {line}")
    record_acceptance(file, widening)
    chosen.out.show(f"accepted: {file}")
    chosen.out.write_json(
        {"ok": True, "file": str(file), "settings": sorted(widening.settings), "files": sorted(widening.files)}
    )
    return OK


@command.command("forget")
@common_options
def forget(chosen: CommonOptions) -> dict[str, Any]:
    """Accept the working folder's bicameral.toml no longer."""
    from bicameral.config import forget_acceptance

    file = _config_file(chosen)
    known = forget_acceptance(file)
    chosen.out.show(f"no longer accepted: {file}" if known else f"it was not accepted: {file}")
    return {"file": str(file), "was_accepted": known}


def _working_folder(chosen: CommonOptions) -> Path:
    return (chosen.folder or Path.cwd()).absolute()


def _config_file(chosen: CommonOptions) -> Path:
    file = (chosen.config_file or _working_folder(chosen) / "bicameral.toml").absolute()
    if not file.is_file():
        raise ConfigError(
            "config.unreadable", f"there is no file {str(file)!r}", fix="`bicameral init` writes one, accepted at once."
        )
    return file


def _find_unaccepted_here(file: Path, chosen: CommonOptions) -> UnacceptedConfig | None:
    from bicameral.config import find_unaccepted, find_widening

    if file.parent != _working_folder(chosen):
        # The user's own file, or one that the user named: it needs no acceptance.
        return None
    return find_unaccepted(file, find_widening(file, _working_folder(chosen)), os.environ)
