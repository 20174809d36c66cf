"""Tables of MCP servers in `bicameral.toml`: added, changed and taken out, and nothing else in the file is touched.

The file is the user's: its comments, order and line ends stay. A change is made in the text and then verified: what the
new text says must be what the old one said, but for the one table. A file that was accepted stays so if the person has
agreed to all that differs; one that was not does not become accepted by it.
"""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bicameral.errors import ConfigError, Place

if TYPE_CHECKING:
    from bicameral.config import Widening
    from bicameral.mcp import McpSettings

TABLE = "mcp"
NEW_FILE = "# What is not set here has its default; `bicameral init` explains every setting.\n"
"""How a configuration begins that is made for its first server."""

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


def settings_table(settings: McpSettings) -> dict[str, Any]:
    """The settings of a server as its table has them: without defaults."""
    return settings.model_dump(mode="json", exclude_defaults=True)


def server_tables(text: str, file: Path, *, kind: str = TABLE) -> dict[str, Any]:
    """The tables of servers in a configuration, by name and not validated; `kind` is the table that they are in."""
    found: Any = _parse(text, file).get(kind, {})
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def with_table(text: str, name: str, table: Mapping[str, Any], file: Path, *, kind: str = TABLE) -> str:
    """The configuration with a table for a server: in place of the one that it has, or at the end."""
    from bicameral.documents import toml_pairs

    lines = "".join(f"{line}\n" for line in (f"[{kind}.{name}]", *toml_pairs(table)))
    old = [each for each in _sections(text) if each.path[:2] == (kind, name)]
    if old:
        first, *others = old
        new = text
        for section in reversed(others):
            new = _without(new, section)
        new = new[: first.start] + _line_ends(lines, text) + new[first.end :]
    else:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        new = text + _line_ends(gap + lines, text)
    return _verified(text, new, lambda content: _set_table(content, name, dict(table), kind), name, file, kind)


def with_setting(text: str, name: str, key: str, value: Any, file: Path) -> str:
    """The configuration with one more setting in the table of a server."""
    from bicameral.documents import toml_pairs

    own = next((each for each in _sections(text) if each.path == (TABLE, name)), None)
    new = text
    if own is not None:
        end = text.find("\n", own.start, own.end) + 1 or own.end
        gap = "" if text[:end].endswith("\n") else "\n"
        line = "".join(f"{line}\n" for line in toml_pairs({key: value}))
        new = text[:end] + _line_ends(gap + line, text) + text[end:]

    def set_key(content: dict[str, Any]) -> None:
        content[TABLE][name][key] = value

    return _verified(text, new, set_key, name, file, TABLE)


def without_table(text: str, name: str, file: Path, *, kind: str = TABLE) -> str:
    """The configuration without the table of a server. Comments before and after it stay."""
    new = text
    for section in reversed([each for each in _sections(text) if each.path[:2] == (kind, name)]):
        new = _without(new, section)
    return _verified(text, new, lambda content: content[kind].pop(name), name, file, kind)


@dataclass(frozen=True, slots=True)
class _Section:
    """A header with the lines that belong to it: not the blank ones and comments before the next header."""

    path: tuple[str, ...]
    start: int
    end: int


def _sections(text: str) -> Iterator[_Section]:
    starts: list[int] = []
    for found in _HEADER.finditer(text):
        # Such a line may also be part of a value of several lines: then what comes before it is not complete.
        if _is_complete(text[starts[-1] if starts else 0 : found.start()]):
            starts.append(found.start())
    for start, end in pairwise([*starts, len(text)]):
        yield _Section(_header_path(text[start:end]), start, _own_end(text, start, end))


def _header_path(section: str) -> tuple[str, ...]:
    try:
        found: Any = tomllib.loads(section.partition("\n")[0].strip())
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while isinstance(found, dict) and found:
        name, found = next(iter(cast("dict[str, Any]", found).items()))
        path.append(name)
    return tuple(path)


def _own_end(text: str, start: int, end: int) -> int:
    """Where a section ends without the blank lines and comments after its last setting."""
    while True:
        last = text.rfind("\n", start, end - 1) + 1
        line = text[last:end].strip()
        # The last line of a text of several lines may begin like a comment.
        if last <= start or (line and not line.startswith("#")) or not _is_complete(text[start:last]):
            return end
        end = last


def _is_complete(text: str) -> bool:
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
    return True


