"""How a reasoning ends, and its rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bicameral.delta import Compiled
from bicameral.errors import BicameralError
from bicameral.labels import NOTHING, UNKNOWN, Label, Labelled, Shade, labelled
from bicameral.runs import Checked, EffectDone, RunOutcome

from ._bounds import Bound, Taken
from ._failures import Failure


@dataclass(frozen=True, slots=True)
class Written:
    """A round whose plan is written and checked, and has not run."""

    number: int
    compiled: Compiled
    checked: Checked
    source: str


@dataclass(frozen=True, slots=True)
class Round:
    """One round: its plan as people read it, how its run ended, and what the reasoner was told of it.

    `read` is the label of what it was told; `left` are the variables that later plans can use. A round for which no
    plan was found has no source, and one whose plan did not pass the check has no outcome. `draft` is the plan as the
    planner wrote it, with neutral names for what others called the columns of their tables.
    """

    number: int
    source: str = ""
    outcome: RunOutcome | None = None
    told: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    read: Label = NOTHING
    failure: Failure | None = None
    draft: str = ""

    @property
    def run(self) -> str | None:
        """The id of its run in the journal."""
        return self.outcome.run if self.outcome is not None else None

    @property
    def effects(self) -> tuple[EffectDone, ...]:
        return self.outcome.effects if self.outcome is not None else ()


@dataclass(frozen=True, slots=True)
class Answered:
    """The reasoner came to its answer; `shade` are the answer's labels."""

    id: str
    answer: Any
    shade: Shade | None
    rounds: tuple[Round, ...]
    taken: Taken

    @property
    def labelled(self) -> Labelled[Any]:
        """The answer with its labels, closed: the way into another run, strategy or pattern. `answer` is naked."""
        return labelled(self.answer, UNKNOWN if self.shade is None else self.shade)

    @property
    def ok(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A bound was reached before there was an answer. What the rounds did and found is here."""

    id: str
    bound: Bound
    spent: float
    limit: float
    rounds: tuple[Round, ...]
    taken: Taken

    @property
    def ok(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class GaveUp:
    """There is no way on: a person said no or is not there, a model failed, no plan was found, or it was stopped."""

    id: str
    error: BicameralError
    rounds: tuple[Round, ...]
    taken: Taken

    @property
    def ok(self) -> bool:
        return False


Reasoned = Answered | Exhausted | GaveUp
