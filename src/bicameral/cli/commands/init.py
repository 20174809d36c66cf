"""`bicameral init`: write a commented configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bicameral.cli._options import CommonOptions, common_options
from bicameral.errors import ConfigError, Place


@click.command(short_help="Write a commented bicameral.toml.")
@click.option("--user", is_flag=True, help="Write the user's own file instead of one in the working folder.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@common_options
def command(chosen: CommonOptions, user: bool, force: bool) -> dict[str, Any]:
    """Write a bicameral.toml that explains every setting and says what the defaults are."""
    from bicameral.config import config_template, find_widening, record_acceptance, user_folder

    folder = user_folder("config") if user else chosen.folder or Path.cwd()
    target = chosen.config_file or folder / "bicameral.toml"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(config_template())
    except FileExistsError:
        raise ConfigError(
            "config.exists", "there is a file already", place=Place(file=str(target)), fix="--force replaces it."
        ) from None
    except OSError as error:
        raise ConfigError(
            "config.unwritable", f"it cannot be written: {error.strerror}", place=Place(file=str(target))
        ) from None
    # The user asked for this file, and it has only the defaults.
    record_acceptance(target, find_widening(target, target.parent))
    chosen.out.show(f"written: {target}")
    return {"file": str(target)}
