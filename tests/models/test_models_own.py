"""Own models in the store: the registry of their files and hashes, without loading any of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gguf_world import CHAT_FACTS, write_gguf
from models_store_world import serving_hub

from bicameral.config import Config, EmbeddedProvider, model_store, needed_weights, with_planning_model
from bicameral.config._doctor import machine_checks
from bicameral.config._load import load_config
from bicameral.config._resources import protected_paths
from bicameral.config._routing import split_model_name
from bicameral.errors import BicameralError, ModelError
from bicameral.models import HubFile, ModelStore, Weights, parse_reference, parse_source
from bicameral.models._own_models import OwnModels


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "Tiny Model.Q4.gguf", CHAT_FACTS)


def code_of(call: object) -> str:
    with pytest.raises(BicameralError) as caught:
        call()  # type: ignore[operator]
    return caught.value.code


def entry(name: str = "mine", sha256: str = "ab" * 32, file: str = "/x.gguf") -> Weights:
    return Weights(name, name, "Mine", "unknown", 5, sha256, file=file, own=True)


def test_a_file_that_is_named_by_its_path_is_recorded_with_its_hash(store: ModelStore, file: Path) -> None:
    weights = store.find(str(file))
    assert (weights.own, weights.file, weights.adapters, weights.tested) == (True, str(file), {}, False)
    assert weights.title == "Tiny"
    assert weights.id == f"tiny-model.q4-{weights.sha256[:8]}"
    assert store.path(weights) == file
    assert store.find(weights.id) == store.find(f"sha256:{weights.sha256}") == store.find(str(file)) == weights
    recorded = json.loads((store.folder / "own-models.json").read_text())
    assert [each["sha256"] for each in recorded["models"]] == [weights.sha256]
    assert oct((store.folder / "own-models.json").stat().st_mode & 0o777) == "0o600"


def test_a_file_that_changed_since_it_was_added_is_not_used(store: ModelStore, file: Path) -> None:
    weights = store.find(str(file))
    # Its hash is known from now on, as long as the file looks the same.
    assert store.path(weights) == file
    before = file.stat()
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    # Neither its length nor its time give the change away.
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    for use in (lambda: store.path(weights), lambda: store.ensure(weights), lambda: store.pull(weights)):
        assert code_of(use) == "models.changed"
    assert store.verify(weights).state == "damaged"
    assert [each.state for each in store.list() if each.weights.own] == ["damaged"]
    content[-1] ^= 1
    file.write_bytes(content)
    assert store.path(weights) == file


def test_a_file_that_is_gone_is_named(store: ModelStore, file: Path) -> None:
    weights = store.find(str(file))
    file.unlink()
    assert store.path(weights) is None
    assert code_of(lambda: store.ensure(weights)) == "models.file-missing"
    assert [each.state for each in store.list() if each.weights.own] == ["missing"]


def test_an_own_model_is_not_replaced_by_a_given_file(store: ModelStore, file: Path) -> None:
    weights = store.find(str(file))
    assert code_of(lambda: store.pull(weights, file=file)) == "models.name-taken"


def test_loading_a_configuration_does_not_hash_the_files_that_it_names(project: Path) -> None:
    config = configured(project, '[models]\nprivileged = "models/x.gguf"\n[llm.models]\nmine = "models/x.gguf"\n')
    assert not (config.models_folder / "own-models.json").exists()


def test_taking_a_model_out_leaves_its_file(store: ModelStore, file: Path) -> None:
    weights = store.find(str(file))
    assert store.remove(weights)
    assert file.exists()
    assert not store.remove(weights)
    assert code_of(lambda: store.find(weights.id)) == "models.unknown"


@pytest.mark.parametrize("name", ["0.5b", "smollm2-135m", "minilm"])
def test_the_name_of_a_known_model_is_refused(store: ModelStore, file: Path, name: str) -> None:
    assert code_of(lambda: store.add(file, name)) == "models.name-taken"


@pytest.mark.parametrize("name", ["", "Big", "a b", "../x", "x.gguf", "abcdef12", "a" * 65, "local/x", "-x", "hub:x"])
def test_a_name_that_could_be_taken_for_something_else_is_refused(store: ModelStore, file: Path, name: str) -> None:
    # An empty one would be that of the file.
    assert code_of(lambda: store.add(file, name or "\n")) == "models.bad-name"
    assert not (store.folder / "own-models.json").exists()


def test_a_name_that_another_own_model_has_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    registry = OwnModels(tmp_path)
    registry.record(entry())
    registry.record(entry())
    assert code_of(lambda: registry.record(entry(sha256="cd" * 32))) == "models.name-taken"
    assert [each.sha256 for each in registry.entries()] == ["ab" * 32]


def test_an_unknown_name_is_told_with_the_own_models(store: ModelStore) -> None:
    store.own_models.record(entry("llama-3b"))
    with pytest.raises(ModelError) as caught:
        store.find("lama-3b")
    assert caught.value.code == "models.unknown"
    assert caught.value.nearest == "llama-3b"
    assert "llama-3b" in (caught.value.expected or "")


@pytest.mark.skipif(sys.platform == "win32", reason="permissions")
def test_a_registry_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    registry = OwnModels(tmp_path)
    registry.record(entry())
    registry.file.chmod(0o666)
    assert code_of(registry.entries) == "models.bad-registry"
    # What this package knows is found without it.
    assert ModelStore(tmp_path).find("0.5b").alias == "0.5b"
    registry.file.chmod(0o600)
    assert [each.id for each in registry.entries()] == ["mine"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"form": "own-models/9", "models": []}',
        '{"form": "own-models/1", "models": [{}]}',
        '{"form": "own-models/1", "models": 3}',
        "[" * 100_000,
        "\xff",
    ],
)
def test_a_registry_that_is_not_as_it_must_be_is_refused(tmp_path: Path, content: str) -> None:
    registry = OwnModels(tmp_path)
    registry.file.write_text(content, encoding="latin-1")
    registry.file.chmod(0o600)
    assert code_of(registry.entries) == "models.bad-registry"
    assert code_of(lambda: registry.record(entry())) == "models.bad-registry"
    assert registry.file.read_text(encoding="latin-1") == content


ADDING = """
import sys
from pathlib import Path
from bicameral.models import Weights
from bicameral.models._own_models import OwnModels
for number in range(10):
    name = f"m{sys.argv[2]}-{number}"
    OwnModels(Path(sys.argv[1])).record(Weights(name, name, "t", "l", 1, "ab" * 32, file="/x.gguf", own=True))
