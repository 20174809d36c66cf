"""A pseudo terminal with the command line on it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("bicameral"))


class Terminal:
    """A program on a pseudo terminal: what it shows, and what is typed."""

    def __init__(self, *words: str, program: tuple[str, ...] = (PROGRAM,), **variables: str) -> None:
        self._master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **variables}
        self.process = subprocess.Popen(
            [*program, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""

    def wait_for(self, text: str, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} never came: {self.shown!r}"
            if select.select([self._master], [], [], min(left, 0.2))[0]:
                self._read()
            elif self.process.poll() is not None:
                self._read()
                assert text in self.shown, self.shown
                return

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self, seconds: float = 30) -> int:
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self._master], [], [], 0.1)[0]:
                self._read()
        while select.select([self._master], [], [], 0.1)[0] and self._read():
            pass
        return self.process.wait(timeout=1)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def _read(self) -> bool:
        try:
            read = os.read(self._master, 65536)
        except OSError:  # Linux says so when the other end is closed.
            return False
        self.shown += read.decode(errors="replace")
        return bool(read)


def opened(terminals: list[Terminal], *words: str, program: tuple[str, ...] = (PROGRAM,), **variables: str) -> Terminal:
    terminals.append(Terminal(*words, program=program, **variables))
    return terminals[-1]
