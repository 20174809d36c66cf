"""Reasons not to rely on a plan that a small model wrote, although it passes the check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bicameral.intent import Intent
from bicameral.tools import Registry

from ._confidence import weakest
from ._coverage import left_out

if TYPE_CHECKING:
    from ._delta import Compiled

SURE = 0.65
"""How likely its weakest choice must have been to the model that wrote a plan."""

Kind = Literal["repaired", "mismatch", "left-out", "unsure"]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason to have a plan written by a larger model. No stranger's text is in it: plans are written before any."""

    kind: Kind
    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Doubts:
    """What makes a plan doubtful: mending, a mismatch with its intent, words left out, or a choice less than `sure`.

    A model whose provider cannot say how sure it was is held to the rest.

    Example:
        >>> Doubts(sure=0.3).about(compiled, intent, registry)
        ()
    """

    sure: float = SURE

    def about(self, compiled: Compiled, intent: Intent, registry: Registry) -> tuple[Doubt, ...]:
        """Every doubt, the gravest kind first; none says that the plan may be relied on."""
        return tuple(self._found(compiled, intent, registry))

    def _found(self, compiled: Compiled, intent: Intent, registry: Registry) -> Iterator[Doubt]:
        if compiled.repairs:
            yield Doubt("repaired", f"the plan had to be mended ({compiled.repairs})")
        for mismatch in compiled.mismatches:
            yield Doubt("mismatch", f"{mismatch.message} [{mismatch.code}]")
        if compiled.looks is None:
            for sentence in left_out(compiled.plan, intent, registry):
                yield Doubt("left-out", sentence)
        weak = weakest(compiled.confidence)
        if weak is not None and weak.probability < self.sure:
            yield Doubt("unsure", f"the model was not sure of {weak.text.strip()!r} ({weak.probability:.2f})")
