"""How long plans over a large table take, against the same in bare polars, and whether the plain way agrees.

Run it with `python -m benchmarks.tables`. A million rows are read, filtered, grouped, added up, joined and sorted, once
by the tools of the tables toolbox and once by expressions of a plan. Everything goes through a checked plan and the
engine with policy and labels. The bare engine does the same in turn with it, so that both have the same machine.

`ratio` is the larger one of the two plans; `same` says that answers, labels, doubts and recorded steps of both ways are
equal on a smaller table; `recorded_s` is the plan of the tools with a journal; `peak_mb` is what the process held when
the plans had run, before the bare engine did.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bicameral.plans import bind_cells, parse
from bicameral.policy import Policy
from bicameral.runs import Checked, Finished, Journal, RunOutcome, StepProgress, check_plan, run_plan
from bicameral.toolboxes.tables import toolbox
from bicameral.tools import Registry, Surroundings
from bicameral.types import columnar_engine

ROWS = 1_000_000
SMALL = 20_000
CUSTOMERS = 5_000
RATIO = 4.0

TOOLS = """
orders = read_csv("orders.csv")
customers = read_csv("customers.csv")
large = filter_rows(orders, "amount", ">", 500)
totals = group_rows(orders, "region", "amount", "sum")
joined = join_rows(orders, customers, "customer")
ordered = sort_rows(joined, "amount", True)
answer([len(large), totals, len(joined), ordered[:3]])
"""
EXPRESSIONS = """
orders = read_csv("orders.csv")
large = [r for r in orders if r.amount > 500 and r.region == "north"]
total = sum([r.amount for r in large])
groups = {name: sum([r.amount for r in rows]) for name, rows in group_by(orders, "region").items()}
recent = [r for r in orders if r.day >= "2026-07-01"]
ordered = sorted(orders, key=lambda r: r.amount, reverse=True)
answer([len(large), total, groups, len(recent), count_by(orders, "region"), ordered[:3]])
"""
WHOLE = {"tools": "answer([large, totals, joined, ordered])", "expressions": "answer([large, total, groups, ordered])"}
"""The last lines of the same plans on a small table: everything that was computed."""


def write_tables(folder: Path, rows: int, seed: int = 7) -> None:
    """Write a table of orders and one of customers."""
    draw = random.Random(seed)
    names = [f"C{number:05}" for number in range(CUSTOMERS)]
    regions = "north south east west centre".split()
    with (folder / "orders.csv").open("w", encoding="utf-8") as file:
        file.write("id,customer,region,amount,quantity,day\n")
        for number in range(rows):
            day = f"2026-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
            amount = draw.randrange(100, 100_000) / 100
            file.write(f"{number},{draw.choice(names)},{draw.choice(regions)},{amount},{draw.randint(1, 49)},{day}\n")
    with (folder / "customers.csv").open("w", encoding="utf-8") as file:
        file.write("customer,name,country\n")
        file.writelines(f"{name},Name of {name},{draw.choice(['DE', 'FR', 'IT'])}\n" for name in names)


def open_tables(folder: Path, *, columnar: bool = True) -> Registry:
    """The tools of the tables toolbox on a folder."""
    return Registry(toolbox.open(Surroundings.here(folder), {"columnar": columnar}))


def prepare(source: str, registry: Registry, policy: Policy) -> Checked:
    """A plan as it is before it runs: bound to the kinds of the columns, and checked."""
    checked = check_plan(bind_cells(parse(source, registry).plan, registry, {}), registry, policy=policy)
    if not checked.ok:
        raise SystemExit(f"the benchmark's plan does not pass: {checked.report.errors}")
    return checked


def run(checked: Checked, registry: Registry, policy: Policy, **options: Any) -> RunOutcome:
    """The outcome of a plan."""
    return asyncio.run(run_plan(checked, registry, policy=policy, **options))


def timed_run(checked: Checked, registry: Registry, policy: Policy, **options: Any) -> tuple[float, dict[str, float]]:
    """The seconds of a run, and those of each tool."""
    steps: dict[str, float] = {}

    def observe(progress: StepProgress) -> None:
        if progress.kind == "finished":
            steps[progress.what] = steps.get(progress.what, 0.0) + progress.seconds

    started = time.perf_counter()
    outcome = run(checked, registry, policy, observer=observe, **options)
    seconds = time.perf_counter() - started
    if not isinstance(outcome, Finished):
        raise SystemExit(f"the benchmark's plan did not finish: {outcome}")
    return seconds, steps


def bare_tools(folder: Path) -> dict[str, float]:
    """The seconds of each operation of the tools in the bare engine."""
    polars = columnar_engine()
    seconds: dict[str, float] = {}

    def timed(name: str, act: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        value = act()
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - started
        return value

    orders = timed("read_csv", lambda: polars.read_csv(folder / "orders.csv"))
    customers = timed("read_csv", lambda: polars.read_csv(folder / "customers.csv"))
    timed("filter_rows", lambda: orders.filter(polars.col("amount") > 500))
    by_region = orders.group_by("region", maintain_order=True)
    timed("group_rows", lambda: by_region.agg(polars.col("amount").sum()))
    joined = timed("join_rows", lambda: orders.join(customers, on="customer", maintain_order="left_right"))
    timed("sort_rows", lambda: joined.sort("amount", descending=True, maintain_order=True)[:3].to_dicts())
    return seconds


def bare_expressions(folder: Path) -> float:
    """The seconds of what the expressions compute in the bare engine."""
    polars = columnar_engine()
    started = time.perf_counter()
    orders = polars.read_csv(folder / "orders.csv")
    large = orders.filter((polars.col("amount") > 500) & (polars.col("region") == "north"))
    large["amount"].sum()
    orders.group_by("region", maintain_order=True).agg(polars.col("amount").sum()).to_dicts()
    orders.filter(polars.col("day") >= "2026-07-01")
    orders["region"].value_counts().to_dicts()
    orders.sort("amount", descending=True, maintain_order=True)[:3].to_dicts()
    return time.perf_counter() - started


def same_results(folder: Path, journals: Path) -> list[str]:
    """Where the two ways differ on the small table; nothing if they do not."""
    differences: list[str] = []
    for name, source in {"tools": TOOLS, "expressions": EXPRESSIONS}.items():
        found: list[Any] = []
        for columnar in (True, False):
            registry = open_tables(folder, columnar=columnar)
            policy = Policy.load((), registry)
            whole = source[: source.rindex("answer(")] + WHOLE[name]
            with Journal(journals / f"{name}-{columnar}.db") as journal:
                outcome = run(prepare(whole, registry, policy), registry, policy, journal=journal, run="same")
                events = [event for event in journal.events("same") if event.kind.startswith("step-")]
            # Both files are read at once: which of them ends first is chance, and no difference.
            steps = [event.body for event in sorted(events, key=lambda event: event.step)]
            recorded = [{key: part for key, part in body.items() if key != "seconds"} for body in steps]
            if not isinstance(outcome, Finished):
                raise SystemExit(f"the benchmark's plan did not finish: {outcome}")
            # As texts, in which 1 and 1.0 are different.
            found.append((repr(outcome.answer), outcome.shade, outcome.doubts, json.dumps(recorded)))
        pairs = zip(("answer", "labels", "doubts", "record"), *found, strict=True)
        differences += [f"{name}: the {what}" for what, one, other in pairs if one != other]
    return differences


def peak_mb() -> int:
    """The most memory that this process has held."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // 1024 if sys.platform == "linux" else most // 2**20


