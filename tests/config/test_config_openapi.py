"""APIs in a configuration: withheld until it is accepted, checked with their place, their files protected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bicameral.config import find_widening, load_config, open_registry, record_acceptance, surroundings_of
from bicameral.errors import BicameralError, ConfigError, ToolError
from bicameral.openapi import parse_document, review_document

pytestmark = pytest.mark.unaccepted

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {"/notes": {"get": {"operationId": "list_notes", "responses": {}}}},
}
API = '[openapi.notes]\ndocument = "openapi/notes.json"\ntools = "openapi/notes.toml"\nserver = "https://a.example"\n'


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.delenv("BICAMERAL_CONFIG", raising=False)
    folder = tmp_path / "work"
    (folder / "openapi").mkdir(parents=True)
    document = parse_document(json.dumps(DOCUMENT), "notes.json")
    (folder / "openapi" / "notes.json").write_text(document.to_text())
    review_document("notes", document).write(folder / "openapi" / "notes.toml")
    return folder


def written(work: Path, text: str = API) -> Path:
    (work / "bicameral.toml").write_text(text)
    return work / "bicameral.toml"


def test_an_api_of_a_folder_that_nobody_accepted_is_not_used(work: Path) -> None:
    file = written(work)
    config = load_config(base=work, environment={}, confirm=lambda _: False)
    assert config.openapi == {}
    assert config.withheld == ("openapi.notes",)
    record_acceptance(file, find_widening(file, work))
    accepted = load_config(base=work, environment={}, confirm=lambda _: False)
    assert "notes_list_notes" in open_registry(accepted).names


@pytest.mark.parametrize("name", ["notes.json", "notes.toml"])
def test_a_file_of_an_api_that_changes_after_the_acceptance_is_asked_about_again(work: Path, name: str) -> None:
    file = written(work)
    record_acceptance(file, find_widening(file, work))
    changed = work / "openapi" / name
    changed.write_text(changed.read_text() + "\n")
    assert load_config(base=work, environment={}, confirm=lambda _: False).openapi == {}


def test_no_tool_may_change_what_was_reviewed_of_an_api(work: Path) -> None:
    folders = surroundings_of(load_config(written(work), base=work)).folders
    for name in ("openapi/notes.json", "openapi/notes.toml", "openapi/notes.pins.json"):
        with pytest.raises(ToolError) as caught:
            folders.resolve_writable(name)
        assert caught.value.code == "tools.protected"
    assert folders.resolve_writable("openapi/other.toml")


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ('[openapi.notes]\ndocumet = "x"\n', "documet", 2),
        ('[openapi.notes]\ndocument = "x"\n', "server", 1),
        ('[openapi.notes]\ndocument = "x"\nserver = "a.example"\n', "http", 3),
        (
            '[openapi.notes]\ndocument = "x"\nserver = "https://a.example"\nbearer = "sk-no name!"\n',
            "names no secret",
            4,
        ),
        ('[openapi."no name"]\ndocument = "x"\nserver = "https://a.example"\n', "40 letters", 1),
    ],
)
def test_a_wrong_setting_of_an_api_is_named_with_its_line(work: Path, text: str, words: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(written(work, text), base=work)
    assert words in str(caught.value)
    assert caught.value.place is not None
    assert caught.value.place.line == line
    assert "sk-no" not in str(caught.value)


@pytest.mark.parametrize("name", ["notes.json", "notes.toml"])
def test_a_missing_file_of_an_api_is_an_error_with_its_place(work: Path, name: str) -> None:
    (work / "openapi" / name).unlink()
    with pytest.raises(BicameralError) as caught:
        open_registry(load_config(written(work), base=work))
    assert name in str(caught.value)
