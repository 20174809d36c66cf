"""Models of one's own, such as the candidates of the document: added by their file, or refused with a reason."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from gguf_world import CHAT_FACTS, write_gguf
from seed_world import World

from bicameral.config import Config, open_models
from bicameral.models import ModelStore, find_weights

STORE = ModelStore()
"""The store of this machine, and not that of the test's own user."""


def test_a_file_that_is_no_model_or_has_no_template_is_refused_with_the_reason(world: World) -> None:
    world.write("notes.gguf", "these are notes")
    assert world.json("models", "add", "notes.gguf", code=1)["error"]["code"] == "models.not-gguf"
    facts = {key: value for key, value in CHAT_FACTS.items() if key != "tokenizer.chat_template"}
    write_gguf(world.folder / "plain.gguf", facts)
    assert world.json("models", "add", "plain.gguf", code=1)["error"]["code"] == "models.no-template"
    assert [each for each in world.json("models", "list")["models"] if each.get("own")] == []


@pytest.mark.live
def test_a_model_is_added_by_its_file_and_serves_a_role(world: World) -> None:
    """A file under another name stands for the document's candidates: nothing is known of it but its own header."""
    file = world.folder / "candidate.gguf"
    file.symlink_to(_weights())
    added = world.json("models", "add", "candidate.gguf", "--as", "candidate")["added"]
    assert added["sha256"] == hashlib.sha256(_weights().read_bytes()).hexdigest()
    assert "candidate" in world.call("models", "list").output
    world.write("bicameral.toml", '[models]\nprivileged = "candidate"\n[llm.models]\nmine = "local/candidate"\n')
    config = Config.load()
    assert config.weights("privileged") == "candidate"
    assert "candidate" in open_models(config).privileged.name
    assert {"mine"} <= {each["alias"] for each in world.json("models", "aliases")["aliases"]}


def _weights() -> Path:
    return STORE.ensure(find_weights("0.5b"))
