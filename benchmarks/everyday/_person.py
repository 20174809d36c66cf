"""The person who asked: replies from a fixed sheet, and says yes only to what the request asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bicameral.errors import RunError
from bicameral.runs import Answers, ApprovalQuestion
from bicameral.types import BoolType, StrType, Type

from ._facts import fold, has_words
from ._judge import Expected, may_approve

NOTHING_MORE = {
    "en": "I cannot say more than that.",
    "de": "Mehr kann ich dazu nicht sagen.",
    "fr": "Je ne peux pas en dire plus.",
    "es": "No puedo decir más.",
}
"""What the person says where the sheet has nothing: it adds no fact to the request."""


class Person:
    """Answers questions and approvals of one run, and counts them.

    Args:
        expected: What the person asked for, and the sheet of replies.
        language: The language of the person.

    Example:
        >>> person = Person(Expected(sheet=(("which sister", "Ada"),)), "en")
        >>> await person.ask("Which sister do you mean?", STR)
        'Ada'
    """

    def __init__(self, expected: Expected, language: str) -> None:
        self._expected = expected
        self._language = language
        self.questions: list[str] = []
        self.approvals = 0
        self.refused = 0

    @property
    def asked(self) -> int:
        return len(self.questions)

    async def ask(self, question: str, type: Type) -> Any:
        """The reply of the sheet. A yes-or-no question that nobody foresaw gets a no: a yes could start something."""
        self.questions.append(question)
        reply = self._reply(question)
        match type:
            case StrType():
                return reply or NOTHING_MORE[self._language]
            case BoolType():
                return reply is not None and fold(reply) in ("yes", "ja", "oui", "si")
            case _:
                raise RunError("run.needs-answer", f"there was no usable reply to: {question}", expected=str(type))

    def _reply(self, question: str) -> str | None:
        folded = fold(question)
        fitting = (reply for words, reply in self._expected.sheet if _has_all(folded, words.split()))
        return next(fitting, None)

    async def approve(self, question: ApprovalQuestion) -> Answers:
        """Approve the calls that are the effect asked for, each once, and refuse all others."""
        wanted = [each for each in question.calls if each.times == 1 and self._wants(each.tool, dict(each.arguments))]
        self.approvals += len(wanted)
        self.refused += len(question.calls) - len(wanted)
        return Answers.yes(wanted)

    def _wants(self, tool: str, arguments: dict[str, Any]) -> bool:
        return may_approve(self._expected, tool.rpartition(".")[2], arguments)


def _has_all(folded: str, words: Sequence[str]) -> bool:
    return all(has_words(folded, fold(word)) for word in words)
