"""`bicameral models` with models of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_world import World
from click.shell_completion import ShellComplete
from gguf_world import CHAT_FACTS, rewrite_gguf, write_gguf
from template_styles import GEMMA

from bicameral.cli import main
from bicameral.models import ModelStore, find_weights


def own(world: World) -> list[dict[str, object]]:
    return [model for model in world.json("models", "list")["models"] if model["own"]]


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("x.gguf",), 1, "models.no-template"),
        (("none.gguf",), 1, "models.file-missing"),
        (("text.gguf",), 1, "models.not-gguf"),
        (("x.gguf", "--as", "1.5b"), 2, "models.name-taken"),
        (("x.gguf", "--as", "../x"), 2, "models.bad-name"),
        (("hub:x.gguf",), 2, "models.bad-reference"),
        (("owner/repo/x.gguf", "--offline"), 1, "models.no-source"),
    ],
)
def test_what_cannot_be_added_is_refused_with_a_code_and_a_reason(
    world: World, words: tuple[str, ...], status: int, code: str
) -> None:
    write_gguf(world.folder / "x.gguf", {**CHAT_FACTS, "tokenizer.chat_template": ""})
    world.write("text.gguf", "no model")
    error = world.json("models", "add", *words, code=status)["error"]
    assert error["code"] == code
    assert error["message"]
    assert own(world) == []


def test_a_file_in_the_configuration_is_listed_verified_found_completed_and_taken_out(world: World) -> None:
    write_gguf(world.folder / "x.gguf", CHAT_FACTS)
    world.write("mine.toml", '[models]\nprivileged = "x.gguf"\n')
    listed = world.json("models", "list", "--config", "mine.toml")["models"]
    (model,) = [each for each in listed if each["own"]]
    assert (model["state"], model["used"], model["title"]) == ("present", True, "Tiny")
    name = str(model["alias"])
    assert name in world.call("models", "list").stdout
    assert world.json("models", "path", name)["path"] == str(world.folder / "x.gguf")
    assert world.json("models", "verify", name)["models"][0]["state"] == "present"
    found = ShellComplete(main, {}, "bicameral", "_X").get_completions(["models", "verify"], name[:3])
    assert [item.value for item in found] == [name]
    planning = ShellComplete(main, {}, "bicameral", "_X").get_completions(["run", "--model"], name[:3])
    assert [item.value for item in planning] == [name]
    (world.folder / "x.gguf").write_bytes(b"GGUF changed")
    assert world.json("models", "verify", name, code=1)["models"][0]["state"] == "damaged"
    assert world.json("models", "path", name, code=1)["error"]["code"] == "models.changed"
    assert world.json("models", "rm", name)["removed"] == {name: True}
    assert (world.folder / "x.gguf").exists()
    assert own(world) == []


def test_a_model_of_the_hub_that_was_not_added_does_not_stop_the_list(world: World) -> None:
    world.write("mine.toml", '[models]\nprivileged = "hub:owner/repo/x.gguf"\n')
    listed = world.call("models", "list", "--config", "mine.toml")
    assert listed.exit_code == 0
    assert "models pull" in listed.stderr
    assert (
        world.json("models", "pull", "--offline", "--config", "mine.toml", code=1)["error"]["code"]
        == "models.no-source"
    )


@pytest.mark.model
@pytest.mark.only_live
def test_a_real_model_is_added_under_a_name(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Path.home() / ".cache" / "bicameral" / "models"
    weights = ModelStore(store).ensure(find_weights("135m"))
    renamed = {"<|im_start|>": "<start_of_turn>", "<|im_end|>": "<end_of_turn>"}
    rewrite_gguf(weights, world.folder / "x.gguf", {"tokenizer.chat_template": GEMMA}, renamed=renamed)
    added = world.json("models", "add", "x.gguf", "--as", "tiny")["added"]
    assert (added["id"], added["marked"], added["path"]) == ("tiny", True, str(world.folder / "x.gguf"))
    assert [model["alias"] for model in own(world)] == ["tiny"]
    # Again the same file under the same name is no mistake, another one is.
    assert world.json("models", "add", "x.gguf", "--as", "tiny")["added"]["sha256"] == added["sha256"]
    rewrite_gguf(weights, world.folder / "y.gguf", {"tokenizer.chat_template": GEMMA + "\n"}, renamed=renamed)
    assert world.json("models", "add", "y.gguf", "--as", "tiny", code=2)["error"]["code"] == "models.name-taken"
