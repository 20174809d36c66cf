"""Pairs of requests and plans, drawn from the domains and operations of each language."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..blocks import SEARCH_LINE, Block
from ..canonical import canonical_plan
from ..guards import guarded_plan
from ..places import misplaced_lookups
from .domains import LANGUAGES, Frames, Language, load_language
from .making import Draft, Maker, Unfit
from .operations import OPERATIONS
from .phrases import PHRASES
from .wording import capitalise, hurried, tidy

_SLOT = re.compile(r"<([a-z]+\d*)(?:[,.][a-z]*)?>")
_DAYS = re.compile(r"<d[,.a-z]*:([^<>]+)>")
_TEXT = re.compile(r"f?\"(?:[^\"\\\\]|\\\\.)*\"|'[^']*'")
_NUMBER = re.compile(r"<(?:n|big)\d*>|\b\d+(?:\.\d+)?\b")
_PLAN_REPEATS = 3
_TRIES = 200


@dataclass(frozen=True, slots=True)
class Composition:
    """One plan with the requests for it; the sloppy ones are apart."""

    language: str
    operation: str
    phrasings: tuple[str, ...]
    sloppy: tuple[str, ...]
    plan: str
    searched: bool = False

    def as_block(self, number: int) -> Block:
        place = f"compose/{self.language}/{self.operation}:{number}"
        return Block(place, None, (*self.phrasings, *self.sloppy), self.plan, self.searched)

    def as_text(self) -> str:
        """The block as it stands in a corpus file."""
        said = [*(f"#: {each}" for each in self.phrasings), *(f"#~ {each}" for each in self.sloppy)]
        given = f"{SEARCH_LINE}\n" if self.searched else ""
        return "\n".join(said) + "\n" + given + self.plan


def compose(count: int, seed: int, languages: Sequence[str] = LANGUAGES) -> list[Composition]:
    """Different compositions, in turn from each language; the same seed gives the same ones.

    Raises:
        ValueError: There are not so many, or there is no such language.
    """
    known = [load_language(code) for code in languages]
    picks = random.Random(f"compose/{seed}/{'/'.join(languages)}")
    made: list[Composition] = []
    plans: Counter[str] = Counter()
    seen: set[str] = set()
    drawn: dict[str, Counter[str]] = {language.code: Counter() for language in known}
    for number in range(count):
        language = known[number % len(known)]
        for tried in range(_TRIES):
            name = _next_operation(drawn[language.code], picks, tried)
            found = compose_operation(language, name, picks)
            if found is None or seen & {*found.phrasings}:
                continue
            if plans[found.plan] >= _PLAN_REPEATS and not found.plan.startswith("cannot("):
                continue
            plans[found.plan] += 1
            drawn[language.code][name] += 1
            seen.update(found.phrasings)
            made.append(found)
            break
        else:
            raise ValueError(f"only {len(made)} of {count} different blocks could be composed")
    return made


def _next_operation(drawn: Counter[str], picks: random.Random, tried: int) -> str:
    """The operation that is farthest behind its share, roughly: drawn by weight alone, rare ones would be rarer yet.

    With every failed try chance counts more, so that an operation which has no more to give blocks nothing.
    """
    total = sum(weight for weight, _ in OPERATIONS.values())
    size = drawn.total() + 1
    return max(
        OPERATIONS,
        key=lambda name: OPERATIONS[name][0] / total * size - drawn[name] + picks.random() * (1 + tried),
    )


def compose_blocks(count: int, seed: int, languages: Sequence[str] = LANGUAGES) -> list[Block]:
    """Blocks of the corpus: phrasings and a plan each, with slots to fill.

    Args:
        count: How many.
        seed: The same seed gives the same blocks.
        languages: Codes of the languages, which take turns.

    Example:
        >>> len(compose_blocks(20, 1, ["en", "de"]))
        20
    """
    return [each.as_block(number) for number, each in enumerate(compose(count, seed, languages), 1)]


def plan_skeleton(plan: str) -> str:
    """The shape of a plan: its statements without the texts and numbers in them."""
    return _NUMBER.sub("0", _TEXT.sub('""', plan))


def compose_operation(language: Language, name: str, picks: random.Random) -> Composition | None:
    """One composition of an operation, or None where none of the domains that were drawn fits it."""
    # The domain is drawn again, not the operation: picky operations would be rarer than their weights say.
    for _ in range(_TRIES):
        maker = Maker(language, picks.choice(language.domains), picks)
        try:
            draft = OPERATIONS[name][1](maker)
        except Unfit:
            continue
        if (found := _worded(language, name, draft, picks)) is not None:
            return found
    return None


def _worded(language: Language, name: str, draft: Draft, picks: random.Random) -> Composition | None:
    say, sloppy = _frames(language, draft)
    plan = guarded_plan(canonical_plan("".join(f"{line}\n" for line in draft.plan)), language.code)
    days = list(dict.fromkeys(_DAYS.findall(plan)))
    phrasings = _filled(language, draft, picks.sample(say, min(len(say), picks.choice((3, 3, 4)))), picks)
    hasty = _filled(language, draft, picks.sample(sloppy, min(len(sloppy), picks.choice((1, 2, 2)))), picks)
    wanted = set(_SLOT.findall(plan))

    def is_whole(text: str) -> bool:
        if not wanted <= set(_SLOT.findall(text)) or not all(day in text for day in days):
            return False
        # A word for the place may be missing, or have a slip.
        return not any(misplaced_lookups(plan, text, language.code))

    # Not before the sloppy ones have lost their marks: a phrasing must not be there twice.
    keep = (*days, *draft.kept)
    loose = [hurried(text, language.code, language.casual, keep, picks) for text in hasty]
    phrasings = [capitalise(tidy(text, language.code)) for text in phrasings]
    whole = tuple(dict.fromkeys(filter(is_whole, phrasings)))
    return (
        Composition(language.code, name, whole, tuple(dict.fromkeys(filter(is_whole, loose))), plan, draft.searched)
        if len(whole) >= 3 and loose
        else None
    )


def _frames(language: Language, draft: Draft) -> tuple[list[str], list[str]]:
    say: list[str] = []
    sloppy: list[str] = []
    for group in draft.frames:
        found = _refusal(language, group) if group.startswith(("effect.", "errand.")) else language.frames[group]
        say += found.say
        sloppy += found.sloppy
    return say, sloppy


def _refusal(language: Language, group: str) -> Frames:
    """The sentences for something that no tool does; the sloppy ones of an effect are marked."""
    if group.startswith("errand."):
        errand = next(each for each in language.errands.errands if f"errand.{each.key}" == group)
        return Frames("", "", errand.say, errand.sloppy)
    effect = next(each for each in language.effects if f"effect.{each.key}" == group)
    say = tuple(each for each in effect.frames if not each.startswith("~"))
    return Frames("", "", say, tuple(each.removeprefix("~") for each in effect.frames if each.startswith("~")))


def _filled(language: Language, draft: Draft, frames: Sequence[str], picks: random.Random) -> list[str]:
    """The frames with their placeholders filled, each with other articles and synonyms."""
    filled: list[str] = []
    for frame in frames:
        words = {**draft.values, **{key: picks.choice(ways) for key, ways in draft.choices.items()}}
        for prefix, topic in draft.topics.items():
            phrases = PHRASES[language.code](topic, picks)
            words |= {f"{prefix}{key}": value for key, value in phrases.words().items()}
        if draft.result:
            named = language.frames[draft.result]
            words["nom"], words["result"] = named.nominative.format_map(words), named.accusative.format_map(words)
        if "result" in words:
            words["Result"] = capitalise(words["result"])
        filled.append(frame.format_map(words))
    return filled
