"""How soon the first plan of a fresh process is there: without a kept prompt, with it, and in a warm process.

Run it with `python -m benchmarks.first_plan`. Every measurement is a fresh process with two threads, from its start to
the plan, in a copy of `examples/world`; nothing is taken from the cache of plans.

- `cold_s`: no prompt was kept, so all of it is read (and kept).
- `first_s`: a kept prompt is restored.
- `warm_s`: the second plan of a process, from the request to the plan.
- `restored_tokens`: of the planner's prompt, in the processes of `first_s`.
- `identical`: whether each request has the same plan, byte for byte, in all three, and with files that are damaged.

`--faults` adds processes whose kept files are damaged in some way, or cannot be read or written.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bicameral.models import ModelStore

WORLD = Path(__file__).resolve().parents[1] / "examples" / "world"
REQUESTS = (
    "Count the lines of todo.txt",
    "How much did I spend on food?",
    "Remove duplicates from mail.txt and find lines mentioning invoices",
    "Which mails came from Kim this week?",
    "What is on my calendar tomorrow?",
    "Sort todo.txt and save it as sorted.txt",
    "Show the three largest expenses",
    "Welche Ausgaben waren höher als 50?",
    "Mail ana@example.com the number of open todos",
    "Read https://example.com/prices.html and tell me the price of a ticket",
    "Is there a mail about the boat, and when was it sent?",
    "Add dentist to my calendar for Friday at 10",
)
THREADS = 2
_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Measured:
    """What one process says of one request."""

    seconds: float
    plan: str
    reused: int


def _worker(folder: Path, model: str, requests: Sequence[str]) -> None:
    """Plan the requests one after the other, and tell each plan in a line."""
    asyncio.run(_plan_all(folder, model, requests))


async def _plan_all(folder: Path, model: str, requests: Sequence[str]) -> None:
    from bicameral.agent import Agent
    from bicameral.config import load_config
    from bicameral.errors import BicameralError
    from bicameral.models import ModelProgress, watch_model

    config = load_config(folder / "bicameral.toml", base=folder, profile="small" if model == "0.5b" else None)
    async with Agent.from_config(config) as agent:
        for request in requests:
            seen: list[ModelProgress] = []
            began = time.perf_counter()
            try:
                with watch_model(seen.append):
                    planned = await agent.plan(request, fresh=True)
                plan = planned.source
            except BicameralError as error:
                # A refusal or a question is an outcome, and the same one is wanted each time.
                plan = str(error)
            seconds = time.perf_counter() - began
            reading = [each for each in seen if each.stage == "reading" and each.job == "delta"]
            reused = reading[0].reused if reading else 0
            print(json.dumps({"seconds": seconds, "plan": plan, "reused": reused}), flush=True)


class Bench:
    """Runs processes in one world with one folder of kept prompts."""

    def __init__(self, folder: Path, model: str) -> None:
        self.world = folder / "world"
        shutil.copytree(WORLD, self.world, ignore=shutil.ignore_patterns(".bicameral"))
        self.cache = folder / "cache"
        self.model = model

    @property
    def kept(self) -> Path:
        return self.cache / "bicameral" / "prefixes"

    def plan(self, *requests: str) -> list[Measured]:
        """Plan in a fresh process; the time of the first plan counts from the start of the process."""
        environment = os.environ | {
            "XDG_CACHE_HOME": str(self.cache),
            "BICAMERAL_MODELS": str(ModelStore().folder),
            "BICAMERAL_THREADS": str(THREADS),
        }
        command = [sys.executable, "-m", "benchmarks.first_plan", "--worker", str(self.world), "--model", self.model]
        began = time.perf_counter()
        found: list[Measured] = []
        process = subprocess.Popen(
            [*command, *requests], stdout=subprocess.PIPE, text=True, env=environment, cwd=WORLD.parents[1]
        )
        assert process.stdout is not None
        for line in process.stdout:
            told = json.loads(line)
            seconds = told["seconds"] if found else time.perf_counter() - began
            found.append(Measured(seconds, told["plan"], told["reused"]))
        if process.wait(_SECONDS) != 0 or len(found) != len(requests):
            raise SystemExit(f"a process ended with {process.returncode} after {len(found)} plans")
        return found

    def forget(self) -> None:
        shutil.rmtree(self.cache, ignore_errors=True)


def _states(kept: Path) -> list[Path]:
    return sorted(kept.glob("*.state"))


def _truncate(kept: Path) -> None:
    for path in _states(kept):
        os.truncate(path, path.stat().st_size // 2)


def _flip(kept: Path) -> None:
    for path in _states(kept):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)


def _foreign(kept: Path) -> None:
    """Each state is another program's file, and its description says that it is the right one."""
    for path in _states(kept):
        content = os.urandom(path.stat().st_size)
        path.unlink()
        digest = hashlib.sha256(content).hexdigest()
        name = path.name.partition(".")[0]
        (kept / f"{name}.{digest[:16]}.state").write_bytes(content)
        described = kept / f"{name}.json"
        described.write_text(json.dumps({**json.loads(described.read_text()), "sha256": digest}))


