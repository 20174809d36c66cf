"""Displays of progress, while a plan is written and run: for a terminal, for a log, and none for `--json`."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from bicameral.display import cell_text, make_visible, wrap_text
from bicameral.models import LOG_SECONDS, ModelStages

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    from bicameral.cli._output import Output
    from bicameral.models import ModelProgress
    from bicameral.runs import StepProgress


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

    def model(self, progress: ModelProgress) -> None:
        """A local model loads, reads or writes."""

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
    from bicameral.models import watch_model

    shown = ProgressDisplay() if out.as_json else LiveDisplay(out) if out.is_live_terminal else LineDisplay(out)
    try:
        with watch_model(shown.model):
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
        self._stages = ModelStages()
        self._said = 0.0

    def phase(self, text: str) -> None:
        self.close()
        self._stages = ModelStages()
        self._said = 0.0
        self._out.say(f"{text} …")

    def statement(self, text: str) -> None:
        self._stages.lines += 1

    def model(self, progress: ModelProgress) -> None:
        self._stages.update(progress)
        # Lines of a log cannot be drawn over: one when it takes long, and one for each further while.
        if self._stages.elapsed >= self._said + LOG_SECONDS:
            self._said = self._stages.elapsed
            self._out.say(f"  {self._stages.text}")

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
        self._stages = ModelStages()
        self._turning: Spinner | None = None

    def phase(self, text: str) -> None:
        self.close()
        self._phase = text
        self._statements.clear()
        self._written = ""
        self._stages = ModelStages()
        self._draw()

    def statement(self, text: str) -> None:
        self._stages.lines += 1
        self._statements.append(make_visible(text).rstrip("\n"))
        self._draw()

    def model(self, progress: ModelProgress) -> None:
        self._stages.update(progress)
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
        self._stages.interrupted = True
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
        stage = self._stages.text
        if not any(row.running for row in rows):
            drawn.append(self._spinner(Text(self._fit(f"{stage or self._phase} …"), style="dim")))
        elif stage:
            drawn.append(Text(self._fit(f"  {stage}"), style="dim"))
        if hint := self._stages.hint:
            drawn.append(Text(self._fit(f"  {hint}"), style="dim"))
        return Group(*drawn)

    def _spinner(self, text: Text) -> Spinner:
        """One spinner for a whole phase: a new one would begin its turn again with every token."""
        from rich.spinner import Spinner

        if self._turning is None:
            self._turning = Spinner("dots", text)
        self._turning.update(text=text)
        return self._turning

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
        self._stages.end()
        for row in self._rows.values():
            if row.done:
                self._out.console.print(self._ended_row(row))
        self._rows.clear()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
