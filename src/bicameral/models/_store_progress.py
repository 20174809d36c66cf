"""How long work on files is shown: a protocol, a silent form, a bar, and plain lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Progress(Protocol):
    """Told what is being done and how many bytes of it are done."""

    def start(self, title: str, total_bytes: int | None) -> None:
        """A new stage begins; the one before it is over."""
        ...

    def advance(self, n: int) -> None: ...

    def note(self, text: str) -> None: ...

    def done(self) -> None:
        """Nothing more will come, whether the work succeeded or not."""
        ...


class SilentProgress:
    """Shows nothing."""

    def start(self, title: str, total_bytes: int | None) -> None: ...

    def advance(self, n: int) -> None: ...

    def note(self, text: str) -> None: ...

    def done(self) -> None: ...


def terminal_progress(stream: TextIO | None = None) -> Progress:
    """A bar on a terminal, otherwise a plain line every 10 %; on standard error unless told."""
    out = sys.stderr if stream is None else stream
    return BarProgress(out) if out.isatty() else LineProgress(out)


def megabytes(n: int) -> str:
    """A size as people read it.

    Example:
        >>> megabytes(491_400_064), megabytes(2_600)
        ('491.4 MB', '2.6 kB')
    """
    size = float(n)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{n} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


class LineProgress:
    """One line when a stage starts and one for every tenth of it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._title = ""
        self._total: int | None = None
        self._seen = 0
        self._shown = 0

    def start(self, title: str, total_bytes: int | None) -> None:
        self._title, self._total, self._seen, self._shown = title, total_bytes, 0, 0
        self.note(title + (f" ({megabytes(total_bytes)})" if total_bytes else ""))

    def advance(self, n: int) -> None:
        self._seen += n
        if not self._total:
            return
        tenths = min(10, self._seen * 10 // self._total)
        if tenths > self._shown:
            self._shown = tenths
            self.note(f"{self._title}: {tenths * 10} %")

    def note(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def done(self) -> None: ...


class BarProgress:
    """A bar with size, speed and time left; rich is imported when the first stage starts."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bars: RichProgress | None = None
        self._task: TaskID | None = None

    def start(self, title: str, total_bytes: int | None) -> None:
        bars = self._open()
        if self._task is not None:
            bars.remove_task(self._task)
        self._task = bars.add_task(title, total=total_bytes)

    def advance(self, n: int) -> None:
        if self._bars is not None and self._task is not None:
            self._bars.advance(self._task, n)

    def note(self, text: str) -> None:
        self._open().console.print(text, markup=False, highlight=False)

    def done(self) -> None:
        if self._bars is not None:
            self._bars.stop()
        self._bars = self._task = None

    def _open(self) -> RichProgress:
        if self._bars is None:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            self._bars = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=Console(file=self._stream),
            )
            self._bars.start()
        return self._bars
