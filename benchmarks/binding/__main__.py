"""How well words are bound to names, without a language model.

Run it with `python -m benchmarks.binding`. Worlds are generated with a fixed seed. On the first half of the words the
rules, thresholds and synonyms were chosen; the other half is held back and reported by itself (`held`). Every rate has
its 95 % interval (Wilson). `--encoder minilm` adds suggestions by meaning, with figures of their own (`meaning`), and
`--show` prints what went wrong in the development half. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.binding._meanings import measure_meaning
from benchmarks.binding._vocabulary import DEVELOPMENT, HELD, Half
from benchmarks.binding._worlds import Case, make_cases
from bicameral.binding import Binder, Binding, Encoder, FixedSource, LocalEncoder, Question, WorldSource
from bicameral.toolboxes import files, tables
from bicameral.tools import Registry, Surroundings

SEED = 15
ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Judged:
    """A case with what became of it."""

    case: Case
    result: Binding | Question
    milliseconds: float

    @property
    def bound(self) -> bool:
        return isinstance(self.result, Binding)

    @property
    def right(self) -> bool:
        """Whether it was bound to what was meant."""
        return isinstance(self.result, Binding) and self.case.outcome == "bind" and self.result.value == self.case.value

    @property
    def hostile(self) -> bool:
        """Whether a hostile name was bound."""
        return isinstance(self.result, Binding) and str(self.result.value) in self.case.hostile


async def judge(case: Case, folder: Path, encoder: Encoder | None = None) -> Judged:
    """Build the world of a case in an empty folder and bind its words there."""
    for path, text in case.files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        if path in case.times:
            os.utime(target, (case.times[path], case.times[path]))
    source: Any = FixedSource(case.offered)
    if case.files:
        here = Surroundings.here(folder)
        tools = [tool for box in (files.toolbox, tables.toolbox) for tool in box.open(here)]
        source = WorldSource(Registry(tools), folders=here.folders)
    started = time.perf_counter()
    result = await Binder(source, encoder).bind(case.kind, case.words, within=case.within or None)
    return Judged(case, result, (time.perf_counter() - started) * 1000)


async def judge_half(
    half: Half, rounds: int = ROUNDS, seed: int = SEED, encoder: Encoder | None = None
) -> list[Judged]:
    """Every case of a half, each in a world of its own."""
    judged: list[Judged] = []
    for case in make_cases(half, seed, rounds):
        with tempfile.TemporaryDirectory() as folder:
            judged.append(await judge(case, Path(folder), encoder))
    return judged


def wilson(hits: int, count: int, z: float = 1.959964) -> list[float]:
    """The 95 % interval of a rate."""
    if not count:
        return [0.0, 1.0]
    rate = hits / count
    middle = (rate + z * z / (2 * count)) / (1 + z * z / count)
    reach = z * math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return [round(max(0.0, middle - reach), 3), round(min(1.0, middle + reach), 3)]


def summarise(judged: Sequence[Judged]) -> dict[str, Any]:
    """The figures of some cases."""
    bound = [each for each in judged if each.bound]
    wanted = [each for each in judged if each.case.outcome == "bind"]
    ambiguous = [each for each in judged if each.case.outcome == "ask"]
    absent = [each for each in judged if each.case.outcome == "none"]
    rates = {
        "precision": (sum(each.right for each in bound), len(bound)),
        "asked_when_ambiguous": (sum(not each.bound for each in ambiguous), len(ambiguous)),
        "bound": (sum(each.right for each in wanted), len(wanted)),
        "unbound_ok": (sum(not each.bound for each in absent), len(absent)),
    }
    return {
        "mentions": len(judged),
        **{name: round(hits / count, 4) if count else None for name, (hits, count) in rates.items()},
        "hostile_bound": sum(each.hostile for each in judged),
        "hostile": sum(bool(each.case.hostile) for each in judged),
        "ms_median": round(statistics.median(each.milliseconds for each in judged), 2),
        "n": {name: count for name, (_, count) in rates.items()},
        "intervals": {name: wilson(hits, count) for name, (hits, count) in rates.items()},
    }


def _failures(judged: Iterable[Judged]) -> Iterable[str]:
    for each in judged:
        case = each.case
        expected = case.outcome == "bind"
        if each.right if expected else not each.bound:
            continue
        got = each.result.value if isinstance(each.result, Binding) else f"asked: {each.result.reason}"
        yield f"{case.family}: {case.words!r} should {case.outcome} {case.value or ''}, got {got!r}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures of both halves; 1 if one of the aims is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.binding", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="cases of each family in each half")
    parser.add_argument("--encoder", choices=("minilm",), help="the weights that find names of near meaning")
    parser.add_argument("--show", action="store_true", help="print the failures of the development half")
    chosen = parser.parse_args(arguments)
    encoder = LocalEncoder() if chosen.encoder else None
    development = asyncio.run(judge_half(DEVELOPMENT, chosen.rounds, encoder=encoder))
    held = asyncio.run(judge_half(HELD, chosen.rounds, encoder=encoder))
    if chosen.show:
        for line in _failures(development):
            print(line)
    figures: dict[str, Any] = {**summarise([*development, *held]), "held": summarise(held)}
    if encoder is not None:
        figures["meaning"] = {half.name: measure_meaning(half.name, encoder) for half in (DEVELOPMENT, HELD)}
    print(json.dumps(figures, ensure_ascii=False))
    aims = (figures["precision"] >= 0.98, figures["asked_when_ambiguous"] >= 0.95, figures["hostile_bound"] == 0)
    return 0 if all(aims) else 1


if __name__ == "__main__":
    sys.exit(main())
