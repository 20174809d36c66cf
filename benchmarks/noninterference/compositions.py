"""Composed patterns: what the first gives, with its labels, goes into the next as an address, as content, or as what
decides.

They are put together in every way that there is: as runs one after another, as a chain in one run, with a gate between
the steps, as patterns within a pattern, and side by side. On the way a text passes through a tool, a model, or a
decision on it. Nothing here depends on the plan language: these are programs in Python that use the kernel of the
patterns.
"""

from __future__ import annotations

import asyncio
import random
import zlib
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, cast

from bicameral import ScriptedProvider
from bicameral.errors import BicameralError
from bicameral.labels import forget_released
from bicameral.models import ModelRequest
from bicameral.patterns import Answered, Context, Labelled, Pattern, Role, from_user
from bicameral.patterns.orchestration.chain import Chain
from bicameral.patterns.strategies import ModelPair, Runtime
from bicameral.sessions import Chambers, Quarantined

from .execution import FINISHED, Collector, Person, Trace, policy
from .world import PAGES, PATHS, PEOPLE, REGISTRY, WORDS, Seeds, World, inside, watch

Use = Literal["addressed", "carried", "carried to everyone", "paid", "deciding", "written and read"]
Way = Literal["stamp", "reword", "sift"]
Shape = Literal["runs", "chain", "gated chain", "nested", "side by side"]
WRITER = Role("Writer", "Say it again.")
LONG = 5


@dataclass(frozen=True)
class Gather(Pattern[[], str]):
    """Reads one thing."""

    id: ClassVar[str] = "S6"
    tool: str
    given: str

    async def execute(self, stage: Context, /) -> Labelled[str]:
        argument = REGISTRY[self.tool].arguments[0].name
        return await stage.call(self.tool, {argument: self.given})


@dataclass(frozen=True)
class Beside(Pattern[[], str]):
    """Reads two things side by side, and gives one of them on."""

    id: ClassVar[str] = "S6"
    one: Gather
    other: Gather
    way: Way

    async def execute(self, stage: Context, /) -> Labelled[str]:
        async def other(part: Context) -> Labelled[str]:
            return await Pass(self.way).execute(part, await self.other.execute(part))

        gave, _ = await stage.run_parallel([("one", self._one), ("other", other)], width=2)
        if isinstance(gave, BicameralError):
            raise gave
        return gave

    async def _one(self, part: Context) -> Labelled[str]:
        return await Pass(self.way).execute(part, await self.one.execute(part))


@dataclass(frozen=True)
class Pass(Pattern[[Labelled[str]], str]):
    """Makes another text of one: a tool does, a model does, or what it says decides which."""

    id: ClassVar[str] = "S6"
    way: Way

    async def execute(self, stage: Context, /, value: Labelled[str]) -> Labelled[str]:
        match self.way:
            case "stamp":
                return await stage.call("stamp", {"text": value, "number": 1})
            case "reword":
                return await stage.ask(WRITER, value)
            case "sift":
                # The text that comes out is the program's own; which of the two it is, the other text says.
                return from_user(PEOPLE[zlib.crc32(stage.read(value).encode()) % len(PEOPLE)])


@dataclass(frozen=True)
class Nest(Pattern[[], str]):
    """Runs other patterns one after another, each as a part of its own."""

    id: ClassVar[str] = "S6"
    first: Pattern[[], str]
    following: tuple[Pattern[[Labelled[str]], str], ...]

    async def execute(self, stage: Context, /) -> Labelled[str]:
        value = await stage.run_pattern("first", self.first)
        for each in self.following:
            value = await stage.run_pattern("following", each, value)
        return value


