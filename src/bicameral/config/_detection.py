"""What `bicameral init` can find out by itself: the mailbox, the calendar and the time zone.

Only names and the first bytes of files are looked at. What is found is a suggestion: it becomes a setting when the
person says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bicameral.config._resources import config_template

_MAIL_NAMES = ("Maildir", "Mail", "mail", "Inbox", "INBOX")
_HOME_MAIL = ("Maildir", "Mail", ".thunderbird")
_MAX_ENTRIES = 2_000
"""Entries of a folder that are looked at: it may be a download folder."""


@dataclass(frozen=True, slots=True)
class DetectedSettings:
    """Settings for the template; None for one that stays unset. Paths are as the file would name them."""

    mail: str | None = None
    calendar: str | None = None
    timezone: str | None = None

    def to_json(self) -> dict[str, str | None]:
        return {"mail": self.mail, "calendar": self.calendar, "timezone": self.timezone}


def detect_settings(
    folder: Path, home: Path | None = None, environment: Mapping[str, str] = os.environ
) -> DetectedSettings:
    """The mailbox, the calendar and the time zone of a folder and its user.

    A mailbox in the folder comes before one in the home folder.

    Example:
        >>> detect_settings(Path("work"), Path.home()).calendar
        'calendar.ics'
    """
    return DetectedSettings(
        _detect_mail(folder, home or Path.home()), _detect_calendar(folder), detect_timezone(environment)
    )


def render_config(settings: DetectedSettings, folder: Path) -> str:
    """The commented template with these settings in it; a mailbox outside the folder becomes readable, too."""
    text = config_template()
    if settings.mail is not None:
        text = text.replace("#:[toolbox.mail]", "[toolbox.mail]", 1)
        text = text.replace('#:folder = "Maildir"', f"folder = {_toml_text(settings.mail)}", 1)
        if not _is_inside(settings.mail, folder):
            text = text.replace('read = ["."]', f'read = [".", {_toml_text(settings.mail)}]', 1)
    if settings.calendar is not None or settings.timezone is not None:
        text = text.replace("#:[toolbox.calendar]", "[toolbox.calendar]", 1)
    if settings.calendar is not None:
        text = text.replace('#:file = "calendar.ics"', f"file = {_toml_text(settings.calendar)}", 1)
    if settings.timezone is not None:
        text = text.replace('#:timezone = "Europe/Berlin"', f"timezone = {_toml_text(settings.timezone)}", 1)
    return text


def mailbox_problem(given: str, folder: Path) -> str:
    """Why a path is no mailbox; empty if it is one."""
    from bicameral.toolboxes._mail_files import is_mailbox

    path = folder / Path(given).expanduser()
    if not path.exists():
        return "there is no such folder or file"
    return "" if is_mailbox(path) else "it is no Maildir and no mbox file"


def calendar_problem(given: str, folder: Path) -> str:
    """Why a path cannot be the calendar; empty if it can. A file that is not there yet is made by the first event."""
    path = folder / Path(given).expanduser()
    if path.suffix.lower() != ".ics":
        return "it must be an .ics file"
    return "" if _is_inside(given, folder) else "it must be in the working folder"


def timezone_problem(given: str, _: Path) -> str:
    """Why a name is no time zone; empty if it is one."""
    try:
        ZoneInfo(given)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "it is no time zone; one is called Europe/Berlin"
    return ""


def detect_timezone(environment: Mapping[str, str] = os.environ, root: Path = Path("/etc")) -> str | None:
    """The name of the machine's time zone: from TZ, `/etc/timezone` or the link `/etc/localtime`."""
    candidates = [environment.get("TZ", "").lstrip(":")]
    with suppress(OSError, UnicodeDecodeError):
        candidates.append((root / "timezone").read_text(encoding="utf-8").strip())
    _, _, named = os.path.realpath(root / "localtime").partition("/zoneinfo/")
    candidates.append(named)
    return next((name for name in candidates if name and not timezone_problem(name, Path())), None)


def _detect_mail(folder: Path, home: Path) -> str | None:
    from bicameral.toolboxes._mail_files import is_mailbox

    for path in _near_entries(folder):
        named = path.name in _MAIL_NAMES or path.suffix.lower() in (".mbox", ".mbx")
        if named and _attempt(is_mailbox, path) and (found := _toml_path(path, folder)):
            return found
    for name in _HOME_MAIL:
        for path in (home / name, *_thunderbird_mail(home / name)):
            if _attempt(is_mailbox, path) and (found := _toml_path(path, folder, home)):
                return found
    return None


def _thunderbird_mail(profiles: Path) -> Iterator[Path]:
    """The inboxes in the profiles of Thunderbird, which are mbox files without an ending."""
    if profiles.name != ".thunderbird":
        return
    for pattern in ("*/Mail/*/Inbox", "*/ImapMail/*/INBOX"):
        yield from sorted(profiles.glob(pattern))


def _detect_calendar(folder: Path) -> str | None:
    found = [path for path in _near_entries(folder) if path.suffix.lower() == ".ics" and path.is_file()]
    # The usual name first; of several others none is more likely than the rest.
    usual = next((path for path in found if path.name.lower() == "calendar.ics"), None)
    chosen = usual or (found[0] if len(found) == 1 else None)
    return None if chosen is None else _toml_path(chosen, folder)


def _near_entries(folder: Path) -> list[Path]:
    """The entries of a folder and of the folders in it, sorted, the nearest first; what may not be read is left out."""
    top = _entries(folder)
    inner = [entry for path in top if path.is_dir() and not path.name.startswith(".") for entry in _entries(path)]
    return [*top, *inner][:_MAX_ENTRIES]


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.is_symlink())[:_MAX_ENTRIES]
    except OSError:
        return []


def _attempt(test: Callable[[Path], bool], path: Path) -> bool:
    """Whether a test holds of a path; one that may not be read is not what is looked for."""
    try:
        return test(path)
    except OSError:
        return False


def _toml_path(path: Path, folder: Path, home: Path | None = None) -> str | None:
    """The path as the file would name it: relative to the folder, or from the home folder. None for no plain text."""
    text = str(path)
    if path.is_relative_to(folder):
        text = str(path.relative_to(folder))
    elif home is not None and path.is_relative_to(home):
        text = f"~/{path.relative_to(home)}"
    return text if text.isprintable() else None


def _is_inside(given: str, folder: Path) -> bool:
    path = Path(os.path.realpath(folder / Path(given).expanduser()))
    return path.is_relative_to(os.path.realpath(folder))


def _toml_text(text: str) -> str:
    # The strings of JSON are strings of TOML.
    return json.dumps(text, ensure_ascii=False)
