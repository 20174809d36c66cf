"""The few facts of a GGUF file that must be known before an engine loads it."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from bicameral.errors import ModelError, Place

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LONGEST_TEXT = 1 << 24
_LONGEST_ARRAY = 1 << 24
_NORMAL, _UNUSED, _BYTE = 1, 5, 6
_LOOKS_LIKE_CONTROL = re.compile(r"<[^<>\s]+>")

_TOKENS = "tokenizer.ggml.tokens"
_KINDS = "tokenizer.ggml.token_type"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Which texts a tokenizer turns into control tokens, and where ChatML's two markers are."""

    start: int
    end: int
    control: frozenset[str]
    trained_context: int


def read_vocabulary(path: Path) -> Vocabulary:
    """Read the header of a weights file; one that is missing, no GGUF, or not ChatML is refused."""
    try:
        with path.open("rb") as file:
            return _vocabulary(_facts(file), path)
    except FileNotFoundError:
        raise ModelError(
            "models.file-missing",
            f"the weights file {path.name!r} is not there",
            place=Place(file=str(path)),
            fix="Run `bicameral models pull` to get it.",
        ) from None
    except OSError as error:
        raise ModelError(
            "models.file-unreadable",
            f"the weights file cannot be read: {error.strerror}",
            place=Place(file=str(path)),
            fix="Check that it is a file and its permissions.",
        ) from None
    except (struct.error, ValueError, KeyError) as error:
        raise ModelError(
            "models.not-gguf",
            f"this is not a whole GGUF weights file ({error})",
            place=Place(file=str(path)),
            fix="Run `bicameral models verify`, then `bicameral models pull` to replace it.",
        ) from None


def _vocabulary(facts: dict[str, Any], path: Path) -> Vocabulary:
    tokens: list[str] = facts[_TOKENS]
    kinds: tuple[int, ...] = facts[_KINDS]
    # llama.cpp promotes some ordinary tokens to control tokens by their look (`</s>`), so a look is enough.
    control = frozenset(
        text
        for text, kind in zip(tokens, kinds, strict=True)
        if len(text) > 1
        and (kind not in (_NORMAL, _UNUSED, _BYTE) or (kind == _NORMAL and _LOOKS_LIKE_CONTROL.fullmatch(text)))
    )
    try:
        start, end = tokens.index("<|im_start|>"), tokens.index("<|im_end|>")
    except ValueError:
        raise ModelError(
            "models.no-chatml",
            "these weights do not speak ChatML: they have no <|im_start|> token",
            place=Place(file=str(path)),
            fix="Use an instruct model of the Qwen2.5 or SmolLM2 family.",
        ) from None
    return Vocabulary(start, end, control, _trained_context(facts))


def _trained_context(facts: dict[str, Any]) -> int:
    lengths = (value for key, value in facts.items() if key.endswith(".context_length"))
    return int(next(lengths, 0))


def _facts(file: BinaryIO) -> dict[str, Any]:
    if file.read(4) != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    version, _tensors, count = _unpack(file, "IQQ")
    if version not in (2, 3):
        raise ValueError(f"its format version is {version}")
    facts: dict[str, Any] = {}
    for _ in range(count):
        key = _text(file)
        facts[key] = _value(file, _unpack(file, "I")[0])
        # What follows the vocabulary (the merges, the tensors) is long and not needed.
        if _TOKENS in facts and _KINDS in facts:
            break
    return facts


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _unpack(file, _scalar(kind))[0]
    item, length = _unpack(file, "IQ")
    if length > _LONGEST_ARRAY:
        raise ValueError(f"an array of {length} items")
    if item in _SCALARS:
        return _unpack(file, f"{length}{_SCALARS[item]}")
    return [_value(file, item) for _ in range(length)]


def _scalar(kind: int) -> str:
    if kind not in _SCALARS:
        raise ValueError(f"a value of unknown kind {kind}")
    return _SCALARS[kind]


def _text(file: BinaryIO) -> str:
    (length,) = _unpack(file, "Q")
    if length > _LONGEST_TEXT:
        raise ValueError(f"a text of {length} bytes")
    return file.read(length).decode("utf-8", "replace")


def _unpack(file: BinaryIO, layout: str) -> tuple[Any, ...]:
    return struct.unpack("<" + layout, file.read(struct.calcsize("<" + layout)))
