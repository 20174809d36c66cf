"""Where words go: answers to standard output, everything else to standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bicameral.display import escaped_json, visible
from bicameral.secrets import masked, masked_json

if TYPE_CHECKING:
    from rich.console import Console


class Output:
    """The two streams of a command. With `as_json` only one JSON object goes to standard output."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._notices: dict[str, Any] = {}

    def notice(self, name: str, facts: Any) -> None:
        """Something that the one JSON object must say, whatever the command itself has to say."""
        self._notices[name] = facts

    @property
    def interactive(self) -> bool:
        """Whether a person is there to be asked: a terminal on both ends, and no program reading JSON."""
        return not self.as_json and sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def lively(self) -> bool:
        """Whether standard error is a terminal that can redraw."""
        return not self.as_json and sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")

    @property
    def width(self) -> int:
        """How wide an answer may be; without a terminal, as wide as it is."""
        if not sys.stdout.isatty():
            return 10_000
        import shutil

        return shutil.get_terminal_size().columns

    @cached_property
    def console(self) -> Console:
        """Rich's console on standard error; it honours NO_COLOR."""
        from rich.console import Console

        return Console(stderr=True, highlight=False, soft_wrap=True)

    def show(self, text: str) -> None:
        """Something that was asked for."""
        if not self.as_json:
            text = masked(text)
            sys.stdout.write((visible(text) if sys.stdout.isatty() else text).rstrip("\n") + "\n")
            sys.stdout.flush()

    def say(self, text: str, *, style: str = "") -> None:
        """Something said on the way."""
        text = masked(text)
        if style and self.lively:
            from rich.text import Text

            self.console.print(Text(visible(text), style=style))
            return
        sys.stderr.write(visible(text).rstrip("\n") + "\n")
        sys.stderr.flush()

    def heading(self, text: str) -> None:
        self.say(text, style="bold")

    def object(self, facts: Mapping[str, Any]) -> None:
        """The one JSON object, where JSON was asked for."""
        if self.as_json:
            whole = {**facts, **self._notices}
            sys.stdout.write(escaped_json(masked_json(json.dumps(whole, ensure_ascii=False, default=str))) + "\n")
            sys.stdout.flush()

    def error(self, facts: Mapping[str, Any], text: str) -> None:
        """What went wrong, in one line."""
        if self.as_json:
            self.object({"ok": False, "error": facts})
        else:
            self.say(f"error: {text}", style="red")


def readable_error(error: Exception) -> dict[str, str]:
    """An error that nobody foresaw, as something a person can report."""
    if isinstance(error, OSError) and error.errno is not None:
        where = f"{error.filename}: " if error.filename else ""
        return {"code": "cli.system", "message": f"{where}{error.strerror}", "fix": "`bicameral doctor` may know more."}
    return {
        "code": "cli.internal",
        "message": f"this is a fault in Bicameral: {type(error).__name__}: {error}",
        "fix": "Please report it with what BICAMERAL_DEBUG=1 shows.",
    }