def _without(text: str, section: _Section) -> str:
    before, after = text[: section.start], text[section.end :]
    # The blank line that set it off goes with it.
    if before.endswith(("\n\n", "\n\r\n")) and (not after or after.startswith(("\n", "\r\n"))):
        before = before[: -2 if before.endswith("\r\n") else -1]
    return before + after if before else after.lstrip("\r\n")


def _line_ends(lines: str, text: str) -> str:
    return lines.replace("\n", "\r\n") if "\r\n" in text else lines


def _set_table(content: dict[str, Any], name: str, table: dict[str, Any], kind: str) -> None:
    content.setdefault(kind, {})[name] = table


def _verified(old: str, new: str, change: Callable[[dict[str, Any]], object], name: str, file: Path, kind: str) -> str:
    """The new text, if it says what the old one does but for the change."""
    expected = _parse(old, file)
    try:
        change(expected)
        found = tomllib.loads(new)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError):
        found = None
    for content in (expected, found):
        if content is not None and content.get(kind) == {}:
            del content[kind]
    if found != expected:
        raise ConfigError(
            "config.cannot-edit",
            f"the settings of {name!r} are not written as a table of their own, so that they cannot be changed here",
            place=Place(file=str(file)),
            expected=f"a table [{kind}.{name}]",
            fix="Change the file by hand.",
        )
    return new


def _parse(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError("config.bad-toml", f"this is not TOML: {error}", place=Place(file=str(file))) from None


def read_config_text(file: Path) -> str:
    """The text of a configuration with its own line ends; of one that is not there, what a new one begins with."""
    try:
        return file.read_bytes().decode("utf-8") if file.exists() else NEW_FILE
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError("config.unreadable", f"it cannot be read: {why}", place=Place(file=str(file))) from None


def write_config_text(file: Path, text: str, *, private: bool = False) -> None:
    """Write a configuration whole or not at all. A link stays one, and so do its permissions.

    Args:
        private: Whether nobody but its owner may read it from now on.
    """
    target = Path(os.path.realpath(file))
    part: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        part = Path(name)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text.encode("utf-8"))
            stream.flush()
            os.fsync(stream.fileno())
        mode = 0o644 if mode is None else mode
        part.chmod(mode & 0o600 if private else mode)
        part.replace(target)
    except OSError as error:
        raise ConfigError(
            "config.unwritable", f"it cannot be written: {error.strerror}", place=Place(file=str(file))
        ) from None
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


@dataclass(frozen=True)
class Acceptance:
    """What this user had accepted of a configuration before a command changed it.

    Args:
        file: The configuration.
        base: The working folder.
        widening: What was accepted of it; None for a file that was not accepted.
    """

    file: Path
    base: Path
    widening: Widening | None

    @classmethod
    def of(cls, file: Path, base: Path) -> Acceptance:
        """The acceptance of a configuration as it is now; one that is not there is the user's from the start."""
        from bicameral.config import Widening, find_unaccepted, find_widening

        if not file.exists():
            return cls(file, base, Widening({}, {}))
        widening = find_widening(file, base)
        # Not what the environment lists: that acceptance ends with the environment and must not become a lasting one.
        return cls(file, base, widening if find_unaccepted(file, widening, {}) is None else None)

    def renew(self, server: str, files: Iterable[Path], *, kind: str = TABLE) -> bool:
        """Accept the configuration as it is now, if it was and nothing but a server and these files of it differs.

        Returns whether the configuration is used in full.
        """
        from bicameral.config import find_unaccepted, find_widening, record_acceptance

        widening = find_widening(self.file, self.base)
        # The person has agreed to this server, and to nothing that somebody else changed meanwhile.
        if self.widening is not None and not self._changes_of_others(widening, f"{kind}.{server}", files):
            record_acceptance(self.file, widening)
        if self.file.parent != self.base:
            # The user's own file, or one that the user named: it needs no acceptance.
            return True
        return find_unaccepted(self.file, widening, os.environ) is None

    def _changes_of_others(self, now: Widening, table: str, files: Iterable[Path]) -> bool:
        before = cast("Widening", self.widening)
        own = {os.path.realpath(each) for each in files}
        settings = {name for name in {*before.settings, *now.settings} if not _is_of_table(name, table)}
        # Files that only one of both names are the server's, since no other setting may differ.
        named = {name for name in before.files if name in now.files and os.path.realpath(name) not in own}
        return any(before.settings.get(name) != now.settings.get(name) for name in settings) or any(
            before.files[name] != now.files[name] for name in named
        )


def _is_of_table(setting: str, table: str) -> bool:
    return setting == table or setting.startswith(f"{table}.")
