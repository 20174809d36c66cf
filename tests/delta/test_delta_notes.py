"""A note that names no file goes to the one that the settings have for notes, and nothing else may go there unnamed."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, Config
from bicameral.models import ScriptedProvider
from bicameral.planning import check_against_intent, understand
from bicameral.plans import parse
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes

STANDARD = ("files", "lines", "tables", "mail", "calendar", "web", "clock")
TODAY = dt.date(2026, 3, 11)
NOTE = 'append_text("notes.txt", "4411")\nanswer("Noted in notes.txt")\n'


def _registry(folder: Path, **files: Any) -> Registry:
    settings: dict[str, dict[str, Any]] = {name: {} for name in STANDARD} | {"files": files}
    return load_toolboxes(settings, Surroundings(Folders(folder, (folder,), (folder,))))


def _codes(code: str, request: str, registry: Registry) -> set[str]:
    plan = parse(code, registry).plan
    return {each.code for each in check_against_intent(plan, understand(request, registry, TODAY), registry)}


@pytest.mark.parametrize(
    "request_text",
    [
        "Note that the boiler code is 4411",
        "Notier dir, dass der Code 4411 ist",
        "Note que le code de la chaudière est 4411",
        "Apunta que el código de la caldera es 4411",
    ],
)
def test_a_note_without_a_place_goes_to_the_file_for_notes(tmp_path: Path, request_text: str) -> None:
    assert _codes(NOTE, request_text, _registry(tmp_path)) == set()


@pytest.mark.parametrize(
    ("code", "request_text"),
    [
        # A note must not replace the others.
        (NOTE.replace("append_text", "write_text"), "Notier dir, dass der Code 4411 ist"),
        (NOTE.replace("notes.txt", "other.txt"), "Notier dir, dass der Code 4411 ist"),
        (NOTE.replace('"notes.txt", ', '"sub/notes.txt", '), "Notier dir, dass der Code 4411 ist"),
        (NOTE, "Notier dir in codes.txt, dass der Code 4411 ist"),
        (
            'found = list_files()\nappend_text(found[0].folder + "notes.txt", "x")\nanswer("x")\n',
            "Notier dir, dass x ist",
        ),
        ('to = "notes.txt" if 1 > 2 else "other.txt"\nappend_text(to, "x")\nanswer("x")\n', "Notier dir, dass x ist"),
    ],
)
def test_nothing_else_goes_to_a_file_that_nobody_named(tmp_path: Path, code: str, request_text: str) -> None:
    assert "plan.invented-value" in _codes(code, request_text, _registry(tmp_path))


def test_the_settings_name_the_file(tmp_path: Path) -> None:
    own = _registry(tmp_path, notes="journal.md")
    request = "Notier dir, dass der Code 4411 ist"
    assert _codes(NOTE.replace("notes.txt", "journal.md"), request, own) == set()
    assert "plan.invented-value" in _codes(NOTE, request, own)
    assert "'journal.md'" in own["append_text"].doc
    assert "plan.invented-value" in _codes(NOTE, request, _registry(tmp_path, notes=""))


async def test_a_note_is_appended_to_those_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("milk\n")
    (tmp_path / "bicameral.toml").write_text("[toolbox.files]\n")
    agent = Agent(
        config=Config.load(tmp_path / "bicameral.toml"),
        privileged=ScriptedProvider([f"{NOTE}```"], grammars=False),
        cache={},
    )
    planned = await agent.plan("Notier dir, dass der Code 4411 ist", deterministic=True, plans=0)
    outcome = await agent.run(planned)
    assert outcome.ok, outcome
    assert (tmp_path / "notes.txt").read_text().splitlines() == ["milk", "4411"]
