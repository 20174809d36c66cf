"""Measure how much of the program one `bicameral run` goes through, and hold that against limits.

python -m scripts.walk            prints one JSON object; exits 1 if a limit is exceeded
python -m scripts.walk --list     prints the files that the run visited

The run has two tool calls and a scripted model, in this process and in a folder of its own. What modules execute while
they are imported does not count: it depends on what was imported before.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

from bicameral.agent import Agent
from bicameral.cli import main as bicameral
from bicameral.config import Config
from bicameral.models import ScriptedProvider
from bicameral.plans import check, prove

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "bicameral"
REQUEST = "Find the lines of mail.txt that mention invoices"
PLAN = 'lines = read_lines("mail.txt")\nfound = grep(lines, "invoice")\nanswer(found)\n'
MAIL = "invoice 7 is open\nhello\n"
LIMITS = {"files": 90, "checks": 1, "proofs": 1, "src_files": 330, "src_lines": 70_000}
_DRAFT_CHECK = "Delta._judge_plan"
"""Who has the planner's draft checked, with neutral names, directly: that is a check of another plan."""


@dataclass
class Walk:
    """Counts the functions that are called, by file, in all threads that are started meanwhile."""

    functions: set[CodeType] = field(default_factory=set[CodeType])
    calls: int = 0
    checks: int = 0
    checks_neutral: int = 0
    proofs: int = 0
    _folder: str = f"{PACKAGE}{os.sep}"
    _importing: dict[int, int] = field(default_factory=dict[int, int])

    @contextmanager
    def trace(self) -> Generator[None]:
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _see(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if code.co_name == "<module>":
            thread = threading.get_ident()
            if event in ("call", "return"):
                self._importing[thread] = self._importing.get(thread, 0) + (1 if event == "call" else -1)
            return
        # Bodies of classes have no fast locals: they belong to the import or to the function around them.
        if event != "call" or not code.co_flags & inspect.CO_OPTIMIZED or not code.co_filename.startswith(self._folder):
            return
        if self._importing.get(threading.get_ident()):
            return
        self.calls += 1
        self.functions.add(code)
        if code is check.__code__:
            if _is_draft_check(frame):
                self.checks_neutral += 1
            else:
                self.checks += 1
        elif code is prove.__code__:
            self.proofs += 1

    @property
    def files(self) -> list[str]:
        """The source files in which a function was called, relative to the package."""
        return sorted({str(Path(code.co_filename).relative_to(PACKAGE)) for code in self.functions})

    def to_json(self) -> dict[str, Any]:
        sources = [file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py")]
        return {
            "files": len(self.files),
            "rooms": len({file.partition(os.sep)[0] for file in self.files}),
            "functions": len(self.functions),
            "calls": self.calls,
            "checks": self.checks,
            "checks_neutral": self.checks_neutral,
            "proofs": self.proofs,
            "src_files": len(sources),
            "src_lines": sum(len(source.splitlines()) for source in sources),
            "limits": LIMITS,
        }


def _is_draft_check(frame: FrameType) -> bool:
    caller = frame.f_back.f_back if frame.f_back is not None else None
    return caller is not None and caller.f_code.co_qualname == _DRAFT_CHECK


def walk_run() -> Walk:
    """Run the request once, from the entry of the command to its exit."""
    walk = Walk()
    with _own_folder(), redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as told:
        with walk.trace(), suppress(SystemExit):
            bicameral(["run", REQUEST], obj=_scripted_agent)
        if out.getvalue() != "invoice 7 is open\n":
            raise RuntimeError(f"the run failed: {out.getvalue()}{told.getvalue()}")
    return walk


def _scripted_agent(config: Config) -> Agent:
    return Agent.from_config(
        config,
        privileged=ScriptedProvider([PLAN], grammars=False),
        quarantined=ScriptedProvider([], grammars=False),
    )


@contextmanager
def _own_folder() -> Generator[None]:
    """A folder with a mail in it, and nothing of the user's configuration, journal or cache."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="bicameral-walk-") as name:
        base = Path(name)
        own = {variable: str(base / variable.lower()) for variable in _FOLDERS}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BICAMERAL_", "OTEL_"))}
        work = base / "work"
        work.mkdir()
        (work / "mail.txt").write_text(MAIL, encoding="utf-8")
        with patch.dict(os.environ, kept | own, clear=True):
            os.chdir(work)
            try:
                yield
            finally:
                os.chdir(before)


_FOLDERS = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "BICAMERAL_MODELS")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure how much of the program one run goes through.")
    parser.add_argument("--list", action="store_true", help="print the files that the run visited")
    given = parser.parse_args(words)
    walk = walk_run()
    if given.list:
        print("\n".join(walk.files))
        return 0
    found = walk.to_json()
    print(json.dumps(found))
    return 1 if any(found[name] > limit for name, limit in LIMITS.items()) else 0


if __name__ == "__main__":
    sys.exit(main())
