"""The text of a file of settings: no more of it than settings can be, and UTF-8."""

from __future__ import annotations

from pathlib import Path

from bicameral.errors import ConfigError, Place


def text_of(file: Path, most: int, *, unreadable: str, malformed: str, fix: str) -> str:
    """The text, of at most so many bytes. What an unreadable file is, and one that is no text, its reader says."""
    place = Place(file=str(file))
    try:
        with file.open("rb") as stream:
            raw = stream.read(most + 1)
    except OSError as error:
        raise ConfigError(
            unreadable,
            f"the file cannot be read: {error.strerror or error}",
            place=place,
            fix=fix,
        ) from None
    if len(raw) > most:
        raise ConfigError("config.too-large", f"the file is larger than {most:,} bytes", place=place)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            malformed,
            f"byte {error.start} is not UTF-8 text",
            place=Place(file=str(file), line=raw.count(b"\n", 0, error.start) + 1),
            fix="Save the file as UTF-8.",
        ) from None
