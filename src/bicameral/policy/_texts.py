"""The texts of policies: files are read, and taken apart into single policies with their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bicameral.errors import Place, PolicyError

_MAX_BYTES = 1_000_000
_HERE = Path(__file__).parent

# What a semicolon can hide in, and the semicolon that ends a policy.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|;', re.DOTALL)
_BRACKET = re.compile(r"[(\[{)\]}]")
_OPERATOR = re.compile(r"[.!+*<>=|&\[-]|\b(?:if|in|has|like|is)\b")
_MAX_DEPTH = 64
_MAX_OPERATORS = 1_000
_SILENT = re.compile(r"(?:\s+|//[^\r\n]*)*")


@dataclass(frozen=True, slots=True)
class Piece:
    """The text of one policy, without what stands before it, and where it begins."""

    text: str
    file: str
    line: int

    @property
    def place(self) -> Place:
        return Place(file=self.file, line=self.line)


@cache
def packaged(name: str) -> str:
    """A text that comes with the package."""
    return (_HERE / name).read_text(encoding="utf-8")


def read(file: Path) -> str:
    """The text of a user's policy file."""
    place = Place(file=str(file))
    try:
        with file.open("rb") as stream:
            raw = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise PolicyError(
            "policy.unreadable",
            f"the file cannot be read: {error.strerror or error}",
            place=place,
            fix="Check `files` in [policy] of bicameral.toml.",
        ) from None
    if len(raw) > _MAX_BYTES:
        raise PolicyError("policy.too-large", f"the file is larger than {_MAX_BYTES:,} bytes", place=place)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PolicyError(
            "policy.unreadable", f"byte {error.start} is not UTF-8 text", place=place, fix="Save the file as UTF-8."
        ) from None


def pieces(text: str, file: str) -> Iterator[Piece]:
    """Each policy of a text. What follows the last semicolon is a piece too, unless nothing but comments does."""
    start = 0
    for token in _TOKEN.finditer(text):
        if token[0] == ";":
            yield _piece(text, start, token.end(), file)
            start = token.end()
    rest = _piece(text, start, len(text), file)
    if rest.text:
        yield rest


def is_too_deep(piece: Piece) -> bool:
    """Whether Cedar's parser might run out of stack, which would end the whole program: it goes down by recursion."""
    bare = _TOKEN.sub(" ", piece.text)
    depth = 0
    for bracket in _BRACKET.finditer(bare):
        depth += 1 if bracket[0] in "([{" else -1
        if depth > _MAX_DEPTH:
            return True
    return sum(1 for _ in _OPERATOR.finditer(bare)) > _MAX_OPERATORS


def _piece(text: str, start: int, end: int, file: str) -> Piece:
    silent = _SILENT.match(text, start, end)
    begin = silent.end() if silent else start
    return Piece(text[begin:end].rstrip(), file, text.count("\n", 0, begin) + 1)
