"""The encoder of the BERT family in numpy, the safetensors format, and matrix products on one core each.

Tokens come in, one vector of length 1 per text comes out. The texts of a batch are stacked in one matrix, so nothing is
padded and no text affects another; only attention is computed text by text. A safetensors file has a length, a JSON
header, then the bytes of each array: it contains no code, and every length in its header is checked against the file
before anything is read. The embedding weights come in this format, and an index is saved in it.

The BLAS library below numpy distributes a product over all cores, which wait for each other. On a busy machine that
made a query take twenty times as long. So each product uses one core, and several texts are embedded in parallel
instead.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Array = NDArray[Any]

_DTYPES = {"F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1"}
_DTYPE_NAMES = {np.dtype(kind): name for name, kind in _DTYPES.items()}
_MAX_HEADER_BYTES = 1 << 22
"""A header claims its own length, so it is bounded before it is read."""
_MAX_DIMENSIONS = 4
_ALIGNMENT = 8


class BadTensorFile(ValueError):
    """The file does not have this format, or its header contradicts it."""


def read_tensors(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays of a file by name, and its notes. The arrays are read-only views of one buffer."""
    buffer = np.fromfile(path, dtype=np.uint8)
    if buffer.size < 8:
        raise BadTensorFile("it is shorter than the shortest such file")
    length = int.from_bytes(buffer[:8].tobytes(), "little")
    if length > min(_MAX_HEADER_BYTES, buffer.size - 8):
        raise BadTensorFile(f"its header is said to have {length:,} bytes")
    buffer.flags.writeable = False
    try:
        header: Any = json.loads(buffer[8 : 8 + length].tobytes().decode("utf-8"))
    except (ValueError, RecursionError):
        raise BadTensorFile("its header is not JSON") from None
    if not isinstance(header, dict):
        raise BadTensorFile("its header is not an object")
    entries = cast("dict[str, Any]", header)
    notes = entries.pop("__metadata__", {})
    if not isinstance(notes, dict):
        raise BadTensorFile("its notes are not an object")
    texts = cast("dict[str, str]", notes)
    if not all(isinstance(value, str) for value in texts.values()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadTensorFile("its notes are not texts")
    return _read_arrays(entries, buffer[8 + length :]), texts


def _read_arrays(header: Mapping[str, Any], body: NDArray[np.uint8]) -> dict[str, Array]:
    """The arrays by name. Together they must fill the file, without gaps and without sharing a byte."""
    arrays: dict[str, Array] = {}
    offset = 0
    for name, (kind, shape, start, end) in sorted(
        ((name, _parse_entry(name, facts)) for name, facts in header.items()), key=lambda entry: entry[1][2:]
    ):
        dtype = np.dtype(_DTYPES[kind])
        if start != offset or end > body.size or end - start != math.prod(shape) * dtype.itemsize:
            raise BadTensorFile(f"the bytes of {name!r} are not where its header says")
        arrays[name] = body[start:end].view(dtype).reshape(shape)
        offset = end
    if offset != body.size:
        raise BadTensorFile(f"{body.size - offset:,} bytes at its end belong to nothing")
    return arrays


def _parse_entry(name: str, written: object) -> tuple[str, tuple[int, ...], int, int]:
    """Type, shape, start and end of an array, from its entry in the header."""
    facts = cast("dict[str, Any]", written) if isinstance(written, dict) else {}
    kind, shape, place = facts.get("dtype"), facts.get("shape"), facts.get("data_offsets")
    if (
        kind not in _DTYPES
        or not _is_size_list(shape, _MAX_DIMENSIONS)
        or not _is_size_list(place, 2)
        or len(place) != 2
    ):
        raise BadTensorFile(f"what its header says about {name[:60]!r} cannot be read")
    return kind, tuple(shape), place[0], place[1]


def _is_size_list(written: Any, most: int) -> TypeGuard[list[int]]:
    if not isinstance(written, list):
        return False
    sizes = cast("list[object]", written)
    return len(sizes) <= most and all(type(size) is int and 0 <= size < 1 << 48 for size in sizes)


def tensor_file_pieces(arrays: Mapping[str, Array], notes: Mapping[str, str]) -> list[bytes]:
    """The bytes of a file with these arrays, in pieces to write one after another; equal arrays give equal bytes."""
    header: dict[str, object] = {"__metadata__": dict(notes)}
    pieces: list[bytes] = []
    offset = 0
    for name, array in sorted(arrays.items()):
        raw = np.ascontiguousarray(array).tobytes()
        place = [offset, offset + len(raw)]
        header[name] = {"dtype": _DTYPE_NAMES[array.dtype], "shape": list(array.shape), "data_offsets": place}
        pieces.append(raw)
        offset += len(raw)
    encoded = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    encoded += b" " * (-len(encoded) % _ALIGNMENT)
    return [len(encoded).to_bytes(8, "little"), encoded, *pieces]


# The thread limit of BLAS is global to the process, so users of it are counted: the first sets it, the last resets it.
_limit_lock = Lock()
_limit_users = 0
_active_limit: AbstractContextManager[object] | None = None


# Finds the BLAS library that importing numpy has loaded.
_threadpool_controller = cache(ThreadpoolController)


@contextmanager
def one_core_each() -> Generator[None]:
    """Limit matrix products to one core each while any thread is inside; the earlier limit is restored afterwards."""
    global _limit_users, _active_limit
    with _limit_lock:
        if _limit_users == 0:
            _active_limit = _threadpool_controller().limit(limits=1, user_api="blas")
            _active_limit.__enter__()
        _limit_users += 1
    try:
        yield
    finally:
        with _limit_lock:
            _limit_users -= 1
            if _limit_users == 0 and _active_limit is not None:
                _active_limit.__exit__(None, None, None)
                _active_limit = None


Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class BertShape:
    """The parameters of the model that the weights do not contain."""

    layers: int
    heads: int
    epsilon: float
    positions: int

    @staticmethod
    def of(config: Mapping[str, Any]) -> BertShape:
        """From the model's `config.json`; ValueError if it is of another family."""
        if (config["model_type"], config["hidden_act"], config["position_embedding_type"]) != (
            "bert",
            "gelu",
            "absolute",
        ):
            raise ValueError("it is not of the BERT family")
        return BertShape(
            int(config["num_hidden_layers"]),
            int(config["num_attention_heads"]),
            float(config["layer_norm_eps"]),
            int(config["max_position_embeddings"]),
        )


@dataclass(frozen=True, slots=True)
class _Dense:
    weight: Matrix
    bias: Matrix

    def __call__(self, rows: Matrix) -> Matrix:
        out = rows @ self.weight
        out += self.bias
        return out


@dataclass(frozen=True, slots=True)
class _Norm:
    scale: Matrix
    shift: Matrix
    epsilon: float

    def __call__(self, rows: Matrix) -> Matrix:
        centred = rows - rows.mean(axis=1, keepdims=True)
        spread = np.einsum("ij,ij->i", centred, centred)[:, None] / np.float32(rows.shape[1])
        centred /= np.sqrt(spread + np.float32(self.epsilon))
        centred *= self.scale
        centred += self.shift
        return centred


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer: self-attention, then the feed-forward network."""

    query_key_value: _Dense
    attention_output: _Dense
    attention_norm: _Norm
    feed_forward_in: _Dense
    feed_forward_out: _Dense
    output_norm: _Norm
    heads: int

    def __call__(self, rows: Matrix, lengths: Sequence[int]) -> Matrix:
        rows = self.attention_norm(self.attention_output(self._attend(self.query_key_value(rows), lengths)) + rows)
        return self.output_norm(self.feed_forward_out(gelu(self.feed_forward_in(rows))) + rows)

    def _attend(self, projected: Matrix, lengths: Sequence[int]) -> Matrix:
        width = projected.shape[1] // 3
        size = width // self.heads
        out = np.empty((projected.shape[0], width), dtype=np.float32)
        start = 0
        for length in lengths:
            end = start + length
            parts = projected[start:end].reshape(length, 3, self.heads, size)
            query, key, value = (parts[:, part].transpose(1, 0, 2) for part in range(3))
            scores = query @ key.transpose(0, 2, 1)
            scores -= scores.max(axis=2, keepdims=True)
            np.exp(scores, out=scores)
            mixed = scores @ value
            mixed /= scores.sum(axis=2, keepdims=True)
            out[start:end].reshape(length, self.heads, size)[...] = mixed.transpose(1, 0, 2)
            start = end
        return out


class Bert:
    """Vectors of texts that are given as token numbers."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]], shape: BertShape) -> None:
        self._words = _as_float32(tensors, "embeddings.word_embeddings.weight")
        # Every token is of the first type: pairs of texts are not used here.
        kind = _as_float32(tensors, "embeddings.token_type_embeddings.weight")[0]
        self._places = _as_float32(tensors, "embeddings.position_embeddings.weight") + kind
        self._entry = _build_norm(tensors, "embeddings.LayerNorm", shape)
        self._layers = [_build_layer(tensors, f"encoder.layer.{number}", shape) for number in range(shape.layers)]

    @property
    def width(self) -> int:
        return self._words.shape[1]

    def vectors(self, texts: Sequence[Sequence[int]]) -> Matrix:
        """One row of length 1 per text: the mean over its tokens, normalised."""
        lengths = [len(tokens) for tokens in texts]
        tokens = np.concatenate([np.asarray(each, dtype=np.int64) for each in texts])
        places = np.concatenate([np.arange(length) for length in lengths])
        rows = self._entry(self._words[tokens] + self._places[places])
        for layer in self._layers:
            rows = layer(rows, lengths)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        sums = np.add.reduceat(rows, starts, axis=0)
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)


