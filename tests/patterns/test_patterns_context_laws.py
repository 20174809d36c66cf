"""Laws of recorded patterns, on patterns that a seed makes: parts in parts, quorums, limits, effects and failures."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from patterns_world import EVE, Work, table

from bicameral.errors import BicameralError, ModelError
from bicameral.journal import open_journal_at
from bicameral.labels import Labelled, program_text
from bicameral.limits import strategy_limits
from bicameral.models import ModelRequest
from bicameral.patterns import Answered, GaveUp
from bicameral.patterns.kernel import Context, PatternWork, Role, from_user, replay_pattern, resume_pattern, run_pattern
from bicameral.runs import Answers, ApprovalQuestion, Suspend
from bicameral.types import INT

WRITER = Role("Writer", "You write.")
SEEDS = range(24)
WorkFunction = Callable[[Context], Awaitable[Labelled[Any]]]


class Weather:
    """How long things take. It is no part of the pattern: a replay has other weather."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    async def __call__(self) -> None:
        if self.chance.random() < 0.5:
            await asyncio.sleep(self.chance.random() * 0.004)


class World:
    """The weather, and how often each work was done."""

    def __init__(self, seed: int) -> None:
        self.weather = Weather(seed)
        self.saved: list[str] = []


def make_work(seed: int, world: World, depth: int = 0) -> WorkFunction:
    """A part that does a few things which the seed chooses."""
    kinds = ["ask", "fill", "call", "page", "once", "note", "approve", "send"]
    kinds += ["gather", "limits", "rounds", "part"] if depth < 2 else []

    async def work(context: Context) -> Labelled[Any]:
        chance = random.Random(seed)
        seen: list[Any] = []
        for number in range(chance.randint(1, 4)):
            inner = chance.randrange(1_000_000)
            kind = chance.choice(kinds)
            await world.weather()
            try:
                seen.append(await do(context, kind, inner, number))
            except BicameralError as error:
                if error.code.startswith(("run.", "journal.", "strategy.")) and error.code != "run.nothing-found":
                    raise
                seen.append(error.code)
        return context.derive(seen)

    async def do(context: Context, kind: str, inner: int, number: int) -> Any:
        chance = random.Random(inner)
        match kind:
            case "ask":
                reply = await context.ask(WRITER, "write ", context.derive(inner))
                return context.read(reply)
            case "fill":
                wanted = await context.fill(WRITER, "fill ", context.derive(inner), wanted=INT, check=is_even)
                return context.read(wanted)
            case "call":
                return context.read(await context.call("population", {"city": program_text("Ghent")}))
            case "page":
                return len(context.read(await context.call("read_page", {"name": program_text("start")})))
            case "send":
                await context.call("send", {"to": from_user(EVE), "body": context.derive(f"{inner}")})
                return "sent"
            case "once":

                async def save() -> Labelled[Any]:
                    await world.weather()
                    world.saved.append(f"{context.place}{number}")
                    return context.derive(inner)

                return context.read(await context.once("save", save))
            case "note":
                context.note("noted", number=number)
                return number
            case "approve":
                return await context.approve("Go on?", number=context.derive(number))
            case "gather":
                works = [(f"{each}", make_work(inner + each, world, depth + 1)) for each in range(3)]
                quorum = chance.choice([None, 1, 2])
                found = await context.gather(works, width=chance.choice([1, 2, 3]), quorum=quorum)
                return [each.code if isinstance(each, BicameralError) else context.read(each) for each in found]
            case "limits":
                async with context.within_limits(strategy_limits(seconds=chance.choice([0.004, 5.0]))) as limited:
                    return context.read(await make_work(inner, world, depth + 1)(limited))
            case "rounds":
                rounds = context.rounds(most=3, best=len)
                async for turn in rounds:
                    turn.give(await turn.context.ask(WRITER, "round ", context.derive(inner + turn.number)))
                return context.read(rounds.result)
            case _:
                return context.read(await context.run_part("part", make_work(inner, world, depth + 1)))

    return work


def is_even(value: int) -> str | None:
    return None if value % 2 == 0 else f"{value} is odd"


def reply_from(seed: int) -> Callable[[ModelRequest], Any]:
    def reply(request: ModelRequest) -> Any:
        chance = random.Random(f"{seed} {request.messages[-1].text}")
        if request.json_schema is not None:
            return chance.choice(['{"value": 2}', '{"value": 3}', "no JSON"])
        if chance.random() < 0.1:
            return ModelError("models.unavailable", "it is away")
        return "word " * chance.randint(1, 9)

    return reply


class Person:
    """Says yes, but for the first `absent` questions is not there."""

    def __init__(self, absent: int = 0) -> None:
        self.absent = absent

    async def approve(self, question: ApprovalQuestion) -> Answers:
        if self.absent:
            self.absent -= 1
            raise Suspend
        return Answers.yes(question.calls)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_replay_is_equal_whatever_takes_how_long(seed: int, tmp_path: Path) -> None:
    world = World(seed)
    work = Work(make_work(seed, world))
    with open_journal_at(tmp_path / "journal.db") as journal:
        there = table(reply_from(seed), reply_from(seed), journal=journal, approver=Person())
        outcome = asyncio.run(run_pattern(PatternWork(work), there.desk))
        saved = list(world.saved)
        for other in (1, 2):
            world.weather = Weather(1_000 * other + seed)
            desk = there.desk
            again = asyncio.run(replay_pattern(journal, outcome.run, desk.registry, desk.policy, pattern=work))
            assert again.identical, again.differences
            if isinstance(outcome, Answered):
                assert again.answer == outcome.value
        assert world.saved == saved, "a replay has no effect"
        assert len(there.world.done) == len([each for each in outcome.effects if each.tool == "send"])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_that_is_resumed_does_nothing_twice(seed: int, tmp_path: Path) -> None:
    world = World(seed)
    work = Work(make_work(seed, world))
    sent: list[Any] = []
    with open_journal_at(tmp_path / "journal.db") as journal:
        there = table(reply_from(seed), reply_from(seed), journal=journal, approver=Person(absent=1))
        outcome = asyncio.run(run_pattern(PatternWork(work), there.desk, run="r", may_wait=True))
        sent += there.world.done
        for attempt in range(2):
            if not isinstance(outcome, GaveUp) or outcome.error.code != "run.waits":
                break
            world.weather = Weather(1_000 * attempt + seed)
            there = table(reply_from(seed), reply_from(seed), journal=journal, approver=Person(absent=1 - attempt))
            outcome = asyncio.run(resume_pattern(journal, "r", there.desk, pattern=work))
            sent += there.world.done
        assert not isinstance(outcome, GaveUp) or outcome.error.code != "run.changed", outcome
        assert len(world.saved) == len(set(world.saved))
        assert len(sent) == len([each for each in outcome.effects if each.tool == "send"])
        desk = there.desk
        again = asyncio.run(replay_pattern(journal, "r", desk.registry, desk.policy, pattern=work))
        assert again.identical, again.differences
