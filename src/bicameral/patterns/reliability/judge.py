"""V15, judge: a model of its own says which of two outputs is better, or whether one will do, by a written rubric.

Use it where nothing on file says what is right and people cannot look at everything. Two outputs are judged in both
orders, and if these disagree it is a tie. Nobody judges what he wrote himself, and no judge is used before it has
agreed with people well enough. What strangers wrote is read in quarantine, and the verdict is as much theirs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypedDict

from bicameral.errors import BicameralError
from bicameral.types import Field, RecordType

from ..kernel import Answered, Example, Labelled, Stage, changed, said
from ._calibrated import JUDGE, CalibratedJudge
from ._judging import Calibration, Case, Dimension, Rubric, Ruling, Winner, inert

__all__ = [
    "Calibration",
    "Case",
    "Compared",
    "Dimension",
    "Judge",
    "Rubric",
    "Ruling",
    "Scored",
    "SingleJudge",
    "Winner",
]


class Compared(TypedDict):
    """Which of two outputs is better; `orders` is what each order came to, by itself."""

    winner: Winner
    orders: list[Winner]
    leads: list[float]
    rubric: str
    models: list[str]


class Scored(TypedDict):
    """Whether an output will do, and why."""

    passed: bool
    share: float
    met: dict[str, bool]
    reason: str
    rubric: str
    models: list[str]


@dataclass(frozen=True)
class Judge(CalibratedJudge[[Labelled[str], Labelled[str], Labelled[str]], Compared]):
    """Which of two outputs is better: two calls, one for each order.

    Example:
        >>> judge = Judge(rubric, author=WRITER, calibration=measured)
        >>> outcome = await judge.run(desk, said("Answer the customer."), one, another)
        >>> outcome.value["winner"]
        'first'
    """

    async def on(
        self, stage: Stage, /, task: Labelled[str], first: Labelled[str], second: Labelled[str]
    ) -> Labelled[Compared]:
        self.check(stage)
        outputs = [(first, second), (second, first)] if self.swaps else [(first, second)]
        form = RecordType((Field("a", self.rubric.form), Field("b", self.rubric.form)), "Both")

        def asking(a: Labelled[str], b: Labelled[str]) -> Callable[[Stage], Awaitable[Labelled[dict[str, Any]]]]:
            shown = (_marked("task", task), _marked("answer_a", a), _marked("answer_b", b))
            return lambda part: self.judged(part, *shown, wanted=form)

        works = [(f"order {number}", asking(*pair)) for number, pair in enumerate(outputs, 1)]
        leads: list[float] = []
        models: list[str] = []
        for number, judged in enumerate(await stage.side_by_side(works, width=2)):
            if isinstance(judged, BicameralError):
                raise judged
            value = stage.read(judged)
            lead = self.rubric.share(value["a"]) - self.rubric.share(value["b"])
            leads.append(-lead if number else lead)
            models.append(value["model"])
        orders: list[Winner] = [self._winner(lead) for lead in leads]
        winner: Winner = orders[0] if len(set(orders)) == 1 else "tie"
        stage.note("compared", winner=winner, agreed=len(set(orders)) == 1, orders=len(orders))
        return stage.give(
            Compared(winner=winner, orders=orders, leads=leads, rubric=self.rubric.hash, models=models),
            task,
            first,
            second,
        )

    def _winner(self, lead: float) -> Winner:
        return "tie" if abs(lead) <= self.margin else "first" if lead > 0 else "second"

    def ruling(self, verdict: Compared) -> Ruling:
        return verdict["winner"]


@dataclass(frozen=True)
class SingleJudge(CalibratedJudge[[Labelled[str], Labelled[str]], Scored]):
    """Whether one output will do: one call.

    Example:
        >>> outcome = await SingleJudge(rubric, author=WRITER, calibration=measured).run(desk, task, answer)
        >>> outcome.value["passed"]
        True
    """

    async def on(self, stage: Stage, /, task: Labelled[str], output: Labelled[str]) -> Labelled[Scored]:
        self.check(stage)
        judged = await self.judged(stage, _marked("task", task), _marked("answer", output), wanted=self.rubric.form)
        return changed(judged, self._scored)

    def _scored(self, judged: dict[str, Any]) -> Scored:
        rubric = self.rubric
        return Scored(
            passed=rubric.passes(judged),
            share=rubric.share(judged),
            met={each.name: judged[each.name] == "yes" for each in rubric.dimensions},
            reason=judged["reason"],
            rubric=rubric.hash,
            models=[judged["model"]],
        )

    def ruling(self, verdict: Scored) -> Ruling:
        return "pass" if verdict["passed"] else "fail"


def _marked(mark: str, value: Labelled[str]) -> Labelled[str]:
    return value.map(lambda words: f"<{mark}>\n{inert(words)}\n</{mark}>\n")


# An example ---------------------------------------------------------------------------------------------------------

_RUBRIC = Rubric(
    "replies",
    (
        Dimension("kind", "it is friendly to the customer", blocking=True),
        Dimension("helpful", "it says what happens next"),
    ),
)
_TASK: Final = "Answer a customer whose parcel is late."
_ONE: Final = "I am sorry for the wait. Your parcel leaves on Monday."
_OTHER: Final = "Not our problem. Ask the post."


def _good(outcome: Answered[Compared]) -> bool:
    # A small judge may call it a tie in one of the orders, and never prefers the rude one.
    orders = outcome.value["orders"]
    return len(orders) == 2 and "first" in orders and "second" not in orders


def _sizes(folder: Path) -> dict[str, int | float | str]:
    setup = f"{JUDGE.setup}\n\n{_RUBRIC.text}"
    answer = f"<answer_a>\n{_ONE}\n</answer_a>"
    return {"setup": setup, "input": f"<task>\n{_TASK}\n</task>", "output": answer, "item_output": 80}


EXAMPLE = Example(
    "Two replies to a customer are compared, in both orders.",
    lambda folder: Judge(_RUBRIC, author="people", uncalibrated="an example; there are no labels"),
    lambda folder: (said(_TASK), said(_ONE), said(_OTHER)),
    _good,
    _sizes,
    model="1.5b",
)
