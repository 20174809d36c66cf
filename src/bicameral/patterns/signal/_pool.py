"""A pool of worked pairs: checked when it is made, with a version, and with the ways to pick from it."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bicameral.errors import CatalogError
from bicameral.labels import TRUSTED_USER, Label, join_all, own_value

MOST_PAIRS = 8
"""Of so many at most a block is made; more of them gain little."""
_MARKS = re.compile(r"<(?=\s*/?\s*(example|input|output|task)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pair:
    """One input and the output that is right for it.

    `kind` is what kind of answer it shows, where answers have kinds. A `typical` one may stand last, where it counts
    most; an `odd` one never does. `label` is a stranger's where a stranger wrote any of it.
    """

    id: str
    input: str
    output: str
    kind: str = ""
    typical: bool = False
    odd: bool = False
    label: Label = TRUSTED_USER

    def __post_init__(self) -> None:
        if self.label.trusted:
            # Whoever shows a pair as his own must not have it from an outcome that a stranger had a hand in.
            own_value((self.input, self.output))


@dataclass(frozen=True)
class Pool:
    """Pairs that agree with each other. `kinds` are all kinds of answer that may come; each must be shown.

    Example:
        >>> pool = Pool("mail", (Pair("1", "It crashes.", "bug", "bug"), Pair("2", "Thanks!", "praise", "praise")))
        >>> pool.kinds
        ('bug', 'praise')
    """

    name: str
    pairs: tuple[Pair, ...]
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        found = tuple(dict.fromkeys(pair.kind for pair in self.pairs if pair.kind))
        object.__setattr__(self, "kinds", self.kinds or found)
        for fault in self._faults():
            raise bad_pool(f"the pool {self.name!r}: {fault}")

    def _faults(self) -> Iterable[str]:
        if not self.pairs:
            yield "it is empty"
        known: dict[str, Pair] = {}
        for pair in self.pairs:
            if not (pair.id and pair.input.strip() and pair.output.strip()):
                yield f"the pair {pair.id!r} lacks its id, its input or its output"
            if pair.typical and pair.odd:
                yield f"the pair {pair.id!r} cannot be both typical and odd"
            if self.kinds and pair.kind not in self.kinds:
                yield f"the pair {pair.id!r} is of the kind {pair.kind!r}, which is none of {', '.join(self.kinds)}"
            other = known.setdefault(plain_input(pair.input), pair)
            if other is not pair:
                how = "contradict each other" if other.output != pair.output else "are the same"
                yield f"the pairs {other.id!r} and {pair.id!r} {how}"
        if twice := next((name for name, count in Counter(pair.id for pair in self.pairs).items() if count > 1), None):
            yield f"two pairs have the id {twice!r}"
        if unseen := set(self.kinds) - {pair.kind for pair in self.pairs}:
            yield f"no pair shows the kind {min(unseen)!r}"

    @cached_property
    def version(self) -> str:
        """The same as long as every pair is."""
        parts = [[pair.id, pair.input, pair.output, pair.kind, pair.typical, pair.odd] for pair in self.pairs]
        return hashlib.sha256(json.dumps([self.name, parts, self.kinds]).encode()).hexdigest()[:12]

    @property
    def label(self) -> Label:
        """The join of all labels in it: which pairs are picked is for all of them to say."""
        return join_all((TRUSTED_USER, *(pair.label for pair in self.pairs)))

    def picked(self, k: int, ranked: Sequence[Pair] | None = None) -> tuple[Pair, ...]:
        """`k` pairs, as many of each kind as of any other (give or take one), the most telling last.

        `ranked` are those that may be picked, the best first; left out: all, in their order, typical ones first.
        """
        best = sorted(self.pairs, key=lambda pair: not pair.typical) if ranked is None else list(ranked)
        kinds = self.kinds or ("",)
        if not len(kinds) <= k <= MOST_PAIRS:
            raise bad_pool(f"{k} pairs cannot show {len(kinds)} kinds", f"{len(kinds)} to {MOST_PAIRS}")
        of_kind = {kind: [pair for pair in best if not self.kinds or pair.kind == kind] for kind in kinds}
        least, more = divmod(k, len(kinds))
        # The kinds whose best pairs come first get the one more.
        order = sorted(kinds, key=lambda kind: best.index(of_kind[kind][0]) if of_kind[kind] else len(best))
        wanted = dict.fromkeys(kinds, least)
        for kind in [kind for kind in order if len(of_kind[kind]) > least][:more]:
            wanted[kind] += 1
        for kind, count in wanted.items():
            if len(of_kind[kind]) < count or sum(wanted.values()) < k:
                raise bad_pool(f"there are too few pairs{f' of the kind {kind!r}' if kind else ''} for a block of {k}")
        rounds = [of_kind[kind][turn] for turn in range(max(wanted.values())) for kind in order if turn < wanted[kind]]
        return _last_best(rounds, by_rank=ranked is not None)


def _last_best(pairs: Sequence[Pair], *, by_rank: bool) -> tuple[Pair, ...]:
    """The best last: the one that ranks first, or is typical; never an odd one."""
    sound = [pair for pair in pairs if not pair.odd]
    if not sound:
        raise bad_pool("all pairs of the block are odd, and one would have to stand last")
    last = sound[0] if by_rank else next((pair for pair in sound if pair.typical), sound[-1])
    others = reversed(pairs) if by_rank else pairs
    return (*(pair for pair in others if pair is not last), last)


def block_of(pairs: Iterable[Pair]) -> str:
    """Pairs as a model reads them, each between marks of its own."""
    return "\n".join(
        f"<example>\n<input>{inert(pair.input)}</input>\n<output>{inert(pair.output)}</output>\n</example>"
        for pair in pairs
    )


def inert(text: str) -> str:
    """A text in which nothing looks like the marks that stand around it."""
    return _MARKS.sub("‹", text)


def plain_input(text: str) -> str:
    """An input without what makes no difference: case and spaces."""
    return " ".join(text.casefold().split())


def bad_pool(message: str, expected: str | None = None) -> CatalogError:
    return CatalogError("pattern.bad-pool", message, expected=expected)
