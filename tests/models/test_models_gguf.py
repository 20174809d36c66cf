"""GGUF headers: what is refused before anything is loaded, and that no header does harm."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from gguf_world import CHAT_FACTS, write_gguf
from hypothesis import HealthCheck, given, settings, strategies as st

from bicameral.errors import ModelError
from bicameral.models._gguf import inspect_gguf
from bicameral.models._own_models import check_template
from bicameral.models._prompts import read_vocabulary


def refusal(path: Path) -> ModelError:
    with pytest.raises(ModelError) as caught:
        inspect_gguf(path)
    assert caught.value.fix
    assert caught.value.place is not None
    assert caught.value.place.file == str(path)
    return caught.value


def test_a_whole_chat_model_is_accepted_with_what_its_header_says(tmp_path: Path) -> None:
    model = inspect_gguf(write_gguf(tmp_path / "x.gguf", CHAT_FACTS))
    assert (model.architecture, model.name, model.licence, model.context) == ("llama", "Tiny", "apache-2.0", 64)


@pytest.mark.parametrize(
    "content", [b"", b"GG", b"no model", b"GGUF", b"PK\x03\x04" + b"\0" * 60, b"GGUF" + b"\xff" * 90]
)
def test_a_file_that_is_not_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    assert refusal(path).code == "models.not-gguf"


def test_a_file_that_is_not_there_or_is_a_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "x.gguf").code == "models.file-missing"
    assert refusal(tmp_path).code == "models.file-unreadable"


@pytest.mark.parametrize("kept", [0.999, 0.9])
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, kept: float) -> None:
    path = write_gguf(tmp_path / "x.gguf", CHAT_FACTS, tensor=b"\0" * 40_000)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    error = refusal(path)
    assert error.code == "models.truncated"
    assert "cut off" in error.message


@pytest.mark.parametrize(
    ("changed", "code", "says"),
    [
        ({"split.count": 3, "split.no": 0}, "models.split", "3 parts"),
        ({"general.architecture": "bert"}, "models.wrong-kind", "embedding"),
        ({"llama.pooling_type": 1}, "models.wrong-kind", "embedding"),
        ({"general.type": "adapter"}, "models.wrong-kind", "adapter"),
        ({"general.architecture": "clip"}, "models.wrong-kind", "pictures"),
        ({"tokenizer.ggml.tokens": []}, "models.wrong-kind", "vocabulary"),
        ({"tokenizer.chat_template": ""}, "models.no-template", "chat template"),
        ({"tokenizer.chat_template": "  \n"}, "models.no-template", "chat template"),
    ],
)
def test_what_cannot_reply_is_refused_with_the_reason(
    tmp_path: Path, changed: dict[str, Any], code: str, says: str
) -> None:
    error = refusal(write_gguf(tmp_path / "x.gguf", {**CHAT_FACTS, **changed}))
    assert error.code == code
    assert says in error.message


def test_a_model_of_one_part_that_says_so_is_accepted(tmp_path: Path) -> None:
    assert inspect_gguf(write_gguf(tmp_path / "x.gguf", {**CHAT_FACTS, "split.count": 1})).name == "Tiny"


def test_weights_without_a_template_are_refused_where_they_are_used_too(tmp_path: Path) -> None:
    facts = {key: value for key, value in CHAT_FACTS.items() if key != "tokenizer.chat_template"}
    path = write_gguf(tmp_path / "x.gguf", facts)
    assert refusal(path).code == "models.no-template"
    with pytest.raises(ModelError) as caught:
        read_vocabulary(path, own_template=True)
    assert caught.value.code == "models.no-template"


def test_a_template_that_cannot_be_used_is_refused_with_the_file(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "x.gguf", {**CHAT_FACTS, "tokenizer.chat_template": "{% include 'x' %}"})
    with pytest.raises(ModelError) as caught:
        check_template(path)
    assert caught.value.code == "models.bad-template"
    assert "include" in caught.value.message
    assert caught.value.place is not None
    assert caught.value.place.file == str(path)


@pytest.mark.parametrize(
    ("tokens", "kinds", "bos", "chosen"),
    [
        (["<|im_end|>", "<|im_start|>", "a"], (3, 3, 1), 0, (1, 0)),
        (["<s>", "</s>", "a"], (3, 3, 1), 0, (0, 1)),
        (["a", "<|endoftext|>", "<|user|>", "<|end|>"], (1, 3, 3, 3), 1, (2, 1)),
        (["<|begin_of_text|>", "<|eot_id|>", "<|end_header_id|>"], (3, 3, 3), 0, (0, 1)),
    ],
)
def test_the_token_that_shows_a_dropped_constraint_never_ends_a_reply(
    tmp_path: Path, tokens: list[str], kinds: tuple[int, ...], bos: int, chosen: tuple[int, int]
) -> None:
    facts = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.bos_token_id": bos}
    path = write_gguf(tmp_path / "x.gguf", {**CHAT_FACTS, **facts, "tokenizer.ggml.eos_token_id": 1})
    vocabulary = read_vocabulary(path, own_template=True)
    assert (vocabulary.start, vocabulary.end) == chosen
    assert vocabulary.tripwire == tokens[chosen[0]]


def test_weights_without_control_tokens_cannot_keep_turns_apart(tmp_path: Path) -> None:
    facts = {"tokenizer.ggml.tokens": ["a", "</s>"], "tokenizer.ggml.token_type": (1, 3)}
    with pytest.raises(ModelError) as caught:
        read_vocabulary(write_gguf(tmp_path / "x.gguf", {**CHAT_FACTS, **facts}), own_template=True)
    assert caught.value.code == "models.no-template"


@given(st.binary(max_size=64), st.integers(4, 600), st.integers(0, 600))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_header_is_refused_or_read_and_never_an_accident(
    tmp_path: Path, piece: bytes, at: int, cut: int
) -> None:
    path = write_gguf(tmp_path / "x.gguf", CHAT_FACTS)
    content = path.read_bytes()
    path.write_bytes(content[:at] + piece + content[at + cut :])
    for look in (inspect_gguf, check_template):
        # Any other exception fails the test.
        with suppress(ModelError):
            look(path)


def test_a_header_that_claims_a_huge_array_is_refused_without_memory_for_it(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    key = struct.pack("<Q", 1) + b"k"
    for claim in (
        struct.pack("<IIQ", 9, 8, 1 << 40),
        struct.pack("<IIQ", 9, 0, 1 << 40),
        struct.pack("<IQ", 8, 1 << 40),
    ):
        path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + key + claim)
        assert refusal(path).code == "models.not-gguf"
    path.write_bytes(
        struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + key + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 5000
    )
    assert refusal(path).code == "models.not-gguf"
