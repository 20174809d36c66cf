"""What the boundary costs: labels, decisions, and a call through policy and journal.

Run it with `python -m benchmarks.boundary`. Everything goes through the real engine, real policies and a journal file.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from bicameral.labels import Label, ListShade, RecordShade, Shade, Source
from bicameral.plans import Compute, Plan, call_facts, compile_shade, parse
from bicameral.policy import Policy
from bicameral.runs import Finished, Journal, run_plan
from bicameral.tools import Origin, Registry, tool

CALLS = 300
REPEATS = 15


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


async def _fastest_half(act: Callable[[], Awaitable[float]], times: int = REPEATS) -> float:
    """The median of the faster half: what the code takes when nothing else has the machine."""
    taken = sorted([await act() for _ in range(times)])
    return median(taken[: max(1, times // 2)])


def _op_us() -> float:
    """The labels of one operation of an expression, for a few mails in turn."""
    step = parse("m = ask('?')\nit = m.subject.upper() + ' ' + m.body[:10]\nanswer(it)", REGISTRY).plan.steps[1]
    assert isinstance(step, Compute)
    code, operations = compile_shade(step.value), 5
    envs = [{"m": _mail(number)} for number in range(16)]

    def once() -> float:
        started = time.perf_counter()
        for _ in range(20):
            for env in envs:
                code(env)
        return (time.perf_counter() - started) / (20 * len(envs) * operations)

    return min(once() for _ in range(REPEATS)) * 1e6


def _mail(number: int) -> Shade:
    body = Label({Source("third_party", "mail", "[].body", str(number))}, {"ada"})
    subject = Label({Source("third_party", "mail", "[].subject", str(number))}, {"ada", "bob"})
    record = RecordShade(Label({Source("system", "mail")}), {"body": body, "subject": subject})
    return ListShade(record.own, record).item


def _decision_us() -> float:
    label = Label({Source("user", "request")})
    facts = [
        call_facts(
            send, {"to": label, "body": label}, {"to": f"p{n % 7}@example.com", "body": "hi"}, "0", label, "strict"
        )
        for n in range(100)
    ]

    def once() -> float:
        started = time.perf_counter()
        for each in facts:
            POLICY.decide(each)
        return (time.perf_counter() - started) / len(facts)

    once()
    return min(once() for _ in range(REPEATS)) * 1e6


async def _label_overhead(plan: Plan) -> float:
    """Labels on over labels off. Both are run in turn, so that the machine treats them alike."""
    on: list[float] = []
    off: list[float] = []
    for _ in range(REPEATS):
        off.append(await _seconds(plan, None))
        on.append(await _seconds(plan, POLICY))
    return min(on) / min(off)


async def measure() -> dict[str, float]:
    records = parse(RECORDS, REGISTRY).plan
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal.db") as journal:
        calling, sending = (parse(source, REGISTRY).plan for source in (CALLING, SENDING))
        return {
            "op_us": round(_op_us(), 3),
            "decision_us": round(_decision_us(), 1),
            "call_us": round(await _fastest_half(lambda: _seconds(calling, POLICY, journal), 7) / CALLS * 1e6, 1),
            "send_us": round(await _fastest_half(lambda: _seconds(sending, POLICY, journal), 7) / CALLS * 1e6, 1),
            "label_overhead": round(await _label_overhead(records), 3),
            "records_400_ms": round(await _fastest_half(lambda: _seconds(records, POLICY)) * 1e3, 3),
        }


ROWS: tuple[tuple[str, str, str], ...] = (
    ("op_us", "the labels of one operation, µs", "≤ 1"),
    ("decision_us", "one decision by policy, µs", "≤ 200"),
    ("call_us", "a call that reads: policy, labels, journal, a tool that does nothing, µs", ""),
    ("send_us", "the same for a call that changes the world, which is on disk before and after, µs", ""),
    ("label_overhead", "a plan with labels over the same plan without", "≤ 1.5"),
    ("records_400_ms", "filter, map and sum 400 records with labels, ms", ""),
)


def main() -> None:
    found = asyncio.run(measure())
    for name, what, wanted in ROWS:
        print(f"{name:16} {found[name]:>10}  {wanted:8} {what}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
