"""What two worlds may not show: unasked effects that strangers decide, and anything that tells an observer a secret.

A run that ends early (it fails, or a person says no) shows less than one that does not. That is the one thing that a
stranger can always bring about, so what is missing in such a run is no leak; neither is a call that a person was asked
about, since a person then saw it as it was.

In `normal` mode control flow does not count, so that worlds may differ in what is done. What is promised is that no
text of a stranger directs an unasked call, and no text is in one that its receivers may not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bicameral.plans import static_path as plan_step

from .execution import Trace
from .world import Act


@dataclass(frozen=True, slots=True)
class Compared:
    """What comparing two traces gave: a leak in words, or None; and how often a secret chose who was addressed."""

    leak: str | None
    directed: int = 0


def integrity(one: Trace, other: Trace) -> Compared:
    """Two worlds that differ only in what strangers wrote: the unasked effects must be the same."""
    ends = _last_comparable(one, other), _last_comparable(other, one)
    for (left, left_end), (right, right_end) in (
        ((one, ends[0]), (other, ends[1])),
        ((other, ends[1]), (one, ends[0])),
    ):
        if leak := _undecided(left, left_end, right, right_end):
            return Compared(leak)
    return Compared(_order(one.acts[: ends[0]], other.acts[: ends[1]], {*one.asked, *other.asked}))


def _undecided(left: Trace, left_end: int, right: Trace, right_end: int) -> str | None:
    there = {act.step: act for act in right.acts[:right_end]}
    for act in left.acts[:left_end]:
        if act.step in left.asked or act.step in right.asked:
            continue
        found = there.get(act.step)
        if found is None:
            if right.finished and right_end == len(right.acts):
                return f"{_shown(act)} is done unasked in one world only"
        elif (found.tool, found.directs) != (act.tool, act.directs):
            return f"{_shown(act)} is {_shown(found)} in the other world, both unasked"
    return None


def _last_comparable(trace: Trace, other: Trace) -> int:
    """How many acts can be compared.

    What a person allowed to be written is in the world from then on by his word, and may differ where the calls do.
    """
    approved = {act.step: act.directs for act in other.acts if act.step in other.asked}
    for number, act in enumerate(trace.acts):
        if act.effect == "write" and act.step in trace.asked and approved.get(act.step) != act.directs:
            return number
    return len(trace.acts)


def _order(one: Sequence[Act], other: Sequence[Act], asked: set[str]) -> str | None:
    """Effects keep their order; what only reads has none."""
    left, right = (
        [act.step for act in acts if act.effect != "read" and act.step not in asked] for acts in (one, other)
    )
    common = set(left) & set(right)
    if [step for step in left if step in common] != [step for step in right if step in common]:
        return f"the order of effects differs: {left} and {right}"
    return None


def confidentiality(one: Trace, other: Trace, observer: str) -> Compared:
    """Two worlds that differ only in what the observer may not read: what reaches him must be the same.

    Whom the user addressed himself may be told everything. A directing argument that is made of a secret is not held
    against those who may read the secret: that a secret chose the address or the amount is counted, and no leak.
    """
    directed = 0
    for left, right in ((one, other), (other, one)):
        there = {act.step: act for act in right.acts}
        for act in _reaching(left, observer):
            found, asked = there.get(act.step), right.asked.get(act.step)
            if asked is not None:
                if act.declared and any(asked.get(name) != value for name, value in act.directs):
                    directed += 1
                    continue
                return Compared(f"{_shown(act)} reaches {observer}, and is asked about in the other world", directed)
            if found is None:
                if right.finished:
                    return Compared(f"{_shown(act)} reaches {observer} in one world only", directed)
            elif act.declared and found.directs != act.directs:
                directed += 1
            elif found.seen != act.seen:
                return Compared(
                    f"{observer} sees {_shown(act)} in one world and {_shown(found)} in the other", directed
                )
    return Compared(None, directed)


def _reaching(trace: Trace, observer: str) -> Iterator[Act]:
    """What an observer gets unasked, and not because the user himself said that he should."""
    for act in trace.acts:
        reaches = act.outbound and (act.receivers is None or observer in act.receivers)
        if reaches and act.step not in trace.asked and not trace.to_own.get(plan_step(act.step), False):
            yield act


def data_flow(trace: Trace, observer: str) -> str | None:
    """What is promised in `normal` mode, in one world: texts are recognised by words of their own."""
    for act in trace.unasked:
        directing = str(act.directs).casefold()
        if any(word in directing for word in trace.stranger_words):
            return f"{_shown(act)} is directed by a stranger's text, unasked"
    for act in _reaching(trace, observer):
        if any(word in str(act.seen).casefold() for word in trace.secret_words):
            return f"{_shown(act)} shows {observer} what he may not read, unasked"
    return None


def _shown(act: Act) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in act.arguments.items())
    return f"step {act.step} {act.tool}({arguments})"
