"""Subjects: whatever is evaluated, as one function from a labelled input to a labelled output."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

from bicameral.evaluation._checks import code_hash
from bicameral.labels import UNKNOWN, Labelled, join, make_labelled, open_labelled

In = TypeVar("In")
Out = TypeVar("Out")
R_contra = TypeVar("R_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Subject(Generic[In, Out]):
    """Something that is evaluated.

    Args:
        attempt: Gets a labelled input and a seed, and gives the labelled output. A `BicameralError` is an attempt
            without an output. It is called once for each case and repeat, and never again for a better result.
        fingerprint: A hash of what decides its outputs, as far as that is known. Results resume only with the same.

    Example:
        >>> subject = Subject("answers", answer_question)
        >>> report = await evaluate(subject, suite)
    """

    name: str
    attempt: Callable[[Labelled[In], int], Awaitable[Labelled[Out]]]
    fingerprint: str = ""


def function_subject(
    function: Callable[[Labelled[In]], Awaitable[Labelled[Out]]], *, name: str | None = None, version: str = ""
) -> Subject[In, Out]:
    """An async function of a labelled input, with a labelled output.

    Args:
        version: To be changed when something changes that the function uses and its own code does not show.
    """

    async def attempt(given: Labelled[In], seed: int) -> Labelled[Out]:
        return await function(given)

    return Subject(name or _name_of(function), attempt, f"{code_hash(function)} {version}".strip())


def plain_subject(
    function: Callable[[In], Awaitable[Out]], *, name: str | None = None, version: str = ""
) -> Subject[In, Out]:
    """An async function without labels, such as a call of another system. What it gives is untrusted."""

    async def attempt(given: Labelled[In], seed: int) -> Labelled[Out]:
        return make_labelled(await function(open_labelled(given)), join(given.label, UNKNOWN))

    return Subject(name or _name_of(function), attempt, f"{code_hash(function)} {version}".strip())


class Evaluable(Protocol[R_contra, In, Out]):
    """What can be a subject with a runtime: a pattern, a role; or by itself: an agent."""

    def as_subject(self, runtime: R_contra, /) -> Subject[In, Out]:
        """This as the subject of an evaluation."""
        ...


def subject_of(
    subject: Subject[In, Out] | Evaluable[Any, In, Out] | Callable[[Labelled[In]], Awaitable[Labelled[Out]]],
    runtime: object,
) -> Subject[In, Out]:
    """A subject as it is, that of a pattern, role or agent, or that of an async function."""
    if isinstance(subject, Subject):
        return cast("Subject[In, Out]", subject)
    if hasattr(subject, "as_subject"):
        return cast("Evaluable[Any, In, Out]", subject).as_subject(runtime)
    return function_subject(cast("Callable[[Labelled[In]], Awaitable[Labelled[Out]]]", subject))


def _name_of(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))
