"""Adapters: pinned by hash, each in a slot of its own, and without a trace in the replies that do not use them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bicameral.errors import ModelError
from bicameral.models import Adapter, LocalProvider, Message, ModelRequest, ModelStore, adapters_of, find_weights
from bicameral.models._engine import Slots

ONE, TWO = Adapter(Path("one.gguf"), "1" * 64), Adapter(Path("two.gguf"), "2" * 64)


def request(setup: str = "You help.", text: str = "Say hi.") -> ModelRequest:
    return ModelRequest((Message("system", setup), Message("user", text)), max_tokens=12)


def test_without_adapters_one_slot_serves_all_and_the_engine_is_told_of_none() -> None:
    slots = Slots(())
    assert slots.count == 1
    assert slots.place(None).body == {"id_slot": 0}


def test_every_adapter_has_a_slot_that_nothing_else_uses() -> None:
    slots = Slots((ONE, TWO))
    used = [slots.place(adapter).slot for adapter in (None, ONE, TWO)]
    assert sorted(used) == list(range(slots.count))


def test_a_request_says_for_every_adapter_whether_it_counts() -> None:
    slots = Slots((ONE, TWO))
    assert slots.place(TWO).body["lora"] == [{"id": 0, "scale": 0.0}, {"id": 1, "scale": 1.0}]
    assert slots.place(None).body["lora"] == [{"id": 0, "scale": 0.0}, {"id": 1, "scale": 0.0}]


def test_every_pinned_adapter_comes_with_the_package_and_is_the_one_meant() -> None:
    found = [adapter for alias in ("0.5b", "1.5b") for adapter in adapters_of(find_weights(alias)).values()]
    assert found
    for adapter in found:
        adapter.check()


def test_a_damaged_adapter_is_refused_and_named(tmp_path: Path) -> None:
    good = adapters_of(find_weights("0.5b"))["delta"]
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(good.path.read_bytes()[:-1] + b"\0")
    with pytest.raises(ModelError) as caught:
        replace(good, path=bad).check()
    assert caught.value.code == "models.bad-adapter"
    assert "bad.gguf" in str(caught.value)


def test_a_missing_adapter_is_refused_and_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        Adapter(tmp_path / "gone.gguf", "0" * 64).check()
    assert caught.value.code == "models.bad-adapter"


async def test_a_job_that_nothing_was_trained_for_is_an_error(tmp_path: Path) -> None:
    model = LocalProvider(tmp_path / "none.gguf", name="local:none", adapters={"delta": ONE})
    with pytest.raises(ModelError) as caught:
        await model.generate(replace(request(), adapter="delts"))
    assert caught.value.code == "models.unknown-adapter"
    assert "delta" in str(caught.value)


@pytest.mark.model
async def test_an_adapter_changes_the_replies_that_use_it_and_no_others(small_model: LocalProvider) -> None:
    weights = find_weights("0.5b")
    asked = request("Tools:\nread_lines(path) -> lines: Read the lines of a text file", "How many lines has a.txt?")
    plain = (await small_model.generate(asked)).text
    trained = LocalProvider(ModelStore().ensure(weights), name="local:trained", adapters=adapters_of(weights))
    adapted = replace(asked, adapter="delta", prefill="```python\n")
    try:
        first = (await trained.generate(adapted)).text
        assert 'read_lines("a.txt")' in first
        assert (await trained.generate(asked)).text == plain
        assert (await trained.generate(adapted)).text == first
        assert (await trained.generate(asked)).text == plain
    finally:
        await trained.aclose()


@pytest.mark.model
@pytest.mark.only_live
async def test_the_large_model_begins_a_plan_with_its_adapter() -> None:
    weights = find_weights("1.5b")
    asked = request("Tools:\nread_lines(path) -> lines: Read the lines of a text file", "How many lines has a.txt?")
    trained = LocalProvider(ModelStore().ensure(weights), name="local:trained", adapters=adapters_of(weights))
    try:
        reply = await trained.generate(replace(asked, adapter="delta", prefill="```python\n"))
    finally:
        await trained.aclose()
    assert 'read_lines("a.txt")' in reply.text