_GELU_BLOCK = 1 << 15
_SQRT_HALF = np.float32(0.7071067811865476)
_ERF_NUMERATOR = [
    np.float32(factor)
    for factor in "-2.72614225801306e-10 2.77068142495902e-08 -2.10102402082508e-06 -5.69250639462346e-05"
    " -7.34990630326855e-04 -2.95459980854025e-03 -1.60960333262415e-02".split()
]
_ERF_DENOMINATOR = [
    np.float32(factor)
    for factor in "-1.45660718464996e-05 -2.13374055278905e-04 -1.68282697438203e-03 -7.37332916720468e-03"
    " -1.42647390514189e-02".split()
]


def gelu(rows: Matrix) -> Matrix:
    """`x · (1 + erf(x / √2)) / 2`, in place, with an error below 2e-6.

    numpy has no error function. This is the usual rational approximation, constant beyond ±4. It needs no exponential;
    after the matrix products it takes most of the time.
    """
    flat = rows.reshape(-1)
    # In blocks that fit into the processor's cache.
    for start in range(0, flat.size, _GELU_BLOCK):
        x = flat[start : start + _GELU_BLOCK]
        z = np.multiply(x, _SQRT_HALF, dtype=np.float32)
        np.clip(z, np.float32(-4), np.float32(4), out=z)
        square = np.square(z)
        z *= _polynomial(_ERF_NUMERATOR, square)
        z /= _polynomial(_ERF_DENOMINATOR, square)
        z += np.float32(1)
        z *= np.float32(0.5)
        x *= z
    return rows


