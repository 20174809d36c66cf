"""What comes after what: in time, and in the prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...stacks import PromptPart, dotted
from .._rules import Check
from .._scope import Scope
from .._trouble import Trouble, undeclared


def _is(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


def pipeline(scope: Scope, check: Check) -> Iterator[Trouble]:
    """These stages come in this order."""
    at = scope.where(check.order[0].partition(".")[0])
    if scope.pipeline is None:
        yield undeclared("pipeline", at)
        return
    found = [next((n for n, each in enumerate(scope.pipeline) if _is(each, wanted)), None) for wanted in check.order]
    if None in found:
        yield undeclared("pipeline", at)
    known = [each for each in found if each is not None]
    if known != sorted(known):
        message = f"the order is not {', '.join(check.order)}"
        yield Trouble(("order", *check.order), message, at, patterns=_owners(check.order))


def _owners(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.partition(".")[0] for name in names if name[:1].isupper()))


def humanizer_order(scope: Scope, check: Check) -> Iterator[Trouble]:
    """What an agent with a past carries along comes from what never changes to what always does."""
    if scope.prompt is None:
        yield undeclared("prompt", (*scope.path, "patterns"))
        return
    ranked = [(_rank(part, check.order), part) for part in scope.prompt]
    highest = -1
    for rank, part in ranked:
        if rank is None:
            continue
        if rank < highest:
            message = f"{part.part} stands behind {check.order[highest]}; the order is {', '.join(check.order)}"
            yield Trouble(("humanizer", dotted(part.path)), message, part.path, patterns=_owners((part.part,)))
        highest = max(highest, rank)


def _rank(part: PromptPart, order: Sequence[str]) -> int | None:
    """The place of a part in an order; the longest name that fits it counts."""
    fits = [number for number, wanted in enumerate(order) if _is(part.part, wanted)]
    return max(fits, key=lambda number: len(order[number])) if fits else None


def envelope_first(scope: Scope, check: Check) -> Iterator[Trouble]:
    """What marks content as data stands before the content."""
    envelope, content = check.order
    names = [part.part for part in scope.prompt or ()]
    if envelope not in names or content not in names:
        yield undeclared("prompt", scope.where("H10"))
    elif names.index(content) < names.index(envelope):
        part = (scope.prompt or ())[names.index(content)]
        message = f"{content} stands before {envelope}"
        yield Trouble(("envelope", dotted(part.path)), message, part.path, patterns=("H10",))
