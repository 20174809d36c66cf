"""A program at a terminal of a given size: what is on the screen, what was written above it, and what is typed.

`open_terminal` uses tmux where it is installed, and otherwise a small terminal of its own on a pseudo terminal. Both
say which lines they had to break because the program wrote more than fits: a program that knows the width of its
terminal leaves nothing to break.

Example:
    with open_terminal(["bicameral", "chat"], columns=40) as terminal:
        terminal.wait_for("> ")
        terminal.type("count the lines of mail.txt\\n")
        terminal.wait_for("done in")
        terminal.assert_fits()
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

MARKS = "/\\@.,;:=&?!-_|+>)]}"
"""A word that is longer than a line may be broken after these."""
_POLL_SECONDS = 0.1
_SHOWN_SECONDS = 10
_BAR = re.compile(r"^[\s!]*(?:\S+\s+)?│ ")


class TerminalSession(ABC):
    """A program at a terminal."""

    columns: int

    @abstractmethod
    def lines(self) -> list[str]:
        """Everything that was written and not erased, from the first line on, as it stands on the screen."""

    @abstractmethod
    def broken_lines(self) -> list[str]:
        """The lines that the terminal had to break, whole."""

    @abstractmethod
    def type(self, text: str) -> None:
        """Type a text; `\\n` is Enter and `\\x03` Ctrl-C."""

    @abstractmethod
    def exit_code(self) -> int | None:
        """The exit code of the program; None while it runs."""

    @abstractmethod
    def close(self) -> None:
        """End the program and the terminal."""

    def text(self) -> str:
        return "\n".join(self.lines())

    def flowing(self) -> str:
        """The text with one blank for each break, so that a sentence is found however it was wrapped."""
        return " ".join(" ".join(line.split()) for line in self.lines())

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Wait until the text is there, however it is wrapped; an error with the screen if it does not come."""
        deadline, ended = time.monotonic() + seconds, False
        while text not in self.flowing():
            why = "it ended without it" if ended else "it never came"
            assert time.monotonic() < deadline, f"{text!r}: {why}:\n{self.text()}"
            if not ended and self.exit_code() is not None:
                # The terminal may still have to show what the program wrote at the end.
                ended, deadline = True, min(deadline, time.monotonic() + _SHOWN_SECONDS)
            time.sleep(_POLL_SECONDS)

    def type_at(self, prompt: str, text: str, seconds: float = 60) -> None:
        """Type where the program asks: what is typed before the prompt is there would be echoed in front of it."""
        deadline = time.monotonic() + seconds
        while not (lines := [line.strip() for line in self.lines() if line.strip()]) or lines[-1] != prompt:
            assert time.monotonic() < deadline, f"the prompt {prompt!r} never came:\n{self.text()}"
            assert self.exit_code() is None, f"it ended before the prompt {prompt!r}:\n{self.text()}"
            time.sleep(_POLL_SECONDS)
        self.type(text)

    def wait_end(self, seconds: float = 60) -> int:
        """Wait until the program has ended; returns its exit code."""
        deadline = time.monotonic() + seconds
        while (code := self.exit_code()) is None:
            assert time.monotonic() < deadline, f"it did not end:\n{self.text()}"
            time.sleep(_POLL_SECONDS)
        return code

    def assert_fits(self) -> None:
        """Nothing was wider than the terminal."""
        assert not self.broken_lines(), f"wider than {self.columns} columns: {self.broken_lines()}\n{self.text()}"


