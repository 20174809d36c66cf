"""Tools, what they reach, and the guards around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from ...stacks import Leg, dotted
from .._rules import Check
from .._scope import Scope
from .._trouble import Trouble, missing, undeclared

_MITIGATIONS = ("V4", "V6", "V8")
_BEFORE = {"input", "call", "result"}


def three_legs(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Private data, strangers' text and a way out together need a mitigation; two of them, a cap on the tools."""
    if scope.legs is None:
        yield undeclared("legs", (*scope.path, "patterns"))
        return
    legs = {*scope.legs}
    if legs == {*get_args(Leg)} and not scope.present & {*_MITIGATIONS}:
        says = "private data, strangers' text and a way out come together"
        yield missing(_MITIGATIONS, (*scope.path, "legs"), says=says)
    elif len(legs) == 2 and "V13" not in scope.present:
        found = missing(("V13",), (*scope.path, "legs"), says="two of the three legs are there")
        yield replace(found, severity="note")


def guards_before_output(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Guards do not stand at the output alone. Where nobody says where V5 stands, it stands where it should."""
    guards = scope.guards
    if guards and not _BEFORE & {*guards} and "output" in guards:
        message = "guards stand at the output and nowhere before it"
        yield Trouble(("output only",), message, (*scope.path, "guards"), wants=("guards",), patterns=("V5",))


def guards_at(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Guards stand at all of these points."""
    if scope.guards is None:
        yield undeclared("guards", scope.where("V5"))
        return
    lacks = [point for point in check.of if point not in scope.guards]
    if lacks:
        message = f"no guard stands at {' and '.join(lacks)}"
        yield Trouble(("no guard", *lacks), message, scope.where("V5"), wants=("guards",), patterns=("V5",))


def measured_schemas(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Somebody counted the tokens of the schemas (where there are so many tools, if a number is given)."""
    tools = scope.tools
    if tools is not None and tools.schema_tokens is not None:
        return
    if check.more_than and (tools is None or tools.count is None or tools.count <= check.more_than):
        return
    path = tools.path if tools is not None else (*scope.path, "patterns")
    message = "nobody measured how many tokens the schemas of the tools take"
    wants = (f"{dotted((*scope.path, 'tools'))}.schema_tokens",)
    yield Trouble(("unmeasured",), message, path, wants=wants, patterns=("V13",))
