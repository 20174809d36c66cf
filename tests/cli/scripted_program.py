"""The command line in a process of its own, with a planner that reads its replies from a file: SCRIPT.json WORDS…"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bicameral.agent import Agent
from bicameral.cli import main
from bicameral.config import Config
from bicameral.models import ScriptedProvider


def make(config: Config) -> Agent:
    script: list[str] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    planner = ScriptedProvider(script, grammars=False)
    return Agent.from_config(config, privileged=planner, quarantined=ScriptedProvider([], grammars=False))


if __name__ == "__main__":
    main(sys.argv[2:], obj=make)
