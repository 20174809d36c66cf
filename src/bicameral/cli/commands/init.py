"""`bicameral init`: write a commented configuration file, with what was found or asked."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import prepare_prompts
from bicameral.cli._options import CommonOptions, common_options
from bicameral.cli._output import Output
from bicameral.display import make_visible, terminal_width, wrap_text
from bicameral.errors import BicameralError, ConfigError, Place

if TYPE_CHECKING:
    from bicameral.config import DetectedSettings

_MAX_ATTEMPTS = 3


@click.command(short_help="Write a commented bicameral.toml.")
@click.option("--user", is_flag=True, help="Write the user's own file instead of one in the working folder.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing: take the mailbox, calendar and time zone that are found.")
@click.option("--no-prepare", "unprepared", is_flag=True, help="Do not let the models read your tools yet.")
@common_options
def command(chosen: CommonOptions, user: bool, force: bool, yes: bool, unprepared: bool) -> dict[str, Any]:
    """Write a bicameral.toml that explains every setting and says what the defaults are.

    At a terminal you are asked where your mailbox and your calendar are and in which time zone you live; what is found
    in the folder and at home is suggested. With --yes that is taken; without a terminal and without --yes, nothing is
    set. A file that is there is replaced only after a yes, or with --force.

    At a terminal the models that are on this machine then read your tools, so that the first plan need not wait for it.
    """
    from bicameral.config import (
        DetectedSettings,
        detect_settings,
        find_widening,
        record_acceptance,
        render_config,
        user_folder,
    )

    base = chosen.folder or Path.cwd()
    target = chosen.config_file or (user_folder("config") if user else base) / "bicameral.toml"
    ask = chosen.out.is_interactive and not yes
    replace = force or (ask and target.exists() and _confirm(f"{target} is there already. Replace it?"))
    if target.exists() and not replace:
        raise _exists_error(target)
    settings = DetectedSettings()
    if yes or ask:
        found = detect_settings(base)
        settings = _ask_settings(chosen.out, found, base) if ask else found
    _write_file(target, render_config(settings, base), replace=replace)
    # The user asked for this file, and it has only the defaults and what the user was asked or said yes to.
    record_acceptance(target, find_widening(target, target.parent))
    chosen.out.show(f"written: {target}")
    for name, value in settings.to_json().items():
        if value is not None:
            chosen.out.show(f"  {name}: {value}")
    prepared = _prepare(chosen) if chosen.out.is_interactive and not unprepared else []
    return {"file": str(target), "settings": settings.to_json(), "prepared": prepared}


def _prepare(chosen: CommonOptions) -> list[str]:
    """Let the models read the tools of the new configuration; what goes wrong there is told and spoils nothing."""
    try:
        return prepare_prompts(chosen.out, chosen.config())
    except BicameralError as error:
        chosen.out.say(f"the models could not be prepared: {error}")
        return []


def _exists_error(target: Path) -> ConfigError:
    return ConfigError(
        "config.exists", "there is a file already", place=Place(file=str(target)), fix="--force replaces it."
    )


def _write_file(target: Path, text: str, *, replace: bool) -> None:
    """Write the file whole or not at all; one that appears meanwhile is not replaced."""
    part: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        part = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(0o666 & ~_umask())
        if replace:
            part.replace(target)
        else:
            # A link, unlike a rename, fails if there is a file by now.
            os.link(part, target)
    except FileExistsError:
        raise _exists_error(target) from None
    except OSError as error:
        raise ConfigError(
            "config.unwritable", f"it cannot be written: {error.strerror}", place=Place(file=str(target))
        ) from None
    finally:
        if part is not None:
            with suppress(FileNotFoundError):
                part.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _ask_settings(out: Output, found: DetectedSettings, folder: Path) -> DetectedSettings:
    from bicameral.config import DetectedSettings, calendar_problem, mailbox_problem, timezone_problem

    out.say("Enter takes what stands in brackets; - leaves it unset.")
    return DetectedSettings(
        _ask(out, "Your mailbox (a Maildir folder or an mbox file)", found.mail, folder, mailbox_problem),
        _ask(out, "Your calendar (an .ics file)", found.calendar, folder, calendar_problem),
        _ask(out, "Your time zone", found.timezone, folder, timezone_problem),
    )


def _ask(
    out: Output, question: str, default: str | None, folder: Path, problem: Callable[[str, Path], str]
) -> str | None:
    """The reply; the default for an empty one, None for `-`, the end of input, and replies that are none."""
    for _ in range(_MAX_ATTEMPTS):
        reply = _read_reply(f"{question} [{default or '-'}]: ")
        if reply is None or reply == "-":
            return None
        if not reply:
            return default
        if not (why := problem(reply, folder)):
            return reply
        out.say(f"  {why}")
    return None


def _confirm(question: str) -> bool:
    return (_read_reply(f"{question} [y/N] ") or "").lower() in ("y", "yes")


def _read_reply(prompt: str) -> str | None:
    # A blocking read: no event loop runs that it could hold up.
    sys.stderr.write(wrap_text(make_visible(prompt), terminal_width()))
    sys.stderr.flush()
    line = sys.stdin.readline()
    return line.strip() if line else None