@contextmanager
def open_terminal(
    words: Sequence[str],
    *,
    columns: int = 80,
    rows: int = 24,
    variables: Mapping[str, str] | None = None,
    own: bool = False,
) -> Generator[TerminalSession]:
    """A program at a terminal of this size, ended at the end.

    Args:
        words: The program and its arguments.
        columns: The width.
        rows: The height.
        variables: Environment variables besides those of this process.
        own: Use the terminal of this module although there is tmux.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "TMUX")}
    environment |= {"LC_ALL": "C.UTF-8", **(variables or {})}
    kind = PlainTerminal if own or shutil.which("tmux") is None else TmuxTerminal
    terminal = kind(words, columns, rows, environment)
    try:
        yield terminal
    finally:
        terminal.close()


class TmuxTerminal(TerminalSession):
    """A pane of a tmux server of its own."""

    def __init__(self, words: Sequence[str], columns: int, rows: int, environment: Mapping[str, str]) -> None:
        self.columns = columns
        self._socket = f"bicameral-test-{uuid.uuid4().hex[:12]}"
        self._environment = dict(environment)
        # tmux itself forgets the exit code of some programs. The trap is for the shell: it must outlive Ctrl-C.
        self._folder = Path(tempfile.mkdtemp(prefix="bicameral-terminal-"))
        self._status = self._folder / "status"
        whole = f"trap : INT; {shlex.join(words)}; echo $? > {shlex.quote(str(self._status))}"
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as settings:
            settings.write("set -g status off\nset -g history-limit 10000\nset -g remain-on-exit on\n")
            settings.write('set -g default-terminal "screen-256color"\nset -g escape-time 0\n')
            settings.flush()
            size = ["-x", str(columns), "-y", str(rows)]
            self._call("-f", settings.name, "new-session", "-d", *size, "-c", os.getcwd(), whole)

    def _call(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-L", self._socket, *words],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=30,
            env=self._environment,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def lines(self) -> list[str]:
        return self._capture()

    def broken_lines(self) -> list[str]:
        # With -J lines that the terminal has broken are put together again.
        known = set(self.lines())
        return [line for line in self._capture("-J") if line not in known]

    def _capture(self, *more: str) -> list[str]:
        lines = self._call("capture-pane", "-p", *more, "-S", "-").rstrip("\n").split("\n")
        # tmux says so itself when the program has ended.
        return [line.rstrip() for line in lines if not line.startswith("Pane is dead")]

    def type(self, text: str) -> None:
        for piece in re.split(r"([\n\x03\x04])", text):
            key = {"\n": "Enter", "\x03": "C-c", "\x04": "C-d"}.get(piece)
            if key is not None:
                self._call("send-keys", key)
            elif piece:
                self._call("send-keys", "-l", piece)

    def exit_code(self) -> int | None:
        told = self._status.read_text(encoding="ascii") if self._status.exists() else ""
        return int(told) if told.endswith("\n") else None

    def close(self) -> None:
        with suppress(subprocess.SubprocessError, OSError):
            subprocess.run(
                ["tmux", "-L", self._socket, "kill-server"], capture_output=True, timeout=30, env=self._environment
            )
        shutil.rmtree(self._folder, ignore_errors=True)


_CONTROL = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]|\x1b[=>78cM]")


class PlainTerminal(TerminalSession):
    """A pseudo terminal, and as much of a screen as a program that writes lines and redraws the last ones needs."""

    def __init__(self, words: Sequence[str], columns: int, rows: int, environment: Mapping[str, str]) -> None:
        self.columns, self._rows = columns, rows
        self._screen: list[list[str]] = [[]]
        self._broken: set[int] = set()
        self._row = self._column = 0
        self._pending = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._process = subprocess.Popen(
            list(words),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment, "TERM": "xterm-256color"},
            # A terminal of its own, so that Ctrl-C reaches the program.
            preexec_fn=lambda: _take_terminal(slave),
        )
        os.close(slave)

    def lines(self) -> list[str]:
        self._read()
        return ["".join(line).rstrip() for line in self._screen]

    def broken_lines(self) -> list[str]:
        self._read()
        return ["".join(self._screen[row] + self._screen[row + 1]) for row in sorted(self._broken)]

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def exit_code(self) -> int | None:
        code = self._process.poll()
        if code is not None:
            self._read()
        return code

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        os.close(self._master)

    def _read(self) -> None:
        while select.select([self._master], [], [], 0)[0]:
            try:
                raw = os.read(self._master, 65536)
            except OSError:  # Linux says so when the other end is closed.
                return
            if not raw:
                return
            self._draw(self._pending + self._decoder.decode(raw))

    def _draw(self, text: str) -> None:
        at, self._pending = 0, ""
        while at < len(text):
            if text[at] == "\x1b":
                found = _CONTROL.match(text, at)
                if found is None:
                    # The rest of it has not come yet.
                    self._pending = text[at:]
                    return
                if found[2]:
                    self._obey(found[1], found[2])
                at = found.end()
            else:
                self._put(text[at])
                at += 1

    def _put(self, char: str) -> None:
        match char:
            case "\n":
                self._move(self._row + 1, self._column)
            case "\r":
                self._column = 0
            case "\b":
                self._column = max(0, self._column - 1)
            case "\x07":
                pass
            case _:
                if self._column >= self.columns:
                    self._broken.add(self._row)
                    self._move(self._row + 1, 0)
                line = self._screen[self._row]
                line.extend(" " * (self._column + 1 - len(line)))
                line[self._column] = char
                self._column += 1

    def _obey(self, numbers: str, letter: str) -> None:
        number = numbers.lstrip("?").partition(";")[0]
        count = int(number) if number else 1
        match letter:
            case "A":
                self._row = max(0, self._row - count)
            case "B":
                self._move(self._row + count, self._column)
            case "C":
                self._column = min(self.columns - 1, self._column + count)
            case "D":
                self._column = max(0, self._column - count)
            case "G":
                self._column = count - 1
            case "K":
                line = self._screen[self._row]
                del line[0 if numbers == "2" else self._column :]
                self._broken.discard(self._row)
            case "J":
                del self._screen[self._row][self._column :]
                del self._screen[self._row + 1 :]
            case _:
                pass  # Colours, and whether the cursor is seen.

    def _move(self, row: int, column: int) -> None:
        while len(self._screen) <= row:
            self._screen.append([])
        self._row, self._column = row, column


def _take_terminal(slave: int) -> None:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


def words_of(lines: Sequence[str]) -> list[str]:
    """The words of a screen, without the bars before values; numbers that differ each time are written as 0."""
    plain = (re.sub(r"\d{8}-\d{6}-[0-9a-f]{6}", "RUN", _BAR.sub(" ", line)) for line in lines)
    return [word for line in plain for word in re.sub(r"\d+(\.\d+)?", "0", line).split()]


def broken_words(narrow: Sequence[str], wide: Sequence[str]) -> list[str]:
    """The words of a narrow screen that are no words of the same program at a wide one.

    One that is longer than a line may be broken after a mark: its pieces are put together first. How long a step took
    is told only if it took long, so that these words count as known.
    """
    known, broken = {*words_of(wide), "s)", "s"}, list[str]()
    words = words_of(narrow)
    at = 0
    while at < len(words):
        word, end = words[at], at + 1
        while word not in known and word[-1] in MARKS and end < len(words):
            word, end = word + words[end], end + 1
        if word in known:
            at = end
        else:
            broken.append(words[at])
            at += 1
    return broken


def program_words(script: Path, *words: str) -> list[str]:
    """The words to start a Python program of the tests with."""
    import sys

    return [sys.executable, str(script), *words]
