"""What the watch over privileged prompts has seen in all tests of a session, told at its end.

A run of the whole suite in which it has seen no prompt of a planner, or no name of a world, fails: then the watch has
come off its hook, and that no canary was found says nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from canaries import TOTALS

WHOLE_SUITE = 10_000
"""From so many tests on a session counts as the whole suite, and must have seen something of each kind."""
REQUIRED = ("prompts of delta", "prompts of echo", "names of the world", "texts of strangers")


def missing_kinds(totals: Counter[str], tests: int) -> list[str]:
    """What a session of so many tests must have seen, and has not."""
    return [kind for kind in REQUIRED if not totals[kind]] if tests >= WHOLE_SUITE else []


class CanaryReport:
    """Adds up what the processes of a session have seen."""

    def __init__(self) -> None:
        self.missing: list[str] = []

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["canaries"] = dict(TOTALS)
            return
        self.missing = [] if session.shouldstop or session.shouldfail else missing_kinds(TOTALS, session.testscollected)
        if self.missing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        TOTALS.update(getattr(node, "workeroutput", {}).get("canaries", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        prompts = sum(count for kind, count in TOTALS.items() if kind.startswith("prompts of "))
        if prompts:
            seen = ", ".join(f"{kind} {count}" for kind, count in sorted(TOTALS.items()))
            terminalreporter.write_line(f"{prompts} privileged prompts were searched for canaries ({seen})")
        for kind in self.missing:
            terminalreporter.write_line(f"ERROR: the watch over privileged prompts has seen no {kind}", red=True)
