"""Text that is piped into a command: `cat notes.txt | bicameral run "summarise"`.

Standard input is read if it is a file or a pipe, not if it is a terminal or `/dev/null`. A pipe into which nobody
writes must not make a command hang: scripts, schedulers and editors start programs with such a one. So a command waits
a moment for the first byte, says so if none comes, and goes on without it; `--input -` waits as long as it takes.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bicameral.errors import IntentError, Place

if TYPE_CHECKING:
    from bicameral.agent import Material
    from bicameral.cli._output import Output

FIRST_BYTE_SECONDS = 2.0
"""How long a command waits for the first byte of a pipe that it was not told to read."""
SILENCE_SECONDS = 60.0
"""How long such a pipe may be silent after that."""
MAX_BYTES = 20_000_000
_CHUNK = 1 << 16
_STANDARD_INPUT = "-"
_DOCUMENTS = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "a ZIP archive or an office document",
    b"\xd0\xcf\x11\xe0": "an old office document",
}


def read_material(out: Output, named: str | None, *, ignored: bool = False) -> Material | None:
    """The text that comes with a request; None if there is none.

    Args:
        out: Where it is said that nothing came.
        named: What `--input` says: a file, or `-` for standard input.
        ignored: Whether standard input is left alone (`--no-input`).
    """
    from bicameral.agent import MATERIAL_SUFFIXES, Material

    if named is not None and named != _STANDARD_INPUT:
        # The ending is what the user typed; only one of the known ones is told to the planner.
        suffix = Path(named).suffix.lower()
        return Material(_decode(_read_file(named), named), suffix if suffix in MATERIAL_SUFFIXES else ".txt")
    if named is None and ignored:
        return None
    raw = _read_all(None, None) if named == _STANDARD_INPUT else _read_if_piped(out)
    text = _decode(raw, "standard input") if raw else ""
    if not text.strip():
        if named == _STANDARD_INPUT:
            raise IntentError("intent.empty-input", "standard input is empty", fix="Pipe a text into the command.")
        return None
    return Material(text)


def _read_if_piped(out: Output) -> bytes | None:
    """What was piped or redirected into the command; None if that is nothing."""
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return None  # closed, or replaced by something that is no file
    if stat.S_ISREG(kind):
        return _read_all(None, None)
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return None
    try:
        return _read_all(FIRST_BYTE_SECONDS, SILENCE_SECONDS)
    except TimeoutError:
        out.say(
            f"nothing came from standard input within {FIRST_BYTE_SECONDS:g} s; going on without it "
            "(--input - waits for it, --no-input does not look)",
            style="dim",
        )
        return None


def _read_all(first: float | None, silence: float | None) -> bytes:
    """Standard input to its end; a TimeoutError if nothing came in time."""
    source, parts, size = sys.stdin.fileno(), list[bytes](), 0
    deadline = None if first is None else time.monotonic() + first
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([source], [], [], left)[0]:
            if not parts:
                raise TimeoutError
            raise IntentError(
                "intent.input-open",
                f"standard input was silent for {silence:g} s and has not ended",
                fix="End what writes into it, or use --input - to wait for it, or --no-input.",
            )
        part = os.read(source, _CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        _check_size(size, "standard input")
        deadline = None if silence is None else time.monotonic() + silence


def _read_file(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise IntentError(
            "intent.input-unreadable", f"it cannot be read: {error.strerror}", place=Place(file=name)
        ) from None
    _check_size(len(raw), name)
    return raw


def _check_size(size: int, where: str) -> None:
    if size > MAX_BYTES:
        raise IntentError(
            "intent.input-too-long",
            f"{where} has more than {MAX_BYTES // 1_000_000} MB",
            fix="Pipe a part of it, or save it to a file and name the file in the request.",
        )


def _decode(raw: bytes, where: str) -> str:
    """The text of these bytes. Nothing is guessed: what is no text is refused."""
    kind = next((kind for mark, kind in _DOCUMENTS.items() if raw.startswith(mark)), None)
    try:
        text = None if kind is not None or b"\0" in raw else raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = None
    if text is None:
        fix = (
            "Save it to a file and name the file in the request."
            if kind
            else "Convert it, such as with iconv -t utf-8."
        )
        raise IntentError("intent.input-not-text", f"{where} is {kind or 'no text in UTF-8'}", expected="text", fix=fix)
    return text
