"""What the catalogue says of patterns beside each other, as values. The linter holds stacks against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Strength: TypeAlias = Literal["hard", "strong", "advisory"]
Severity: TypeAlias = Literal["error", "warning", "note"]
ConflictKind: TypeAlias = Literal["exclusive", "tension", "prerequisite", "interaction", "progression", "layers"]
Check: TypeAlias = Mapping[str, Any]
"""How a rule is held against a stack: its `kind`, and what that kind needs."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a pattern needs beside it: all of these, or one of those."""

    id: str
    pattern: str
    strength: Strength
    why: str
    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    when: str | None = None

    def binds(self, pattern: str) -> bool:
        """Whether it is about this pattern; `H*` is about every one whose id begins with an H."""
        return self.pattern == pattern or (self.pattern.endswith("*") and pattern.startswith(self.pattern[:-1]))


@dataclass(frozen=True, slots=True)
class Conflict:
    """Patterns that bear on each other, and the rule that keeps them from doing harm."""

    id: str
    name: str
    kind: ConflictKind
    patterns: tuple[str, ...]
    severity: Severity
    why: str
    rule: str
    fix: str
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Law:
    """What holds for every stack."""

    id: str
    name: str
    severity: Severity
    patterns: tuple[str, ...]
    rule: str
    why: str
    fix: str
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class AntiPattern:
    """A shape that keeps going wrong: how it shows, why, and which patterns mend it."""

    id: str
    name: str
    category: str
    severity: Severity
    mend: tuple[str, ...]
    symptom: str
    why: str
    fix: str
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class CacheRule:
    """What keeps a prompt cacheable, and the mechanisms or patterns it comes from."""

    id: str
    name: str
    severity: Severity
    patterns: tuple[str, ...]
    origin: tuple[str, ...] = field(metadata={"key": "from"})
    rule: str
    why: str
    fix: str
    checks: tuple[Check, ...] = ()
