"""GGUF files: their header, what it says about the model, and why a file cannot be used.

A header comes with the weights, so it is read with bounds, and nothing in it is taken for a path or code.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from bicameral.errors import ModelError, Place

VOCABULARY_TEXTS = "tokenizer.ggml.tokens"
VOCABULARY_KINDS = "tokenizer.ggml.token_type"
CHAT_TEMPLATE = "tokenizer.chat_template"

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
# A damaged or hostile header must not make the reader allocate more than this.
_MAX_TEXT_BYTES = 1 << 24
_MAX_ARRAY_ITEMS = 1 << 24
_MAX_KEYS = 4096
_MAX_TENSORS = 1 << 16
_MAX_ARRAY_NESTING = 4
_DEFAULT_ALIGNMENT = 32

# Numbers in a block, and bytes of a block, by the number of the tensor's type.
_BLOCKS: Mapping[int, tuple[int, int]] = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    9: (32, 36),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    15: (256, 292),
    16: (256, 66),
    17: (256, 74),
    18: (256, 98),
    19: (256, 50),
    20: (32, 18),
    21: (256, 110),
    22: (256, 82),
    23: (256, 136),
    24: (1, 1),
    25: (1, 2),
    26: (1, 4),
    27: (1, 8),
    28: (1, 8),
    29: (256, 56),
    30: (1, 2),
    34: (256, 54),
    35: (256, 66),
    39: (32, 17),
}

_EMBEDDING_ARCHITECTURES = frozenset(
    "bert nomic-bert nomic-bert-moe jina-bert-v2 jina-bert-v3 neo-bert modern-bert eurobert t5encoder "
    "gemma-embedding llama-embed".split()
)
_OTHER_TYPES = {"adapter": "an adapter", "mmproj": "a part that reads pictures", "vocab": "a vocabulary alone"}


@contextmanager
def translate_file_errors(path: Path) -> Generator[None]:
    """Turn what goes wrong while a header is read into typed errors with a fix."""
    try:
        yield
    except FileNotFoundError:
        raise ModelError(
            "models.file-missing",
            f"the weights file {path.name!r} is not there",
            place=Place(file=str(path)),
            fix="Check the path. Weights that `bicameral models list` names are fetched by `bicameral models pull`.",
        ) from None
    except OSError as error:
        raise ModelError(
            "models.file-unreadable",
            f"the weights file cannot be read: {error.strerror}",
            place=Place(file=str(path)),
            fix="Check that it is a file and its permissions.",
        ) from None
    except (struct.error, ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelError(
            "models.not-gguf",
            f"this is not a whole GGUF weights file ({error})",
            place=Place(file=str(path)),
            fix="Give a GGUF file. `bicameral models verify` checks weights of the store, and `pull` replaces them.",
        ) from None


def read_metadata(file: BinaryIO, until: Collection[str] = ()) -> dict[str, Any]:
    """The keys of a header; reading ends once all keys in `until` are found."""
    return _read_header(file, until)[0]


def _read_header(file: BinaryIO, until: Collection[str] = ()) -> tuple[dict[str, Any], int]:
    """The keys of a header, and how many tensors follow."""
    if file.read(4) != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    version, tensors, count = read_struct(file, "IQQ")
    if version not in (2, 3):
        raise ValueError(f"its format version is {version}")
    if count > _MAX_KEYS or tensors > _MAX_TENSORS:
        raise ValueError(f"a header of {count} keys and {tensors} tensors")
    facts: dict[str, Any] = {}
    for _ in range(count):
        key = read_text(file)
        facts[key] = read_value(file, read_struct(file, "I")[0])
        # The rest of a header (the merges, the tensors) is long, and not always needed.
        if until and all(wanted in facts for wanted in until):
            break
    return facts, tensors


def read_value(file: BinaryIO, kind: int, depth: int = 0) -> Any:
    """A value of a kind; an array of texts is a list of bytes, since a vocabulary is long and seldom decoded."""
    if kind == _STRING:
        return read_text(file)
    if kind != _ARRAY:
        if kind not in _SCALARS:
            raise ValueError(f"a value of unknown kind {kind}")
        return read_struct(file, _SCALARS[kind])[0]
    item, length = read_struct(file, "IQ")
    if length > _MAX_ARRAY_ITEMS or depth > _MAX_ARRAY_NESTING:
        raise ValueError(f"an array of {length} items")
    if item in _SCALARS:
        return read_struct(file, f"{length}{_SCALARS[item]}")
    if item == _STRING:
        return [read_bytes(file) for _ in range(length)]
    return [read_value(file, item, depth + 1) for _ in range(length)]


def read_text(file: BinaryIO) -> str:
    """A text with its length before it."""
    return read_bytes(file).decode("utf-8", "replace")


def read_bytes(file: BinaryIO) -> bytes:
    """The bytes of a text with its length before it."""
    head = file.read(8)
    length = int.from_bytes(head, "little")
    if len(head) < 8:
        raise ValueError("it ends before a text")
    if length > _MAX_TEXT_BYTES:
        raise ValueError(f"a text of {length} bytes")
    found = file.read(length)
    if len(found) < length:
        raise ValueError("it ends in the middle of a text")
    return found


def read_struct(file: BinaryIO, layout: str) -> tuple[Any, ...]:
    """Numbers, as `struct` lays them out."""
    return struct.unpack("<" + layout, file.read(struct.calcsize("<" + layout)))


@dataclass(frozen=True, slots=True)
class GgufModel:
    """What the header of a chat model says, for people; nothing of it is verified."""

    architecture: str
    name: str
    licence: str
    context: int
    has_template: bool


def inspect_gguf(path: Path) -> GgufModel:
    """Check that a file is a whole chat model of one part, without loading it; raises why it is not.

    The codes are `models.not-gguf`, `models.truncated`, `models.split`, `models.wrong-kind` and `models.no-template`.
    """
    with translate_file_errors(path):
        with path.open("rb") as file:
            facts, tensors = _read_header(file)
            size = path.stat().st_size
            try:
                needed = _needed_bytes(file, facts, tensors)
            except (struct.error, ValueError):
                needed = size + 1
        if needed > size:
            raise _refusal(
                path,
                "models.truncated",
                f"the file has {size:,} bytes and its tensors need more: it was cut off",
                "Fetch it again.",
            )
        _check_model(path, facts)
        architecture = str(facts.get("general.architecture", ""))
        return GgufModel(
            architecture=architecture[:40],
            name=str(facts.get("general.name", "")),
            licence=str(facts.get("general.license", "")),
            context=int(facts.get(f"{architecture}.context_length", 0)),
            has_template=bool(facts.get(CHAT_TEMPLATE)),
        )


def _check_model(path: Path, facts: Mapping[str, Any]) -> None:
    parts = facts.get("split.count", 1)
    if isinstance(parts, int) and parts > 1:
        raise _refusal(
            path,
            "models.split",
            f"this is one of {parts} parts of a model",
            "Join them with llama.cpp's `llama-gguf-split --merge`, and use the joined file.",
        )
    architecture, kind = str(facts.get("general.architecture", "")), str(facts.get("general.type", "model"))
    is_embedding = architecture in _EMBEDDING_ARCHITECTURES or bool(facts.get(f"{architecture}.pooling_type"))
    other = "an embedding model" if is_embedding else _OTHER_TYPES.get(kind)
    if architecture == "clip":
        other = _OTHER_TYPES["mmproj"]
    if other is not None:
        raise _refusal(path, "models.wrong-kind", f"this is {other}, which does not reply", "Use a chat model.")
    if not facts.get(VOCABULARY_TEXTS) or not facts.get(VOCABULARY_KINDS):
        raise _refusal(path, "models.wrong-kind", "this file has no vocabulary", "Use the file of a whole chat model.")
    if not isinstance(facts.get(CHAT_TEMPLATE), str) or not facts[CHAT_TEMPLATE].strip():
        raise no_template_error(path)


def no_template_error(path: Path) -> ModelError:
    """The error for weights that do not say how turns are written."""
    return _refusal(
        path,
        "models.no-template",
        f"these weights have no chat template: their header has no {CHAT_TEMPLATE}",
        "Use an instruct or chat model: a base model has none.",
    )


def _refusal(path: Path, code: str, message: str, fix: str) -> ModelError:
    return ModelError(code, message, place=Place(file=str(path)), fix=fix)


def _needed_bytes(file: BinaryIO, facts: Mapping[str, Any], tensors: int) -> int:
    """How long the file must be for all tensors of its header."""
    end = 0
    for _ in range(tensors):
        read_bytes(file)
        (dimensions,) = read_struct(file, "I")
        if dimensions > 8:
            raise ValueError(f"a tensor of {dimensions} dimensions")
        lengths = read_struct(file, f"{dimensions}Q")
        kind, offset = read_struct(file, "IQ")
        numbers = 1
        for length in lengths:
            numbers *= length
        block, block_bytes = _BLOCKS.get(kind, (1, 0))
        end = max(end, offset + numbers // block * block_bytes)
    alignment = facts.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
        raise ValueError("a bad alignment")
    return -(-file.tell() // alignment) * alignment + end
