"""What the boundary costs: labels, decisions, and a call through policy and journal.

Run it with `python -m benchmarks.boundary`. Everything goes through the real engine, real policies and a journal file,
and each figure is the median of many repetitions by the clock on the wall: no fastest run is picked out. Decisions are
about calls that policy has not seen before, and the plan that computes is new to the engine in each run, as it is when
a user runs one.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from bicameral.labels import Label, LabelTree, ListLabels, RecordLabels, Source
from bicameral.plans import Compute, Plan, call_facts, check, compile_labels, parse
from bicameral.policy import Policy
from bicameral.runs import Finished, Journal, run_plan
from bicameral.tools import Origin, Registry, tool

CALLS = 300
DECISIONS = 600
REPEATS = 41


@tool(effect="read", outbound=False, purpose={"account": "selects"}, origins=Origin("system"))
async def look(account: str) -> int:
    """Do nothing."""
    return 1


@tool(effect="send", purpose={"to": "directs", "body": "carries"}, origins=Origin("system"), receivers=("to",))
async def send(to: str, body: str) -> None:
    """Do nothing."""


REGISTRY = Registry([look, send])
POLICY = Policy.load((), REGISTRY)

RECORDS = """
rows = [{"name": f"row {i}", "amount": i * 7 % 31, "group": f"g{i % 5}"} for i in range(400)]
large = [row for row in rows if row.amount > 10]
names = [row.name.upper() for row in large]
total = sum([row.amount * 1.5 for row in large])
by_group = {}
count = 0
kept = []
for row in large:
    count += 1
    if row.amount > 20:
        kept.append(row.name)
        by_group[row.group] = row.amount
first = kept[0] if kept else ""
mean = total / count
answer([total, mean, count, first, sorted(by_group.keys()), names[:3]])
"""
CALLING = f"for i in range({CALLS}):\n    n = look('4711')\nanswer(n)"
SENDING = f"for i in range({CALLS}):\n    send('bob@example.com', 'hello')\nanswer(1)"


async def _seconds(plan: Plan, policy: Policy | None, journal: Journal | None = None) -> float:
    started = time.perf_counter()
    outcome = await run_plan(plan, REGISTRY, policy=policy, journal=journal)
    seconds = time.perf_counter() - started
    if not isinstance(outcome, Finished):
        raise SystemExit(f"the benchmark's plan did not finish: {outcome}")
    return seconds


async def _median(act: Callable[[], Awaitable[float]], times: int) -> float:
    await act()
    return median([await act() for _ in range(times)])


def _op_us(*, new: bool) -> float:
    """The labels of one operation of an expression, for mails of which each has labels of its own, or one of a few."""
    step = parse("m = ask('?')\nit = m.subject.upper() + ' ' + m.body[:10]\nanswer(it)", REGISTRY).plan.steps[1]
    assert isinstance(step, Compute)
    code, operations, mails = compile_labels(step.value), 5, 100
    taken: list[float] = []
    for repeat in range(REPEATS):
        envs = [{"m": _mail(repeat * mails + number if new else number % 16)} for number in range(mails)]
        started = time.perf_counter()
        for env in envs:
            code(env)
        taken.append((time.perf_counter() - started) / (mails * operations))
    return median(taken) * 1e6


def _mail(number: int) -> LabelTree:
    body = Label({Source("third_party", "mail", "[].body", str(number))}, {"ada"})
    subject = Label({Source("third_party", "mail", "[].subject", str(number))}, {"ada", "bob"})
    record = RecordLabels(Label({Source("system", "mail")}), {"body": body, "subject": subject})
    return ListLabels(record.own, record).item


def _decisions_us(*, new: bool) -> float:
    """A decision about a call with labels and receivers that were never seen before, or with known ones."""
    taken: list[float] = []
    for number in range(DECISIONS):
        which = number if new else 0
        label = Label({Source("user", "request", "", str(which)), Source("system", "contacts", "[].mail", str(which))})
        values = {"to": f"p{which}@example.com", "body": "hi"}
        facts = call_facts(send, {"to": label, "body": label}, values, "0", label, "strict")
        started = time.perf_counter()
        POLICY.decide(facts)
        taken.append(time.perf_counter() - started)
    return median(taken) * 1e6


async def _label_overhead() -> float:
    """Labels on over labels off. The two are run in turn, so that the machine treats them alike."""
    found: list[float] = []
    for _ in range(REPEATS):
        off = await _seconds(parse(RECORDS, REGISTRY).plan, None)
        on = await _seconds(parse(RECORDS, REGISTRY).plan, POLICY)
        found.append(on / off)
    return median(found)


async def _records_seconds() -> float:
    return await _seconds(parse(RECORDS, REGISTRY).plan, POLICY)


async def _records_from_text_seconds() -> float:
    """The same from the text of the plan: read, checked, run."""
    started = time.perf_counter()
    parsed = parse(RECORDS, REGISTRY)
    if not check(parsed.plan, REGISTRY, places=parsed.places).ok:
        raise SystemExit("the benchmark's plan does not check")
    await _seconds(parsed.plan, POLICY)
    return time.perf_counter() - started


async def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal.db") as journal:
        calling, sending = (parse(source, REGISTRY).plan for source in (CALLING, SENDING))
        return {
            "op_us": round(_op_us(new=True), 3),
            "op_again_us": round(_op_us(new=False), 3),
            "decision_us": round(_decisions_us(new=True), 1),
            "decision_again_us": round(_decisions_us(new=False), 1),
            "call_us": round(await _median(lambda: _seconds(calling, POLICY, journal), 15) / CALLS * 1e6, 1),
            "send_us": round(await _median(lambda: _seconds(sending, POLICY, journal), 15) / CALLS * 1e6, 1),
            "label_overhead": round(await _label_overhead(), 3),
            "records_400_ms": round(await _median(_records_seconds, REPEATS) * 1e3, 3),
            "records_400_from_text_ms": round(await _median(_records_from_text_seconds, REPEATS) * 1e3, 3),
        }


ROWS: tuple[tuple[str, str, str], ...] = (
    ("op_us", "the labels of one operation, on labels that are new to it, µs", "≤ 20"),
    ("op_again_us", "the same on labels that it has met before, µs", ""),
    ("decision_us", "one decision by policy, on a call with labels and receivers that are new to it, µs", "≤ 250"),
    ("decision_again_us", "the same on a call like one before, µs", ""),
    ("call_us", "a call that reads: policy, labels, journal, a tool that does nothing, µs", "≤ 1000"),
    ("send_us", "the same for a call that changes the world, which is on disk before and after, µs", ""),
    ("label_overhead", "a plan with labels over the same plan without", "≤ 1.5"),
    ("records_400_ms", "filter, map and sum 400 records with labels, by a plan that is run once, ms", "≤ 15"),
    ("records_400_from_text_ms", "the same with reading and checking the plan, ms", ""),
)


def main() -> None:
    found = asyncio.run(measure())
    for name, what, wanted in ROWS:
        print(f"{name:24} {found[name]:>10}  {wanted:8} {what}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
