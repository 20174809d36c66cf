"""S2, few-shot: pairs of input and output stand before the task, and the model answers in the same way.

Use it where a form, a style or a borderline is easier to show than to describe, and a call without examples varies too
much. A static block of pairs is part of the fixed beginning of the prompt, which can be cached; pairs that are picked
for each task come after it. A pool is checked for contradictions when it is made and has a version; `compare` measures
whether it helps, and `require_better` refuses a block that does not.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from bicameral.errors import CatalogError
from bicameral.evaluation import Case, Comparison, Subject, compare, normal_text
from bicameral.labels import TRUSTED_USER, Label, join_all, vouched_value
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    Role,
    approximate_tokens,
    labelled_answer,
    map_labelled,
)
from bicameral.patterns.signal.zero_shot import ZeroShot

if TYPE_CHECKING:
    from bicameral.patterns.strategies import Runtime
    from bicameral.retrieval import Embedder


MAX_PAIRS = 8
"""The most pairs that a block has, unless it is declared as many-shot; more gain little."""
_MARKS = re.compile(r"<(?=\s*/?\s*(example|input|output|task)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pair:
    """One input and its correct output.

    Args:
        kind: The kind of answer that it shows, where answers have kinds.
        typical: Whether it may stand last in a block, where a pair has the most influence.
        odd: Whether it is unusual and must never stand last.
        label: Untrusted if a third party wrote any of it.
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
            # A pair that is labelled as the user's own must not be the text of an outcome that read untrusted text.
            vouched_value((self.input, self.output))