@dataclass(frozen=True)
class Deliver(Pattern[[Labelled[str]], str]):
    """Does something with what an earlier pattern gave."""

    id: ClassVar[str] = "S6"
    use: Use
    word: str
    person: str

    async def execute(self, stage: Context, /, value: Labelled[str]) -> Labelled[str]:
        match self.use:
            case "addressed":
                await stage.call("tell", {"to": value, "text": self.word})
            case "paid":
                await stage.call("pay", {"to": value, "amount": 1})
            case "carried":
                people = await stage.call("contacts", {"name": ""})
                # The first of the book: whom he is, is the service's to say.
                await stage.call("tell", {"to": people.map(_first_address), "text": value})
            case "carried to everyone":
                await stage.call("post", {"text": value})
            case "written and read":
                await stage.call("write_note", {"path": PATHS[-1], "text": value})
                read = await stage.call("read_board", {"path": PATHS[-1]})
                await stage.call("tell", {"to": read, "text": self.word})
            case "deciding":
                if len(stage.read(value)) > 5:
                    await stage.call("tell", {"to": self.person, "text": self.word})
        return stage.derive("done")


def _first_address(people: list[Any]) -> str:
    return people[0]["email"]


def _is_short(text: str) -> str | None:
    return None if len(text) > LONG else "it is short"


@dataclass(frozen=True, slots=True)
class Composition:
    """A program of two to five patterns."""

    shape: Shape
    gather: Gather
    beside: Gather
    ways: tuple[Way, ...]
    deliver: Deliver

    @classmethod
    def drawn(cls, chance: random.Random) -> Composition:
        sources = (("fetch", PAGES[0]), *(("read_note", path) for path in PATHS[:3]), ("read_board", PATHS[3]))
        uses: tuple[Use, ...] = Use.__args__  # pyright: ignore[reportAttributeAccessIssue]
        ways: tuple[Way, ...] = Way.__args__  # pyright: ignore[reportAttributeAccessIssue]
        shapes: tuple[Shape, ...] = Shape.__args__  # pyright: ignore[reportAttributeAccessIssue]
        return cls(
            chance.choice(shapes),
            Gather(*chance.choice(sources)),
            Gather(*chance.choice(sources)),
            tuple(chance.choice(ways) for _ in range(chance.randrange(3))),
            Deliver(chance.choice(uses), chance.choice(WORDS), chance.choice(PEOPLE)),
        )

    @property
    def programs(self) -> tuple[Pattern[..., Any], ...]:
        """The patterns that are run, each of which gets what the one before gave."""
        following = (*(Pass(way) for way in self.ways), self.deliver)
        match self.shape:
            case "runs":
                return (self.gather, *following)
            case "chain":
                return (Chain.of(self.gather, *following),)
            case "gated chain":
                return (Chain.of(self.gather, *following).with_gate(0, _is_short),)
            case "nested":
                return (Nest(self.gather, following),)
            case "side by side":
                return (Nest(Beside(self.gather, self.beside, "sift"), following),)

    def __str__(self) -> str:
        sources = [f"{each.tool}({each.given!r})" for each in (self.gather, self.beside)]
        source = " beside ".join(sources) if self.shape == "side by side" else sources[0]
        return f"{self.shape}: {' → '.join((source, *self.ways, self.deliver.use))}\n"


def execute_composition(composition: Composition, seeds: Seeds, person: int) -> Trace:
    """Run the patterns of a composition, and say what happened."""
    world = World(seeds)
    # Each run stands for a process of its own: none is stopped by what another has handed out.
    forget_released()
    with inside(world):
        return asyncio.run(_execute(composition, world, Person(person)))


async def _execute(composition: Composition, world: World, person: Person) -> Trace:
    found = Collector(world, person)
    desk = Runtime(_voices(), REGISTRY, policy("strict"), approver=person, observer=watch)
    given: tuple[Labelled[str], ...] = ()
    ending = FINISHED
    for number, pattern in enumerate(composition.programs):
        seen = policy("strict").watch()
        outcome: Any = await cast("Any", pattern).run(desk, *given)
        found.add(number, seen)
        if not isinstance(outcome, Answered):
            ending = type(cast("object", outcome)).__name__
            break
        given = (cast("Answered[str]", outcome).labelled,)
    return found.trace(ending)


@cache
def _voices() -> ModelPair:
    """Two models that say what they are told."""
    return ModelPair(Chambers(ScriptedProvider(_repeat), Quarantined(ScriptedProvider(_repeat, chamber="quarantined"))))


def _repeat(request: ModelRequest) -> str:
    return request.messages[-1].text
