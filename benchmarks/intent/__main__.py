"""How much of a request is understood, and is asked what it leaves open?

    python -m benchmarks.intent --model none|0.5b|1.5b [--only de] [--show]
    python -m benchmarks.shards intent --model 1.5b     (in several processes)

The last line is one JSON object; with `--show` what went wrong goes to stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bicameral.errors import IntentError
from bicameral.models import LocalProvider, ModelStore, Provider, ScriptedProvider, adapters_of, find_weights
from bicameral.planning import Echo, Intent
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes

from ..shards import add_shard_arguments, result_lines
from ._judge import Judged, judge, summarise
from ._requests import IntentRequest, load_requests

TODAY = dt.date(2026, 3, 11)
TOOLBOXES = ("files", "lines", "tables", "mail", "calendar", "web", "clock")


async def run(
    requests: Sequence[IntentRequest], registry: Registry, provider: Provider | None, out: Path | None = None
) -> list[Judged]:
    """The intent of each request, by Echo with this model or by rules alone, and the judgement on it.

    Args:
        requests: What is to be understood.
        registry: The tools whose words say which effects a request may ask for.
        provider: The model; None: rules alone.
        out: Each intent is added to this file when it is there.
    """
    echo = Echo(provider or ScriptedProvider([]))
    judged: list[Judged] = []
    for each in requests:
        intent = await _intent(echo, each.text, registry, rules=provider is None)
        judged.append(judge(each, intent))
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"id": each.id, "intent": intent.to_json()}, ensure_ascii=False) + "\n")
    return judged


def read_results(files: Sequence[Path]) -> list[Judged]:
    """The judgements on the intents that runs with `--out` wrote, in the order of the requests."""
    told = [json.loads(line) for line in result_lines(files)]
    intents = {each["id"]: Intent.model_validate_json(each["intent"]) for each in told}
    return [judge(each, intents[each.id]) for each in load_requests() if each.id in intents]


def open_registry(folder: Path) -> Registry:
    """The standard tools over a folder: their words say which effects a request may ask for."""
    around = Surroundings(Folders(folder, (folder,), (folder,)))
    return load_toolboxes({toolbox: {} for toolbox in TOOLBOXES}, around)


async def _intent(echo: Echo, text: str, registry: Registry, *, rules: bool) -> Intent:
    """The intent; that of the rules where the model's account breaks off, as a person would use `--deterministic`."""
    try:
        return await echo.intent(text, registry, TODAY, deterministic=rules)
    except IntentError:
        return await echo.intent(text, registry, TODAY, deterministic=True)


def describe(judged: Judged) -> str:
    """What is not right about a request, on one line; empty if everything is."""
    request, intent = judged.request, judged.intent
    wrong: list[str] = []
    if intent.by == "echo" and not judged.steps_right:
        wrong.append("steps: " + "; ".join(step.text for step in intent.steps))
    found, right, wanted = judged.mentions
    if not found == right == wanted:
        wrong.append("mentions: " + ", ".join(f"{each.kind} {each.words!r}" for each in intent.mentions))
    if not judged.output_right:
        wrong.append(f"output: {intent.output.text} instead of {request.output}")
    if request.is_open and not judged.asked_right:
        wrong.append(f"not asked about {'/'.join(sorted(request.topics))}")
    if judged.asked and not judged.asked_right:
        wrong.append("asked: " + " ".join(each.question for each in intent.questions))
    return f"{request.id} {request.text}\n    " + "\n    ".join(wrong) if wrong else ""


def open_provider(name: str) -> LocalProvider:
    """The embedded model of this name, with its adapters."""
    weights = find_weights(name)
    return LocalProvider(ModelStore().ensure(weights), name=name, adapters=adapters_of(weights))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("none", "0.5b", "1.5b"), default="none")
    parser.add_argument("--only", default="", help="only this language (en, de, fr, es) or request (en-03)")
    parser.add_argument("--show", action="store_true", help="print what is not right")
    add_shard_arguments(parser)
    given = parser.parse_args()
    chosen = [each for each in load_requests() if not given.only or given.only in (each.language, each.id)]
    if not chosen:
        raise SystemExit(f"--only: unknown {given.only}; expected a language (en, de, fr, es) or an id such as en-03")
    if given.sum_up:
        judged = read_results(given.sum_up)
    else:
        if given.shard:
            chosen = given.shard.take(chosen)
        provider = None if given.model == "none" else open_provider(given.model)
        with tempfile.TemporaryDirectory(prefix="intent-") as name:
            registry = open_registry(Path(name).resolve())
            judged = asyncio.run(run(chosen, registry, provider, given.out))
    if given.show:
        for each in judged:
            if line := describe(each):
                print(line, file=sys.stderr)
    print(json.dumps({"model": given.model, **summarise(judged)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
