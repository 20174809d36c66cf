"""What tools cannot work without and do not have: a setting, a package, or what a setting names.

A toolbox declares two kinds. What its settings lack is known when it is opened, and the tools that need it are not told
to the planner. What the settings name may be there or not at any time: a mailbox, a calendar. The list of tools in the
planner's prompt must not depend on that, since others may put files into a folder; a request or a plan that needs it is
refused instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bicameral.errors import missing_packages

if TYPE_CHECKING:
    from bicameral.tools._tool import Tool


@dataclass(frozen=True, slots=True)
class MissingSetting:
    """What some tools of a toolbox lack.

    Args:
        tools: Names of the tools that do not work without it.
        lacking: What is wrong, without a full stop: `no SMTP server is set`.
        fix: What to do, as a sentence that names the setting.
        begun_by: Names of tools of the same toolbox whose call makes it.
    """

    tools: tuple[str, ...]
    lacking: str
    fix: str
    begun_by: tuple[str, ...] = ()


def missing_extra(tools: Sequence[str], extra: str, *modules: str) -> tuple[MissingSetting, ...]:
    """What tools lack that need these modules of an extra of Bicameral; nothing if all are installed."""
    if not (missing := missing_packages(*modules)):
        return ()
    verb = "is" if len(missing) == 1 else "are"
    lacking = f"{' and '.join(missing)} {verb} not installed"
    return (MissingSetting(tuple(tools), lacking, f'Install with `pip install "bicameral[{extra}]"`.'),)


@dataclass(frozen=True, slots=True)
class AbsentTool:
    """A tool that cannot work as things are, and what it lacks.

    Args:
        name: Its name; that of its toolbox if a package is missing without which no tool of it is known.
        toolbox: The name of its toolbox.
        missing: What it lacks.
        tool: Its declaration, if that is known.
    """

    name: str
    toolbox: str
    missing: MissingSetting
    tool: Tool | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.missing.lacking}"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "toolbox": self.toolbox,
            "lacking": self.missing.lacking,
            "fix": self.missing.fix,
        }
