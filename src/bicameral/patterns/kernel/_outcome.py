"""How a pattern ends: with a value and its labels, at a bound, or with a reason why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from bicameral.errors import BicameralError
from bicameral.labels import Label, Labelled, Shade, labelled
from bicameral.runs import EffectDone
from bicameral.strategies import Bound, Taken

from ._trace import Asked, Called, Trace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Ended:
    run: str
    pattern: str
    trace: Trace
    taken: Taken
    effects: tuple[EffectDone, ...]

    @property
    def asked(self) -> tuple[Asked, ...]:
        """The calls of models."""
        return tuple(moment for moment in self.trace if isinstance(moment, Asked))

    @property
    def called(self) -> tuple[Called, ...]:
        """The calls of tools."""
        return tuple(moment for moment in self.trace if isinstance(moment, Called))


@dataclass(frozen=True, slots=True)
class Answered(_Ended, Generic[T]):
    """There is a value; `shade` are its labels.

    `labelled` is the way into whatever comes next: another pattern, a strategy, a tool. `value` is naked, to be shown
    to the person; giving it to a model or a tool sheds its label.
    """

    value: T
    shade: Shade

    @property
    def labelled(self) -> Labelled[T]:
        """The value with its labels, closed."""
        return labelled(self.value, self.shade)

    @property
    def label(self) -> Label:
        return self.shade.flat

    @property
    def ok(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Exhausted(_Ended):
    """A bound was reached before there was a value."""

    bound: Bound
    spent: float
    limit: float

    @property
    def ok(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class GaveUp(_Ended):
    """There is no way on: something must not be, a person said no, a model or a tool failed, or it was stopped."""

    error: BicameralError
    in_flight: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return False


Outcome = Answered[T] | Exhausted | GaveUp
