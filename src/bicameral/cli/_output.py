"""What a command writes: output streams, exit codes, and progress while a plan is written and run.

Answers go to standard output, everything else to standard error. Progress is redrawn on a terminal, written as plain
lines elsewhere, and left out for a program.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from bicameral.cli._lines import terminal_width, wrap_text
from bicameral.cli._plain_values import UNLIMITED, cell_text
from bicameral.display import escape_json, make_visible
from bicameral.errors import BicameralError, ConfigError, IntentError, PolicyError, ToolError
from bicameral.secrets import mask, mask_json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from bicameral.cli._prompts import TerminalApprover, TerminalAsker
    from bicameral.runs import Ending, StepProgress
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
        *("models.unknown",),
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
    return "invalid" if isinstance(error, ConfigError | IntentError | PolicyError | ToolError) else "failed"


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
        text = json.dumps(facts, ensure_ascii=False, default=str, indent=indent)
        sys.stdout.write(escape_json(mask_json(text)) + "\n")
        sys.stdout.flush()

    def error(self, facts: Mapping[str, Any], text: str, ending: Ending | None = None) -> None:
        """Write an error in one line, or as the JSON object, with how the command ended."""
        if self.as_json:
            self.write_json({"ok": False, **({} if ending is None else {"ending": ending}), "error": facts})
        else:
            self.say(f"error: {text}", style="red")


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


_LOOP_TURN = re.compile(r"\[\d+\]")
_MAX_LABEL = 70
_MAX_ROWS = 15
_MAX_TAIL = 2_000
"""Characters of a reply that are kept for drawing."""


class ProgressDisplay:
    """Receives progress while a plan is written and run. This one shows nothing: it is for `--json`."""

    def phase(self, text: str) -> None:
        """A phase begins."""

    def statement(self, text: str) -> None:
        """The planner wrote a statement."""

    def text(self, piece: str) -> None:
        """A model wrote a part of its reply."""

    def step(self, progress: StepProgress) -> None:
        """A step began, ended, failed or is retried."""

    def quiet(self) -> AbstractContextManager[object]:
        """A context in which nothing is drawn, so that a person can be asked."""
        return nullcontext()

    def close(self) -> None:
        """Stop drawing; the next call of a method starts again."""


@contextmanager
def open_display(out: Output) -> Generator[ProgressDisplay]:
    """The display that suits the output, closed at the end."""
    shown = ProgressDisplay() if out.as_json else LiveDisplay(out) if out.is_live_terminal else LineDisplay(out)
    try:
        yield shown
    finally:
        shown.close()


@dataclass(slots=True)
class StepRow:
    """All iterations of one step of the plan."""

    label: str
    running: int = 0
    done: int = 0
    failed: bool = False
    seconds: float = 0.0

    @property
    def text(self) -> str:
        turns = f" × {self.done}" if self.done > 1 else ""
        return f"{self.label}{turns}" + (f" ({self.seconds:.1f} s)" if self.done and self.seconds >= 0.05 else "")


class StepRows(dict[str, StepRow]):
    """The steps of a run that call tools, models or people, by path; the iterations of a loop share a row."""

    def update_row(self, progress: StepProgress) -> StepRow:
        """Update the row of a step, and return it."""
        path = _LOOP_TURN.sub("", progress.step)
        row = self.setdefault(path, StepRow(_step_label(progress)))
        match progress.kind:
            case "started":
                row.running += 1
                if row.running + row.done > 1:
                    row.label = progress.what
            case "finished" | "failed":
                row.running -= 1
                row.done += 1
                row.seconds += progress.seconds
                row.failed = row.failed or progress.kind == "failed"
            case "retrying":
                pass
        return row


def _step_label(progress: StepProgress) -> str:
    """The text of a step, such as `read_lines(path=mail.txt)`, cut to a line."""
    match progress.what:
        case "extract":
            return f"read with the quarantined model: {progress.facts.get('instruction', '')}"[:_MAX_LABEL]
        case "ask":
            return "ask"
        case what:
            arguments: dict[str, Any] = progress.facts.get("arguments", {})
            shown = ", ".join(
                _argument_text(name, value) for name, value in arguments.items() if value not in ("", [], None, False)
            )
            text = f"{what}({shown})"
            return text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 2] + "…)"


def _argument_text(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{name}: {len(cast('list[Any]', value))}"
    text = cell_text(value)
    return f"{name}={text[:40] + '…' if len(text) > 40 else text}"


class LineDisplay(ProgressDisplay):
    """For a log: a line when a step has ended; the iterations of a loop share one, written when the loop is over."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._rows = StepRows()
        self._loops: list[StepRow] = []

    def phase(self, text: str) -> None:
        self.close()
        self._out.say(f"{text} …")

    def step(self, progress: StepProgress) -> None:
        row = self._rows.update_row(progress)
        if progress.kind == "retrying":
            self._out.say(f"  trying again: {progress.what}: {progress.facts.get('error', '')}")
        elif progress.kind != "started":
            if not _LOOP_TURN.search(progress.step):
                self.close()
                self._say_row(row)
            elif row not in self._loops:
                self._loops.append(row)

    def close(self) -> None:
        for row in self._loops:
            self._say_row(row)
        self._loops.clear()

    def _say_row(self, row: StepRow) -> None:
        self._out.say(f"  {'failed' if row.failed else 'ok'} {row.text}")


class LiveDisplay(ProgressDisplay):
    """For a terminal: a spinner, the statements as they are written, the steps as they run."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._phase = ""
        self._statements: list[str] = []
        self._written = ""
        self._rows = StepRows()
        self._live: Live | None = None

    def phase(self, text: str) -> None:
        self.close()
        self._phase = text
        self._statements.clear()
        self._written = ""
        self._draw()

    def statement(self, text: str) -> None:
        self._statements.append(make_visible(text).rstrip("\n"))
        self._draw()

    def text(self, piece: str) -> None:
        self._written = (self._written + piece)[-_MAX_TAIL:]
        self._draw()

    def step(self, progress: StepProgress) -> None:
        self._rows.update_row(progress)
        self._draw()

    @contextmanager
    def quiet(self) -> Generator[None]:
        self._stop()
        try:
            yield
        finally:
            self._draw()

    def _draw(self) -> None:
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self._out.console, transient=True, refresh_per_second=12)
            self._live.start()
        self._live.update(self._render())

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.text import Text

        rows = list(self._rows.values())
        drawn: list[RenderableType] = []
        for row in rows[-_MAX_ROWS:]:
            drawn.append(Spinner("dots", Text(self._fit(row.text))) if row.running else self._ended_row(row))
        drawn += [Text(self._fit(f"  {line}"), style="dim") for line in self._statements[-_MAX_ROWS:]]
        drawn += [Text(self._fit(f"  {line}"), style="dim") for line in self._written.splitlines()[-_MAX_ROWS:]]
        if not any(row.running for row in rows):
            drawn.append(Spinner("dots", Text(f"{self._phase} …", style="dim")))
        return Group(*drawn)

    def _ended_row(self, row: StepRow) -> RenderableType:
        from rich.text import Text

        mark, style = ("✗", "red") if row.failed else ("✓", "green")
        return Text.assemble((mark, style), " ", self._fit(row.text))

    def _fit(self, text: str) -> str:
        """A line in pieces that fit the console behind a mark."""
        return wrap_text(make_visible(text), self._out.console.width - 2)

    def close(self) -> None:
        """Stop drawing, and leave the steps that were run as plain lines."""
        self._stop()
        for row in self._rows.values():
            if row.done:
                self._out.console.print(self._ended_row(row))
        self._rows.clear()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