def measure(folder: Path, rounds: int) -> dict[str, Any]:
    """The figures of the large table; of all rounds the quickest counts, for both sides."""
    registry = open_tables(folder)
    policy = Policy.load((), registry)
    started = time.perf_counter()
    plans = {name: prepare(source, registry, policy) for name, source in (("t", TOOLS), ("e", EXPRESSIONS))}
    check_s = time.perf_counter() - started
    first = [timed_run(plans[name], registry, policy)[0] for name in ("t", "e")]
    peak = peak_mb()
    ours: list[tuple[float, dict[str, float]]] = []
    bare: list[dict[str, float]] = []
    expressions: list[tuple[float, float]] = []
    for _ in range(rounds):
        bare.append(bare_tools(folder))
        ours.append(timed_run(plans["t"], registry, policy))
        expressions.append((timed_run(plans["e"], registry, policy)[0], bare_expressions(folder)))
    with tempfile.TemporaryDirectory() as place, Journal(Path(place) / "journal.db") as journal:
        recorded, _ = timed_run(plans["t"], registry, policy, journal=journal)
    names = list(bare[0])
    steps = {name: (min(each[name] for _, each in ours), min(each[name] for each in bare)) for name in names}
    tools = min(seconds for seconds, _ in ours), min(sum(each.values()) for each in bare)
    computed = min(one for one, _ in expressions), min(other for _, other in expressions)
    return {
        "check_s": round(check_s, 3),
        "first_s": [round(seconds, 3) for seconds in first],
        "tools_s": round(tools[0], 3),
        "tools_bare_s": round(tools[1], 3),
        "expressions_s": round(computed[0], 3),
        "expressions_bare_s": round(computed[1], 3),
        "recorded_s": round(recorded, 3),
        "ratios": {name: round(one / other, 2) for name, (one, other) in steps.items()},
        "ratio": round(max(tools[0] / tools[1], computed[0] / computed[1]), 2),
        "peak_mb": peak,
    }


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS, help="how many rows the large table has")
    parser.add_argument("--small", type=int, default=SMALL, help="how many rows both ways are compared on")
    parser.add_argument("--rounds", type=int, default=3, help="how often both sides are measured, in turn")
    given = parser.parse_args(words)
    if columnar_engine() is None:
        raise SystemExit("polars is not installed: pip install 'bicameral[tables]'")
    with tempfile.TemporaryDirectory() as place:
        folder, small, journals = (Path(place) / name for name in ("large", "small", "journals"))
        for each in (folder, small, journals):
            each.mkdir()
        write_tables(folder, given.rows)
        write_tables(small, given.small)
        found = {"rows": given.rows, **measure(folder, given.rounds)}
        differences = same_results(small, journals)
    found["same"] = not differences
    for name, ratio in found["ratios"].items():
        print(f"{name:20} {ratio:8.2f} times the bare engine")
    print(f"{'whole plan':20} {found['ratio']:8.2f} times   ≤ {RATIO:g}")
    print(f"{'same results':20} {'yes' if found['same'] else 'no: ' + ', '.join(differences):>8}")
    print(json.dumps(found))
    return 0 if found["same"] and found["ratio"] <= RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
