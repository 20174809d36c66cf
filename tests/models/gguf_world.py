"""GGUF files for tests: tiny ones without a model, and copies of a real model with another header."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from bicameral.models import _gguf

_TEXT, _ARRAY, _U32, _I32, _BOOL = 8, 9, 4, 5, 7
ALIGNMENT = 32


def text_of(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def value_of(value: Any) -> bytes:
    """A value as a header has it: its kind, and its bytes."""
    match value:
        case bool():
            return struct.pack("<I?", _BOOL, value)
        case int():
            return struct.pack("<II", _U32, value)
        case str():
            return struct.pack("<I", _TEXT) + text_of(value)
        case tuple():
            numbers = cast("tuple[int, ...]", value)
            return struct.pack(f"<IIQ{len(numbers)}i", _ARRAY, _I32, len(numbers), *numbers)
        case list():
            texts = cast("list[str | bytes]", value)
            return struct.pack("<IIQ", _ARRAY, _TEXT, len(texts)) + b"".join(map(text_of, texts))
        case _:
            raise TypeError(value)


def write_gguf(path: Path, facts: Mapping[str, Any], *, tensor: bytes = b"\0" * 128) -> Path:
    """A file with this header and one tensor of 32-bit numbers."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, 1, len(facts))
    head += b"".join(text_of(key) + value_of(value) for key, value in facts.items())
    head += text_of("output.weight") + struct.pack("<IQIQ", 1, len(tensor) // 4, 0, 0)
    path.write_bytes(head + b"\0" * (-len(head) % ALIGNMENT) + tensor)
    return path


CHAT_FACTS: dict[str, Any] = {
    "general.architecture": "llama",
    "general.type": "model",
    "general.name": "Tiny",
    "general.license": "apache-2.0",
    "llama.context_length": 64,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": ["<|im_start|>", "<|im_end|>", "a", "b"],
    "tokenizer.ggml.token_type": (3, 3, 1, 1),
    "tokenizer.ggml.eos_token_id": 1,
    "tokenizer.chat_template": "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}",
}


def rewrite_gguf(
    source: Path, target: Path, facts: Mapping[str, Any], *, renamed: Mapping[str, str] | None = None
) -> Path:
    """A copy of a model with other values in its header (None leaves a key out), and other texts of some tokens."""
    with source.open("rb") as file:
        _, _, tensors, count = struct.unpack("<4sIQQ", file.read(24))
        kept: dict[str, bytes] = {}
        for _ in range(count):
            key = _gguf.read_text(file)
            start = file.tell()
            value = _gguf.read_value(file, _gguf.read_struct(file, "I")[0])
            end = file.tell()
            file.seek(start)
            kept[key] = file.read(end - start)
            if key == _gguf.VOCABULARY_TEXTS and renamed:
                names = {old.encode(): new.encode() for old, new in renamed.items()}
                assert names.keys() <= set(value)
                kept[key] = value_of([names.get(each, each) for each in value])
        start = file.tell()
        for _ in range(tensors):
            _gguf.read_bytes(file)
            (dimensions,) = _gguf.read_struct(file, "I")
            file.read(8 * dimensions + 12)
        infos_end = file.tell()
        file.seek(start)
        infos = file.read(infos_end - start)
        file.seek(-(-infos_end // ALIGNMENT) * ALIGNMENT)
        for key, value in facts.items():
            kept.pop(key, None)
            if value is not None:
                kept[key] = value_of(value)
        head = struct.pack("<4sIQQ", b"GGUF", 3, tensors, len(kept))
        head += b"".join(text_of(key) + raw for key, raw in kept.items()) + infos
        with target.open("wb") as out:
            out.write(head + b"\0" * (-len(head) % ALIGNMENT))
            while chunk := file.read(1 << 22):
                out.write(chunk)
    return target
