"""Rules and findings of the linter: the catalogue's rules, its own, those of a stack's own patterns, and reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast, get_args

from bicameral.catalog.facts import IDS, AntiPattern, Law, catalog
from bicameral.catalog.facts._reader import load_records
from bicameral.catalog.facts._records import NeedStrength, RuleSeverity, json_fields
from bicameral.catalog.lint._scope import StackCondition, parse_stack_condition
from bicameral.catalog.stacks import OwnPattern
from bicameral.errors import CatalogError, Place, nearest_name

LintSeverity: TypeAlias = RuleSeverity
SEVERITIES: tuple[LintSeverity, ...] = get_args(RuleSeverity)


def severity_rank(severity: LintSeverity) -> int:
    """0 for the most severe."""
    return SEVERITIES.index(severity)


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A problem of a stack, or a rule that is undecided: what, where, why, and how to mend it."""

    rule: str
    """The id of the first rule that reports it; ids never change their meaning."""
    severity: LintSeverity
    place: Place
    path: str
    """The path in the stack, as in `agents.triage.patterns[1]`."""
    message: str
    reason: str
    fix: str
    patterns: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """The other rules that report the same."""
    wants: tuple[str, ...] = ()
    """What together would remove it: patterns (`K10|K12`: either), or paths of what to declare."""
    undecided: bool = False
    """Whether a fact is missing, so that the rule is undecided."""
    waived: str | None = None
    """The reason for which it is waived."""
    basis: Literal["seen", "inferred"] | None = None
    """For a stack that was recovered from code or a trace: whether what it rests on was seen there."""
    evidence: tuple[str, ...] = ()
    """For such a stack: what was found there."""

    @property
    def rules(self) -> tuple[str, ...]:
        """Every rule that reports it."""
        return (self.rule, *self.also)

    @property
    def reference(self) -> str:
        """Where to read more."""
        shown = [f"bicameral patterns show {id}" for id in self.patterns[:1] if id.isalnum()]
        return "; ".join([f"bicameral lint --explain {self.rule}", *shown])

    def to_json(self) -> dict[str, Any]:
        facts = {**json_fields(self, "waived", "basis", "evidence"), "reference": self.reference}
        if self.basis is not None:
            facts |= {"basis": self.basis, "evidence": list(self.evidence)}
        return facts if self.waived is None else {**facts, "waived": self.waived}


@dataclass(frozen=True, slots=True)
class LintReport:
    """The findings of one stack."""

    name: str
    file: str | None
    findings: tuple[LintFinding, ...]
    waived: tuple[LintFinding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no error, apart from waived ones."""
        return not self.of_severity("error")

    def of_severity(self, severity: LintSeverity) -> tuple[LintFinding, ...]:
        """The findings of one severity."""
        return tuple(each for each in self.findings if each.severity == severity)

    def to_json(self) -> dict[str, Any]:
        return {**json_fields(self), "ok": self.ok}


RuleFamily: TypeAlias = Literal["law", "requirement", "conflict", "anti-pattern", "cache", "linter"]
RULE_FAMILIES: tuple[RuleFamily, ...] = get_args(RuleFamily)
"""In the order in which rules that report the same are named."""
CheckKind: TypeAlias = Literal["require", "together", "declare", "hold", "prefer", "look"]
_SEVERITY_OF_STRENGTH: Mapping[NeedStrength, LintSeverity] = {"hard": "error", "strong": "warning", "advisory": "note"}


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One check of a rule. It applies to agents that meet `if`, `if_any`, `unless` and `when`."""

    kind: CheckKind
    if_all: frozenset[str] = frozenset()
    if_any: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()
    when: StackCondition | None = None
    severity: LintSeverity | None = None
    says: str = ""
    topic: str = ""
    """Checks of several rules with the same topic report the same problem."""
    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    anywhere: bool = False
    all: tuple[str, ...] = ()
    apart_by: str = ""
    exempt: Mapping[str, str] = field(default_factory=dict[str, str])
    name: str = ""
    must: StackCondition | None = None
    choose: str = ""
    at: str = ""
    of: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    more_than: int = 0
    triggers: frozenset[str] = field(init=False)
    """The patterns that it applies to."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "triggers", self.if_all | self.if_any)

    @property
    def names(self) -> frozenset[str]:
        """Every name in its conditions."""
        conditions = (self.when, self.must)
        return frozenset(name for each in conditions if each is not None for name in each.names)


@dataclass(frozen=True, slots=True)
class LintRule:
    """A rule for stacks: what, why, and how to mend a violation."""

    id: str
    name: str
    family: RuleFamily
    severity: LintSeverity
    rule: str
    why: str
    fix: str
    patterns: tuple[str, ...]
    checks: tuple[RuleCheck, ...]
    rank: int = field(init=False)
    """Of several rules that report the same, the one with the lowest rank is named first."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", RULE_FAMILIES.index(self.family))

    def to_json(self) -> dict[str, Any]:
        needs = sorted({name for check in self.checks for name in check.names})
        return {**json_fields(self, "checks", "rank"), "needs": needs}


