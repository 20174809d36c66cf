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
    from bicameral.runs import PendingCall, Question
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
                    case "v" | "view":
                        self._show(question.calls, whole=True, before=question.before)
                    case "e" | "each" if len(question.calls) > 1:
                        return await self._one_by_one(question)
                    case _:
                        return Answers.no()

    async def _one_by_one(self, question: Question) -> Answers:
        approved: list[PendingCall] = []
        calls = question.calls
        for number, call in enumerate(calls, 1):
            self._show((call,), first=number, before=question.before)
            if await self._reply(f"Allow call {number} of {len(calls)}? [y/N]") in ("y", "yes"):
                approved.append(call)
        return Answers.yes(approved)

    def _show(
        self, calls: tuple[PendingCall, ...], *, whole: bool = False, first: int = 1, before: bool = False
    ) -> None:
        text = calls_text(calls, self._registry, width=_width(), whole=whole, first=first, before=before)
        self._out.say(text)

    async def _reply(self, prompt: str) -> str:
        _forget_what_was_typed()
        return (await read_line(self._out, f"{prompt} ") or "").lower()


def _choices(calls: tuple[PendingCall, ...]) -> str:
    if len(calls) == 1:
        return "Allow this call? [y/N, v: view all of it]"
    return f"Allow these {len(calls)} calls? [y/N, e: each on its own, v: view all of it]"


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns


def _forget_what_was_typed() -> None:
    """A yes must be to what is on the screen: what was typed before that does not count."""
    import termios
    from contextlib import suppress

    with suppress(termios.error, ValueError, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
