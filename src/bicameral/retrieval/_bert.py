"""The encoder of the BERT family, in numpy: tokens in, one vector of length 1 a text out.

Texts of a batch stand one after another in one matrix, so nothing is padded and no text is changed by its neighbours;
only attention goes text by text. Weights are read as they were published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Shape:
    """What the weights do not say of themselves."""

    layers: int
    heads: int
    epsilon: float
    positions: int

    @staticmethod
    def of(config: Mapping[str, Any]) -> Shape:
        """From the model's own `config.json`; ValueError if it is of another family."""
        if (config["model_type"], config["hidden_act"], config["position_embedding_type"]) != (
            "bert",
            "gelu",
            "absolute",
        ):
            raise ValueError("it is not of the BERT family")
        return Shape(
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
    """One layer: what a token asks of the others, then what it makes of the answer."""

    asking: _Dense
    answer: _Dense
    answered: _Norm
    inner: _Dense
    outer: _Dense
    done: _Norm
    heads: int

    def __call__(self, rows: Matrix, lengths: Sequence[int]) -> Matrix:
        rows = self.answered(self.answer(self._attend(self.asking(rows), lengths)) + rows)
        return self.done(self.outer(gelu(self.inner(rows))) + rows)

    def _attend(self, asked: Matrix, lengths: Sequence[int]) -> Matrix:
        width = asked.shape[1] // 3
        size = width // self.heads
        out = np.empty((asked.shape[0], width), dtype=np.float32)
        start = 0
        for length in lengths:
            end = start + length
            parts = asked[start:end].reshape(length, 3, self.heads, size)
            query, key, value = (parts[:, which].transpose(1, 0, 2) for which in range(3))
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

    def __init__(self, tensors: Mapping[str, NDArray[Any]], shape: Shape) -> None:
        self._words = _matrix(tensors, "embeddings.word_embeddings.weight")
        # Every token is of the first kind: there are no pairs of texts here.
        kind = _matrix(tensors, "embeddings.token_type_embeddings.weight")[0]
        self._places = _matrix(tensors, "embeddings.position_embeddings.weight") + kind
        self._entry = _norm(tensors, "embeddings.LayerNorm", shape)
        self._layers = [_layer(tensors, f"encoder.layer.{number}", shape) for number in range(shape.layers)]

    @property
    def width(self) -> int:
        return self._words.shape[1]

    def vectors(self, texts: Sequence[Sequence[int]]) -> Matrix:
        """One row a text, of length 1; the mean over its tokens."""
        lengths = [len(tokens) for tokens in texts]
        tokens = np.concatenate([np.asarray(each, dtype=np.int64) for each in texts])
        places = np.concatenate([np.arange(length) for length in lengths])
        rows = self._entry(self._words[tokens] + self._places[places])
        for layer in self._layers:
            rows = layer(rows, lengths)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        sums = np.add.reduceat(rows, starts, axis=0)
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)


_BLOCK = 1 << 15
_HALF_ROOT = np.float32(0.7071067811865476)
_OVER = (
    np.float32(-2.72614225801306e-10),
    np.float32(2.77068142495902e-08),
    np.float32(-2.10102402082508e-06),
    np.float32(-5.69250639462346e-05),
    np.float32(-7.34990630326855e-04),
    np.float32(-2.95459980854025e-03),
    np.float32(-1.60960333262415e-02),
)
_UNDER = (
    np.float32(-1.45660718464996e-05),
    np.float32(-2.13374055278905e-04),
    np.float32(-1.68282697438203e-03),
    np.float32(-7.37332916720468e-03),
    np.float32(-1.42647390514189e-02),
)


def gelu(rows: Matrix) -> Matrix:
    """`x · (1 + erf(x / √2)) / 2`, in place; off by less than 2e-6.

    numpy has no error function. This is the usual fraction of two polynomials, beyond ±4 constant, which needs no
    exponential and is what takes the time here after the products of matrices.
    """
    flat = rows.reshape(-1)
    # In blocks that stay in the processor's cache.
    for start in range(0, flat.size, _BLOCK):
        x = flat[start : start + _BLOCK]
        z = np.multiply(x, _HALF_ROOT, dtype=np.float32)
        np.clip(z, np.float32(-4), np.float32(4), out=z)
        square = np.square(z)
        z *= _polynomial(_OVER, square)
        z /= _polynomial(_UNDER, square)
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


def _layer(tensors: Mapping[str, NDArray[Any]], name: str, shape: Shape) -> _Layer:
    own = f"{name}.attention.self"
    query, key, value = (_dense(tensors, f"{own}.{part}") for part in ("query", "key", "value"))
    # Scores are divided by the root of a head's size; the queries are, once and here.
    scale = np.float32(1 / np.sqrt(query.weight.shape[1] / shape.heads))
    weight = np.concatenate([query.weight * scale, key.weight, value.weight], axis=1)
    bias = np.concatenate([query.bias * scale, key.bias, value.bias])
    return _Layer(
        _Dense(weight, bias),
        _dense(tensors, f"{name}.attention.output.dense"),
        _norm(tensors, f"{name}.attention.output.LayerNorm", shape),
        _dense(tensors, f"{name}.intermediate.dense"),
        _dense(tensors, f"{name}.output.dense"),
        _norm(tensors, f"{name}.output.LayerNorm", shape),
        shape.heads,
    )


def _dense(tensors: Mapping[str, NDArray[Any]], name: str) -> _Dense:
    # Published as rows of outputs; a product needs rows of inputs.
    return _Dense(np.ascontiguousarray(_matrix(tensors, f"{name}.weight").T), _matrix(tensors, f"{name}.bias"))


def _norm(tensors: Mapping[str, NDArray[Any]], name: str, shape: Shape) -> _Norm:
    return _Norm(_matrix(tensors, f"{name}.weight"), _matrix(tensors, f"{name}.bias"), shape.epsilon)


def _matrix(tensors: Mapping[str, NDArray[Any]], name: str) -> Matrix:
    return tensors[name].astype(np.float32, copy=False)
