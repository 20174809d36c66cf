"""The base class of every pattern, its knobs and its place in an architecture, and runnable examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, LiteralString, ParamSpec, TypeAlias, TypeVar, cast

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
    own_roles: ClassVar[tuple[str, ...]] = ()
    """The fields with several roles whose sessions are in the cost of the pattern itself."""

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

    @property
    def known_sizes(self) -> Mapping[str, float | str]:
        """What it knows of its own sizes before it runs, for the cost model: the setups of its roles."""
        assert is_dataclass(self)
        roles = {each.role for each in self.facts.cost.sessions}
        own = (getattr(self, each.name) for each in fields(self))
        return {f"{each.name}.setup": each.setup for each in own if isinstance(each, Role) and each.name in roles}

    def architecture(self, *, sizes: Mapping[str, Mapping[str, float | str]] | None = None) -> Mapping[str, Any]:
        """This pattern and everything inside of it as a stack, for the linter, the cost model and `bicameral build`.

        Args:
            sizes: What is known of the sizes of each pattern beforehand, by its place as in `walk`: numbers of tokens,
                or texts, which are counted.
        """
        return {"name": self.facts.name, "runtime": "bicameral", "patterns": [_describe_use(self, "", sizes or {})]}

    def __post_init__(self) -> None:
        for name, value in self.knobs.items():
            knob, expected = self.facts.knobs[name], None
            if isinstance(value, int | float) and not isinstance(value, bool):
                low, high = knob.least, knob.most
                if (low is not None and value < low) or (high is not None and value > high):
                    expected = f"{low if low is not None else 'anything'} to {high if high is not None else 'any'}"
            elif isinstance(value, str) and knob.choices and value not in knob.choices:
                expected = " or ".join(map(repr, knob.choices))
            if expected is not None:
                raise CatalogError(
                    "pattern.bad-knob",
                    f"{self.id}: {name} is {value!r}",
                    expected=expected,
                    fix=f"`bicameral patterns show {self.id}` says what {name} is.",
                )


TextPattern: TypeAlias = Pattern[[Labelled[str]], Any]
"""A pattern that takes one text: it can be a strategy of an agent, a submitted run, a model of the server, a tool."""
Responder = Role | TextPattern


def _patterns_in(place: str, value: object) -> Mapping[str, Pattern[..., Any]]:
    """The patterns in the value of a field; those below one of them are its own."""
    return {at: each for at, each in _responders_in(place, value) if isinstance(each, Pattern)}


def _responders_in(place: str, value: object) -> Iterator[tuple[str, Role | Pattern[..., Any]]]:
    """The patterns in the value of a field, and the roles in it that are asked in the place of one."""
    if isinstance(value, Pattern | Role):
        yield place, cast("Role | Pattern[..., Any]", value)
        return
    named: Iterable[tuple[str, object]] = ()
    if isinstance(value, Mapping):
        named = ((f"{place}.{key}", each) for key, each in cast("Mapping[object, object]", value).items())
    elif isinstance(value, tuple | list):
        named = ((f"{place}[{number}]", each) for number, each in enumerate(cast("Sequence[object]", value)))
    elif is_dataclass(value) and not isinstance(value, type):
        named = ((f"{place}.{each.name}", getattr(value, each.name)) for each in fields(value))
    for at, each in named:
        yield from _responders_in(at, each)


ZERO_SHOT = "S1"
"""The pattern that a role is which is asked once, where another pattern could be."""


def _describe_use(pattern: Pattern[..., Any], at: str, sizes: Mapping[str, Mapping[str, float | str]]) -> Any:
    """A pattern as a stack describes its use: its knobs, the sizes that are known, and what is inside of it."""
    from bicameral.catalog.stacks import INNER_KEY, SIZES_KEY

    assert is_dataclass(pattern)
    given = sizes.get(at, {})
    # What the caller says of all roles holds for each of them.
    known = {name: size for name, size in pattern.known_sizes.items() if name.rpartition(".")[2] not in given}
    given = {**known, **given}
    inner: dict[str, Any] = {}
    for field in fields(pattern):
        value = getattr(pattern, field.name)
        # A role of its own is no part: its session is in the cost of the pattern.
        own = isinstance(value, Role) or field.name in pattern.own_roles
        for place, each in () if own else _responders_in(field.name, value):
            below = f"{at}.{place}" if at else place
            inner[place] = (
                _describe_use(each, below, sizes)
                if isinstance(each, Pattern)
                else {ZERO_SHOT: {SIZES_KEY: _count_sizes({"setup": each.setup, **sizes.get(below, {})})}}
            )
    described: dict[str, Any] = dict(pattern.knobs)
    if given:
        described[SIZES_KEY] = _count_sizes(given)
    if inner:
        described[INNER_KEY] = inner
    return {pattern.id: described}


CHAT_TOKENS = 12
"""The marks of a chat format around a setup, a message and the beginning of a reply, in every call."""


def _count_sizes(sizes: Mapping[str, float | str]) -> dict[str, float]:
    """Sizes as numbers. A setup that is given as a text begins a prompt, and is counted with the marks of its chat."""
    from bicameral.catalog.costs import estimate_tokens

    return {
        name: estimate_tokens(size) + CHAT_TOKENS * name.endswith("setup") if isinstance(size, str) else size
        for name, size in sizes.items()
    }


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
