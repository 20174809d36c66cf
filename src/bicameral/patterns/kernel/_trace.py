"""What happened while a pattern ran: who was asked, what was called, what was noticed, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bicameral.labels import Label
from bicameral.models import Chamber, Usage

UNKNOWN = "(unknown)"
"""Stands for the name of a tool that does not exist: a model made it up, perhaps with a stranger's words."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A model was asked: as which participant, in which chamber, under which label, and what that took."""

    at: str
    """The part of the pattern, as a path: `worker 2/`, or nothing for the pattern itself."""
    participant: str
    chamber: Chamber
    model: str
    read: Label
    usage: Usage
    seconds: float
    prefix: str = ""
    """A fingerprint of the beginning of the prompt that is always the same."""

    def to_json(self) -> dict[str, Any]:
        return {
            "asked": self.participant,
            "at": self.at,
            "chamber": self.chamber,
            "model": self.model,
            "trusted": self.read.trusted,
            "prompt_tokens": self.usage.prompt,
            "cached_tokens": self.usage.cached,
            "output_tokens": self.usage.output,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class Called:
    """A tool was called, or was to be: `error` is the code of what came instead of a result."""

    at: str
    tool: str
    label: Label
    seconds: float
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        facts = {"called": self.tool, "at": self.at, "trusted": self.label.trusted, "seconds": round(self.seconds, 3)}
        return facts | ({"error": self.error} if self.error else {})


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that the pattern itself says of its course, in names and numbers."""

    at: str
    what: str
    facts: dict[str, str | int | float | bool] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        return {"noted": self.what, "at": self.at, **self.facts}


Moment = Asked | Called | Noted
Trace = tuple[Moment, ...]
