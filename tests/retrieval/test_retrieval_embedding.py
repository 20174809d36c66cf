"""Embeddings: the encoder by itself against the plain formulas, and with the real weights against PyTorch's vectors."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from bicameral.errors import ModelError, RetrievalError
from bicameral.models import ModelStore, find_weights
from bicameral.retrieval import LocalEmbedder, _embedding as _extra
from bicameral.retrieval._encoder import Bert, BertShape, gelu, one_core_each

REFERENCE: dict[str, Any] = json.loads(Path(__file__).with_name("reference_vectors.json").read_text(encoding="utf-8"))
SHAPE = BertShape(layers=2, heads=3, epsilon=1e-12, positions=16)


# -- without weights


def test_gelu_is_the_exact_one_and_not_its_common_shortcut() -> None:
    x = np.concatenate([np.linspace(-12, 12, 100_001), [0.0, -0.0, 1e30, -1e30]]).astype(np.float32)
    exact = np.array([each * 0.5 * (1 + math.erf(each / math.sqrt(2))) for each in x.astype(np.float64)])
    assert np.abs(gelu(x.copy()) - exact)[:-4].max() < 3e-6
    assert gelu(x.copy())[-4:].tolist() == pytest.approx([0, 0, 1e30, 0], abs=1e25)


def some_weights() -> dict[str, NDArray[Any]]:
    """A small model with random weights, with the names that published ones have."""
    chance = np.random.default_rng(7)

    def make(*shape: int) -> NDArray[Any]:
        return chance.standard_normal(shape).astype(np.float32) * 0.3

    width, inner = 12, 20
    found: dict[str, NDArray[Any]] = {
        "embeddings.word_embeddings.weight": make(30, width),
        "embeddings.position_embeddings.weight": make(16, width),
        "embeddings.token_type_embeddings.weight": make(2, width),
    }
    norms = ["embeddings.LayerNorm"]
    for number in range(SHAPE.layers):
        layer = f"encoder.layer.{number}"
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
        sizes = {f"attention.self.{part}": (width, width) for part in ("query", "key", "value")}
        sizes |= {"attention.output.dense": (width, width), "intermediate.dense": (inner, width)}
        sizes |= {"output.dense": (width, inner)}
        for name, (rows, columns) in sizes.items():
            found |= {f"{layer}.{name}.weight": make(rows, columns), f"{layer}.{name}.bias": make(rows)}
    for name in norms:
        found |= {f"{name}.weight": make(width) + 1, f"{name}.bias": make(width)}
    return found


def by_the_book(weights: dict[str, NDArray[Any]], tokens: list[int]) -> NDArray[np.float64]:
    """One text, token by token and head by head, in double precision."""
    w = {name: array.astype(np.float64) for name, array in weights.items()}

    def norm(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        centred = x - x.mean()
        scaled = centred / math.sqrt((centred**2).mean() + SHAPE.epsilon)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return w[f"{name}.weight"] @ x + w[f"{name}.bias"]

    kind = w["embeddings.token_type_embeddings.weight"][0]
    words, places = w["embeddings.word_embeddings.weight"], w["embeddings.position_embeddings.weight"]
    rows = [norm(words[token] + places[at] + kind, "embeddings.LayerNorm") for at, token in enumerate(tokens)]
    for number in range(SHAPE.layers):
        layer = f"encoder.layer.{number}"
        q, k, v = ([dense(row, f"{layer}.attention.self.{n}") for row in rows] for n in ("query", "key", "value"))
        size = len(q[0]) // SHAPE.heads
        mixed: list[NDArray[np.float64]] = []
        for at in range(len(rows)):
            parts: list[NDArray[np.float64]] = []
            for head in range(SHAPE.heads):
                own = slice(head * size, (head + 1) * size)
                scores = np.array([q[at][own] @ other[own] / math.sqrt(size) for other in k])
                shares = np.exp(scores) / np.exp(scores).sum()
                parts.append(sum((s * other[own] for s, other in zip(shares, v, strict=True)), np.zeros(size)))
            mixed.append(np.concatenate(parts))
        out = f"{layer}.attention.output"
        rows = [norm(dense(m, f"{out}.dense") + row, f"{out}.LayerNorm") for m, row in zip(mixed, rows, strict=True)]
        inner = [dense(row, f"{layer}.intermediate.dense") for row in rows]
        inner = [np.array([x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in row]) for row in inner]
        outer = [dense(row, f"{layer}.output.dense") for row in inner]
        rows = [norm(o + row, f"{layer}.output.LayerNorm") for o, row in zip(outer, rows, strict=True)]
    mean = np.mean(rows, axis=0)
    return mean / np.linalg.norm(mean)


@given(texts=st.lists(st.lists(st.integers(0, 29), min_size=1, max_size=16), min_size=1, max_size=5))
def test_the_encoder_does_what_the_formulas_say_whatever_stands_beside_a_text(texts: list[list[int]]) -> None:
    weights = some_weights()
    vectors = Bert(weights, SHAPE).vectors(texts)
    for vector, tokens in zip(vectors, texts, strict=True):
        assert np.allclose(vector, by_the_book(weights, tokens), atol=1e-4)


@pytest.mark.parametrize(
    "change", [{"model_type": "gpt2"}, {"hidden_act": "relu"}, {"position_embedding_type": "rope"}]
)
def test_a_model_of_another_family_is_refused(change: dict[str, str]) -> None:
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
        "num_hidden_layers": 6,
        "num_attention_heads": 12,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512,
    }
    assert BertShape.of(config) == BertShape(6, 12, 1e-12, 512)
    with pytest.raises(ValueError, match="family"):
        BertShape.of(config | change)


def test_importing_the_room_imports_nothing_heavy() -> None:
    program = "import sys, bicameral.retrieval; print([m for m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert not {"numpy", "tokenizers", "xllamacpp", "huggingface_hub", "rich", "pydantic"} & set(eval(printed))


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_extra, "REQUIRED_PACKAGES", ("numpy", "no_such_package"))
    with pytest.raises(RetrievalError) as caught:
        LocalEmbedder()
    assert caught.value.code == "retrieval.not-installed"
    assert 'pip install "bicameral[retrieval]"' in str(caught.value)


def test_a_chat_model_cannot_embed_and_an_embedding_model_cannot_chat() -> None:
    with pytest.raises(ModelError) as caught:
        LocalEmbedder("0.5b")
    assert caught.value.code == "models.wrong-kind"
    with pytest.raises(ModelError) as caught:
        find_weights("minilm")
    assert caught.value.code == "models.wrong-kind"


def test_weights_that_are_not_here_are_said_when_they_are_needed(tmp_path: Path) -> None:
    embedder = LocalEmbedder(store=ModelStore(tmp_path), offline=True)
    assert embedder.name == "local:all-minilm-l6-v2@53aa5117"
    with pytest.raises(ModelError) as caught:
        embedder.vectors(["text"])
    assert caught.value.code == "models.no-source"


# -- with the real weights


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.mark.model
def test_vectors_are_those_of_the_reference(embedder: LocalEmbedder) -> None:
    found = embedder.vectors([each["text"] * each["times"] for each in REFERENCE["texts"]])
    for vector, each in zip(found, REFERENCE["texts"], strict=True):
        expected = np.array(each["vector"])
        assert vector @ expected / np.linalg.norm(expected) > 0.9999, each["text"]
        assert np.abs(vector - expected).max() < 1e-4, each["text"]


@pytest.mark.model
def test_many_texts_give_what_each_gives_alone_on_any_number_of_threads(embedder: LocalEmbedder) -> None:
    texts = [f"text number {n} " * (n % 40 + 1) for n in range(20)]
    many = embedder.vectors(texts)
    one = LocalEmbedder(threads=1).vectors(texts)
    assert np.abs(many - one).max() < 1e-5
    assert np.abs(many[13] - embedder.vectors(texts[13:14])[0]).max() < 1e-5


def test_the_number_of_threads_of_products_is_as_it_was_afterwards() -> None:
    def threads() -> list[int]:
        # The local model's engine, loaded in the same process, brings threads of its own: these are not of products.
        return [each["num_threads"] for each in ThreadpoolController().info() if each["user_api"] == "blas"]

    before = threads()
    with one_core_each():
        with one_core_each():
            assert set(threads()) == {1}
        assert set(threads()) == {1}
    assert threads() == before


@pytest.mark.model
def test_a_vector_does_not_depend_on_what_is_embedded_with_it(embedder: LocalEmbedder) -> None:
    texts = ["short", "a somewhat longer text about pumps", "x " * 300, ""]
    together = embedder.vectors(texts)
    for alone, vector in zip(texts, together, strict=True):
        assert np.abs(embedder.vectors([alone])[0] - vector).max() < 1e-5


@pytest.mark.model
def test_what_means_the_same_is_nearer_than_what_does_not(embedder: LocalEmbedder) -> None:
    due, paid, llama = embedder.vectors(
        ["The invoice is due on Friday.", "When must the bill be paid?", "Llamas spit."]
    )
    assert due @ paid > 0.4 > 0.2 > due @ llama


@pytest.mark.model
def test_a_text_that_spells_a_control_token_has_none(embedder: LocalEmbedder) -> None:
    assert embedder.lengths(["[SEP]", "[PAD] [MASK]"]) == [3, 6]


@pytest.mark.model
@pytest.mark.parametrize("text", ["", " ", "\x00", "half \ud83d", "🦙" * 50, "y" * 20_000, "\u0301" * 300])
def test_odd_texts_have_vectors_too(embedder: LocalEmbedder, text: str) -> None:
    (vector,) = embedder.vectors([text])
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert embedder.lengths([text])[0] >= 0


@pytest.mark.model
def test_the_embedder_says_what_it_is(embedder: LocalEmbedder) -> None:
    assert (embedder.width, embedder.window) == (384, 254)
    assert embedder.fingerprint == LocalEmbedder().fingerprint
    assert embedder.vectors([]).shape == (0, 384)


@pytest.mark.model
def test_a_question_is_embedded_in_a_moment(embedder: LocalEmbedder) -> None:
    took: list[float] = []
    for _ in range(9):
        started = time.perf_counter()
        embedder.vectors(["When must the bill be paid?"])
        took.append(time.perf_counter() - started)
    assert min(took) < 0.2
