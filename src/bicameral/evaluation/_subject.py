"""Subjects: whatever is evaluated, as one function from a labelled input to a labelled output."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from bicameral.evaluation._checks import code_hash
from bicameral.labels import UNKNOWN, Labelled, join, make_labelled, open_labelled

I = TypeVar("I")
O = TypeVar("O")
R_contra = TypeVar("R_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Subject(Generic[I, O]):
    """Something that is evaluated.

    Args:
        attempt: Gets a labelled input and a seed, and gives the labelled output. A `BicameralError` is an attempt
            without an output. It is called once for each case and repeat, and never again for a better result.
        fingerprint: A hash of what decides its outputs, as far as that is known. Results are resumed only with the same.

    Example:
        >>> subject = Subject.of(answer_question, name="answers")
        >>> report = await evaluate(subject, suite)
    """

    name: str
    attempt: Callable[[Labelled[I], int], Awaitable[Labelled[O]]]
    fingerprint: str = ""

    @staticmethod
    def of(
        function: Callable[[Labelled[I]], Awaitable[Labelled[O]]], *, name: str | None = None, version: str = ""
    ) -> Subject[I, O]:
        """An async function of a labelled input, with a labelled output.

        Args:
            version: To be changed when something changes that the function uses and its own code does not show.
        """

        async def attempt(given: Labelled[I], seed: int) -> Labelled[O]:
            return await function(given)

        return Subject(name or _name_of(function), attempt, f"{code_hash(function)} {version}".strip())

    @staticmethod
    def plain(function: Callable[[I], Awaitable[O]], *, name: str | None = None, version: str = "") -> Subject[I, O]:
        """An async function without labels, such as a call of another system. What it gives is untrusted."""

        async def attempt(given: Labelled[I], seed: int) -> Labelled[O]:
            return make_labelled(await function(open_labelled(given)), join(given.label, UNKNOWN))

        return Subject(name or _name_of(function), attempt, f"{code_hash(function)} {version}".strip())


class Evaluable(Protocol[R_contra, I, O]):
    """What can be a subject with a runtime: a pattern, a role; or by itself: an agent."""

    def as_subject(self, runtime: R_contra, /) -> Subject[I, O]:
        """This as the subject of an evaluation."""
        ...


def subject_of(
    subject: Subject[I, O] | Evaluable[Any, I, O] | Callable[[Labelled[I]], Awaitable[Labelled[O]]], runtime: object
) -> Subject[I, O]:
    """A subject as it is, that of a pattern, role or agent, or that of an async function."""
    if isinstance(subject, Subject):
        return subject
    as_subject = getattr(subject, "as_subject", None)
    if as_subject is not None:
        return as_subject(runtime)
    return Subject.of(subject)  # pyright: ignore[reportArgumentType] all that is left are functions


def _name_of(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))
