"""Checks of order: stages of a pipeline, and the parts of a prompt.

Parts that never change come first in a prompt and are the same byte for byte; what marks content as data comes before
that content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from bicameral.catalog.lint._problems import LintProblem, missing_pattern, problem_at, undeclared_fact
from bicameral.catalog.lint._rules import RuleCheck
from bicameral.catalog.lint._scope import AgentScope
from bicameral.catalog.stacks import PromptPart, PromptStability

SectionCheck: TypeAlias = Callable[[AgentScope, RuleCheck], Iterator[LintProblem]]

SECTION_CHECKS: dict[str, SectionCheck] = {}
"""Every check of a section by the name that rules in the data files call it by."""


def section_check(name: str = "", *, needs: str = "", at: str = "") -> Callable[[SectionCheck], SectionCheck]:
    """Register a check.

    Args:
        name: How rules call it; the name of the function if it is left out.
        needs: The section that it looks at. Where nobody describes that, the check reports it and is not run.
        at: The pattern at which a missing section is reported.
    """

    def register(check: SectionCheck) -> SectionCheck:
        def run(scope: AgentScope, rule: RuleCheck) -> Iterator[LintProblem]:
            if needs and getattr(scope, needs) is None:
                return iter((undeclared_fact(needs, scope.path_of(at)),))
            return check(scope, rule)

        SECTION_CHECKS[name or check.__name__] = run
        return check

    return register


def _is_stage(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


@section_check()
def pipeline(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """These stages come in this order."""
    at = scope.path_of(check.order[0].partition(".")[0])
    stages = scope.pipeline or ()
    numbers = [next((n for n, each in enumerate(stages) if _is_stage(each, wanted)), None) for wanted in check.order]
    if None in numbers:
        yield undeclared_fact("pipeline", at)
    known = [each for each in numbers if each is not None]
    if known != sorted(known):
        message = f"the order is not {', '.join(check.order)}"
        yield LintProblem(("order", *check.order), message, at, patterns=_owner_patterns(check.order))


def _owner_patterns(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.partition(".")[0] for name in names if name[:1].isupper()))


@section_check(needs="prompt")
def humanizer_order(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """The parts of an agent with memory are ordered from what never changes to what always does."""
    highest = -1
    for part in scope.prompt or ():
        rank = _order_rank(part, check.order)
        if rank is None:
            continue
        if rank < highest:
            message = f"{part.part} stands behind {check.order[highest]}; the order is {', '.join(check.order)}"
            yield problem_at("humanizer", part.path, message, *_owner_patterns((part.part,)))
        highest = max(highest, rank)


def _order_rank(part: PromptPart, order: Sequence[str]) -> int | None:
    """The place of a part in an order; the longest name that fits it counts."""
    fits = [number for number, wanted in enumerate(order) if _is_stage(part.part, wanted)]
    return max(fits, key=lambda number: len(order[number])) if fits else None


@section_check()
def envelope_first(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """What marks content as data comes before that content."""
    envelope, content = check.order
    names = [part.part for part in scope.prompt or ()]
    if envelope not in names or content not in names:
        yield undeclared_fact("prompt", scope.path_of("H10"))
    elif names.index(content) < names.index(envelope):
        part = (scope.prompt or ())[names.index(content)]
        yield problem_at("envelope", part.path, f"{content} stands before {envelope}", "H10")


_STABILITY_RANK: dict[PromptStability, int] = {"global": 0, "per_user": 1, "per_call": 2}
_SETUP = ("S3", "S5", "S6", "S9")


def _early_part_problem(part: PromptPart, message: str) -> LintProblem:
    """The problem of a part that comes too early, which is the same for every rule."""
    owner = _part_owner(part)
    return problem_at("early", part.path, message, *((owner,) if owner[:1].isupper() and owner[1:].isdigit() else ()))


@section_check(needs="prompt")
def stable_first(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """No part comes before one that changes less, and the cache boundary is before what differs in every call."""
    prompt = scope.prompt or ()
    boundary = max((number for number, part in enumerate(prompt) if part.breakpoint), default=-1)
    last = _last_of_each_stability(prompt)
    for number, part in enumerate(prompt):
        rank = _STABILITY_RANK[part.stable]
        if any(_STABILITY_RANK[stable] < rank and number < later for stable, later in last.items()):
            yield _early_part_problem(part, f"{part.part} ({part.stable}) stands before what changes less")
        elif number <= boundary and part.stable == "per_call":
            yield _early_part_problem(part, f"{part.part} differs in every call and stands before the cache boundary")


def _last_of_each_stability(prompt: Sequence[PromptPart]) -> dict[PromptStability, int]:
    """The number of the last part of each stability."""
    return {part.stable: number for number, part in enumerate(prompt)}


def _before_shared(scope: AgentScope, is_own: Callable[[PromptPart], bool]) -> Iterator[LintProblem]:
    """The parts of this kind that come before a part that all calls share."""
    prompt = scope.prompt or ()
    last_shared = _last_of_each_stability(prompt).get("global", -1)
    for number, part in enumerate(prompt):
        if is_own(part) and number < last_shared:
            yield _early_part_problem(part, f"{part.part} ({part.stable}) stands before what changes less")


@section_check(needs="prompt")
def dynamic_examples_last(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Examples that are picked for each call come after all fixed parts."""

    def is_picked(part: PromptPart) -> bool:
        return part.part == "S2.dynamic" or (part.part.startswith("S2") and part.stable == "per_call")

    return _before_shared(scope, is_picked)


