"""Every rule of the linter, ready to be held against a stack: those of the catalogue, and its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

from bicameral.errors import CatalogError, nearest

from ..facts import IDS, catalog
from ._expressions import Condition, parse_condition
from ._finding import Severity

Strength: TypeAlias = Literal["hard", "strong", "advisory"]
Family: TypeAlias = Literal["law", "requirement", "conflict", "anti-pattern", "cache", "linter"]
FAMILIES: tuple[Family, ...] = ("law", "requirement", "conflict", "anti-pattern", "cache", "linter")
"""In the order in which rules that say the same are named."""
CheckKind: TypeAlias = Literal["require", "together", "declare", "hold", "prefer", "look"]
_SEVERITY: Mapping[Strength, Severity] = {"hard": "error", "strong": "warning", "advisory": "note"}


@dataclass(frozen=True, slots=True)
class Check:
    """One way to hold a rule against a stack. It applies where `if`, `if_any`, `unless` and `when` say so."""

    kind: CheckKind
    if_all: frozenset[str] = frozenset()
    if_any: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()
    when: Condition | None = None
    severity: Severity | None = None
    says: str = ""
    topic: str = ""
    """Checks of several rules with one topic find the same thing."""
    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    anywhere: bool = False
    all: tuple[str, ...] = ()
    apart_by: str = ""
    exempt: Mapping[str, str] = field(default_factory=dict[str, str])
    name: str = ""
    must: Condition | None = None
    choose: str = ""
    at: str = ""
    of: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    more_than: int = 0
    triggers: frozenset[str] = field(init=False)
    """The patterns that make it apply."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "triggers", self.if_all | self.if_any)

    @property
    def names(self) -> frozenset[str]:
        """Every name that it asks for."""
        conditions = (self.when, self.must)
        return frozenset(name for each in conditions if each is not None for name in each.names)


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that a stack must keep to, why, and how to mend it."""

    id: str
    name: str
    family: Family
    severity: Severity
    rule: str
    why: str
    fix: str
    patterns: tuple[str, ...]
    checks: tuple[Check, ...]
    rank: int = field(init=False)
    """Of several rules that say the same, that with the lowest is named first."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", FAMILIES.index(self.family))

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "family": self.family,
            "severity": self.severity,
            "rule": self.rule,
            "why": self.why,
            "fix": self.fix,
            "patterns": list(self.patterns),
            "needs": sorted({name for check in self.checks for name in check.names}),
        }


_KEYS = {"if": "if_all"} | {each.name: each.name for each in fields(Check) if each.init and each.name != "if_all"}


def make_check(given: Mapping[str, Any]) -> Check:
    """A check out of a data file."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        if key not in _KEYS:
            raise CatalogError(
                "catalog.bad-data", f"a check has no {key!r}", expected="a key of a check", nearest=nearest(key, _KEYS)
            )
        if key in ("if", "if_any", "unless"):
            value = frozenset(value)
        elif key in ("when", "must"):
            value = parse_condition(str(value))
        elif isinstance(value, list):
            value = tuple(cast("list[Any]", value))
        found[_KEYS[key]] = value
    return Check(**found)


def _checks(given: Iterable[Mapping[str, Any]]) -> tuple[Check, ...]:
    return tuple(make_check(each) for each in given)


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule by its id."""
    from ._own import OWN

    known = catalog()
    found = [
        *(
            Rule(law.id, law.name, "law", law.severity, law.rule, law.why, law.fix, law.patterns, _checks(law.checks))
            for law in known.laws.values()
        ),
        *(_requirement_rules()),
        *(
            Rule(each.id, each.name, "conflict", each.severity, each.rule, each.why, each.fix, each.patterns, checks)
            for each in known.conflicts.values()
            for checks in (_checks(each.checks),)
        ),
        *(
            Rule(each.id, each.name, "anti-pattern", each.severity, each.symptom, each.why, each.fix, each.mend, checks)
            for each in known.anti_patterns.values()
            for checks in (_checks(each.checks),)
        ),
        *(
            Rule(each.id, each.name, "cache", each.severity, each.rule, each.why, each.fix, each.patterns, checks)
            for each in known.cache_rules.values()
            for checks in (_checks(each.checks),)
        ),
        *OWN,
    ]
    return MappingProxyType({rule.id: rule for rule in found})


def _requirement_rules() -> Iterable[Rule]:
    for each in catalog().requirements.values():
        wanted = _listed(each.all_of, "and") or _listed(each.any_of, "or")
        group = each.pattern.endswith("*")
        bound = frozenset(id for id in IDS if each.binds(id))
        check = Check(
            "require",
            if_all=frozenset() if group else bound,
            if_any=bound if group else frozenset(),
            when=parse_condition(each.when) if each.when else None,
            all_of=each.all_of,
            any_of=each.any_of,
        )
        who = f"every {each.pattern[:-1]} pattern" if group else each.pattern
        yield Rule(
            each.id,
            f"{who} needs {wanted}",
            "requirement",
            _SEVERITY[each.strength],
            f"{who} needs {wanted}" + (f" when {each.when}" if each.when else ""),
            each.why,
            f"Add {wanted}.",
            ((() if group else (each.pattern,)) + each.all_of + each.any_of),
            (check,),
        )


def _listed(names: tuple[str, ...], word: str) -> str:
    return f" {word} ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)


@cache
def looping() -> frozenset[str]:
    """The patterns that loop, retry, debate, delegate or have levels."""
    return rules()["LAW7"].checks[0].if_any
