"""Turns of a conversation: what the person says now, given what was said before.

Rules resolve it, and no model is asked: an earlier request with another phrase, an earlier result, or a request of its
own. Where several are possible the person chooses among them, each shown in the person's own words.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from bicameral.agent._chat_history import ChatTurn
from bicameral.planning import (
    NewRequest,
    OpenQuestion,
    ResultReference,
    Rewritten,
    Unclear,
    is_stop,
    questions_error,
    resolve_follow_up,
)
from bicameral.runs import Asker
from bicameral.types import STR

_MAX_SHOWN = 100
_MAX_OFFERED = 4


@dataclass(frozen=True, slots=True)
class UnderstoodTurn:
    """What a turn means: a request, and the turn whose result it starts from, if it speaks of one."""

    request: str
    result_of: ChatTurn | None = None
    rewritten: bool = False

    def __str__(self) -> str:
        if self.result_of is not None:
            return f"{self.request} [the result of: {shorten(self.result_of.words)}]"
        return self.request


async def understand_turn(
    said: str, turns: Sequence[ChatTurn], today: dt.date, asker: Asker | None = None
) -> UnderstoodTurn:
    """What the person means, given the turns before.

    Args:
        said: What the person says now.
        turns: The turns before it, the oldest first.
        today: The day that `tomorrow` is relative to.
        asker: Chooses among several meanings; without one they are an error (`intent.questions`).

    Example:
        >>> (await understand_turn("and in October?", [ChatTurn("How much did I spend in September?")], today)).request
        'How much did I spend in October?'
    """
    match resolve_follow_up(said, [turn.request for turn in turns], today):
        case NewRequest(text=text):
            return UnderstoodTurn(text)
        case Rewritten(text=text):
            return UnderstoodTurn(text, rewritten=True)
        case Unclear(text=text, choices=choices):
            offered = [choice.text for choice in choices]
            place = await _choose(f"What does {shorten(text)!r} mean?", offered, asker)
            return UnderstoodTurn(offered[place], rewritten=True)
        case ResultReference(text=text, word=word, many=many):
            candidates = _candidates(turns, many=many)
            if not candidates:
                return UnderstoodTurn(await _explain(text, word, asker))
            shown = [f"{shorten(turn.words)} ({'a list' if turn.many else 'one value'})" for turn in candidates]
            place = 0
            if len(candidates) > 1:
                place = await _choose(f"Which result does {word!r} mean?", shown, asker)
            return UnderstoodTurn(text, candidates[place])


def _candidates(turns: Sequence[ChatTurn], *, many: bool) -> list[ChatTurn]:
    """The turns whose result may be meant: the newest with one, or several if it is not of the kind.

    The answer of a run that changed something only says that it did: `mail it to Bo` after `mail it to Kim` means what
    was mailed.
    """
    results = [turn for turn in reversed(turns) if turn.finished and not turn.changed]
    newest = results[:1]
    if not many or not newest or newest[0].many:
        return newest
    lists = [turn for turn in results[1:] if turn.many]
    # `how many of them are open?` leaves a number, and `them` means what it counted.
    return lists[:1] if newest[0].own and lists else (newest + lists)[:_MAX_OFFERED]


async def _explain(text: str, word: str, asker: Asker | None) -> str:
    """The request with what the person says that a word means, where nothing has a result.

    Without an answer it is refused: a planner would make something up.
    """
    question = f"What does {word!r} refer to? No earlier request has a result."
    asked = OpenQuestion(about="referent", question=question, words=word)
    reply = "" if asker is None else str(await asker.ask(asked.question, STR)).strip()
    if is_stop(reply):
        raise questions_error((asked,))
    return f"{text}\n({reply})"


async def _choose(question: str, offered: Sequence[str], asker: Asker | None) -> int:
    """The place of what the person chooses: by its number, or in its words."""
    listed = "".join(f"\n  {number}. {shorten(text)}" for number, text in enumerate(offered, 1))
    whole = OpenQuestion(about="meaning", question=f"{question}{listed}")
    reply = "" if asker is None else str(await asker.ask(whole.question, STR)).strip()
    chosen = reply.rstrip(".)")
    if chosen.isdecimal() and 1 <= int(chosen) <= len(offered):
        return int(chosen) - 1
    found = [place for place, text in enumerate(offered) if not is_stop(reply) and reply.casefold() in text.casefold()]
    if len(found) != 1:
        raise questions_error((whole,))
    return found[0]


def shorten(text: str) -> str:
    """A text on one line, cut to a readable length."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…"
