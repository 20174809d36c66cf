"""Put calls to the person at the terminal: exactly as they would be made, and what in them is a stranger's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from bicameral.runs import Answers

from ._asking import read_line
from ._output import Output
from ._pending import calls_text

if TYPE_CHECKING:
    from bicameral.runs import Grant, PendingCall, Question
    from bicameral.tools import Registry

Quiet = Callable[[], AbstractContextManager[object]]


class TerminalApprover:
    """Asks on standard error for one yes to all calls, or for one to each. Whatever is not a yes is a no."""

    def __init__(self, out: Output, registry: Registry, quiet: Quiet = nullcontext) -> None:
        self._out, self._registry, self._quiet = out, registry, quiet

    async def approve(self, question: Question) -> Answers:
        with self._quiet():
            self._show(question.calls, before=question.before)
            while True:
                match await self._reply(_choices(question.calls)):
                    case "y" | "yes":
                        return Answers.yes(question.calls)
                    case "r" | "run" if _offers(question.calls):
                        return Answers.yes(question.calls, for_run=_offers(question.calls))
                    case "v" | "view":
                        self._show(question.calls, whole=True, before=question.before)
                    case "e" | "each" if len(question.calls) > 1:
                        return await self._one_by_one(question)
                    case _:
                        return Answers.no()

    async def _one_by_one(self, question: Question) -> Answers:
        approved: list[PendingCall] = []
        granted: list[Grant] = []
        calls = question.calls
        for number, call in enumerate(calls, 1):
            self._show((call,), first=number, before=question.before)
            also = ", r: also for the rest of this run" if call.offer else ""
            prompt = f"Allow call {number} of {len(calls)}?{_times(call)} [y/N{also}, v: view all of it]"
            while (reply := await self._reply(prompt)) in ("v", "view"):
                self._show((call,), whole=True, first=number, before=question.before)
            if reply in ("y", "yes") or (reply in ("r", "run") and call.offer):
                approved.append(call)
            if reply in ("r", "run"):
                granted += _offers((call,))
        return Answers.yes(approved, for_run=granted)

    def _show(
        self, calls: tuple[PendingCall, ...], *, whole: bool = False, first: int = 1, before: bool = False
    ) -> None:
        text = calls_text(calls, self._registry, width=_width(), whole=whole, first=first, before=before)
        self._out.say(text)

    async def _reply(self, prompt: str) -> str:
        _forget_what_was_typed()
        return (await read_line(self._out, f"{prompt} ") or "").lower()


def _choices(calls: tuple[PendingCall, ...]) -> str:
    also = ", r: also for the rest of this run" if _offers(calls) else ""
    if len(calls) == 1:
        return f"Allow this call{_times(calls[0])}? [y/N{also}, v: view all of it]"
    times = f" {number} times in all" if (number := sum(call.times for call in calls)) > len(calls) else ""
    return f"Allow these {len(calls)} calls?{times} [y/N, e: each on its own{also}, v: view all of it]"


def _times(call: PendingCall) -> str:
    return f" {call.times} times" if call.times > 1 else ""


def _offers(calls: tuple[PendingCall, ...]) -> list[Grant]:
    """What may be granted for the rest of the run with these calls."""
    return [call.offer for call in calls if call.offer is not None]


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns


def _forget_what_was_typed() -> None:
    """A yes must be to what is on the screen: what was typed before that does not count."""
    import termios
    from contextlib import suppress

    with suppress(termios.error, ValueError, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
