"""What became of the tools of a server since a person reviewed them: each as it is listed now, and as it was then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bicameral.foreign._declarations import DeclarationFile
from bicameral.foreign._listing import ForeignTool, listing_changes

ToolState = Literal["as reviewed", "changed", "gone", "new", "listing lost", "not used", "left out"]
"""`listing lost`: what was reviewed is not there any more, so that no tool can be made of it. `not used`: declared with
`use = false`. `left out`: seen at the review, as it is now, and not declared."""
_DIFFERS = ("changed", "gone", "new", "listing lost")


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """What became of one tool since it was reviewed, with the lines that differ. They are the server's own text."""

    name: str
    state: ToolState
    changes: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        return self.state in _DIFFERS

    def to_json(self) -> dict[str, Any]:
        return {"tool": self.name, "state": self.state, **({"changes": list(self.changes)} if self.changes else {})}


def compare_listing(
    declared: DeclarationFile | None, reviewed: Mapping[str, ForeignTool], listed: Mapping[str, ForeignTool]
) -> tuple[ToolCheck, ...]:
    """Every tool that is declared or listed, with what became of it.

    Args:
        declared: The declarations; None for a server of which nothing was reviewed.
        reviewed: The listing as it was reviewed, to show differences. What counts are the hashes in the declarations.
        listed: The listing as it is now.
    """
    names = dict.fromkeys((*(() if declared is None else declared.tools), *listed))
    return tuple(_compare_tool(name, declared, reviewed.get(name), listed.get(name)) for name in names)


def _compare_tool(
    name: str, declared: DeclarationFile | None, reviewed: ForeignTool | None, listed: ForeignTool | None
) -> ToolCheck:
    declaration = None if declared is None else declared.tools.get(name)
    if declaration is None:
        # One that was seen and could not be used is no news as long as it stays what it was.
        seen = declared is not None and reviewed is not None and listed is not None and reviewed.pin == listed.pin
        return ToolCheck(name, "left out" if seen else "new")
    if not declaration.use:
        return ToolCheck(name, "not used")
    if listed is None:
        return ToolCheck(name, "gone")
    known = reviewed if reviewed is not None and reviewed.pin == declaration.pin else None
    if listed.pin == declaration.pin:
        return ToolCheck(name, "listing lost" if known is None else "as reviewed")
    return ToolCheck(name, "changed", tuple(listing_changes(known, listed)))
