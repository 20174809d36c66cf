"""Choosers: who decides which candidate words mean where the ladder of rules does not.

The quarantined model sees one untrusted list and answers with a number from it or none. It is asked twice, the second
time with the list turned round: an answer that depends on the order of the list is a guess. A person sees the same list
with cautions, may reply with a name instead of a number, and is asked last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bicameral.binding._candidates import Kind
from bicameral.binding._questions import NONE_FITS, NONE_OF_THEM, Question, ShownCandidate
from bicameral.boundary import Executor, Filled
from bicameral.errors import ModelError
from bicameral.planning import is_stop
from bicameral.runs import Asker
from bicameral.types import BOOL, STR, LiteralType

_NONE_WORDS = frozenset(
    {NONE_OF_THEM, "none of them", "keine", "keiner", "keines", "aucun", "aucune", "ninguno", "ninguna"}
)


class ModelChooser:
    """The quarantined model as a chooser.

    Args:
        executor: Performs extractions with the quarantined model.

    Example:
        >>> Binder(source, choosers=[ModelChooser(Extractor(quarantined)), PersonChooser(asker)])
    """

    by: Literal["model"] = "model"

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def choose(self, question: Question) -> int | None:
        """The number that both readings of the list agree on, `NONE_FITS` if both say none, or None."""
        kind, words, shown = question.kind, question.words, question.shown
        first = await self._choose_once(kind, words, shown)
        if first is None:
            return None
        again = await self._choose_once(kind, words, tuple(reversed(shown)))
        return first if again == first else None

    async def _choose_once(self, kind: Kind, words: str, shown: Sequence[ShownCandidate]) -> int | None:
        numbers = {str(each.number): each for each in shown}
        listed = {
            number: f"{each.name} ({each.detail})" if each.detail else each.name for number, each in numbers.items()
        }
        question = f"the number of the one {kind} that a person means by {words!r}, or {NONE_OF_THEM}"
        try:
            outcome = await self._executor.extract(listed, question, LiteralType((*numbers, NONE_OF_THEM)))
        except ModelError:
            # A model that cannot be asked chooses nothing; the question stays.
            return None
        if isinstance(outcome, Filled) and outcome.value in numbers:
            return numbers[outcome.value].number
        return NONE_FITS if isinstance(outcome, Filled) and outcome.value == NONE_OF_THEM else None


class PersonChooser:
    """The person who made the request as a chooser.

    Args:
        asker: Puts the question to the person.
    """

    by: Literal["person"] = "person"

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    async def choose(self, question: Question) -> int | str | None:
        """The number or the name that the person answers with, `NONE_FITS` for none of them, or None for anything else.

        Where only one candidate may be meant it is asked with a yes or a no.
        """
        if (confirming := question.confirming) is not None:
            said = await self._asker.ask(confirming, BOOL)
            # Exact values: nothing else is a yes.
            return question.shown[0].number if said is True else NONE_FITS if said is False else None
        answer: object = await self._asker.ask(question.asked_text, STR)
        if not isinstance(answer, str):
            return None
        text = answer.strip()
        if text in [str(each.number) for each in question.shown]:
            return int(text)
        return NONE_FITS if is_stop(text) or text.casefold() in _NONE_WORDS else text
