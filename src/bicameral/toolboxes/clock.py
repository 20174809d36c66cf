"""The clock toolbox: today's date and the local time."""

from __future__ import annotations

from datetime import date, datetime

from bicameral.tools import Origin, Settings, Surroundings, Tool, Toolbox, tool


class ClockSettings(Settings):
    """The clock has nothing to set."""


_CLOCK_ORIGIN = Origin("system", "public")


def _build(settings: ClockSettings, surroundings: Surroundings) -> list[Tool]:
    @tool(effect="read", origins=_CLOCK_ORIGIN)
    def today() -> date:
        """Today's date."""
        return surroundings.now().date()

    @tool(effect="read", origins=_CLOCK_ORIGIN)
    def now() -> datetime:
        """The local date and time now."""
        return surroundings.now().replace(tzinfo=None, microsecond=0)

    return [today, now]


toolbox: Toolbox[ClockSettings] = Toolbox("clock", "Today's date and the time.", ClockSettings, _build)
