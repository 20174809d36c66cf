"""Checks of order: stages of a pipeline, and the parts of a prompt.

What never changes stands first in a prompt and is the same byte for byte; what marks content as data stands before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bicameral.catalog.lint._problems import LintProblem, missing_pattern, undeclared_fact
from bicameral.catalog.lint._rules import RuleCheck
from bicameral.catalog.lint._scope import AgentScope
from bicameral.catalog.stacks import PromptPart, PromptStability, dotted_path


def _is_stage(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


def pipeline(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """These stages come in this order."""
    at = scope.path_of(check.order[0].partition(".")[0])
    if scope.pipeline is None:
        yield undeclared_fact("pipeline", at)
        return
    found = [
        next((n for n, each in enumerate(scope.pipeline) if _is_stage(each, wanted)), None) for wanted in check.order
    ]
    if None in found:
        yield undeclared_fact("pipeline", at)
    known = [each for each in found if each is not None]
    if known != sorted(known):
        message = f"the order is not {', '.join(check.order)}"
        yield LintProblem(("order", *check.order), message, at, patterns=_owner_patterns(check.order))


def _owner_patterns(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.partition(".")[0] for name in names if name[:1].isupper()))


def humanizer_order(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """What an agent with a past carries along comes from what never changes to what always does."""
    if scope.prompt is None:
        yield undeclared_fact("prompt", (*scope.path, "patterns"))
        return
    ranked = [(_order_rank(part, check.order), part) for part in scope.prompt]
    highest = -1
    for rank, part in ranked:
        if rank is None:
            continue
        if rank < highest:
            message = f"{part.part} stands behind {check.order[highest]}; the order is {', '.join(check.order)}"
            yield LintProblem(
                ("humanizer", dotted_path(part.path)), message, part.path, patterns=_owner_patterns((part.part,))
            )
        highest = max(highest, rank)


def _order_rank(part: PromptPart, order: Sequence[str]) -> int | None:
    """The place of a part in an order; the longest name that fits it counts."""
    fits = [number for number, wanted in enumerate(order) if _is_stage(part.part, wanted)]
    return max(fits, key=lambda number: len(order[number])) if fits else None


def envelope_first(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """What marks content as data stands before the content."""
    envelope, content = check.order
    names = [part.part for part in scope.prompt or ()]
    if envelope not in names or content not in names:
        yield undeclared_fact("prompt", scope.path_of("H10"))
    elif names.index(content) < names.index(envelope):
        part = (scope.prompt or ())[names.index(content)]
        message = f"{content} stands before {envelope}"
        yield LintProblem(("envelope", dotted_path(part.path)), message, part.path, patterns=("H10",))


_STABILITY_RANK: dict[PromptStability, int] = {"global": 0, "per_user": 1, "per_call": 2}
_SETUP = ("S3", "S5", "S6", "S9")


def _early_part_problem(part: PromptPart, message: str) -> LintProblem:
    """A part that stands too early. Whichever rule sees it, it is the same fault."""
    owner = part.part.partition(".")[0]
    patterns = (owner,) if owner[:1].isupper() and owner[1:].isdigit() else ()
    return LintProblem(("early", dotted_path(part.path)), message, part.path, patterns=patterns)


def _undeclared_prompt(scope: AgentScope) -> Iterator[LintProblem]:
    if scope.prompt is None:
        yield undeclared_fact("prompt", (*scope.path, "patterns"))


def stable_first(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """No part stands before one that changes less, and the cache boundary lies before what differs in every call."""
    yield from _undeclared_prompt(scope)
    prompt = scope.prompt or ()
    boundary = max((number for number, part in enumerate(prompt) if part.breakpoint), default=-1)
    for number, part in enumerate(prompt):
        if any(_STABILITY_RANK[later.stable] < _STABILITY_RANK[part.stable] for later in prompt[number + 1 :]):
            yield _early_part_problem(part, f"{part.part} ({part.stable}) stands before what changes less")
        elif number <= boundary and part.stable == "per_call":
            yield _early_part_problem(part, f"{part.part} differs in every call and stands before the cache boundary")


def dynamic_examples_last(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Examples that are picked for each call stand behind all that is fixed."""
    yield from _undeclared_prompt(scope)
    prompt = scope.prompt or ()
    for number, part in enumerate(prompt):
        picked = part.part == "S2.dynamic" or (part.part.startswith("S2") and part.stable == "per_call")
        if picked and any(later.stable == "global" for later in prompt[number + 1 :]):
            yield _early_part_problem(part, f"{part.part} ({part.stable}) stands before what changes less")


def user_text_after_shared(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """What belongs to one user stands behind what all share."""
    yield from _undeclared_prompt(scope)
    prompt = scope.prompt or ()
    for number, part in enumerate(prompt):
        if part.stable == "per_user" and any(later.stable == "global" for later in prompt[number + 1 :]):
            yield _early_part_problem(part, f"{part.part} ({part.stable}) stands before what changes less")


def nothing_varies(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Nothing in fixed text differs from call to call."""
    yield from _undeclared_prompt(scope)
    for part in scope.prompt or ():
        if part.stable != "per_call" and part.holds:
            message = f"{part.part} is fixed text and holds {', '.join(part.holds)}"
            yield LintProblem(("varies", dotted_path(part.path)), message, part.path)


def setup_in_one_block(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Role, constraints, form and principles stand side by side, and all are global."""
    if len(set(_SETUP) & scope.present) < 2:
        return
    yield from _undeclared_prompt(scope)
    found = [(number, part) for number, part in enumerate(scope.prompt or ()) if _part_owner(part) in _SETUP]
    for number, part in found:
        if part.stable != "global":
            message = f"{part.part} belongs to the setup and is {part.stable}"
            yield LintProblem(("setup", dotted_path(part.path)), message, part.path, patterns=(_part_owner(part),))
        elif number != found[0][0] and _part_owner((scope.prompt or ())[number - 1]) not in _SETUP:
            message = f"{part.part} is cut off from the rest of the setup"
            yield LintProblem(("setup", dotted_path(part.path)), message, part.path, patterns=(_part_owner(part),))


def _part_owner(part: PromptPart) -> str:
    return part.part.partition(".")[0]


def breakpoint_set(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """The end of the shared head is marked."""
    yield from _undeclared_prompt(scope)
    if scope.prompt is not None and not any(part.breakpoint for part in scope.prompt):
        message = "no part of the prompt is marked as the cache boundary"
        yield LintProblem(
            ("no boundary",), message, scope.path_of("O18"), wants=("prompt[].breakpoint",), patterns=("O18",)
        )


def long_instructions(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """More fixed instructions than one prompt should carry, and nothing that splits the work."""
    tokens = _token_sum([part for part in scope.prompt or () if part.stable == "global" and part.part != "tools"])
    if tokens > check.more_than and not scope.present & set(check.any_of):
        says = f"one prompt has {tokens:,} tokens of instructions"
        yield missing_pattern(check.any_of, (*scope.path, "prompt"), says=says)


def _token_sum(parts: Sequence[PromptPart]) -> int:
    return sum(part.tokens or 0 for part in parts)
