"""The clock tells the time of its surroundings."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from bicameral.toolboxes.clock import toolbox
from bicameral.tools import Folders, Surroundings, Tool


def tools(surroundings: Surroundings) -> dict[str, Tool]:
    return {tool.name: tool for tool in toolbox.open(surroundings)}


async def test_the_time_is_that_of_the_surroundings_without_a_zone(tmp_path: Path) -> None:
    late = datetime(2026, 3, 1, 23, 30, 15, 999, tzinfo=timezone(timedelta(hours=-5)))
    have = tools(Surroundings(Folders.of(tmp_path, read=[tmp_path]), lambda: late))
    assert await have["today"].call({}) == date(2026, 3, 1)
    assert await have["now"].call({}) == datetime(2026, 3, 1, 23, 30, 15)


async def test_the_clock_of_the_machine_is_the_default(tmp_path: Path) -> None:
    now = await tools(Surroundings.here(tmp_path))["now"].call({})
    assert now.tzinfo is None
    assert abs(now - datetime.now()) < timedelta(minutes=1)


def test_the_clock_takes_no_settings(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Extra inputs"):
        toolbox.open(Surroundings.here(tmp_path), {"zone": "UTC"})


def test_reading_the_clock_changes_nothing(tmp_path: Path) -> None:
    assert [tool.effect for tool in tools(Surroundings.here(tmp_path)).values()] == ["read", "read"]
