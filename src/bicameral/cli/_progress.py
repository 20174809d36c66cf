"""Progress while a plan is written and run: redrawn on a terminal, plain lines elsewhere, nothing for a program."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from bicameral.cli._output import Output
from bicameral.cli._values import cell_text
from bicameral.display import make_visible

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from bicameral.runs import StepProgress

_LOOP_TURN = re.compile(r"\[\d+\]")
_MAX_LABEL = 70
_MAX_ROWS = 15
_MAX_TAIL = 2_000
"""So many characters of what is being written are kept to be drawn."""


class ProgressDisplay(Protocol):
    """Told what happens while a plan is written and run."""

    def phase(self, text: str) -> None:
        """Something new begins."""
        ...

    def statement(self, text: str) -> None:
        """The planner wrote a statement."""
        ...

    def text(self, piece: str) -> None:
        """A model wrote a piece of its reply."""
        ...

    def step(self, progress: StepProgress) -> None:
        """A step began, ended, failed or is tried again."""
        ...

    def quiet(self) -> Any:
        """A context in which nothing is drawn, for asking."""
        ...

    def close(self) -> None: ...


@contextmanager
def open_display(out: Output) -> Generator[ProgressDisplay]:
    """The display that suits the output, closed at the end whatever happens."""
    shown: ProgressDisplay = (
        SilentDisplay() if out.as_json else LiveDisplay(out) if out.is_live_terminal else LineDisplay(out)
    )
    try:
        yield shown
    finally:
        shown.close()


@dataclass(slots=True)
class StepRow:
    """All turns of one step of the plan."""

    label: str
    running: int = 0
    done: int = 0
    failed: bool = False
    seconds: float = 0.0

    @property
    def text(self) -> str:
        turns = f" × {self.done}" if self.done > 1 else ""
        return f"{self.label}{turns}" + (f" ({self.seconds:.1f} s)" if self.done and self.seconds >= 0.05 else "")


class StepRows:
    """The steps of a run that touch the world; the turns of a loop share a row."""

    def __init__(self) -> None:
        self._rows: dict[str, StepRow] = {}

    def __call__(self, progress: StepProgress) -> StepRow:
        """The row that a step belongs to, brought up to date."""
        path = _LOOP_TURN.sub("", progress.step)
        row = self._rows.setdefault(path, StepRow(_step_label(progress)))
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

    def __iter__(self) -> Iterator[StepRow]:
        return iter(self._rows.values())

    def clear(self) -> None:
        self._rows.clear()


def _step_label(progress: StepProgress) -> str:
    """A call as it reads: `read_lines("mail.txt")`, cut to a line."""
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


class SilentDisplay:
    """For a program: nothing but the result."""

    def phase(self, text: str) -> None: ...

    def statement(self, text: str) -> None: ...

    def text(self, piece: str) -> None: ...

    def step(self, progress: StepProgress) -> None: ...

    @contextmanager
    def quiet(self) -> Generator[None]:
        yield

    def close(self) -> None: ...


class LineDisplay:
    """For a log: a line when a step has ended; the turns of a loop share one, told when the next step begins."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._rows = StepRows()
        self._loops: list[StepRow] = []

    def phase(self, text: str) -> None:
        self._flush()
        self._out.say(f"{text} …")

    def statement(self, text: str) -> None: ...

    def text(self, piece: str) -> None: ...

    def step(self, progress: StepProgress) -> None:
        row = self._rows(progress)
        if progress.kind == "retrying":
            self._out.say(f"  trying again: {progress.what}: {progress.facts.get('error', '')}")
        elif progress.kind != "started":
            if not _LOOP_TURN.search(progress.step):
                self._flush()
                self._tell(row)
            elif row not in self._loops:
                self._loops.append(row)

    @contextmanager
    def quiet(self) -> Generator[None]:
        yield

    def close(self) -> None:
        self._flush()

    def _flush(self) -> None:
        for row in self._loops:
            self._tell(row)
        self._loops.clear()

    def _tell(self, row: StepRow) -> None:
        self._out.say(f"  {'failed' if row.failed else 'ok'} {row.text}")


class LiveDisplay:
    """For a person at a terminal: a spinner, the statements as they are written, the steps as they run."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._phase = ""
        self._statements: list[str] = []
        self._written = ""
        self._rows = StepRows()
        self._live: Live | None = None

    def phase(self, text: str) -> None:
        self._leave_steps()
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
        self._rows(progress)
        self._draw()

    @contextmanager
    def quiet(self) -> Generator[None]:
        self._stop()
        try:
            yield
        finally:
            self._draw()

    def close(self) -> None:
        self._leave_steps()

    def _draw(self) -> None:
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self._out.console, transient=True, refresh_per_second=12)
            self._live.start()
        self._live.update(self._picture())

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.text import Text

        rows = list(self._rows)
        drawn: list[RenderableType] = []
        for row in rows[-_MAX_ROWS:]:
            drawn.append(Spinner("dots", Text(make_visible(row.text))) if row.running else self._settled(row))
        drawn += [Text(f"  {line}", style="dim") for line in self._statements[-_MAX_ROWS:]]
        drawn += [Text(f"  {line}", style="dim") for line in make_visible(self._written).splitlines()[-_MAX_ROWS:]]
        if not any(row.running for row in rows):
            drawn.append(Spinner("dots", Text(f"{self._phase} …", style="dim")))
        return Group(*drawn)

    def _settled(self, row: StepRow) -> RenderableType:
        from rich.text import Text

        mark, style = ("✗", "red") if row.failed else ("✓", "green")
        return Text.assemble((mark, style), f" {make_visible(row.text)}")

    def _leave_steps(self) -> None:
        """Take the moving picture away and leave the steps that were run."""
        self._stop()
        for row in self._rows:
            if row.done:
                self._out.console.print(self._settled(row))
        self._rows.clear()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
