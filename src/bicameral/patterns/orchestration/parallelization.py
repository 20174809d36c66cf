"""O4, parallelization: independent parts run in parallel, and code combines their results.

Use it where code can divide the work: `sections` are different parts of one request, `votes` are several tries at the
same question, of which the most frequent answer counts. Each part has its own context and sees the request and nothing
of the others. A part that fails does not end the rest; the combining function or model gets its error code. So it is
with a part that is cut off because its time is over or enough others have a result.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypedDict, cast

from bicameral.errors import BicameralError, CatalogError, RunError
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Outcome,
    Pattern,
    PatternExample,
    Responder,
    Role,
    ask_responder,
    format_text,
    join_labelled,
)
from bicameral.patterns.strategies import Runtime
from bicameral.types import BOOL, LiteralType, Type, value_to_json

VOTER = Role("Worker", "Answer the question by filling in the form.", max_tokens=64, temperature=0.7)
JUDGE = Role(
    "Judge",
    "Choose the best of the candidates by its number, or none if none will do. Change nothing.",
    tier="small",
    job="reflecting",
    max_tokens=32,
)
NO_CANDIDATE = "none"


class PartResult(TypedDict):
    """The result of one part, or the code of its error."""

    part: str
    gave: Any
    failed: str | None


class VoteTally(TypedDict):
    """The result of a vote. If several answers have the most votes there is no winner, and they are in `tied`."""

    winner: Any
    votes: int
    of: int
    tied: list[Any]
    failed: int


def join_parts(slots: Sequence[PartResult]) -> str:
    """The results of all parts in order, each after its name."""
    return "\n".join(f"{each['part']}: {_render_part(each)}" for each in slots)


CombineParts = Callable[[Sequence[PartResult]], Any]
PartsRequest = Labelled[str] | Mapping[str, Labelled[str]]


@dataclass(frozen=True)
class Parallelization(Pattern[[Labelled[str]], Any]):
    """Made with `sections` or with `votes`. At most `width` parts run at once.

    Args:
        quorum: How many results are enough; the parts that are left are cut off. With 0 all parts are waited for.
        seconds: The time of all parts together, after which those that are left are cut off; 0 is no limit.

    Example:
        >>> review = Parallelization.sections({"security": SECURITY, "style": STYLE})
        >>> print((await review.run(runtime, program_text(diff))).value)
        security: No findings.
        style: (this part failed: models.timeout)

        >>> vote = Parallelization.votes(type_from_annotation(bool), n=5)
        >>> (await vote.run(runtime, program_text("Is 51 a prime number?"))).value["winner"]
        False
    """

    id: ClassVar[str] = "O4"
    own_roles: ClassVar[tuple[str, ...]] = ("variants",)
    width: int = 8
    mode: Literal["sections", "votes"] = "sections"
    n: int = 3
    parts: Mapping[str, Responder] = field(default_factory=dict[str, Responder])
    combine: CombineParts | Role = join_parts
    wanted: Type = BOOL
    worker: Role = VOTER
    judge: Role | None = None
    quorum: int = 0
    seconds: float = 0
    variants: tuple[Role, ...] = ()
    """Further workers of a vote: each has its own prompt, and may have a model of its own."""

    @classmethod
    def sections(
        cls,
        parts: Mapping[str, Responder],
        *,
        combine: CombineParts | Role = join_parts,
        width: int = 8,
        quorum: int = 0,
        seconds: float = 0,
    ) -> Parallelization:
        """Different parts, combined by a function of all results or by a role.

        A request is one text for all parts, or a mapping with a text for each part by its name.
        """
        return cls(width, "sections", parts=parts, combine=combine, quorum=quorum, seconds=seconds)

    @classmethod
    def votes(
        cls,
        wanted: Type,
        *,
        n: int = 3,
        worker: Role = VOTER,
        judge: Role | None = None,
        width: int = 8,
        quorum: int = 0,
        seconds: float = 0,
        variants: Sequence[Role] = (),
    ) -> Parallelization:
        """The same question `n` times. Equal answers are counted; with a judge, the judge chooses among them.

        The worker and its `variants` take turns: votes of one model with one prompt share its errors.
        """
        return cls(
            width,
            "votes",
            n,
            wanted=wanted,
            worker=worker,
            judge=judge,
            quorum=quorum,
            seconds=seconds,
            variants=tuple(variants),
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        votes = Counter(self._voter(number) for number in range(self.n))
        if self.mode == "votes" and any(count > 1 and voter.temperature <= 0 for voter, count in votes.items()):
            raise CatalogError(
                "pattern.bad-knob",
                f"{self.id}: {self.n} votes at temperature 0 are one vote",
                expected="a worker with a temperature above 0, or `variants` so that each is asked once",
            )
        count = self.n if self.mode == "votes" else len(self.parts)
        if count and self.quorum > count:
            raise CatalogError(
                "pattern.bad-knob", f"{self.id}: the quorum is {self.quorum}", expected=f"at most {count}, or 0"
            )
        if self.mode == "sections" and not self.parts:
            raise CatalogError("pattern.bad-knob", f"{self.id}: there are no parts", expected="one part or more")

    @property
    def _voters(self) -> tuple[Role, ...]:
        return (self.worker, *self.variants)

    def _voter(self, number: int) -> Role:
        return self._voters[number % len(self._voters)]

    @property
    def known_sizes(self) -> Mapping[str, float | str]:
        return super().known_sizes if self.mode == "sections" else {**super().known_sizes, "items": self.n}

    async def run(self, runtime: Runtime, /, request: PartsRequest) -> Outcome[Any]:
        """Do the work as a run of its own, on one text, or on a text for each part by its name."""
        # Type checkers compare the arguments of patterns exactly: with the wider type it would fit into no chain.
        return await super().run(runtime, cast("Labelled[str]", request))

    async def execute(self, context: Context, /, request: PartsRequest) -> Labelled[Any]:
        if self.mode == "votes":
            if not isinstance(request, Labelled):
                raise RunError("pattern.wrong-parts", "a vote is on one question", expected="one labelled text")
            return await self._run_vote(context, request)
        return await self._run_sections(context, self._texts_by_part(request))

    # Sections -------------------------------------------------------------------------------------------------------

    def _texts_by_part(self, request: PartsRequest) -> Mapping[str, Labelled[str]]:
        if isinstance(request, Labelled):
            return dict.fromkeys(self.parts, request)
        if request.keys() != self.parts.keys():
            wrong = ", ".join(sorted(request.keys() ^ self.parts.keys()))
            raise RunError("pattern.wrong-parts", f"the request is not cut into the parts that there are: {wrong}")
        return request

    async def _run_sections(self, context: Context, texts: Mapping[str, Labelled[str]]) -> Labelled[Any]:
        works = [(name, partial(ask_responder, responder=each, text=texts[name])) for name, each in self.parts.items()]
        results = await self._run_parts(context, works)
        slots = [_part_result(context, name, each) for name, each in zip(self.parts, results, strict=True)]
        if not isinstance(self.combine, Role):
            return join_labelled(slots).map(self.combine)
        lines = [
            format_text("{part}: {told}\n", part=context.derive(name), told=slot.map(_render_part))
            for name, slot in zip(self.parts, slots, strict=True)
        ]
        return await context.ask(self.combine, *lines)

    async def _run_parts(self, context: Context, works: Sequence[Any]) -> list[Labelled[Any] | BicameralError]:
        results = await context.gather(
            works, width=self.width, quorum=self.quorum or None, timeout=self.seconds or None
        )
        failed = [
            (name, each) for (name, _), each in zip(works, results, strict=True) if isinstance(each, BicameralError)
        ]
        for name, error in failed:
            context.note("part-failed", part=name, code=error.code)
        context.note("parts", parts=len(works), failed=len(failed))
        if len(failed) == len(works):
            raise RunError("pattern.all-failed", f"not one of {len(works)} parts came to anything")
        return results

    # Votes ----------------------------------------------------------------------------------------------------------

    async def _run_vote(self, context: Context, question: Labelled[str]) -> Labelled[VoteTally]:
        def vote(part: Context, sample: int) -> Any:
            return part.fill(self._voter(sample), question, wanted=self.wanted, retries=0, sample=sample)

        works = [(f"vote {each + 1}", partial(vote, sample=each)) for each in range(self.n)]
        votes = join_labelled(each for each in await self._run_parts(context, works) if isinstance(each, Labelled))
        return await context.run_part("count", lambda part: self._count_votes(part, question, votes))

    async def _count_votes(
        self, part: Context, question: Labelled[str], votes: Labelled[list[Any]]
    ) -> Labelled[VoteTally]:
        cast_votes = part.read(votes)
        answers = {_answer_key(each): each for each in cast_votes}
        counts = Counter(_answer_key(each) for each in cast_votes)
        most = [key for key in counts if counts[key] == max(counts.values())]
        chosen = most[0] if len(most) == 1 else None
        if self.judge is not None:
            chosen = await _ask_judge(part, self.judge, question, answers)
        part.note("counted", votes=max(counts.values()), of=len(cast_votes), answers=len(answers), tied=len(most) > 1)
        tally = VoteTally(
            winner=None if chosen is None else answers[chosen],
            votes=0 if chosen is None else counts[chosen],
            of=len(cast_votes),
            tied=[answers[key] for key in most] if len(most) > 1 else [],
            failed=self.n - len(cast_votes),
        )
        return part.derive(tally)


async def _ask_judge(part: Context, judge: Role, question: Labelled[str], answers: Mapping[str, Any]) -> str | None:
    """The key of the answer that the judge chooses by its number; the form leaves no way to write another answer."""
    keys = list(answers)
    lines = [
        format_text("{n}. {answer}\n", n=part.derive(n), answer=part.derive(answers[key]))
        for n, key in enumerate(keys, 1)
    ]
    numbers = LiteralType((*(str(n) for n in range(1, len(keys) + 1)), NO_CANDIDATE))
    chosen = await part.fill(judge, "Question: ", question, "\n\nCandidates:\n", *lines, wanted=numbers, retries=0)
    number = part.read(chosen)
    return None if number == NO_CANDIDATE else keys[int(number) - 1]


def _part_result(context: Context, name: str, result: Labelled[Any] | BicameralError) -> Labelled[PartResult]:
    if isinstance(result, BicameralError):
        return context.derive(PartResult(part=name, gave=None, failed=result.code))
    return result.map(lambda value: PartResult(part=name, gave=value, failed=None))


def _render_part(slot: PartResult) -> Any:
    return slot["gave"] if slot["failed"] is None else f"(this part failed: {slot['failed']})"


def _answer_key(answer: Any) -> str:
    return json.dumps(value_to_json(answer), sort_keys=True)


# An example ---------------------------------------------------------------------------------------------------------

_MAIL: Final = "Hello, the heating in room 214 has been broken since Monday. Please send somebody. Regards, Ada Young"
_PARTS = {
    "language": Role("Worker", "In which language is this mail written? Reply with one word.", max_tokens=12),
    "since": Role("Worker", "On which day did it begin? Reply with the day alone.", max_tokens=12),
    "from": Role("Worker", "Who wrote this mail? Reply with the name alone.", max_tokens=12),
}


def _is_correct(outcome: Answered[str]) -> bool:
    found = dict(line.split(": ", 1) for line in outcome.value.splitlines())
    wanted = {"language": "english", "since": "monday", "from": "ada young"}
    return all(word in found[part].lower() for part, word in wanted.items())


EXAMPLE = PatternExample(
    "Three questions about one mail are answered side by side.",
    lambda folder: Parallelization.sections(_PARTS),
    _MAIL,
    _is_correct,
    lambda folder: {"setup": _PARTS["since"].setup, "brief": _MAIL, "items": len(_PARTS), "output": 5},
)
