"""A folder to call the command line in, with models that reply from a script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from seed_examples import ALIASES, ALIASES_PATH

from bicameral.agent import Agent
from bicameral.cli import main
from bicameral.config import Config, load_config
from bicameral.models import ScriptedProvider


@dataclass(frozen=True)
class World:
    """The folder that commands work in."""

    folder: Path

    def call(self, *words: str, script: Sequence[str] | None = None, stdin: str = "") -> Result:
        """Run a command; with a script, by models that write these plans."""
        return CliRunner().invoke(main, list(words), obj=_scripted(script), input=stdin)

    def json(self, *words: str, script: Sequence[str] | None = None, stdin: str = "", code: int = 0) -> dict[str, Any]:
        """What a command with `--json` printed."""
        result = self.call(*words, "--json", script=script, stdin=stdin)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def process(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own, with a text on its standard input."""
        argv = [sys.executable, "-m", "bicameral.cli", *words]
        return subprocess.run(argv, input=stdin, capture_output=True, text=True, cwd=self.folder, check=False)

    def write(self, name: str, text: str) -> str:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return name

    def profile(self, text: str, aliases: str = ALIASES) -> Config:
        """The configuration with a profile of the document, and its file of aliases where the profile says."""
        self.write(ALIASES_PATH, aliases)
        self.write("profile.yaml", text)
        self.write("bicameral.toml", '[models]\nprofile = "profile.yaml"\n')
        return load_config(base=self.folder)

    def program(self, name: str, text: str) -> Path:
        """An executable file."""
        self.write(name, text)
        (self.folder / name).chmod(0o755)
        return self.folder / name


def _scripted(script: Sequence[str] | None) -> Callable[[Config], Agent] | None:
    if script is None:
        return None

    def make(config: Config) -> Agent:
        return Agent.from_config(
            config,
            privileged=ScriptedProvider(list(script), grammars=False),
            quarantined=ScriptedProvider([("", '{"value": 12}')], grammars=False),
        )

    return make
