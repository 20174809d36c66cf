"""What every pattern is: its facts, its knobs, one way to run it, and what a linter can be told of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar

from bicameral.errors import CatalogError, LabelError
from bicameral.labels import Labelled

from ._perform import perform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bicameral.catalog import Pattern as PatternFacts
    from bicameral.strategies import Desk

    from ._outcome import Outcome
    from ._stage import Stage

P = ParamSpec("P")
T = TypeVar("T")


class Pattern(ABC, Generic[P, T]):
    """A pattern with its knobs, ready to run: a frozen dataclass whose fields are the knobs.

    `run` makes a recorded run of it, with a result that has labels, trace and cost. Inside another pattern it is its
    `on` that is called, with a part of the stage: the run, its bounds and its record are then those of the whole.
    """

    id: ClassVar[str]

    @abstractmethod
    async def on(self, stage: Stage, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        """Do it on a stage."""

    async def run(self, desk: Desk, /, *args: P.args, **kwargs: P.kwargs) -> Outcome[T]:
        """Do it as a run of its own. Texts come in with their labels: whose a naked one is, nobody could say."""
        if any(isinstance(each, str) for each in (*args, *kwargs.values())):
            raise LabelError(
                "labels.naked",
                f"{self.id} was given a naked text",
                expected="a labelled value",
                fix="Use `said` for a literal, `from_user` for what the user gave, and of an outcome `labelled`.",
            )
        return await perform(self.id, self.knobs, desk, lambda stage: self.on(stage, *args, **kwargs))

    @property
    def facts(self) -> PatternFacts:
        """What the catalogue says of it."""
        from bicameral.catalog import catalog

        return catalog().pattern(self.id)

    @property
    def knobs(self) -> Mapping[str, Any]:
        """The knobs that the catalogue knows, as they are set."""
        assert is_dataclass(self)
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name in self.facts.knobs}

    def architecture(self) -> Mapping[str, Any]:
        """This pattern as a stack of one, for the linter and the cost model."""
        return {"name": self.facts.name, "patterns": [{self.id: dict(self.knobs)}]}

    def __post_init__(self) -> None:
        for name, value in self.knobs.items():
            knob = self.facts.knobs[name]
            if isinstance(value, int | float) and not isinstance(value, bool):
                low, high = knob.least, knob.most
                if (low is not None and value < low) or (high is not None and value > high):
                    raise CatalogError(
                        "pattern.bad-knob",
                        f"{self.id}: {name} is {value}",
                        expected=f"{low if low is not None else 'anything'} to {high if high is not None else 'any'}",
                        fix=f"`bicameral patterns show {self.id}` says what {name} is.",
                    )
