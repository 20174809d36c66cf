"""How stacks that break a rule, or nearly do, are written down."""

from __future__ import annotations

from typing import Any

Described = dict[str, Any]
Case = tuple[str, Described, Described]


def of(*patterns: str | dict[str, Any], **sections: Any) -> Described:
    """A stack of these patterns; `facts` and the other sections as in the YAML."""
    return {"patterns": list(patterns), **sections}


def so(*patterns: str | dict[str, Any], **facts: Any) -> Described:
    """A stack of these patterns with these facts."""
    return of(*patterns, facts=facts)


def part(name: str, stable: str, **more: Any) -> dict[str, Any]:
    return {"part": name, "stable": stable, **more}


FIXED, USERS, EACH = "global", "per_user", "per_call"
CAPPED = {"steps": 8, "money": 0.5, "seconds": 60, "exit": "an answer"}
SAFE = {"reversible": True, "blast_radius": "low", "novel": False}


def hold(rule: str, patterns: str, good: dict[str, Any], bad: dict[str, Any]) -> Case:
    """A rule that asks for a fact of stacks with these patterns."""
    return rule, so(*patterns.split(), **bad), so(*patterns.split(), **good)


def both(rule: str, one: str, other: str, by: str = "task") -> Case:
    """A rule that two patterns do not serve the same."""
    return rule, of(one, other), of({one: {by: "a"}}, {other: {by: "b"}})


def declared(rule: str, patterns: str, name: str) -> Case:
    return rule, of(*patterns.split()), of(*patterns.split(), declares={name: "docs/design.md"})


def needed(rule: str, patterns: str, wanted: str, **facts: Any) -> Case:
    """A rule that wants a pattern."""
    return rule, so(*patterns.split(), **facts), so(*patterns.split(), wanted, **facts)


def ordered(rule: str, patterns: str, order: str) -> Case:
    stages = order.split()
    return rule, of(*patterns.split(), pipeline=stages[::-1]), of(*patterns.split(), pipeline=stages)