@dataclass(frozen=True)
class Pool:
    """Pairs that do not contradict each other. `kinds` are all possible kinds of answer; a pair must show each.

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
            other = known.setdefault(normal_text(pair.input), pair)
            if other is not pair:
                how = "contradict each other" if other.output != pair.output else "are the same"
                yield f"the pairs {other.id!r} and {pair.id!r} {how}"
        if twice := next((name for name, count in Counter(pair.id for pair in self.pairs).items() if count > 1), None):
            yield f"two pairs have the id {twice!r}"
        if unseen := set(self.kinds) - {pair.kind for pair in self.pairs}:
            yield f"no pair shows the kind {min(unseen)!r}"

    @cached_property
    def version(self) -> str:
        """A hash of all pairs."""
        parts = [[pair.id, pair.input, pair.output, pair.kind, pair.typical, pair.odd] for pair in self.pairs]
        return hashlib.sha256(json.dumps([self.name, parts, self.kinds]).encode()).hexdigest()[:12]

    @property
    def label(self) -> Label:
        """The join of the labels of all pairs: every one of them has a part in which pairs are picked."""
        return join_all((TRUSTED_USER, *(pair.label for pair in self.pairs)))

    def pick(self, k: int, ranked: Sequence[Pair] | None = None, *, most: int = MAX_PAIRS) -> tuple[Pair, ...]:
        """`k` pairs in the order of the block, with equally many of each kind (give or take one).

        `ranked` are the pairs that may be picked, the best first; by default all of them, typical ones first.
        """
        best = sorted(self.pairs, key=lambda pair: not pair.typical) if ranked is None else list(ranked)
        kinds = self.kinds or ("",)
        if not len(kinds) <= k <= most:
            raise bad_pool_error(f"{k} pairs cannot show {len(kinds)} kinds", f"{len(kinds)} to {most}")
        of_kind = {kind: [pair for pair in best if not self.kinds or pair.kind == kind] for kind in kinds}
        least, more = divmod(k, len(kinds))
        # The remainder goes to the kinds whose best pairs rank first.
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
    """The pairs with the best one last: the first by rank, or a typical one, and never an odd one."""
    sound = [pair for pair in pairs if not pair.odd]
    if not sound:
        raise bad_pool_error("all pairs of the block are odd, and one would have to stand last")
    last = sound[0] if by_rank else next((pair for pair in sound if pair.typical), sound[-1])
    others = reversed(pairs) if by_rank else pairs
    return (*(pair for pair in others if pair is not last), last)


def render_pairs(pairs: Iterable[Pair]) -> str:
    """Pairs as a model reads them, each between marks."""
    return "\n".join(
        f"<example>\n<input>{escape_pair_marks(pair.input)}</input>\n<output>{escape_pair_marks(pair.output)}</output>\n</example>"
        for pair in pairs
    )


def escape_pair_marks(text: str) -> str:
    """The text without anything that looks like the marks around it, so that it cannot end its block."""
    return _MARKS.sub("‹", text)


def bad_pool_error(message: str, expected: str | None = None) -> CatalogError:
    return CatalogError("pattern.bad-pool", message, expected=expected)


HOST = Role("Host", "Answer the task as the examples do. Reply with the output alone.", tier="mid", max_tokens=256)


@dataclass(frozen=True, slots=True)
class PoolComparison:
    """Blocks of so many pairs of a pool of this version against no examples (S1, the first of the two).

    The cases are none of the pool.
    """

    version: str
    pairs: int
    mode: Literal["static", "dynamic"]
    compared: Comparison

    @property
    def ships(self) -> bool:
        """Whether the replies are better with the pairs.

        Many pairs make every call dear, so that chance must not explain the difference either.
        """
        return self.compared.difference > 0 and (self.pairs <= MAX_PAIRS or self.compared.is_told_apart)


@dataclass(frozen=True)
class FewShot(Pattern[[Labelled[str]], str]):
    """Answer a task with `k` pairs of a pool shown before it.

    Args:
        many_shot: Above 0, as many pairs are shown instead of `k`, and more than 8.
        mode: "static" shows the same pairs for every task, "dynamic" those most similar to the task.
        similarity_cap: Pairs that are more similar to the task than this are not shown in dynamic mode.
        embedder: Measures similarity in dynamic mode; by default the local one.

    Example:
        >>> sorting = FewShot(Pool("mail", pairs), k=3)
        >>> outcome = await sorting.run(runtime, program_text("The app closes when I print."))
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
    many_shot: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 < self.many_shot <= MAX_PAIRS:
            raise CatalogError(
                "pattern.bad-knob",
                f"S2: many_shot is {self.many_shot}",
                expected=f"0, or more than {MAX_PAIRS}",
                fix=f"Use k for up to {MAX_PAIRS} pairs.",
            )
        # Picked once now, so that a pool which cannot fill a block fails here and not at the first task.
        self._pick()

    @property
    def pairs(self) -> int:
        """How many pairs a block has."""
        return self.many_shot or self.k

    def _pick(self, ranked: Sequence[Pair] | None = None) -> tuple[Pair, ...]:
        return self.pool.pick(self.pairs, ranked, most=max(self.many_shot, MAX_PAIRS))

    async def execute(self, context: Context, /, task: Labelled[str]) -> Labelled[str]:
        pairs = self._pick() if self.mode == "static" else await self._nearest(context, task)
        text = render_pairs(pairs)
        block = context.derive(text).with_label(self.pool.label)
        hash = hashlib.sha256(text.encode()).hexdigest()[:12]
        context.note("examples", version=self.pool.version, pairs=len(pairs), block=hash)
        query = ("<task>\n", task.map(escape_pair_marks), "\n</task>")
        if self.mode == "static":
            reply = await context.ask(self.host, *query, stable=[block])
        else:
            reply = await context.ask(self.host, block, "\n\n", *query)
        return reply.map(_strip_output)

    async def _nearest(self, context: Context, task: Labelled[str]) -> tuple[Pair, ...]:
        """The pairs of every kind that are most similar to the task, without near copies of it."""
        # Embedding is computation; in a thread it does not block the event loop.
        similarities = await asyncio.to_thread(
            _similarities, self.embedder or _local_embedder(), self.pool, context.read(task)
        )
        near = sorted(zip(similarities, self.pool.pairs, strict=True), key=lambda each: -each[0])
        fit = [pair for similarity, pair in near if similarity <= self.similarity_cap]
        context.note("pairs-found", fit=len(fit), too_like=len(near) - len(fit))
        return self._pick(fit)

    async def compare(self, runtime: Runtime, held: Sequence[Case[str, str]]) -> PoolComparison:
        """Measure the pool against no examples, with a separate run for each case.

        The check of a case gets a reply, and not whether it was made with pairs.
        """
        _check_apart(self.pool, held)
        # The same words without the pairs, however long they are.
        without = ZeroShot(self.host, max_instruction_tokens=max(200, approximate_tokens(self.host.setup)))

        async def answer_without(task: Labelled[str], seed: int) -> Labelled[str]:
            outcome = await without.run(runtime, map_labelled(task, _mark_task))
            return map_labelled(labelled_answer(outcome), _strip_output)

        compared = await compare(Subject("S1 without pairs", answer_without), self.as_subject(runtime), held)
        return PoolComparison(self.pool.version, self.pairs, self.mode, compared)

    def require_better(self, measured: PoolComparison) -> None:
        """Refuse a block that was not measured as it is now, or whose measurement does not speak for it.

        Example:
            >>> sorting.require_better(await sorting.compare(runtime, cases))
        """
        if (measured.version, measured.pairs, measured.mode) != (self.pool.version, self.pairs, self.mode):
            raise CatalogError(
                "pattern.not-better",
                f"another block was measured than that of the pool {self.pool.name!r}",
                expected=f"{self.pairs} pairs of the version {self.pool.version}, {self.mode}",
                fix="Measure it again with `compare`.",
            )
        if not measured.ships:
            raise CatalogError(
                "pattern.not-better",
                f"the pool {self.pool.name!r} does not beat a call without examples: {measured.compared.text}",
                fix="Use S1, show fewer pairs, or measure more cases.",
            )


def _mark_task(task: str) -> str:
    return f"<task>\n{escape_pair_marks(task)}\n</task>"


def _check_apart(pool: Pool, held: Sequence[Case[str, str]]) -> None:
    """Refuse cases that are pairs of the pool: they would measure copying."""
    ids, inputs = {pair.id for pair in pool.pairs}, {normal_text(pair.input) for pair in pool.pairs}
    if not held:
        raise bad_pool_error("there is no case to measure with")
    for case in held:
        if case.id in ids or normal_text(case.input) in inputs:
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
    """The similarity of each pair of the pool to the task."""
    return [float(each) for each in _pool_vectors(embedder, pool) @ embedder.vectors([task])[0]]


def _strip_output(reply: str) -> str:
    return reply.strip().removeprefix("<output>").removesuffix("</output>").strip()


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
