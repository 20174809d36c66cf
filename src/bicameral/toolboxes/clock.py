"""The clock: what day and what time it is here."""

from __future__ import annotations

from datetime import date, datetime

from bicameral.tools import Settings, Surroundings, Tool, Toolbox, tool


class ClockSettings(Settings):
    """The clock has nothing to set."""


def _build(settings: ClockSettings, surroundings: Surroundings) -> list[Tool]:
    @tool(effect="read")
    def today() -> date:
        """Today's date."""
        return surroundings.now().date()

    @tool(effect="read")
    def now() -> datetime:
        """The local date and time now."""
        return surroundings.now().replace(tzinfo=None, microsecond=0)

    return [today, now]


toolbox: Toolbox[ClockSettings] = Toolbox("clock", "Today's date and the time.", ClockSettings, _build)
