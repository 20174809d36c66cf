"""Troubles become findings: what several rules say of one thing, or one rule of several agents, is said once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from ..facts import IDS, catalog
from ..stacks import Keys, Stack, dotted
from ._finding import SEVERITIES, Finding, Severity, worst
from ._rules import Rule
from ._scope import Scope
from ._trouble import Key, Trouble


@dataclass(frozen=True, slots=True)
class Heard:
    """A trouble, the rule that told it, and the agent in which it was found."""

    rule: Rule
    trouble: Trouble
    scope: Scope
    severity: Severity
    waived: str | None = None


def findings(stack: Stack, heard: Iterable[Heard], agents: int) -> list[Finding]:
    """One finding for each thing, the most severe first and then in the order of the file."""
    by_key: dict[Key, list[Heard]] = {}
    for each in heard:
        by_key.setdefault(each.trouble.key, []).append(each)
    found = [_finding(stack, group) for several in by_key.values() for group in _groups(several, agents)]
    return sorted(found, key=_order)


def _groups(several: list[Heard], agents: int) -> Iterable[list[Heard]]:
    """What was heard of one thing, apart where it is wrong at several places.

    What is wrong in every agent is wrong once, and what is not known can be said for the whole. What is wrong in some
    of them, but stands at one place, is told for those together.
    """
    by_scope: dict[Keys, list[Heard]] = {}
    for each in several:
        by_scope.setdefault(each.scope.path, []).append(each)
    if len(by_scope) == agents or several[0].trouble.undecided:
        return [several]
    by_place: dict[Keys, list[Heard]] = {}
    for group in by_scope.values():
        by_place.setdefault(min(group, key=_rank).trouble.path, []).extend(group)
    return by_place.values()


def _rank(heard: Heard) -> tuple[int, int]:
    return SEVERITIES.index(heard.severity), heard.rule.rank


def _order(finding: Finding) -> tuple[int, bool, int, str, str, str]:
    line = finding.place.line or 0
    return SEVERITIES.index(finding.severity), finding.undecided, line, finding.path, finding.rule, finding.message


def _finding(stack: Stack, group: Sequence[Heard]) -> Finding:
    severity = worst(each.severity for each in group)
    ranked = sorted(group, key=_rank)
    first = ranked[0]
    rules = list(dict.fromkeys(each.rule.id for each in ranked))
    message = _message(ranked) + _where(stack, group, first.trouble)
    patterns = dict.fromkeys(id for each in ranked for id in (*each.trouble.patterns, *each.trouble.needed_by))
    undecided = first.trouble.undecided
    return Finding(
        rules[0],
        severity,
        stack.place(first.trouble.path),
        dotted(first.trouble.path),
        message,
        "a rule that nobody can decide may be broken" if undecided else first.rule.why,
        f"Declare `{first.trouble.wants[0]}`." if undecided else _fix(first),
        tuple(patterns),
        tuple(rules[1:]),
        tuple(dict.fromkeys(want for each in ranked for want in each.trouble.wants)),
        undecided,
        first.waived,
    )


def _where(stack: Stack, group: Sequence[Heard], trouble: Trouble) -> str:
    """In which agents it is wrong, where that is not clear: there are several, and the message does not say it."""
    names = list(dict.fromkeys(each.scope.member.name for each in group))
    if len(stack.agents) < 2 or trouble.undecided or trouble.key[0] == "waiver" or repr(names[0]) in trouble.message:
        return ""
    if len(names) == len(stack.agents):
        return " (every agent)" if trouble.path[:1] == ("agents",) else ""
    return f" ({'agent' if len(names) == 1 else 'agents'} {', '.join(names)})"


def _message(ranked: Sequence[Heard]) -> str:
    first = ranked[0].trouble
    if first.key[0] != "missing":
        return first.message
    wanted = " or ".join(map(named, first.key[1].split("|")))
    users = list(dict.fromkeys(id for each in ranked for id in each.trouble.needed_by))
    said = list(dict.fromkeys(each.trouble.message for each in ranked if each.trouble.message))
    laws = dict.fromkeys(each.rule.id for each in ranked if not each.trouble.needed_by and each.rule.family == "law")
    because = [f"{', '.join(users)} {'needs' if len(users) == 1 else 'need'} it"] if users else []
    because += said
    if not because:
        because = [f"{', '.join(laws) or ranked[0].rule.id} {'want' if len(laws) > 1 else 'wants'} it"]
    return f"{wanted} is missing: {'; '.join(because)}"


def _fix(first: Heard) -> str:
    if first.trouble.key[0] == "missing" and first.rule.family == "requirement":
        return f"Add {' or '.join(map(named, first.trouble.key[1].split('|')))}."
    return first.rule.fix


@cache
def named(id: str) -> str:
    """A pattern with its name, for those who do not know the catalogue by heart."""
    return f"{id} ({catalog().pattern(id).name})" if id in IDS else id
