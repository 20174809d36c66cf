"""What is going on, while it goes on: redrawn on a terminal, plain lines elsewhere, nothing for a program."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from bicameral.display import visible

from ._output import Output
from ._values import cell

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from bicameral.runs import Progress

_TURN = re.compile(r"\[\d+\]")
_MAX_LABEL = 70
_ROWS = 15
_TAIL = 2_000
"""So many characters of what is being written are kept to be drawn."""


class Display(Protocol):
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

    def step(self, progress: Progress) -> None:
        """A step began, ended, failed or is tried again."""
        ...

    def quiet(self) -> Any:
        """A context in which nothing is drawn, for asking."""
        ...

    def close(self) -> None: ...


@contextmanager
def display(out: Output) -> Generator[Display]:
    """The display that suits the output, closed at the end whatever happens."""
    shown: Display = Silent() if out.as_json else Redrawn(out) if out.lively else Lines(out)
    try:
        yield shown
    finally:
        shown.close()


@dataclass(slots=True)
class Row:
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


class Rows:
    """The steps of a run that touch the world; the turns of a loop share a row."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def __call__(self, progress: Progress) -> Row:
        """The row that a step belongs to, brought up to date."""
        path = _TURN.sub("", progress.step)
        row = self._rows.setdefault(path, Row(_label(progress)))
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

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def clear(self) -> None:
        self._rows.clear()


def _label(progress: Progress) -> str:
    """A call as it reads: `read_lines("mail.txt")`, cut to a line."""
    match progress.what:
        case "extract":
            return f"read with the quarantined model: {progress.facts.get('instruction', '')}"[:_MAX_LABEL]
        case "ask":
            return "ask"
        case what:
            arguments: dict[str, Any] = progress.facts.get("arguments", {})
            shown = ", ".join(
                _argument(name, value) for name, value in arguments.items() if value not in ("", [], None, False)
            )
            text = f"{what}({shown})"
            return text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 2] + "…)"


def _argument(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{name}: {len(cast('list[Any]', value))}"
    text = cell(value)
    return f"{name}={text[:40] + '…' if len(text) > 40 else text}"


class Silent:
    """For a program: nothing but the result."""

    def phase(self, text: str) -> None: ...

    def statement(self, text: str) -> None: ...

    def text(self, piece: str) -> None: ...

    def step(self, progress: Progress) -> None: ...

    @contextmanager
    def quiet(self) -> Generator[None]:
        yield

    def close(self) -> None: ...


class Lines:
    """For a log: a line when a step has ended; the turns of a loop share one, told when the next step begins."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._rows = Rows()
        self._loops: list[Row] = []

    def phase(self, text: str) -> None:
        self._flush()
        self._out.say(f"{text} …")

    def statement(self, text: str) -> None: ...

    def text(self, piece: str) -> None: ...

    def step(self, progress: Progress) -> None:
        row = self._rows(progress)
        if progress.kind == "retrying":
            self._out.say(f"  trying again: {progress.what}: {progress.facts.get('error', '')}")
        elif progress.kind != "started":
            if not _TURN.search(progress.step):
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

    def _tell(self, row: Row) -> None:
        self._out.say(f"  {'failed' if row.failed else 'ok'} {row.text}")


class Redrawn:
    """For a person at a terminal: a spinner, the statements as they are written, the steps as they run."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._phase = ""
        self._statements: list[str] = []
        self._written = ""
        self._rows = Rows()
        self._live: Live | None = None

    def phase(self, text: str) -> None:
        self._leave_steps()
        self._phase = text
        self._statements.clear()
        self._written = ""
        self._draw()

    def statement(self, text: str) -> None:
        self._statements.append(visible(text).rstrip("\n"))
        self._draw()

    def text(self, piece: str) -> None:
        self._written = (self._written + piece)[-_TAIL:]
        self._draw()

    def step(self, progress: Progress) -> None:
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
        for row in rows[-_ROWS:]:
            drawn.append(Spinner("dots", Text(visible(row.text))) if row.running else self._settled(row))
        drawn += [Text(f"  {line}", style="dim") for line in self._statements[-_ROWS:]]
        drawn += [Text(f"  {line}", style="dim") for line in visible(self._written).splitlines()[-_ROWS:]]
        if not any(row.running for row in rows):
            drawn.append(Spinner("dots", Text(f"{self._phase} …", style="dim")))
        return Group(*drawn)

    def _settled(self, row: Row) -> RenderableType:
        from rich.text import Text

        mark, style = ("✗", "red") if row.failed else ("✓", "green")
        return Text.assemble((mark, style), f" {visible(row.text)}")

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
