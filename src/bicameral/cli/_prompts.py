"""Questions to the person at the terminal: typed replies, confirmations, and approvals of exact calls.

Waiting for a reply can be interrupted with Ctrl-C. Every reply that is not a yes is a no, and a yes counts only if it
was typed after the question was on the screen.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from bicameral import types as t
from bicameral.cli._output import Output
from bicameral.display import question_text, terminal_width, wrap_text
from bicameral.errors import RunError
from bicameral.runs import (
    REPLACE_RULE,
    Answers,
    CallPreview,
    calls_text,
    parse_typed_reply,
    read_preview,
    typed_reply_hint,
)

if TYPE_CHECKING:
    from bicameral.runs import ApprovalQuestion, Grant, PendingCall
    from bicameral.tools import Registry


_MAX_ATTEMPTS = 3
_DETAILS = ("d", "details", "?", "v", "view")

QuietContext = Callable[[], AbstractContextManager[object]]


class TerminalAsker:
    """Asks on standard error, reads from standard input, and asks again if the reply does not have the type."""

    def __init__(self, out: Output, quiet: QuietContext = nullcontext) -> None:
        self._out = out
        self._quiet = quiet

    async def ask(self, question: str, type: t.Type) -> Any:
        with self._quiet():
            hint = "" if isinstance(type, t.StrType) else f" ({typed_reply_hint(type)})"
            asked = question_text(question, terminal_width())
            asked += "\n " if "\n" in asked else ""
            for _ in range(_MAX_ATTEMPTS):
                reply = await read_line(f"{asked}{hint} ")
                if reply is None:
                    break
                try:
                    return parse_typed_reply(reply, type)
                except ValueError:
                    self._out.say(f"  that is not {typed_reply_hint(type)}")
        raise RunError("run.needs-answer", f"there was no usable reply to: {question}", expected=typed_reply_hint(type))


async def confirm_yes(question: str) -> bool:
    """Whether the person says yes; an empty reply is no."""
    return ((await read_line(f"{question} [y/N] ")) or "").lower() in ("y", "yes")


async def read_line(prompt: str) -> str | None:
    """One line from the terminal, stripped; None at the end of input."""
    from bicameral.display import make_visible

    sys.stderr.write(wrap_text(make_visible(prompt), terminal_width()) if sys.stderr.isatty() else make_visible(prompt))
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    # A blocking read would delay Ctrl-C until Enter; waiting on the event loop does not.
    loop.add_reader(sys.stdin.fileno(), lambda: readable.done() or readable.set_result(None))
    try:
        await readable
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = sys.stdin.readline()
    if not line:
        sys.stderr.write("\n")
        return None
    return line.strip()


class TerminalApprover:
    """Asks on standard error for an approval of all calls, or of each. Every reply that is not a yes is a no.

    Args:
        out: Where the question is written.
        registry: The tools, which say which arguments carry content.
        quiet: A context in which nothing else is drawn.
        request: The request of the run, which is why the calls are made.
        preview: What a call would change, shown with the details; by default the call is rehearsed.
    """

    def __init__(
        self,
        out: Output,
        registry: Registry,
        quiet: QuietContext = nullcontext,
        *,
        request: str = "",
        preview: CallPreview | None = None,
    ) -> None:
        self._out, self._registry, self._quiet = out, registry, quiet
        self._request, self._preview = request, preview or self._rehearse

    async def approve(self, question: ApprovalQuestion) -> Answers:
        with self._quiet():
            self._show(question.calls, before=question.before)
            while True:
                match await self._reply(_approval_prompt(question.calls)):
                    case "y" | "yes":
                        return Answers.yes(question.calls)
                    case "r" | "run" if _offered_grants(question.calls):
                        return Answers.yes(question.calls, for_run=_offered_grants(question.calls))
                    case reply if reply in _DETAILS:
                        self._show(question.calls, whole=True, before=question.before)
                    case "e" | "each" if len(question.calls) > 1:
                        return await self._one_by_one(question)
                    case _:
                        return Answers.no()

    async def _one_by_one(self, question: ApprovalQuestion) -> Answers:
        approved: list[PendingCall] = []
        granted: list[Grant] = []
        calls = question.calls
        for number, call in enumerate(calls, 1):
            self._show((call,), first=number, before=question.before)
            also = ", r: also for the rest of this run" if call.offer else ""
            prompt = f"Allow call {number} of {len(calls)}?{_times_text(call)} [y/N{also}, d: details]"
            while (reply := await self._reply(prompt)) in _DETAILS:
                self._show((call,), whole=True, first=number, before=question.before)
            if reply in ("y", "yes") or (reply in ("r", "run") and call.offer):
                approved.append(call)
            if reply in ("r", "run"):
                granted += _offered_grants((call,))
        return Answers.yes(approved, for_run=granted)

    def _show(
        self, calls: tuple[PendingCall, ...], *, whole: bool = False, first: int = 1, before: bool = False
    ) -> None:
        text = calls_text(
            calls,
            self._registry,
            width=terminal_width(),
            whole=whole,
            first=first,
            before=before,
            request=self._request,
            preview=self._preview,
        )
        self._out.say(text)
        for call in calls if not whole else ():
            for line in self._replaced_lines(call):
                self._out.say(line)

    def _rehearse(self, call: PendingCall) -> list[str]:
        """The lines of the difference that a call would make in files."""
        preview = read_preview(call, self._registry)
        return [] if preview is None else preview.text.split("\n")

    def _replaced_lines(self, call: PendingCall) -> list[str]:
        """What the file holds that a call would replace, if that is why it is asked about."""
        preview = read_preview(call, self._registry) if REPLACE_RULE in call.rules else None
        return [] if preview is None else [f"  {line}" for line in preview.replaced]

    async def _reply(self, prompt: str) -> str:
        discard_typed_input()
        return (await read_line(f"{prompt} ") or "").lower()


def _approval_prompt(calls: tuple[PendingCall, ...]) -> str:
    also = ", r: also for the rest of this run" if _offered_grants(calls) else ""
    if len(calls) == 1:
        return f"Allow this call{_times_text(calls[0])}? [y/N{also}, d: details]"
    times = f" {number} times in all" if (number := sum(call.times for call in calls)) > len(calls) else ""
    return f"Allow these {len(calls)} calls?{times} [y/N, e: each on its own{also}, d: details]"


def _times_text(call: PendingCall) -> str:
    return f" {call.times} times" if call.times > 1 else ""


def _offered_grants(calls: tuple[PendingCall, ...]) -> list[Grant]:
    """The grants for the rest of the run that these calls offer."""
    return [call.offer for call in calls if call.offer is not None]


def discard_typed_input() -> None:
    """Discard what was typed before the question was shown: an approval must be of what is on the screen."""
    import termios
    from contextlib import suppress

    with suppress(termios.error, ValueError, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
