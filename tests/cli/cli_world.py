"""A small world to call the command line in: a folder, a user of its own, and models that reply from a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from bicameral.agent import Agent
from bicameral.cli import main
from bicameral.config import Config
from bicameral.models import ScriptedProvider

PLAN = 'lines = read_lines("mail.txt")\nkept = unique_lines(lines)\nfound = grep(kept, "invoice")\nanswer(found)\n'
REQUEST = "Remove duplicates from mail.txt and find lines mentioning invoices"
MAIL = "invoice 7 is open\nhello\ninvoice 7 is open\ninvoice 9 is paid\n"


@dataclass(frozen=True)
class World:
    """The folder that commands work in; `call` runs one of them."""

    folder: Path

    def call(self, *words: str, script: Sequence[str] | None = None, stdin: str | bytes = "") -> Result:
        """Run a command with models that write these plans."""
        return CliRunner().invoke(main, list(words), obj=scripted(script), input=stdin)

    def json(self, *words: str, script: Sequence[str] | None = None, stdin: str = "", code: int = 0) -> dict[str, Any]:
        """What a command with --json printed; it must be one line with one object."""
        result = self.call(*words, "--json", script=script, stdin=stdin)
        assert result.exit_code == code, result.output
        assert result.stdout.count("\n") == 1, result.stdout
        return json.loads(result.stdout)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name


def scripted(script: Sequence[str] | None) -> Callable[[Config], Agent] | None:
    """An agent as configured, but with models that reply from a script."""
    if script is None:
        return None

    def make(config: Config) -> Agent:
        return Agent.from_config(
            config,
            privileged=ScriptedProvider(list(script), grammars=False),
            quarantined=ScriptedProvider([("", '{"value": 12}')], grammars=False),
        )

    return make
