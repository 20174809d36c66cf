"""The reader's training data: packs of forms with replies, as JSON lines in the format of the planner's packs.

    python -m training.reader.build OUT [--pairs 25000] [--seed 1] [--jobs 2]

A pack is the prompt of the quarantined model and forms of about the same length in all packs. The reply begins with
nothing that the session writes, so the opening of a pack is empty.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bicameral.boundary._form import FORM_SETUP

from .drafts import make_draft, make_translation
from .facts import LANGUAGES, Language
from .forms import Reading, UnfitError, check_reading
from .judgements import make_count, make_judgement, make_matter_judgement
from .lists import make_list
from .readings import FactReading
from .records import make_records
from .summaries import make_summary

PACK_CHARACTERS = 40_000
"""Forms are longer than requests: a pack has as many as make a sequence of some ten thousand tokens."""
_BATCH = 250
HELD_BACK = 0.04
"""The share of forms that ask for what is held back."""
COMPOSED = 0.25
"""The share of forms whose reply is worded, judged or counted."""
_OTHER_LANGUAGE = 0.1
_RECKONED = 0.1
"""Of forms about facts: those that need today's date."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A form and the reply to it, with what it is for the figures."""

    pattern: str
    situation: str
    language: str
    form: str
    reply: str
    is_missing: bool


def make_reading(picks: random.Random, *, held: bool = False) -> Reading:
    """A form of the training part, or of the part that is held back; an UnfitError if this one cannot be used."""
    language = picks.choice(LANGUAGES)
    text_language = picks.choice(LANGUAGES) if picks.random() < _OTHER_LANGUAGE * 4 / 3 else language
    kind = picks.random()
    if kind < COMPOSED:
        made = _make_composed(picks, language, text_language, held=held)
    elif held or kind < 0.74:
        made = FactReading(picks, language, text_language, held=held).make()
        if not held and picks.random() < _RECKONED:
            made = FactReading(picks, language, text_language, held=held, kind="datetime").make_reckoned()
    elif kind < 0.82:
        made = FactReading(picks, language, text_language, held=held).make_record()
    elif kind < 0.94:
        made = make_records(picks, language)
    elif kind < 0.98:
        made = make_list(picks, language, text_language)
    else:
        made = make_judgement(picks, language, text_language)
    check_reading(made)
    return made


def _make_composed(picks: random.Random, language: Language, text_language: Language, *, held: bool) -> Reading:
    """A form whose reply is worded, judged or counted; of what is held back, summaries alone."""
    kind = picks.random()
    if held or kind < 0.6:
        return make_summary(picks, language, text_language, held=held)
    if kind < 0.76:
        return make_matter_judgement(picks, language, text_language)
    if kind < 0.86:
        return make_translation(picks, language, text_language)
    if kind < 0.95:
        return make_draft(picks, language, text_language)
    return make_count(picks, language, text_language)


def make_pair(number: int, seed: int, *, held: bool = False) -> Pair | str:
    """The pair with a number, or why there is none. It depends on nothing but its arguments."""
    part = "held" if held else "train"
    try:
        made = make_reading(random.Random(f"{seed}/{part}/{number}"), held=held)
    except UnfitError as error:
        return str(error)
    return Pair(made.pattern, made.situation, made.language, made.form, made.reply, made.is_missing)


def make_batch(numbers: Sequence[int], seed: int, held: bool) -> list[Pair | str]:
    """The pairs with these numbers, for a process of its own."""
    return [make_pair(number, seed, held=held) for number in numbers]


def make_pairs(count: int, seed: int, jobs: int = 1, *, held: bool = False) -> tuple[list[Pair], Counter[str]]:
    """So many different pairs, and why others are none; the same for any number of jobs."""
    found: dict[str, Pair] = {}
    refused: Counter[str] = Counter()
    tried = count + count // 4 + 50
    batches = [range(start, min(start + _BATCH, tried)) for start in range(0, tried, _BATCH)]
    make = partial(make_batch, seed=seed, held=held)
    with ProcessPoolExecutor(jobs) as pool:
        for each in (pair for made in pool.map(make, batches) for pair in made):
            if isinstance(each, str):
                refused[each] += 1
            elif len(found) < count:
                found.setdefault(each.form, each)
    return list(found.values()), refused


def packs(pairs: Sequence[Pair]) -> Iterator[dict[str, Any]]:
    """Pairs in their order under the reader's prompt."""
    chosen: list[list[str]] = []
    size = 0
    for each in pairs:
        if chosen and size + len(each.form) > PACK_CHARACTERS:
            yield {"system": FORM_SETUP[0].text, "opening": "", "pairs": chosen}
            chosen, size = [], 0
        chosen.append([each.form, each.reply])
        size += len(each.form)
    if chosen:
        yield {"system": FORM_SETUP[0].text, "opening": "", "pairs": chosen}


def report(part: str, pairs: Sequence[Pair], packs: int) -> None:
    """Print how many pairs of each kind there are."""
    print(f"{part}: {len(pairs)} pairs in {packs} packs, {len({each.pattern for each in pairs})} patterns")
    print(f"  {sum(each.is_missing for each in pairs) / len(pairs):.1%} not found")
    for title, counted in (
        ("situations", Counter(each.situation for each in pairs)),
        ("languages", Counter(each.language for each in pairs)),
    ):
        shares = ", ".join(f"{name} {count / len(pairs):.1%}" for name, count in counted.most_common())
        print(f"  {title}: {shares}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out", type=Path, help="folder for train.jsonl and held.jsonl")
    arguments.add_argument("--pairs", type=int, default=25_000, help="how many forms, of both parts (25000)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    held = round(given.pairs * HELD_BACK)
    for part, count in (("train", given.pairs - held), ("held", held)):
        pairs, refused = make_pairs(count, given.seed, given.jobs, held=part == "held")
        made = list(packs(pairs))
        text = "".join(json.dumps(pack, ensure_ascii=False) + "\n" for pack in made)
        (given.out / f"{part}.jsonl").write_text(text, encoding="utf-8")
        report(part, pairs, len(made))
        print(f"  not used: {sum(refused.values())} {dict(refused.most_common(8))}")


if __name__ == "__main__":
    main()