def _outdated(kept: Path) -> None:
    """Each state was made by another build of the engine."""
    for path in kept.glob("*.json"):
        facts = json.loads(path.read_text())
        facts["made_with"][1] = "xllamacpp 2020.1.1 1"
        path.write_text(json.dumps(facts))


def _strangers(kept: Path) -> None:
    """Everybody may write into the folder."""
    kept.chmod(0o777)


def _unwritable(kept: Path) -> None:
    """The folder is a file, so nothing can be read or written: permissions would not stop root."""
    shutil.rmtree(kept)
    kept.write_text("")


FAULTS: Mapping[str, Callable[[Path], None]] = {
    "truncated": _truncate,
    "flipped": _flip,
    "foreign": _foreign,
    "outdated": _outdated,
    "strangers": _strangers,
    "unwritable": _unwritable,
}


def _with_faults(bench: Bench, request: str, plan: str) -> dict[str, bool]:
    """Whether a process whose kept files have a fault still gives the same plan, having read all of the prompt."""
    found: dict[str, bool] = {}
    for name, spoil in FAULTS.items():
        bench.forget()
        bench.plan(request)
        spoil(bench.kept)
        again = bench.plan(request)[0]
        found[name] = again.plan == plan and again.reused == 0
        _say(f"{name}: {'same plan' if found[name] else 'ANOTHER PLAN'}")
    return found


def measure(model: str, requests: Sequence[str], *, faults: bool) -> dict[str, Any]:
    """Everything that the benchmark reports."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), model)
        cold: list[Measured] = []
        for number, request in enumerate(requests, 1):
            bench.forget()
            cold += bench.plan(request)
            _say(f"cold {number}/{len(requests)}: {cold[-1].seconds:.1f} s")
        # The plan of each request is the first one of a process, and the second one of another.
        first: list[Measured] = []
        second: list[Measured] = []
        for number, request in enumerate(requests):
            one, two = bench.plan(request, requests[(number + 1) % len(requests)])
            first.append(one)
            second.append(two)
            _say(f"first {number + 1}/{len(requests)}: {one.seconds:.1f} s, then {two.seconds:.1f} s")
        warm = [second[number - 1] for number in range(len(requests))]
        same = [len({each.plan for each in plans}) == 1 for plans in zip(cold, first, warm, strict=True)]
        faulty = _with_faults(bench, requests[0], cold[0].plan) if faults else {}
    seconds = {name: median(each.seconds for each in group) for name, group in _groups(cold, first, warm)}
    return {
        "model": model,
        "requests": len(requests),
        **{f"{name}_s": round(value, 2) for name, value in seconds.items()},
        "first_by_warm": round(seconds["first"] / seconds["warm"], 2),
        "first_by_cold": round(seconds["first"] / seconds["cold"], 3),
        "restored_tokens": int(median(each.reused for each in first)),
        "identical": all(same) and all(faulty.values()),
        "faults": faulty,
    }


def _groups(*groups: Sequence[Measured]) -> Sequence[tuple[str, Sequence[Measured]]]:
    return list(zip(("cold", "first", "warm"), groups, strict=True))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("1.5b", "0.5b"), default="1.5b", help="the privileged model")
    parser.add_argument("--requests", type=int, default=len(REQUESTS), metavar="N", help="only the first N requests")
    parser.add_argument("--faults", action="store_true", help="also with damaged files")
    parser.add_argument("--worker", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("texts", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker is not None:
        _worker(arguments.worker, arguments.model, arguments.texts)
        return
    found = measure(arguments.model, REQUESTS[: max(2, arguments.requests)], faults=arguments.faults)
    print(f"cold process           {found['cold_s']:8.2f} s")
    print(f"fresh process, kept    {found['first_s']:8.2f} s   {found['first_by_cold']} of cold   ≤ 0.25")
    print(f"warm process           {found['warm_s']:8.2f} s   first is {found['first_by_warm']} ×   ≤ 1.6")
    print(f"restored tokens        {found['restored_tokens']:8}")
    print(f"identical plans        {found['identical']!s:>8}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
