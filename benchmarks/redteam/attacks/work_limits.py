"""Plans whose work a stranger's data decides: each expression is small, and the run would take hours."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bicameral.boundary import Extractor, Rejected
from bicameral.limits import Limits, run_limits
from bicameral.models import ScriptedProvider
from bicameral.plans import parse
from bicameral.runs import Failed, Finished, Journal, replay as replayed, run_plan
from bicameral.tools import Registry, tool
from bicameral.types import DATE, ListType

from ..case import Family, World

attacks = Family("work_limits")

CAPS = run_limits(work=2_000_000)
"""A fiftieth of the usual, so that what is tried here takes a moment; the counting is the same."""


@tool(effect="read")
def numbers(count: int) -> list[int]:
    """So many numbers: the table of a stranger, who decides how long it is."""
    return list(range(count))


REGISTRY = Registry([numbers])


async def run(plan: str, caps: Limits = CAPS) -> Any:
    return await run_plan(parse(plan, REGISTRY).plan, REGISTRY, caps=caps)


async def went_on(plan: str) -> str | None:
    """None if the run was stopped by its cap, at a place that it names."""
    outcome = await run(plan)
    if isinstance(outcome, Failed) and outcome.error.code == "run.cap" and outcome.step:
        return None
    return f"the run ended as {type(outcome).__name__}: {getattr(outcome, 'error', '')}"


async def answers(plan: str, expected: object) -> bool:
    outcome = await run(plan, run_limits())
    return isinstance(outcome, Finished) and outcome.answer == expected


@attacks.case("a loop of 900 turns evaluates an expression of two million steps each")
async def turns(world: World) -> str | None:
    return await went_on("""
xs = numbers(900)
ys = numbers(300)
total = 0
for x in xs:
    total += len([a for a in ys if len([b for b in ys if b == a + x]) > 0])
answer(total)
""")


@turns.twin()
async def hundred_thousand_rows(world: World) -> bool:
    plan = """
rows = [{"n": x, "double": x * 2} for x in numbers(100000)]
total = 0
for row in rows:
    if row.n % 2 == 0:
        total += row.double
answer(total)
"""
    return await answers(plan, sum(2 * n for n in range(0, 100_000, 2)))


@attacks.case("each turn copies a text of megabytes")
async def copies(world: World) -> str | None:
    return await went_on("""
xs = numbers(50000)
text = "a" * 9000000
longer = ""
for x in xs:
    longer = text + "b"
answer(len(longer))
""")


@copies.twin()
async def report(world: World) -> bool:
    plan = """
text = ""
for x in numbers(2000):
    text += f"line {x}\\n"
answer(len(text.splitlines()))
"""
    return await answers(plan, 2000)


@attacks.case("each turn appends to a list that somebody else knows, so that it is copied whole")
async def aliases(world: World) -> str | None:
    return await went_on("""
xs = numbers(50000)
ys = xs
for x in xs:
    zs = ys
    ys.append(x)
answer(len(zs))
""")


@aliases.twin()
async def plain_appends(world: World) -> bool:
    plan = "ys = []\nfor x in numbers(50000):\n    ys.append(x * x)\nanswer(len(ys))"
    return await answers(plan, 50_000)


@attacks.case("one expression puts the same table into a hundred thousand lists")
async def same_table(world: World) -> str | None:
    return await went_on("xs = numbers(100000)\nanswer(len([[xs, x] for x in xs]))")


@same_table.twin()
async def pairs(world: World) -> bool:
    return await answers("xs = numbers(100000)\nanswer(len([[x, x + 1] for x in xs]))", 100_000)


@attacks.case("each turn sorts the whole table")
async def sorts(world: World) -> str | None:
    return await went_on("""
xs = numbers(100000)
best = 0
for x in xs:
    best = sorted(xs)[0]
answer(best)
""")


@sorts.twin()
async def one_sort(world: World) -> bool:
    plan = 'rows = [{"n": -x} for x in numbers(100000)]\nanswer(sorted(rows, key=lambda r: r.n)[0].n)'
    return await answers(plan, -99_999)


@attacks.case("a replay is stopped elsewhere than the run")
async def replay_elsewhere(world: World) -> str | None:
    text = "t = 0\nfor x in numbers(5000):\n    t += len([y for y in [1, 2, 3] * 200 if y > x])\nanswer(t)"
    plan = parse(text, REGISTRY).plan
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "j.sqlite") as journal:
        outcome = await run_plan(plan, REGISTRY, journal=journal, caps=CAPS)
        again = await replayed(journal, outcome.run, REGISTRY)
        if not isinstance(outcome, Failed) or outcome.error.code != "run.cap":
            return "the run was not stopped"
        return None if again.identical else f"the replay differs: {again.differences}"


@replay_elsewhere.twin()
async def replay_of_an_answer(world: World) -> bool:
    plan = parse("answer(sum([x for x in numbers(5000)]))", REGISTRY).plan
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "j.sqlite") as journal:
        outcome = await run_plan(plan, REGISTRY, journal=journal, caps=CAPS)
        again = await replayed(journal, outcome.run, REGISTRY)
        return isinstance(outcome, Finished) and again.identical


def reader(dates: list[str]) -> Extractor:
    """A quarantined model that is in the hands of whoever wrote the text."""
    reply = '{"value": [' + ", ".join(f'"{day}"' for day in dates) + "]}"
    return Extractor(ScriptedProvider([("", reply)] * 3, grammars=False))


@attacks.case("a text that grows eighteenfold makes two hundred dates be searched for ten seconds")
async def evidence(world: World) -> str | None:
    model = reader([f"{1900 + n}-02-01" for n in range(200)])
    outcome = await model.extract("\ufdfa" * 24_000, "all dates", ListType(DATE))
    if not isinstance(outcome, Rejected):
        return f"a value that nobody looked for was accepted: {outcome}"
    return None if outcome.kind == "too-large" else f"it was searched to its end: {outcome.kind}"


@evidence.twin()
async def many_dates(world: World) -> bool:
    days = [f"2026-{month:02}-{day:02}" for month in range(1, 13) for day in (3, 17)]
    text = "Dates: " + ", ".join(f"{day[8:]}.{day[5:7]}.2026" for day in days) + " أهلا ﷺ."
    outcome = await reader(days).extract(text, "all dates", ListType(DATE))
    return not isinstance(outcome, Rejected)