@section_check(needs="prompt")
def user_text_after_shared(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Parts of one user come after the parts that all share."""
    return _before_shared(scope, lambda part: part.stable == "per_user")


@section_check(needs="prompt")
def nothing_varies(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Nothing in fixed text differs from call to call."""
    for part in scope.prompt or ():
        if part.stable != "per_call" and part.holds:
            yield problem_at("varies", part.path, f"{part.part} is fixed text and holds {', '.join(part.holds)}")


@section_check()
def setup_in_one_block(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Role, constraints, format and principles are adjacent, and all are global."""
    if len(set(_SETUP) & scope.present) < 2:
        return
    if scope.prompt is None:
        yield undeclared_fact("prompt", scope.path_of(""))
    prompt = scope.prompt or ()
    setup = [(number, part) for number, part in enumerate(prompt) if _part_owner(part) in _SETUP]
    for number, part in setup:
        if part.stable != "global":
            yield problem_at(
                "setup", part.path, f"{part.part} belongs to the setup and is {part.stable}", _part_owner(part)
            )
        elif number != setup[0][0] and _part_owner(prompt[number - 1]) not in _SETUP:
            yield problem_at(
                "setup", part.path, f"{part.part} is cut off from the rest of the setup", _part_owner(part)
            )


def _part_owner(part: PromptPart) -> str:
    return part.part.partition(".")[0]


@section_check("breakpoint", needs="prompt")
def breakpoint_set(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """The end of the shared prefix is marked as the cache boundary."""
    if not any(part.breakpoint for part in scope.prompt or ()):
        message = "no part of the prompt is marked as the cache boundary"
        yield LintProblem(
            ("no boundary",), message, scope.path_of("O18"), wants=("prompt[].breakpoint",), patterns=("O18",)
        )


@section_check()
def long_instructions(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """More fixed instructions than one prompt should carry, and nothing that splits the work."""
    fixed = (part for part in scope.prompt or () if part.stable == "global" and part.part != "tools")
    tokens = sum(part.tokens or 0 for part in fixed)
    if tokens > check.more_than and not scope.available & set(check.any_of):
        says = f"one prompt has {tokens:,} tokens of instructions"
        yield missing_pattern(check.any_of, (*scope.path, "prompt"), says=says)
