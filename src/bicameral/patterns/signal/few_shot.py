"""S2, few-shot: worked pairs stand before the task, and the model answers in the way that they show.

Use it where a form, a style or a borderline is easier shown than told, and a bare call is not steady enough. A static
block belongs to the fixed beginning of the prompt and never changes; pairs that are picked for each task come after
everything fixed. A pool is checked when it is made, has a version, and must agree with itself; whether it helps at all
is for `compare` to say.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from bicameral.errors import CatalogError
from bicameral.labels import TRUSTED_USER, Label, join_all, vouched_value
from bicameral.patterns.kernel import Answered, Context, Labelled, Pattern, PatternExample, Role, from_user

if TYPE_CHECKING:
    from bicameral.patterns.strategies import Runtime
    from bicameral.retrieval import Embedder


MAX_PAIRS = 8
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
            vouched_value((self.input, self.output))


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
            raise bad_pool_error(f"the pool {self.name!r}: {fault}")

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
            other = known.setdefault(normalise_input(pair.input), pair)
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

    def pick(self, k: int, ranked: Sequence[Pair] | None = None) -> tuple[Pair, ...]:
        """`k` pairs, as many of each kind as of any other (give or take one), the most telling last.

        `ranked` are those that may be picked, the best first; left out: all, in their order, typical ones first.
        """
        best = sorted(self.pairs, key=lambda pair: not pair.typical) if ranked is None else list(ranked)
        kinds = self.kinds or ("",)
        if not len(kinds) <= k <= MAX_PAIRS:
            raise bad_pool_error(f"{k} pairs cannot show {len(kinds)} kinds", f"{len(kinds)} to {MAX_PAIRS}")
        of_kind = {kind: [pair for pair in best if not self.kinds or pair.kind == kind] for kind in kinds}
        least, more = divmod(k, len(kinds))
        # The kinds whose best pairs come first get the one more.
        order = sorted(kinds, key=lambda kind: best.index(of_kind[kind][0]) if of_kind[kind] else len(best))
        wanted = dict.fromkeys(kinds, least)
        for kind in [kind for kind in order if len(of_kind[kind]) > least][:more]:
            wanted[kind] += 1
        for kind, count in wanted.items():
            if len(of_kind[kind]) < count or sum(wanted.values()) < k:
                raise bad_pool_error(
                    f"there are too few pairs{f' of the kind {kind!r}' if kind else ''} for a block of {k}"
                )
        rounds = [of_kind[kind][turn] for turn in range(max(wanted.values())) for kind in order if turn < wanted[kind]]
        return _order_best_last(rounds, by_rank=ranked is not None)


def _order_best_last(pairs: Sequence[Pair], *, by_rank: bool) -> tuple[Pair, ...]:
    """The best last: the one that ranks first, or is typical; never an odd one."""
    sound = [pair for pair in pairs if not pair.odd]
    if not sound:
        raise bad_pool_error("all pairs of the block are odd, and one would have to stand last")
    last = sound[0] if by_rank else next((pair for pair in sound if pair.typical), sound[-1])
    others = reversed(pairs) if by_rank else pairs
    return (*(pair for pair in others if pair is not last), last)


def render_pairs(pairs: Iterable[Pair]) -> str:
    """Pairs as a model reads them, each between marks of its own."""
    return "\n".join(
        f"<example>\n<input>{escape_pair_marks(pair.input)}</input>\n<output>{escape_pair_marks(pair.output)}</output>\n</example>"
        for pair in pairs
    )


def escape_pair_marks(text: str) -> str:
    """A text in which nothing looks like the marks that stand around it."""
    return _MARKS.sub("‹", text)


def normalise_input(text: str) -> str:
    """An input without what makes no difference: case and spaces."""
    return " ".join(text.casefold().split())


def bad_pool_error(message: str, expected: str | None = None) -> CatalogError:
    return CatalogError("pattern.bad-pool", message, expected=expected)


HOST = Role("Host", "Answer the task as the examples do. Reply with the output alone.", tier="mid", max_tokens=256)


@dataclass(frozen=True, slots=True)
class HeldOutCase:
    """A case to measure with, which no pair of the pool may be."""

    id: str
    input: str
    output: str


@dataclass(frozen=True, slots=True)
class PoolComparison:
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
        >>> outcome = await sorting.run(desk, program_text("The app closes when I print."))
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
        self.pool.pick(self.k)

    async def execute(self, stage: Context, /, task: Labelled[str]) -> Labelled[str]:
        pairs = self.pool.pick(self.k) if self.mode == "static" else await self._nearest(stage, task)
        block = stage.derive(render_pairs(pairs)).with_label(self.pool.label)
        stage.note("examples", version=self.pool.version, pairs=len(pairs), block=_short_hash(render_pairs(pairs)))
        query = ("<task>\n", task.map(escape_pair_marks), "\n</task>")
        if self.mode == "static":
            reply = await stage.ask(self.host, *query, stable=[block])
        else:
            reply = await stage.ask(self.host, block, "\n\n", *query)
        return reply.map(_strip_output)

    async def _nearest(self, stage: Context, task: Labelled[str]) -> tuple[Pair, ...]:
        """The pairs that are most like the task, and not almost the task itself, of every kind."""
        likenesses = await asyncio.to_thread(
            _similarities, self.embedder or _local_embedder(), self.pool, stage.read(task)
        )
        near = sorted(zip(likenesses, self.pool.pairs, strict=True), key=lambda each: -each[0])
        fit = [pair for likeness, pair in near if likeness <= self.similarity_cap]
        stage.note("pairs-found", fit=len(fit), too_like=len(near) - len(fit))
        return self.pool.pick(self.k, fit)

    async def compare(
        self, desk: Runtime, held: Sequence[HeldOutCase], score: Callable[[str, str], float] | None = None
    ) -> PoolComparison:
        """Measure the pool against no examples, each case in a run of its own. `score` is given a reply and the right
        output, and not who it was that replied; left out: whether they are the same."""
        _check_apart(self.pool, held)
        marks: dict[str, list[float]] = {"with": [], "without": []}
        failed = 0
        for case in held:
            for arm, pattern in (("with", self), ("without", _WithoutExamples(self.host))):
                outcome = await pattern.run(desk, from_user(case.input))
                failed += not isinstance(outcome, Answered)
                right = (score or _exact_score)(outcome.value, case.output) if isinstance(outcome, Answered) else 0.0
                marks[arm].append(right)
        shown, bare = (sum(marks[arm]) / len(held) for arm in ("with", "without"))
        return PoolComparison(self.pool.version, len(held), shown, bare, failed)


@dataclass(frozen=True)
class _WithoutExamples(Pattern[[Labelled[str]], str]):
    """The same question without a pair, to measure against."""

    id: ClassVar[str] = "S1"
    host: Role

    async def execute(self, stage: Context, /, task: Labelled[str]) -> Labelled[str]:
        reply = await stage.ask(self.host, "<task>\n", task.map(escape_pair_marks), "\n</task>")
        return reply.map(_strip_output)


def _check_apart(pool: Pool, held: Sequence[HeldOutCase]) -> None:
    """Nothing is measured on what was shown."""
    ids, inputs = {pair.id for pair in pool.pairs}, {normalise_input(pair.input) for pair in pool.pairs}
    if not held:
        raise bad_pool_error("there is no case to measure with")
    for case in held:
        if case.id in ids or normalise_input(case.input) in inputs:
            raise bad_pool_error(
                f"the case {case.id!r} is a pair of the pool {pool.name!r}", "cases that no pair shows"
            )


@lru_cache(maxsize=1)
def _local_embedder() -> Embedder:
    from bicameral.retrieval import LocalEmbedder

    return LocalEmbedder()


@lru_cache(maxsize=16)
def _pool_vectors(embedder: Embedder, pool: Pool) -> Any:
    return embedder.vectors([pair.input for pair in pool.pairs])


def _similarities(embedder: Embedder, pool: Pool, task: str) -> list[float]:
    """How like the task each pair of the pool is."""
    return [float(each) for each in _pool_vectors(embedder, pool) @ embedder.vectors([task])[0]]


def _strip_output(reply: str) -> str:
    return reply.strip().removeprefix("<output>").removesuffix("</output>").strip()


def _exact_score(reply: str, wanted: str) -> float:
    return float(normalise_input(reply) == normalise_input(wanted))


def _short_hash(block: str) -> str:
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


def _is_correct(outcome: Answered[str]) -> bool:
    return re.fullmatch(r"question: \w+", outcome.value) is not None


EXAMPLE = PatternExample(
    "A message is sorted in a form that three pairs show and nobody has explained.",
    lambda folder: FewShot(_POOL),
    _TASK,
    _is_correct,
    lambda folder: {
        "setup": HOST.setup,
        "example": render_pairs(_POOL.pairs[-1:]),
        "input": f"<task>\n{_TASK}\n</task>",
        "output": 8,
    },
)
