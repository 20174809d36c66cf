"""What a check says: findings with a place and a fix, the effects, the cost, the types of the variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bicameral.errors import BicameralError, Place
from bicameral.tools import Effect
from bicameral.types import Type, to_json

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, doubtful or worth knowing, at a step of the plan."""

    severity: Severity
    code: str
    message: str
    path: str = ""
    place: Place | None = None
    expected: str | None = None
    nearest: str | None = None
    fix: str | None = None

    def __str__(self) -> str:
        place = self.place or (Place(step=self.path) if self.path else None)
        told = BicameralError(
            self.code, self.message, place=place, expected=self.expected, nearest=self.nearest, fix=self.fix
        )
        return str(told)

    def to_json(self) -> dict[str, Any]:
        """The same facts for a program: absent ones are left out."""
        pairs = (
            ("severity", self.severity),
            ("code", self.code),
            ("message", self.message),
            ("path", self.path or None),
            ("place", self.place.to_json() if self.place else None),
            ("expected", self.expected),
            ("nearest", self.nearest),
            ("fix", self.fix),
        )
        return {key: value for key, value in pairs if value is not None}


@dataclass(frozen=True, slots=True)
class EffectUse:
    """A step that calls a tool, and what that does to the world."""

    path: str
    tool: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class Bound:
    """The most there can be; `assumed` when it rests on the assumed length of a list."""

    most: int = 0
    assumed: bool = False

    def __str__(self) -> str:
        return f"at most {self.most:,}" + (" (assumed)" if self.assumed else "")


@dataclass(frozen=True, slots=True)
class Cost:
    """How many calls a run can make at worst."""

    model_calls: Bound = Bound()
    tool_calls: Bound = Bound()


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a plan may do: `max_items` is the assumed length of a list of which nothing is known."""

    max_items: int = 100
    max_tool_calls: int = 10_000
    max_model_calls: int = 1_000


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a check found out about a plan before it runs."""

    findings: tuple[Finding, ...] = ()
    effects: tuple[EffectUse, ...] = ()
    cost: Cost = Cost()
    types: Mapping[str, Type] = field(default_factory=dict[str, Type])

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def ok(self) -> bool:
        """Whether the plan may run."""
        return not self.errors

    def to_json(self) -> dict[str, Any]:
        def bound(bound: Bound) -> dict[str, Any]:
            return {"most": bound.most, "assumed": bound.assumed}

        return {
            "ok": self.ok,
            "findings": [finding.to_json() for finding in self.findings],
            "effects": [{"path": use.path, "tool": use.tool, "effect": use.effect} for use in self.effects],
            "cost": {"model_calls": bound(self.cost.model_calls), "tool_calls": bound(self.cost.tool_calls)},
            "types": {name: to_json(type_) for name, type_ in self.types.items()},
        }
