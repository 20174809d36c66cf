"""What a case of the benchmark is: a request with its paraphrases, and what counts as the same there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..planning.data import Data
from ..planning.facts import Fact
from ..planning.judge import Expected
from ..planning.request import Obstacle, Request


@dataclass(frozen=True, slots=True)
class Case:
    """A request and other words for it.

    Args:
        request: The base wording, what is right, and a reference plan.
        parts: The base wording in clauses; the last one can also stand first.
        end: The mark at its end.
        paraphrases: Other words for the same, by hand.
        among: Facts that an answer, a mail or a loose file is compared by; if there are none, by its numbers alone.
        keep: Values that do not look like one, such as the names of columns: no rule changes them.
        loose: The words of a written file are free, as they are in a mail.
    """

    request: Request
    parts: tuple[str, ...]
    end: str
    paraphrases: tuple[str, ...]
    among: tuple[Fact, ...] = ()
    keep: tuple[str, ...] = ()
    loose: bool = False

    @property
    def id(self) -> str:
        return self.request.id


def case(
    id: str,
    parts: tuple[str, ...],
    oracle: Callable[[Data], Expected],
    plan: str,
    *paraphrases: str,
    end: str = ".",
    among: tuple[Fact, ...] = (),
    keep: tuple[str, ...] = (),
    loose: bool = False,
    obstacle: Obstacle | None = None,
) -> Case:
    """A case with its base wording put together from the clauses."""
    text = " ".join(parts) + end
    request = Request(id, text, 1, oracle, plan.strip() + "\n", obstacle=obstacle)
    return Case(request, parts, end, paraphrases, among, keep, loose)
