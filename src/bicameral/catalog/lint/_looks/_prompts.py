"""The parts of a prompt: what never changes stands first, and is the same byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...stacks import PromptPart, Stable, dotted
from .._rules import Check
from .._scope import Scope
from .._trouble import Trouble, missing, undeclared

_RANK: dict[Stable, int] = {"global": 0, "per_user": 1, "per_call": 2}
_SETUP = ("S3", "S5", "S6", "S9")


def _early(part: PromptPart, message: str) -> Trouble:
    """A part that stands too early. Whichever rule sees it, it is the same fault."""
    owner = part.part.partition(".")[0]
    patterns = (owner,) if owner[:1].isupper() and owner[1:].isdigit() else ()
    return Trouble(("early", dotted(part.path)), message, part.path, patterns=patterns)


def _undeclared(scope: Scope) -> Iterator[Trouble]:
    if scope.prompt is None:
        yield undeclared("prompt", (*scope.path, "patterns"))


def stable_first(scope: Scope, check: Check) -> Iterator[Trouble]:
    """No part stands before one that changes less, and the cache boundary lies before what differs in every call."""
    yield from _undeclared(scope)
    prompt = scope.prompt or ()
    boundary = max((number for number, part in enumerate(prompt) if part.breakpoint), default=-1)
    for number, part in enumerate(prompt):
        if any(_RANK[later.stable] < _RANK[part.stable] for later in prompt[number + 1 :]):
            yield _early(part, f"{part.part} ({part.stable}) stands before what changes less")
        elif number <= boundary and part.stable == "per_call":
            yield _early(part, f"{part.part} differs in every call and stands before the cache boundary")


def dynamic_examples_last(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Examples that are picked for each call stand behind all that is fixed."""
    yield from _undeclared(scope)
    prompt = scope.prompt or ()
    for number, part in enumerate(prompt):
        picked = part.part == "S2.dynamic" or (part.part.startswith("S2") and part.stable == "per_call")
        if picked and any(later.stable == "global" for later in prompt[number + 1 :]):
            yield _early(part, f"{part.part} ({part.stable}) stands before what changes less")


def user_text_after_shared(scope: Scope, check: Check) -> Iterator[Trouble]:
    """What belongs to one user stands behind what all share."""
    yield from _undeclared(scope)
    prompt = scope.prompt or ()
    for number, part in enumerate(prompt):
        if part.stable == "per_user" and any(later.stable == "global" for later in prompt[number + 1 :]):
            yield _early(part, f"{part.part} ({part.stable}) stands before what changes less")


def nothing_varies(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Nothing in fixed text differs from call to call."""
    yield from _undeclared(scope)
    for part in scope.prompt or ():
        if part.stable != "per_call" and part.holds:
            message = f"{part.part} is fixed text and holds {', '.join(part.holds)}"
            yield Trouble(("varies", dotted(part.path)), message, part.path)


def setup_in_one_block(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Role, constraints, form and principles stand side by side, and all are global."""
    if len(set(_SETUP) & scope.present) < 2:
        return
    yield from _undeclared(scope)
    found = [(number, part) for number, part in enumerate(scope.prompt or ()) if _owner(part) in _SETUP]
    for number, part in found:
        if part.stable != "global":
            message = f"{part.part} belongs to the setup and is {part.stable}"
            yield Trouble(("setup", dotted(part.path)), message, part.path, patterns=(_owner(part),))
        elif number != found[0][0] and _owner((scope.prompt or ())[number - 1]) not in _SETUP:
            message = f"{part.part} is cut off from the rest of the setup"
            yield Trouble(("setup", dotted(part.path)), message, part.path, patterns=(_owner(part),))


def _owner(part: PromptPart) -> str:
    return part.part.partition(".")[0]


def breakpoint_set(scope: Scope, check: Check) -> Iterator[Trouble]:
    """The end of the shared head is marked."""
    yield from _undeclared(scope)
    if scope.prompt is not None and not any(part.breakpoint for part in scope.prompt):
        message = "no part of the prompt is marked as the cache boundary"
        yield Trouble(("no boundary",), message, scope.where("O18"), wants=("prompt[].breakpoint",), patterns=("O18",))


def long_instructions(scope: Scope, check: Check) -> Iterator[Trouble]:
    """More fixed instructions than one prompt should carry, and nothing that splits the work."""
    tokens = _tokens([part for part in scope.prompt or () if part.stable == "global" and part.part != "tools"])
    if tokens > check.more_than and not scope.present & set(check.any_of):
        says = f"one prompt has {tokens:,} tokens of instructions"
        yield missing(check.any_of, (*scope.path, "prompt"), says=says)


def _tokens(parts: Sequence[PromptPart]) -> int:
    return sum(part.tokens or 0 for part in parts)
