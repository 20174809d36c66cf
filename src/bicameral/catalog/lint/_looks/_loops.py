"""Loops and what ends them."""

from __future__ import annotations

from collections.abc import Iterator

from ...stacks import Loop, dotted
from .._rules import Check
from .._scope import Scope
from .._trouble import Trouble, missing


def loops_have_v9(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Whatever describes a loop runs under V9."""
    if scope.loops and "V9" not in scope.present:
        yield missing(("V9",), scope.loops[0].path, says=f"there is a loop {scope.loops[0].name!r}")


def loops_have_caps(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Each loop that is described has caps on steps, cost and time, and says when it is done.

    Where none is described the caps are those of V9, and that V9 is there is another rule.
    """
    for loop in scope.loops or ():
        if lacks := list(_lacks(loop)):
            message = f"the loop {loop.name!r} has no cap on {' and '.join(lacks)}"
            if lacks == ["exit"]:
                message = f"the loop {loop.name!r} does not say when it is done"
            wants = tuple(f"{dotted(loop.path)}.{_CAPS[each]}" for each in lacks)
            yield Trouble(("uncapped", dotted(loop.path)), message, loop.path, wants=wants, patterns=("V9",))


_CAPS = {"steps": "steps", "cost": "money", "time": "seconds", "exit": "exit"}


def _lacks(loop: Loop) -> Iterator[str]:
    if loop.steps is None:
        yield "steps"
    if loop.tokens is None and loop.money is None:
        yield "cost"
    if loop.seconds is None:
        yield "time"
    if loop.exit is None:
        yield "exit"


def caps_per_layer(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Stacked loops (O16) have a cap for each layer, so at least two are described."""
    if scope.loops is not None and len(scope.loops) < 2:
        message = "several layers of control share one cap"
        yield Trouble(("one cap", "loops"), message, scope.where("O16"), wants=("loops",), patterns=("O16", "V9"))
