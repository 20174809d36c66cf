"""Waivers: what is known and accepted for a while, for a reason. One that is not in order waives nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from ..stacks import Stack, Waiver, dotted
from ._merging import Heard
from ._rules import Rule
from ._scope import Scope
from ._trouble import Trouble


def in_force(waiver: Waiver, today: date) -> bool:
    """Whether a waiver has a reason and a last day, and that is not over."""
    return waiver.reason is not None and waiver.until is not None and today <= waiver.until


def waived(stack: Stack, heard: Sequence[Heard], today: date) -> tuple[list[Heard], list[Heard]]:
    """What remains, and what is waived, with the reason."""
    if not stack.waivers:
        return list(heard), []
    kept: list[Heard] = []
    given: list[Heard] = []
    valid = [waiver for waiver in stack.waivers if in_force(waiver, today)]
    for each in heard:
        waiver = next((waiver for waiver in valid if _covers(waiver, each)), None)
        if waiver is None:
            kept.append(each)
        else:
            given.append(replace(each, waived=waiver.reason))
    return kept, given


def _covers(waiver: Waiver, heard: Heard) -> bool:
    if heard.rule.id not in waiver.rules:
        return False
    return waiver.covers(heard.trouble.path) or waiver.covers(heard.scope.path)


def told_of_waivers(
    stack: Stack, known: Mapping[str, Rule], given: Sequence[Heard], today: date, scope: Scope
) -> Iterator[Heard]:
    """What is wrong with the waivers themselves."""
    for waiver in stack.waivers:
        for id, message in _wrong(waiver, given, today):
            rule = known[id]
            key = ("waiver", id, dotted(waiver.path))
            yield Heard(rule, Trouble(key, message, waiver.path), scope, rule.severity)


def _wrong(waiver: Waiver, given: Sequence[Heard], today: date) -> Iterator[tuple[str, str]]:
    shown = ", ".join(waiver.rules)
    if waiver.reason is None:
        yield "W1", f"the waiver of {shown} gives no reason"
    if waiver.until is None:
        yield "W2", f"the waiver of {shown} has no last day"
    elif today > waiver.until:
        yield "W3", f"the waiver of {shown} was over on {waiver.until.isoformat()}"
    if in_force(waiver, today):
        unused = [rule for rule in waiver.rules if not _used(rule, waiver, given)]
        if unused:
            yield "W4", f"the waiver of {', '.join(unused)} waives nothing"


def _used(rule: str, waiver: Waiver, given: Sequence[Heard]) -> bool:
    return any(each.rule.id == rule and _covers(waiver, each) for each in given)