def _polynomial(factors: Sequence[np.float32], x: Matrix) -> Matrix:
    total = x * factors[0]
    for factor in factors[1:-1]:
        total += factor
        total *= x
    total += factors[-1]
    return total


def _build_layer(tensors: Mapping[str, NDArray[Any]], name: str, shape: BertShape) -> _Layer:
    own = f"{name}.attention.self"
    query, key, value = (_build_dense(tensors, f"{own}.{part}") for part in ("query", "key", "value"))
    # Attention scores are divided by the root of a head's size. Scaling the query weights once has the same effect.
    scale = np.float32(1 / np.sqrt(query.weight.shape[1] / shape.heads))
    weight = np.concatenate([query.weight * scale, key.weight, value.weight], axis=1)
    bias = np.concatenate([query.bias * scale, key.bias, value.bias])
    return _Layer(
        _Dense(weight, bias),
        _build_dense(tensors, f"{name}.attention.output.dense"),
        _build_norm(tensors, f"{name}.attention.output.LayerNorm", shape),
        _build_dense(tensors, f"{name}.intermediate.dense"),
        _build_dense(tensors, f"{name}.output.dense"),
        _build_norm(tensors, f"{name}.output.LayerNorm", shape),
        shape.heads,
    )


def _build_dense(tensors: Mapping[str, NDArray[Any]], name: str) -> _Dense:
    # Published with one row per output; the product needs one row per input.
    return _Dense(np.ascontiguousarray(_as_float32(tensors, f"{name}.weight").T), _as_float32(tensors, f"{name}.bias"))


def _build_norm(tensors: Mapping[str, NDArray[Any]], name: str, shape: BertShape) -> _Norm:
    return _Norm(_as_float32(tensors, f"{name}.weight"), _as_float32(tensors, f"{name}.bias"), shape.epsilon)


def _as_float32(tensors: Mapping[str, NDArray[Any]], name: str) -> Matrix:
    return tensors[name].astype(np.float32, copy=False)
