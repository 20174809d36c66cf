"""Standard output and standard error that never end a command: closed ones, full ones, and other encodings.

A command may have had an effect when its output fails. So a write that fails raises nothing: what can still be told is
told on standard error, and the exit code says that the output is incomplete. A character that the encoding of a stream
does not have is written as its number.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast


class SteadyStream:
    """A text stream whose writes do not fail; `lost` is why one could not be written, or None.

    Everything else is that of the stream it wraps.
    """

    def __init__(self, stream: TextIO | None, descriptor: int) -> None:
        # Python has no stream for a descriptor that was closed before it started.
        self._stream = _null_stream() if stream is None else _buffered_stream(stream)
        self.lost: OSError | None = OSError(errno.EBADF, "it is closed") if stream is None else None
        self._descriptor = descriptor
        reconfigure = cast("Callable[..., None] | None", getattr(self._stream, "reconfigure", None))
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def _attempt(self, act: Callable[[], object]) -> None:
        if self.lost is not None:
            return
        try:
            act()
        except OSError as error:
            self.lost = error
            self._discard_rest()

    def _discard_rest(self) -> None:
        """Let what is buffered go nowhere: Python would try to write it once more when it ends."""
        with suppress(OSError, ValueError, AttributeError):
            if self._stream.fileno() == self._descriptor:
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, self._descriptor)
                os.close(null)
                self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _buffered_stream(stream: TextIO) -> TextIO:
    """The stream, with a buffer below it: without one (PYTHONUNBUFFERED) half a write that fails is taken for all."""
    if not isinstance(getattr(stream, "buffer", None), io.RawIOBase):
        return stream
    return open(stream.fileno(), "w", buffering=1, encoding=stream.encoding, closefd=False)


def _null_stream() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


@contextmanager
def steady_streams() -> Generator[SteadyStream]:
    """Replace both streams while a command runs; returns standard output, to see whether it was lost."""
    before = sys.stdout, sys.stderr
    _occupy_descriptors()
    if cast("TextIO | None", sys.stdin) is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    out, err = SteadyStream(sys.stdout, 1), SteadyStream(sys.stderr, 2)
    sys.stdout, sys.stderr = cast("TextIO", out), cast("TextIO", err)
    try:
        yield out
    finally:
        sys.stdout, sys.stderr = before


def _occupy_descriptors() -> None:
    """Open the null device as standard input, output and error where they are closed.

    Otherwise the next file that is opened, such as the journal, would get the number of a standard stream, and whatever
    a library writes there would go into that file.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
