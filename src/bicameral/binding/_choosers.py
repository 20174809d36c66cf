"""Choosers: who decides which candidate words mean where the ladder of rules does not.

The quarantined model sees one untrusted list and answers with a number from it or none. It is asked twice, the second
time with the list turned round: an answer that depends on the order of the list is a guess. A person sees the same list
with cautions, and is asked last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bicameral.binding._binder import NONE_FITS, ShownCandidate, confirming_question
from bicameral.binding._candidates import Kind
from bicameral.boundary import Executor, Filled
from bicameral.errors import ModelError
from bicameral.runs import Asker
from bicameral.types import BOOL, LiteralType

NONE_OF_THEM = "none"


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

    async def choose(self, kind: Kind, words: str, shown: Sequence[ShownCandidate]) -> int | None:
        """The number that both readings of the list agree on, `NONE_FITS` if both say none, or None."""
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

    async def choose(self, kind: Kind, words: str, shown: Sequence[ShownCandidate]) -> int | None:
        """The number that the person answers with, `NONE_FITS` for none of them, or None for anything else.

        About the only candidate it is asked with a yes or a no.
        """
        if (confirming := confirming_question(kind, words, shown)) is not None:
            said = await self._asker.ask(confirming, BOOL)
            # Exact values: nothing else is a yes.
            return shown[0].number if said is True else NONE_FITS if said is False else None
        lines = "\n".join(each.line for each in shown)
        numbers = tuple(str(each.number) for each in shown)
        question = f"Which {kind} is meant by {words!r}?\n{lines}\nA number, or {NONE_OF_THEM}:"
        answer = await self._asker.ask(question, LiteralType((*numbers, NONE_OF_THEM)))
        return int(answer) if answer in numbers else NONE_FITS if answer == NONE_OF_THEM else None
