"""The base class of every pattern, its knobs and its place in an architecture, and runnable examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, LiteralString, ParamSpec, TypeVar, cast

from bicameral.errors import CatalogError, LabelError
from bicameral.labels import Labelled, program_text
from bicameral.patterns._outcome import Answered, Outcome
from bicameral.patterns.kernel._context import Context
from bicameral.patterns.kernel._conversation import Role
from bicameral.patterns.strategies import Runtime
from bicameral.tools import Tool

if TYPE_CHECKING:
    from bicameral.catalog import PatternFacts
    from bicameral.evaluation import Subject


T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")


P = ParamSpec("P")


class Pattern(ABC, Generic[P, T]):
    """A pattern with its knobs, ready to run: a frozen dataclass whose fields are the knobs.

    `run` makes a recorded run of it, with an outcome that has labels, trace and cost. Another pattern calls `execute`
    with a part of its context: the run, its limits and its record are then those of the whole.
    """

    id: ClassVar[str]

    @abstractmethod
    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        """Do the work in a context."""

    async def run(self, runtime: Runtime, /, *args: P.args, **kwargs: P.kwargs) -> Outcome[T]:
        """Do the work as a run of its own. Texts must have labels: the source of one without is unknown."""
        if any(isinstance(each, str) for each in (*args, *kwargs.values())):
            raise LabelError(
                "labels.naked",
                f"{self.id} was given a naked text",
                expected="a labelled value",
                fix="Use `program_text` for a literal, `from_user` for what the user gave, `labelled` of an outcome.",
            )
        from bicameral.patterns.kernel._record import PatternWork, run_pattern

        return await run_pattern(PatternWork(self, args, kwargs), runtime)

    def then(self, following: Pattern[[Labelled[T]], U]) -> Pattern[P, U]:
        """A chain of this pattern and one that takes its result, with its labels. `|` says the same.

        Example:
            >>> outcome = await (ReWOO() | OutputTemplate(form)).run(runtime, program_text("How many live in Ghent?"))
        """
        from bicameral.patterns.orchestration.chain import Chain

        return Chain.of(self, following)

    def __or__(self, following: Pattern[[Labelled[T]], U]) -> Pattern[P, U]:
        return self.then(following)

    def as_subject(self: Pattern[[Labelled[V]], T], runtime: Runtime, /) -> Subject[V, T]:
        """This pattern as the subject of an evaluation, with a run of its own for each case."""
        from bicameral.patterns.kernel._subject import pattern_subject

        return pattern_subject(self, runtime)

    @property
    def children(self) -> Mapping[str, Pattern[..., Any]]:
        """The patterns in its fields, by the place of each: `inner`, `steps[1]`, `parts.left`."""
        assert is_dataclass(self)
        found: dict[str, Pattern[..., Any]] = {}
        for each in fields(self):
            found |= _patterns_in(each.name, getattr(self, each.name))
        return found

    def walk(self, at: str = "") -> Iterator[tuple[str, Pattern[..., Any]]]:
        """This pattern and all patterns below it, with their places; its own is empty."""
        yield at, self
        for name, child in self.children.items():
            yield from child.walk(f"{at}.{name}" if at else name)

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


def _patterns_in(place: str, value: object) -> Mapping[str, Pattern[..., Any]]:
    """The patterns in the value of a field; those below one of them are its own."""
    if isinstance(value, Pattern):
        return {place: cast("Pattern[..., Any]", value)}
    named: Iterable[tuple[str, object]] = ()
    if isinstance(value, Mapping):
        named = ((f"{place}.{key}", each) for key, each in cast("Mapping[object, object]", value).items())
    elif isinstance(value, tuple | list):
        named = ((f"{place}[{number}]", each) for number, each in enumerate(cast("Sequence[object]", value)))
    elif is_dataclass(value) and not isinstance(value, type):
        named = ((f"{place}.{each.name}", getattr(value, each.name)) for each in fields(value))
    return {name: child for at, each in named for name, child in _patterns_in(at, each).items()}


Responder = Role | Pattern[[Labelled[str]], Any]


async def ask_responder(context: Context, responder: Responder, text: Labelled[str]) -> Labelled[Any]:
    """The reply of a role, or the result of a pattern, that is given this text and nothing else."""
    return await (context.ask(responder, text) if isinstance(responder, Role) else responder.execute(context, text))


@dataclass(frozen=True, slots=True)
class PatternExample:
    """An example of a pattern, run in a folder of its own.

    Args:
        task: The text that the pattern is given, or a function that makes its arguments.
        sizes: What the cost model needs to know beforehand, by the names in the pattern's cost: numbers, or texts that
            are counted with the model's own tokenizer.
        model: The smallest of the local models that it comes out right with.
    """

    about: str
    make: Callable[[Path], Pattern[..., Any]]
    task: LiteralString | Callable[[Path], tuple[Any, ...]]
    is_correct: Callable[[Answered[Any]], bool]
    sizes: Callable[[Path], Mapping[str, int | float | str]]
    tools: Callable[[Path], Sequence[Tool]] = lambda folder: ()
    model: str = "0.5b"

    def arguments(self, folder: Path) -> tuple[Any, ...]:
        """What the pattern is given."""
        return self.task(folder) if callable(self.task) else (program_text(self.task),)
