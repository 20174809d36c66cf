"""What a command writes: output streams, exit codes, and progress while a plan is written and run.

Answers go to standard output, everything else to standard error. Progress is redrawn on a terminal, written as plain
lines elsewhere, and left out for a program.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bicameral.display import escape_json, make_visible, terminal_width, wrap_text
from bicameral.errors import BicameralError, ConfigError, EvaluationError, IntentError, PolicyError, ToolError
from bicameral.secrets import mask, mask_json

if TYPE_CHECKING:
    from rich.console import Console

    from bicameral.cli._prompts import TerminalApprover, TerminalAsker
    from bicameral.runs import Ending
    from bicameral.tools import Registry


OK = 0
FAILED = 1
"""A run, a model or a check of the machine failed."""
USAGE = 2
"""The command, the configuration or the input is wrong."""
NO_PLAN = 3
"""There is no plan, or it does not pass the check."""
QUESTIONS = 4
"""Something must be answered first, and nobody is there to ask."""
OUTPUT_LOST = 5
"""The command did what it should, and its output could not be written to the end."""
GATE_FAILED = 6
"""An evaluation came to its end, and its results do not pass the gate."""
INTERRUPTED = 130
TERMINATED = 143
"""By SIGTERM, after running work was stopped and recorded."""

EXIT_CODES: Mapping[Ending, int] = {
    "answered": OK,
    "asked": QUESTIONS,
    "refused": NO_PLAN,
    "denied": FAILED,
    "invalid": USAGE,
    "stopped": INTERRUPTED,
    "failed": FAILED,
}
"""The exit code of a command by how its request ended; the same for one plan, rounds, strategies and durable runs."""
_BAD_INPUT = frozenset(
    {
        *("catalog.bad-fact", "catalog.bad-number", "catalog.cannot-read", "catalog.cannot-write"),
        *("catalog.unknown-category", "catalog.unknown-fact", "catalog.unknown-knob", "catalog.unknown-model"),
        *("catalog.unknown-pattern", "catalog.unknown-size"),
        *("durable.ambiguous-approval", "durable.ambiguous-run", "durable.bad-database", "durable.bad-state"),
        *("durable.bad-submission", "durable.no-runs", "durable.unknown-approval", "durable.unknown-run"),
        *("durable.wrong-answer",),
        *("journal.ambiguous-run", "journal.no-answer", "journal.no-runs", "journal.unknown-run"),
        *("models.unknown", "models.bad-name", "models.name-taken", "models.bad-reference"),
    }
)


class Terminated(Exception):
    """SIGTERM was received; running work was stopped and recorded."""


def command_ending(error: BicameralError) -> Ending:
    """How a command ended that an error ended. What a run reports as a failed tool is a wrong input here."""
    from bicameral.runs import ending_of_error

    if (ending := ending_of_error(error)) != "failed":
        return ending
    if error.code in _BAD_INPUT or error.code.startswith("stack."):
        return "invalid"
    wrong_input = ConfigError | EvaluationError | IntentError | PolicyError | ToolError
    return "invalid" if isinstance(error, wrong_input) else "failed"


def exit_code(error: BicameralError) -> int:
    """The exit code for an error that ended a command."""
    return EXIT_CODES[command_ending(error)]


class Output:
    """The two streams of a command. With `as_json`, standard output gets one JSON object and nothing else.

    Everything that is written passes here: known secrets are masked, and invisible or control characters are made
    visible where a terminal would obey them.
    """

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._notices: dict[str, Any] = {}

    def add_notice(self, name: str, facts: Any) -> None:
        """Add a fact to the JSON object of the command, whatever the command itself writes."""
        self._notices[name] = facts

    @property
    def is_interactive(self) -> bool:
        """Whether a person can be asked: input and standard error are a terminal, and no program reads JSON."""
        return not self.as_json and sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def is_live_terminal(self) -> bool:
        """Whether standard error is a terminal that can redraw."""
        return not self.as_json and sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")

    @property
    def width(self) -> int:
        """The width of the terminal for answers; practically unlimited without a terminal."""
        from bicameral.cli._plain_values import UNLIMITED

        if not sys.stdout.isatty():
            return UNLIMITED
        return terminal_width()

    @cached_property
    def console(self) -> Console:
        """Rich's console on standard error; it honours NO_COLOR."""
        from rich.console import Console

        return Console(stderr=True, highlight=False, soft_wrap=True)

    def show(self, text: str) -> None:
        """Write a result to standard output."""
        if not self.as_json:
            text = mask(text)
            sys.stdout.write((_fit_terminal(text) if sys.stdout.isatty() else text).rstrip("\n") + "\n")
            sys.stdout.flush()

    def say(self, text: str, *, style: str = "") -> None:
        """Write a message to standard error."""
        text = mask(text)
        if style and self.is_live_terminal:
            from rich.text import Text

            self.console.print(Text(_fit_terminal(text), style=style))
            return
        sys.stderr.write((_fit_terminal(text) if sys.stderr.isatty() else make_visible(text)).rstrip("\n") + "\n")
        sys.stderr.flush()

    def print_lines(self, lines: Iterable[tuple[str, str]], highlight: re.Pattern[str] | None = None) -> None:
        """Write lines to standard output; on a terminal each with its style, and with matches highlighted."""
        if self.as_json:
            return
        if not sys.stdout.isatty():
            for text, _ in lines:
                self.show(text)
            return
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False, soft_wrap=True)
        for text, style in lines:
            styled = Text(_fit_terminal(mask(text)), style=style)
            if highlight is not None:
                styled.highlight_regex(highlight, "cyan")
            console.print(styled)

    def heading(self, text: str) -> None:
        self.say(text, style="bold")

    def write_json(self, facts: Mapping[str, Any]) -> None:
        """Write the JSON object of the command, if JSON was asked for."""
        if self.as_json:
            self.write_document({**facts, **self._notices})

    def write_document(self, facts: Mapping[str, Any], *, indent: int | None = None) -> None:
        """Write a JSON document to standard output, whether JSON was asked for with `--json` or another way."""
        text = escape_json(mask_json(json.dumps(facts, ensure_ascii=False, default=str, indent=indent)))
        sys.stdout.write(_encodable_json(text, sys.stdout.encoding) + "\n")
        sys.stdout.flush()

    def error(self, facts: Mapping[str, Any], text: str, ending: Ending | None = None) -> None:
        """Write an error in one line, or as the JSON object, with how the command ended."""
        if self.as_json:
            self.write_json({"ok": False, **({} if ending is None else {"ending": ending}), "error": facts})
        else:
            self.say(f"error: {text}", style="red")


