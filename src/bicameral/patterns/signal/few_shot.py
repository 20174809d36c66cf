"""S2, few-shot: worked pairs stand before the task, and the model answers in the way that they show.

Use it where a form, a style or a borderline is easier shown than told, and a bare call is not steady enough. A static
block belongs to the fixed beginning of the prompt and never changes; pairs that are picked for each task come after
everything fixed. A pool has to agree with itself, and whether it helps at all is for `compare` to say.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from bicameral.errors import CatalogError

from ..kernel import Answered, Example, Labelled, Pattern, Role, Stage, from_user, said
from ._pool import Pair, Pool, bad_pool, block_of, inert, plain_input

if TYPE_CHECKING:
    from bicameral.retrieval import Embedder
    from bicameral.strategies import Desk

__all__ = ["Comparison", "FewShot", "HeldOut", "Pair", "Pool"]

HOST = Role("Host", "Answer the task as the examples do. Reply with the output alone.", tier="mid", max_tokens=256)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A case to measure with, which no pair of the pool may be."""

    id: str
    input: str
    output: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a pool did against no examples at all (S1), on cases that are not in it."""

    version: str
    cases: int
    with_pairs: float
    without: float
    failed: int

    @property
    def ships(self) -> bool:
        """Whether the pairs are worth their tokens."""
        return self.with_pairs > self.without


@dataclass(frozen=True)
class FewShot(Pattern[[Labelled[str]], str]):
    """A pool of pairs and how many of them are shown. `embedder` is for dynamic mode; left out: the local one.

    Example:
        >>> sorting = FewShot(Pool("mail", pairs), k=3)
        >>> outcome = await sorting.run(desk, said("The app closes when I print."))
        >>> outcome.value
        'bug'
    """

    id: ClassVar[str] = "S2"
    pool: Pool
    k: int = 3
    mode: Literal["static", "dynamic"] = "static"
    similarity_cap: float = 0.95
    host: Role = HOST
    embedder: Embedder | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode not in ("static", "dynamic"):
            raise CatalogError("pattern.bad-knob", f"S2: mode is {self.mode!r}", expected="'static' or 'dynamic'")
        # A pool that cannot fill its block is found out now, and not at the first task.
        self.pool.picked(self.k)

    async def on(self, stage: Stage, /, task: Labelled[str]) -> Labelled[str]:
        pairs = self.pool.picked(self.k) if self.mode == "static" else await self._nearest(stage, task)
        block = stage.give(block_of(pairs)).under(self.pool.label)
        stage.note("examples", version=self.pool.version, pairs=len(pairs), block=_hash(block_of(pairs)))
        query = ("<task>\n", task.map(inert), "\n</task>")
        if self.mode == "static":
            reply = await stage.ask(self.host, *query, stable=[block])
        else:
            reply = await stage.ask(self.host, block, "\n\n", *query)
        return reply.map(_output)

    async def _nearest(self, stage: Stage, task: Labelled[str]) -> tuple[Pair, ...]:
        """The pairs that are most like the task, and not almost the task itself, of every kind."""
        likenesses = await asyncio.to_thread(_likenesses, self.embedder or _local(), self.pool, stage.read(task))
        near = sorted(zip(likenesses, self.pool.pairs, strict=True), key=lambda each: -each[0])
        fit = [pair for likeness, pair in near if likeness <= self.similarity_cap]
        stage.note("pairs-found", fit=len(fit), too_like=len(near) - len(fit))
        return self.pool.picked(self.k, fit)

    async def compare(
        self, desk: Desk, held: Sequence[HeldOut], score: Callable[[str, str], float] | None = None
    ) -> Comparison:
        """Measure the pool against no examples, each case in a run of its own. `score` is given a reply and the right
        output, and not who it was that replied; left out: whether they are the same."""
        _check_apart(self.pool, held)
        marks: dict[str, list[float]] = {"with": [], "without": []}
        failed = 0
        for case in held:
            for arm, pattern in (("with", self), ("without", _Bare(self.host))):
                outcome = await pattern.run(desk, from_user(case.input))
                failed += not isinstance(outcome, Answered)
                right = (score or _same)(outcome.value, case.output) if isinstance(outcome, Answered) else 0.0
                marks[arm].append(right)
        shown, bare = (sum(marks[arm]) / len(held) for arm in ("with", "without"))
        return Comparison(self.pool.version, len(held), shown, bare, failed)


@dataclass(frozen=True)
class _Bare(Pattern[[Labelled[str]], str]):
    """The same question without a pair, to measure against."""

    id: ClassVar[str] = "S1"
    host: Role

    async def on(self, stage: Stage, /, task: Labelled[str]) -> Labelled[str]:
        reply = await stage.ask(self.host, "<task>\n", task.map(inert), "\n</task>")
        return reply.map(_output)


def _check_apart(pool: Pool, held: Sequence[HeldOut]) -> None:
    """Nothing is measured on what was shown."""
    ids, inputs = {pair.id for pair in pool.pairs}, {plain_input(pair.input) for pair in pool.pairs}
    if not held:
        raise bad_pool("there is no case to measure with")
    for case in held:
        if case.id in ids or plain_input(case.input) in inputs:
            raise bad_pool(f"the case {case.id!r} is a pair of the pool {pool.name!r}", "cases that no pair shows")


@lru_cache(maxsize=1)
def _local() -> Embedder:
    from bicameral.retrieval import LocalEmbedder

    return LocalEmbedder()


@lru_cache(maxsize=16)
def _vectors(embedder: Embedder, pool: Pool) -> Any:
    return embedder.vectors([pair.input for pair in pool.pairs])


def _likenesses(embedder: Embedder, pool: Pool, task: str) -> list[float]:
    """How like the task each pair of the pool is."""
    return [float(each) for each in _vectors(embedder, pool) @ embedder.vectors([task])[0]]


def _output(reply: str) -> str:
    return reply.strip().removeprefix("<output>").removesuffix("</output>").strip()


def _same(reply: str, wanted: str) -> float:
    return float(plain_input(reply) == plain_input(wanted))


def _hash(block: str) -> str:
    return hashlib.sha256(block.encode()).hexdigest()[:12]


# An example ---------------------------------------------------------------------------------------------------------

_POOL = Pool(
    "messages",
    (
        Pair("1", "The page stays white after login.", "bug: login", "bug"),
        Pair("2", "How do I pay by card?", "question: payment", "question"),
        Pair("3", "Love the new search!", "praise: search", "praise"),
        Pair("4", "Printing an invoice ends with an error.", "bug: invoice", "bug", typical=True),
    ),
)
_TASK: Final = "How do I reset my password?"


def _good(outcome: Answered[str]) -> bool:
    return re.fullmatch(r"question: \w+", outcome.value) is not None


def _sizes(folder: Path) -> dict[str, int | float | str]:
    return {
        "setup": HOST.setup,
        "example": block_of(_POOL.pairs[-1:]),
        "input": f"<task>\n{_TASK}\n</task>",
        "output": 8,
    }


EXAMPLE = Example(
    "A message is sorted in a form that three pairs show and nobody has explained.",
    lambda folder: FewShot(_POOL),
    lambda folder: (said(_TASK),),
    _good,
    _sizes,
)
