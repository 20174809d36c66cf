"""The rules that the advisor chooses by, and what it takes from the rest of the catalogue: needs and exclusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal, cast

from bicameral.errors import nearest

from ..costs._data import rows
from ..facts import IDS, Requirement, catalog
from ..facts._reading import Spot, read_value
from ..facts._yaml import Row
from ._conditions import Condition, parse_condition
from ._facts import questions

_FILE = "data/flows.yaml"


@dataclass(frozen=True, slots=True)
class Rule:
    """If this is so, then these patterns: why, and which laws, decisions and conflicts it rests on."""

    id: str
    condition: Condition
    then: tuple[str, ...]
    why: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Flow:
    """Rules in an order: the first that is so, or each of them."""

    id: str
    take: Literal["first", "each"]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """Two patterns between which one question decides."""

    id: str
    between: tuple[str, ...]
    fact: str
    rule: str


@dataclass(frozen=True, slots=True)
class Order:
    """Stages in which patterns are taken up, the earlier first."""

    id: str
    stages: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Patterns that are not used together on one task."""

    id: str
    patterns: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Rulebook:
    """Everything that the advisor goes by."""

    flows: tuple[Flow, ...]
    decisions: Mapping[str, Decision]
    sequences: tuple[Order, ...]
    needs: tuple[Requirement, ...]
    exclusions: tuple[Exclusion, ...]

    @cached_property
    def rules(self) -> Mapping[str, Rule]:
        """Every rule by its id."""
        return {rule.id: rule for flow in self.flows for rule in flow.rules}

    def hard(self, pattern: str) -> list[Requirement]:
        """What a pattern cannot do without, whatever the facts are; what hangs on a fact is a rule of the flows."""
        return [need for need in self.needs if need.strength == "hard" and need.when is None and need.binds(pattern)]


@cache
def rulebook() -> Rulebook:
    """The rules that come with the package."""
    flows: list[Flow] = []
    decisions: dict[str, Decision] = {}
    sequences: list[Order] = []
    for row in rows("flows.yaml"):
        spot = Spot(_FILE, row.line, str(row.get("id")))
        if "rules" in row:
            flows.append(_flow(row, spot))
        elif "between" in row:
            found = read_value(Decision, row, spot)
            _known([found.fact], questions(), spot, "fact")
            _known(found.between, IDS, spot, "pattern")
            decisions[found.id] = found
        else:
            order = read_value(Order, row, spot)
            _known([id for stage in order.stages for id in stage], IDS, spot, "pattern")
            sequences.append(order)
    needs = tuple(catalog().requirements.values())
    return Rulebook(tuple(flows), decisions, tuple(sequences), needs, _exclusions())


def met(need: Requirement, chosen: frozenset[str]) -> bool:
    """Whether these patterns have what one of them needs."""
    return chosen.issuperset(need.all_of) and (not need.any_of or not chosen.isdisjoint(need.any_of))


def _flow(row: Row, spot: Spot) -> Flow:
    take = row.get("take")
    if take not in ("first", "each"):
        raise spot.wrong(f"take is {take!r}", expected="first or each")
    return Flow(spot.id, take, tuple(_rule(each) for each in cast("list[Row]", row["rules"])))


@dataclass(frozen=True, slots=True)
class _Written:
    """A rule as it stands in the file."""

    id: str
    then: tuple[str, ...]
    why: str
    condition: Any = field(metadata={"key": "if"})
    by: tuple[str, ...] = ()


def _rule(row: Row) -> Rule:
    spot = Spot(_FILE, row.line, str(row.get("id")))
    found = read_value(_Written, row, spot)
    _known(found.then, IDS, spot, "pattern")
    return Rule(found.id, parse_condition(found.condition, spot.at("if")), found.then, found.why, found.by)


def _known(names: Sequence[str], known: Mapping[str, Any], spot: Spot, what: str) -> None:
    for name in names:
        if name not in known:
            raise spot.wrong(f"there is no {what} {name!r}", nearest=nearest(name, known))


def _exclusions() -> tuple[Exclusion, ...]:
    """The conflicts that say of patterns that they must not be used together."""
    return tuple(
        Exclusion(conflict.id, tuple(check["all"]), conflict.why)
        for conflict in catalog().conflicts.values()
        for check in conflict.checks
        if check.get("kind") == "together"
    )
