"""Patterns one after another: what the first gives, with its labels, goes into the next as an address, as content, or
as what decides.

Nothing here depends on the plan language: these are programs in Python that use the kernel of the patterns.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, cast

from bicameral import ScriptedProvider
from bicameral.patterns import Answered, Context, Labelled, Pattern
from bicameral.patterns.strategies import ModelPair, Runtime
from bicameral.sessions import Chambers, Quarantined

from .execution import FINISHED, Collector, Person, Trace, policy
from .world import PAGES, PATHS, PEOPLE, REGISTRY, WORDS, Seeds, World, inside, watch

Use = Literal["addressed", "carried", "carried to everyone", "paid", "deciding", "written and read"]


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
class Pass(Pattern[[Labelled[str]], str]):
    """Gives a text to a tool that makes another of it."""

    id: ClassVar[str] = "S6"

    async def execute(self, stage: Context, /, value: Labelled[str]) -> Labelled[str]:
        return await stage.call("stamp", {"text": value, "number": 1})


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


@dataclass(frozen=True, slots=True)
class Composition:
    """A program of two or three patterns."""

    gather: Gather
    passes: int
    deliver: Deliver

    @classmethod
    def drawn(cls, chance: random.Random) -> Composition:
        tool, given = chance.choice(
            (("fetch", PAGES[0]), *(("read_note", path) for path in PATHS[:3]), ("read_board", PATHS[3]))
        )
        uses: tuple[Use, ...] = Use.__args__  # pyright: ignore[reportAttributeAccessIssue]
        return cls(
            Gather(tool, given),
            chance.randrange(2),
            Deliver(chance.choice(uses), chance.choice(WORDS), chance.choice(PEOPLE)),
        )

    def __str__(self) -> str:
        passed = " → stamp" * self.passes
        return f"pattern {self.gather.tool}({self.gather.given!r}){passed} → {self.deliver.use}\n"


def execute_composition(composition: Composition, seeds: Seeds, person: int) -> Trace:
    """Run the patterns one after another, each as a run of its own."""
    world = World(seeds)
    with inside(world):
        return asyncio.run(_execute(composition, world, Person(person)))


async def _execute(composition: Composition, world: World, person: Person) -> Trace:
    found = Collector(world, person)
    desk = Runtime(_voices(), REGISTRY, policy("strict"), approver=person, observer=watch)
    works = [composition.gather, *(Pass() for _ in range(composition.passes)), composition.deliver]
    given: tuple[Labelled[str], ...] = ()
    ending = FINISHED
    for number, pattern in enumerate(works):
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
    """Two models that nobody asks."""
    return ModelPair(Chambers(ScriptedProvider([]), Quarantined(ScriptedProvider([], chamber="quarantined"))))
