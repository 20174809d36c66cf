"""O4, parallelization: parts that need nothing of each other run side by side, and code puts together what they give.

Use it where code can cut the work: `sections` are different parts of one request, `votes` are several tries at the same
question, of which the most frequent answer counts. Each part has a context of its own and sees the request and nothing
of the others. One that fails does not end the rest, and whatever puts the results together is told of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypedDict

from bicameral.errors import BicameralError, CatalogError, RunError
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    Role,
    format_text,
    join_labelled,
)
from bicameral.types import BOOL, LiteralType, Type, value_to_json

Responder = Role | Pattern[[Labelled[str]], Any]


async def ask_responder(stage: Context, doer: Responder, words: Labelled[str]) -> Labelled[Any]:
    """What comes of these words, and of nothing else."""
    if isinstance(doer, Role):
        return await stage.ask(doer, words)
    return await doer.execute(stage, words)


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
    """What became of one part: what it gave, or the code of what failed."""

    part: str
    gave: Any
    failed: str | None


class VoteTally(TypedDict):
    """What a vote came to. Without a majority there is no winner, and `tied` are those that had the most."""

    winner: Any
    votes: int
    of: int
    tied: list[Any]
    failed: int


def join_parts(slots: Sequence[PartResult]) -> str:
    """The parts one after another, each under its name."""
    return "\n".join(f"{each['part']}: {_render_part(each)}" for each in slots)


CombineParts = Callable[[Sequence[PartResult]], Any]
PartsRequest = Labelled[str] | Mapping[str, Labelled[str]]


@dataclass(frozen=True)
class Parallelization(Pattern[[PartsRequest], Any]):
    """Made with `sections` or with `votes`. No more than `width` parts are at work at once.

    Example:
        >>> review = Parallelization.sections({"security": SECURITY, "style": STYLE})
        >>> print((await review.run(desk, program_text(diff))).value)
        security: No findings.
        style: (this part failed: models.timeout)

        >>> vote = Parallelization.votes(from_annotation(bool), n=5)
        >>> (await vote.run(desk, program_text("Is 51 a prime number?"))).value["winner"]
        False
    """

    id: ClassVar[str] = "O4"
    width: int = 8
    mode: Literal["sections", "votes"] = "sections"
    n: int = 3
    parts: Mapping[str, Responder] = field(default_factory=dict[str, Responder])
    combine: CombineParts | Role = join_parts
    wanted: Type = BOOL
    worker: Role = VOTER
    judge: Role | None = None

    @classmethod
    def sections(
        cls, parts: Mapping[str, Responder], *, combine: CombineParts | Role = join_parts, width: int = 8
    ) -> Parallelization:
        """Different parts, put together by a function of what all gave, or by a model that is named for it.

        A request is for all parts, or it is cut already: one text for each by its name.
        """
        return cls(width, "sections", parts=parts, combine=combine)

    @classmethod
    def votes(
        cls, wanted: Type, *, n: int = 3, worker: Role = VOTER, judge: Role | None = None, width: int = 8
    ) -> Parallelization:
        """The same question `n` times. Equal answers are counted; with a judge it is he who chooses among them."""
        return cls(width, "votes", n, wanted=wanted, worker=worker, judge=judge)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode == "votes" and self.worker.temperature <= 0:
            raise CatalogError(
                "pattern.bad-knob",
                f"{self.id}: {self.n} votes at temperature 0 are one vote",
                expected="a worker with a temperature above 0",
            )
        if self.mode == "sections" and not self.parts:
            raise CatalogError("pattern.bad-knob", f"{self.id}: there are no parts", expected="one part or more")

    async def execute(self, stage: Context, /, request: PartsRequest) -> Labelled[Any]:
        if self.mode == "votes":
            return await self._run_vote(stage, _single_question(request))
        return await self._run_sections(stage, self._cut(request))

    # Sections -------------------------------------------------------------------------------------------------------

    def _cut(self, request: PartsRequest) -> Mapping[str, Labelled[str]]:
        if isinstance(request, Labelled):
            return dict.fromkeys(self.parts, request)
        if request.keys() != self.parts.keys():
            wrong = ", ".join(sorted(request.keys() ^ self.parts.keys()))
            raise RunError("pattern.wrong-parts", f"the request is not cut into the parts that there are: {wrong}")
        return request

    async def _run_sections(self, stage: Context, pieces: Mapping[str, Labelled[str]]) -> Labelled[Any]:
        works = [(name, partial(ask_responder, doer=doer, words=pieces[name])) for name, doer in self.parts.items()]
        gave = await self._run_parts(stage, works)
        slots = [_part_result(stage, name, each) for name, each in zip(self.parts, gave, strict=True)]
        if not isinstance(self.combine, Role):
            return join_labelled(slots).map(self.combine)
        lines = [
            format_text("{part}: {told}\n", part=stage.derive(name), told=slot.map(_render_part))
            for name, slot in zip(self.parts, slots, strict=True)
        ]
        return await stage.ask(self.combine, *lines)

    async def _run_parts(self, stage: Context, works: Sequence[Any]) -> list[Labelled[Any] | BicameralError]:
        gave = await stage.run_parallel(works, width=self.width)
        failed = [name for (name, _), each in zip(works, gave, strict=True) if isinstance(each, BicameralError)]
        for (name, _), each in zip(works, gave, strict=True):
            if isinstance(each, BicameralError):
                stage.note("part-failed", part=name, code=each.code)
        stage.note("parts", parts=len(works), failed=len(failed))
        if len(failed) == len(works):
            raise RunError("pattern.all-failed", f"not one of {len(works)} parts came to anything")
        return gave

    # Votes ----------------------------------------------------------------------------------------------------------

    async def _run_vote(self, stage: Context, question: Labelled[str]) -> Labelled[VoteTally]:
        def vote(part: Context, sample: int) -> Any:
            return part.fill(self.worker, question, wanted=self.wanted, retries=0, sample=sample)

        gave = await self._run_parts(
            stage, [(f"vote {each + 1}", partial(vote, sample=each)) for each in range(self.n)]
        )
        votes = join_labelled(each for each in gave if isinstance(each, Labelled))
        return await stage.run_part("count", lambda part: self._count_votes(part, question, votes))

    async def _count_votes(
        self, part: Context, question: Labelled[str], votes: Labelled[list[Any]]
    ) -> Labelled[VoteTally]:
        found = part.read(votes)
        answers = {_answer_key(each): each for each in found}
        counts = {key: sum(_answer_key(each) == key for each in found) for key in answers}
        most = [key for key in counts if counts[key] == max(counts.values())]
        chosen = most[0] if len(most) == 1 else None
        if self.judge is not None:
            chosen = await _ask_judge(part, self.judge, question, answers)
        part.note("counted", votes=max(counts.values()), of=len(found), answers=len(answers), tied=len(most) > 1)
        tally = VoteTally(
            winner=None if chosen is None else answers[chosen],
            votes=0 if chosen is None else counts[chosen],
            of=len(found),
            tied=[answers[key] for key in most] if len(most) > 1 else [],
            failed=self.n - len(found),
        )
        return part.derive(tally)


async def _ask_judge(part: Context, judge: Role, question: Labelled[str], answers: Mapping[str, Any]) -> str | None:
    """The key of the answer that the judge points to; he has no way to write one himself."""
    keys = list(answers)
    lines = [
        format_text("{n}. {answer}\n", n=part.derive(n), answer=part.derive(answers[key]))
        for n, key in enumerate(keys, 1)
    ]
    numbers = LiteralType((*(str(n) for n in range(1, len(keys) + 1)), NO_CANDIDATE))
    chosen = await part.fill(judge, "Question: ", question, "\n\nCandidates:\n", *lines, wanted=numbers, retries=0)
    number = part.read(chosen)
    return None if number == NO_CANDIDATE else keys[int(number) - 1]


def _part_result(stage: Context, name: str, gave: Labelled[Any] | BicameralError) -> Labelled[PartResult]:
    if isinstance(gave, BicameralError):
        return stage.derive(PartResult(part=name, gave=None, failed=gave.code))
    return gave.map(lambda value: PartResult(part=name, gave=value, failed=None))


def _render_part(slot: PartResult) -> Any:
    return slot["gave"] if slot["failed"] is None else f"(this part failed: {slot['failed']})"


def _single_question(request: PartsRequest) -> Labelled[str]:
    if isinstance(request, Labelled):
        return request
    raise RunError("pattern.wrong-parts", "a vote is on one question", expected="one labelled text")


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