_CHECK_KEYS = {"if": "if_all"} | {
    each.name: each.name for each in fields(RuleCheck) if each.init and each.name != "if_all"
}


def make_check(given: Mapping[str, Any]) -> RuleCheck:
    """A check from a data file."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        if key not in _CHECK_KEYS:
            raise CatalogError(
                "catalog.bad-data",
                f"a check has no {key!r}",
                expected="a key of a check",
                nearest=nearest_name(key, _CHECK_KEYS),
            )
        if key in ("if", "if_any", "unless"):
            value = frozenset(value)
        elif key in ("when", "must"):
            value = parse_stack_condition(str(value))
        elif isinstance(value, list):
            value = tuple(cast("list[Any]", value))
        found[_CHECK_KEYS[key]] = value
    return RuleCheck(**found)


@cache
def rules() -> Mapping[str, LintRule]:
    """Every rule by its id."""
    known = catalog()
    found = [
        *_family_rules("law", known.laws),
        *_requirement_rules(),
        *_family_rules("conflict", known.conflicts),
        *_family_rules("anti-pattern", known.anti_patterns),
        *_family_rules("cache", known.cache_rules),
        *_family_rules("linter", load_records("linter_rules.yaml", Law)),
    ]
    return MappingProxyType({rule.id: rule for rule in found})


def _family_rules(family: RuleFamily, records: Mapping[str, Law | AntiPattern]) -> Iterator[LintRule]:
    for id, each in records.items():
        checks = tuple(map(make_check, each.checks))
        yield LintRule(id, each.name, family, each.severity, each.rule, each.why, each.fix, each.patterns, checks)


def _requirement_rules() -> Iterable[LintRule]:
    for each in catalog().requirements.values():
        wanted = _join_names(each.all_of, "and") or _join_names(each.any_of, "or")
        group = each.pattern.endswith("*")
        bound = frozenset(id for id in IDS if each.binds(id))
        check = RuleCheck(
            "require",
            if_all=frozenset() if group else bound,
            if_any=bound if group else frozenset(),
            when=parse_stack_condition(each.when) if each.when else None,
            all_of=each.all_of,
            any_of=each.any_of,
        )
        who = f"every {each.pattern[:-1]} pattern" if group else each.pattern
        yield LintRule(
            each.id,
            f"{who} needs {wanted}",
            "requirement",
            _SEVERITY_OF_STRENGTH[each.strength],
            f"{who} needs {wanted}" + (f" when {each.when}" if each.when else ""),
            each.why,
            f"Add {wanted}.",
            ((() if group else (each.pattern,)) + each.all_of + each.any_of),
            (check,),
        )


def _join_names(names: tuple[str, ...], word: str) -> str:
    return f" {word} ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)


def definition_rules(defined: OwnPattern) -> Iterator[LintRule]:
    """The rules of a pattern that the stack defines."""
    used = frozenset({defined.id})

    def rule(id: str, text: str, fix: str, check: RuleCheck) -> LintRule:
        return LintRule(id, text, "requirement", "error", text, defined.why, fix, (defined.id,), (check,))

    if defined.needs:
        needs = tuple(dict.fromkeys(defined.needs))
        wanted = ", ".join(needs)
        check = RuleCheck("require", if_all=used, all_of=needs)
        yield rule(f"REQ-{defined.id}", f"{defined.id} needs {wanted}", f"Add {wanted}.", check)
    if defined.needs_one_of:
        wanted = " or ".join(defined.needs_one_of)
        check = RuleCheck("require", if_all=used, any_of=defined.needs_one_of)
        yield rule(f"ONE-{defined.id}", f"{defined.id} needs {wanted}", f"Add {wanted}.", check)
    for other in defined.not_with:
        check = RuleCheck("together", all=(defined.id, other), apart_by="task")
        yield rule(f"NOT-{defined.id}-{other}", f"{defined.id} does not go with {other}", "Choose one.", check)
    if defined.loops:
        check = RuleCheck("require", if_all=used, all_of=("V9",))
        yield rule(f"LOOP-{defined.id}", f"{defined.id} loops and needs V9", "Add V9.", check)