def _encodable_json(text: str, encoding: str | None) -> str:
    """JSON that can be written in this encoding: characters that it does not have are escaped, as JSON does it."""
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return json.dumps(json.loads(text))
    return text


def _fit_terminal(text: str) -> str:
    """A text as a terminal gets it: nothing that it would obey, and no word broken at its edge."""
    return wrap_text(make_visible(text), terminal_width())


def terminal_people(
    out: Output, registry: Registry, quiet: Callable[[], AbstractContextManager[object]], request: str = ""
) -> tuple[TerminalAsker, TerminalApprover] | tuple[None, None]:
    """The asker and the approver of a terminal; none where nobody can be asked. `request` is why calls are made."""
    if not out.is_interactive:
        return None, None
    from bicameral.cli._prompts import TerminalApprover, TerminalAsker

    return TerminalAsker(out, quiet), TerminalApprover(out, registry, quiet, request=request)


def error_facts(error: Exception) -> dict[str, str]:
    """An unexpected error as facts that a person can report."""
    if isinstance(error, OSError) and error.errno is not None:
        where = f"{error.filename}: " if error.filename else ""
        return {"code": "cli.system", "message": f"{where}{error.strerror}", "fix": "`bicameral doctor` may know more."}
    return {
        "code": "cli.internal",
        "message": f"this is a fault in Bicameral: {type(error).__name__}: {error}",
        "fix": "Please report it with what BICAMERAL_DEBUG=1 shows.",
    }