"""


def test_processes_that_add_models_at_the_same_time_lose_none(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", ADDING, str(tmp_path)]
    running = [subprocess.Popen([*argv, str(number)], env=os.environ) for number in range(3)]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    assert len(OwnModels(tmp_path).entries()) == 30


def test_names_of_the_header_cannot_steer_a_terminal(store: ModelStore, tmp_path: Path) -> None:
    hostile = {**CHAT_FACTS, "general.name": "\x1b[2J\u202eevil\nmore" + "x" * 500, "general.license": "\x07mit"}
    weights = store.find(str(write_gguf(tmp_path / "x.gguf", hostile)))
    assert len(weights.title) <= 60
    assert weights.title.isprintable()
    assert weights.licence.isprintable()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hub:a/b/c.gguf", HubFile("a/b", "c.gguf")),
        ("hub:Own-er/re.po/deep/er/c.GGUF", HubFile("Own-er/re.po", "deep/er/c.GGUF")),
        ("owner/repo/c.gguf", HubFile("owner/repo", "c.gguf")),
        ("./owner/repo/c.gguf", Path("owner/repo/c.gguf")),
        ("c.gguf", Path("c.gguf")),
    ],
)
def test_what_is_added_is_a_file_or_one_of_the_hub(text: str, found: HubFile | Path) -> None:
    assert parse_source(text) == found


@pytest.mark.parametrize(
    "text", ["hub:", "hub:x.gguf", "hub:a/b", "hub:a/b/c.bin", "hub:a/../c.gguf", "hub:a/b/../../c.gguf"]
)
def test_what_names_no_file_of_the_hub_is_refused(text: str) -> None:
    assert code_of(lambda: parse_reference(text)) == "models.bad-reference"


@pytest.mark.parametrize(
    ("model", "split"),
    [
        ("openai/gpt-4.1", ("openai", "gpt-4.1")),
        ("local/0.5b", ("local", "0.5b")),
        ("local/models/x.gguf", ("local", "models/x.gguf")),
        ("local//abs/x.gguf", ("local", "/abs/x.gguf")),
        ("models/x.gguf", ("local", "models/x.gguf")),
        ("/abs/x.gguf", ("local", "/abs/x.gguf")),
        ("hub:a/b/x.gguf", ("local", "hub:a/b/x.gguf")),
        ("llamacpp/x.gguf", ("llamacpp", "x.gguf")),
        ("./llamacpp/x.gguf", ("local", "./llamacpp/x.gguf")),
    ],
)
def test_a_gguf_file_needs_no_family_and_a_servers_model_keeps_its_own(model: str, split: tuple[str, str]) -> None:
    assert split_model_name(model) == split


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BICAMERAL_MODELS", str(tmp_path / "store"))
    (tmp_path / "project" / "models").mkdir(parents=True)
    write_gguf(tmp_path / "project" / "models" / "x.gguf", CHAT_FACTS)
    return tmp_path / "project"


def configured(project: Path, text: str) -> Config:
    (project / "bicameral.toml").write_text(text)
    # The working folder is another one: paths start at the file that names them.
    return load_config(project / "bicameral.toml", base=project.parent)


def test_a_path_in_the_configuration_starts_at_its_file(project: Path) -> None:
    config = configured(project, '[models]\nprivileged = "models/x.gguf"\n')
    provider = EmbeddedProvider(config, "privileged")
    assert provider.weights.file == str(project / "models" / "x.gguf")
    assert provider.name == f"local:{provider.weights.id}@{provider.weights.sha256[:8]}"
    assert (provider.adapters, provider.grammars) == ({}, True)
    assert [each.file or each.alias for each in needed_weights(config)] == [provider.weights.file, "0.5b"]


@pytest.mark.parametrize("model", ["models/x.gguf", "local/models/x.gguf", "./models/x.gguf"])
def test_an_alias_can_be_a_file_or_an_own_model(project: Path, model: str) -> None:
    config = configured(project, f'[llm]\ndefault_model = "mine"\n[llm.models]\nmine = "{model}"\n')
    (weights,) = needed_weights(config, ["privileged"])
    assert weights.file == str(project / "models" / "x.gguf")
    named = configured(project, f'[llm]\ndefault_model = "mine"\n[llm.models]\nmine = "local/{weights.alias}"\n')
    assert needed_weights(named, ["privileged"]) == [weights]


def test_a_file_that_an_alias_names_and_that_is_not_there_is_told_with_its_place(project: Path) -> None:
    with pytest.raises(BicameralError) as caught:
        configured(project, '[llm.models]\nmine = "models/y.gguf"\n')
    assert caught.value.code == "models.file-missing"
    assert caught.value.place is not None
    assert caught.value.place.line == 2


def test_one_command_can_plan_with_a_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "models")
    config = configured(project, "")
    for name in ("x.gguf", "./x.gguf", str(project / "models" / "x.gguf")):
        chosen = with_planning_model(config, name)
        assert EmbeddedProvider(chosen, "privileged").weights.file == str(project / "models" / "x.gguf")
        assert EmbeddedProvider(chosen, "quarantined").weights.alias == "0.5b"
    own = model_store(config).own_models.entries()[0]
    assert EmbeddedProvider(with_planning_model(config, own.alias), "privileged").weights == own


def test_no_tool_may_change_the_file_of_a_model(project: Path) -> None:
    config = configured(project, '[models]\nprivileged = "models/x.gguf"\n')
    assert project / "models" / "x.gguf" in [each.path for each in protected_paths(config)]
    other = project.parent / "added.gguf"
    model_store(config).find(str(write_gguf(other, {**CHAT_FACTS, "general.name": "Other"})))
    assert other in [each.path for each in protected_paths(config)]


def test_a_file_of_the_hub_is_used_only_after_it_was_added(project: Path) -> None:
    config = configured(project, '[models]\nprivileged = "hub:owner/repo/x.gguf"\n')
    with pytest.raises(ModelError) as caught:
        EmbeddedProvider(config, "privileged")
    assert caught.value.code == "models.not-added"
    assert "models add hub:owner/repo/x.gguf" in (caught.value.fix or "")
    routed = configured(project, '[llm]\ndefault_model = "m"\n[llm.models]\nm = "hub:owner/repo/x.gguf"\n')
    assert code_of(lambda: needed_weights(routed)) == "models.not-added"


def test_a_file_of_the_hub_that_cannot_be_used_is_refused_and_not_kept(
    store: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    facts = {**CHAT_FACTS, "tokenizer.chat_template": ""}
    wanted = HubFile("owner/repo", "x.gguf")
    with serving_hub(write_gguf(tmp_path / "x.gguf", facts).read_bytes()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        assert code_of(lambda: store.add(wanted)) == "models.no-template"
        assert not list(store.folder.glob("*.gguf"))
        hub.etag = "not-a-hash"
        assert code_of(lambda: store.add(wanted)) == "models.no-source"
        hub.gone = True
        assert code_of(lambda: store.add(wanted)) == "models.no-source"
    assert code_of(lambda: store.add(wanted, offline=True)) == "models.no-source"
    assert store.own_models.entries() == []


def test_the_doctor_names_a_file_that_is_gone_or_changed(project: Path) -> None:
    config = configured(project, '[models]\nprivileged = "models/x.gguf"\n')
    (weights,) = needed_weights(config, ["privileged"])
    checks = {check.name: check for check in machine_checks(config)}
    assert checks[f"model {weights.alias}"].status == "ok"
    Path(weights.file or "").write_bytes(b"GGUF another")
    assert "models.changed" in {c.name: c for c in machine_checks(config)}[f"model {weights.alias}"].detail
    Path(weights.file or "").unlink()
    gone = {check.name: check for check in machine_checks(config)}[f"model {weights.alias}"]
    assert (gone.status, "not there" in gone.detail) == ("bad", True)
