"""What the linter found: one finding for each thing that is wrong, however many rules say so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from bicameral.errors import Place

Severity: TypeAlias = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


def worst(severities: Iterable[Severity]) -> Severity:
    """The most severe of them."""
    return min(severities, key=SEVERITIES.index)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or cannot be decided: what, where, why, and how to mend it."""

    rule: str
    """The id of the rule that says it first; it never changes its meaning."""
    severity: Severity
    place: Place
    path: str
    """Where in the stack, as in `agents.triage.patterns[1]`."""
    message: str
    reason: str
    fix: str
    patterns: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """The other rules that say the same."""
    wants: tuple[str, ...] = ()
    """What would remove it, all of these: a pattern (`K10|K12`: either), or the path of something to declare."""
    undecided: bool = False
    """Whether a fact is missing, so that nobody knows if it is wrong."""
    waived: str | None = None
    """The reason for which it is waived."""

    @property
    def rules(self) -> tuple[str, ...]:
        """Every rule that says it."""
        return (self.rule, *self.also)

    @property
    def reference(self) -> str:
        """Where to read more."""
        shown = [f"bicameral patterns show {id}" for id in self.patterns[:1] if id.isalnum()]
        return "; ".join([f"bicameral lint --explain {self.rule}", *shown])

    def to_json(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "rule": self.rule,
            "severity": self.severity,
            "place": self.place.to_json(),
            "path": self.path,
            "message": self.message,
            "reason": self.reason,
            "fix": self.fix,
            "patterns": list(self.patterns),
            "also": list(self.also),
            "wants": list(self.wants),
            "undecided": self.undecided,
            "reference": self.reference,
        }
        return facts if self.waived is None else {**facts, "waived": self.waived}


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found in one stack."""

    name: str
    file: str | None
    findings: tuple[Finding, ...]
    waived: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no error that is not waived."""
        return not self.of("error")

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """The findings of one severity."""
        return tuple(each for each in self.findings if each.severity == severity)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "file": self.file,
            "ok": self.ok,
            "findings": [each.to_json() for each in self.findings],
            "waived": [each.to_json() for each in self.waived],
        }
