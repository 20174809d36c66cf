"""What a run has seen of a known secret is not in its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bicameral.errors import ToolError
from bicameral.plans import parse
from bicameral.runs import Failed, Finished, open_journal_at, run_plan
from bicameral.secrets import Secret
from bicameral.tools import Registry, Tool, tool
from journal_places import JournalPlace

PLANTED = 'planted "xyz-4711" ü abcdefghij'


def _tools(seen: list[str]) -> list[Tool]:
    @tool(effect="read")
    def look() -> list[str]:
        """Lines of which many hold it."""
        return [f"line {n}: {PLANTED}" for n in range(500)]

    @tool(effect="write")
    def use(text: str) -> str:
        """Uses it, and quotes it."""
        seen.append(text)
        return f"used {text}"

    @tool(effect="write")
    def refuse(text: str) -> str:
        """Fails, and quotes it."""
        raise ToolError("world.refused", f"{text} is refused", fix=f"Not {text}.")

    return [look, use, refuse]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("act", ["use", "refuse"])
async def test_it_is_used_and_not_recorded(request: pytest.FixtureRequest, tmp_path: Path, kind: str, act: str) -> None:
    place = JournalPlace(tmp_path / "journal.db" if kind == "sqlite" else request.getfixturevalue("postgres_url"))
    Secret("PLANTED", PLANTED)
    seen: list[str] = []
    registry = Registry(_tools(seen))
    plan = parse(f"lines = look()\nx = {act}(lines[0])\nanswer([x, lines[1]])", registry).plan
    with open_journal_at(place.where) as journal:
        outcome = await run_plan(plan, registry, journal=journal, planned_by=[{"role": f"by {PLANTED}"}])
        assert isinstance(outcome, Finished if act == "use" else Failed)
        events = journal.events(outcome.run)
        assert journal.verify() == []
    # The tool got it as it is.
    assert seen == ([f"line 0: {PLANTED}"] if act == "use" else [])
    stored: Any = place.run("SELECT * FROM events")
    for text in (repr(events), repr(stored)):
        assert "[secret PLANTED]" in text
        assert "planted " not in text
        assert "xyz-4711" not in text  # four digits alone stand in some hash now and then
    if place.sqlite:
        assert b"abcdefghij" not in _bytes_in(tmp_path)


def _bytes_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())
