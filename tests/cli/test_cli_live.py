"""Progress as it is shown: redrawn on a terminal, lines in a log."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bicameral.cli._displays import LineDisplay, LiveDisplay, StepRows
from bicameral.cli._output import Output
from bicameral.runs import StepProgress


def started(step: str, what: str = "read_lines", **arguments: object) -> StepProgress:
    return StepProgress("started", step, what, facts={"arguments": arguments})


def finished(step: str, what: str = "read_lines", seconds: float = 0.0) -> StepProgress:
    return StepProgress("finished", step, what, seconds)


def test_the_turns_of_a_loop_share_a_row() -> None:
    rows = StepRows()
    for turn in range(3):
        rows.update_row(started(f"1[{turn}]/0", path=f"{turn}.txt"))
        rows.update_row(finished(f"1[{turn}]/0", seconds=0.5))
    assert [row.text for row in rows.values()] == ["read_lines × 3 (1.5 s)"]


def test_a_log_gets_a_line_a_step_and_one_for_a_whole_loop(capsys: pytest.CaptureFixture[str]) -> None:
    lines = LineDisplay(Output())
    lines.phase("running")
    lines.step(started("0", path="a.txt"))
    lines.step(finished("0", seconds=1.0))
    for turn in range(40):
        lines.step(started(f"1[{turn}]/0", "send_mail"))
        lines.step(finished(f"1[{turn}]/0", "send_mail"))
    lines.step(started("2", "grep"))
    lines.step(StepProgress("retrying", "2", "grep", facts={"error": "not now"}))
    lines.step(StepProgress("failed", "2", "grep"))
    lines.close()
    assert capsys.readouterr().err.splitlines() == [
        "running …",
        "  ok read_lines(path=a.txt) (1.0 s)",
        "  trying again: grep: not now",
        "  ok send_mail × 40",
        "  failed grep()",
    ]


def test_at_a_terminal_statements_come_and_go_and_steps_stay() -> None:
    screen = io.StringIO()
    out = Output()
    out.console = Console(file=screen, force_terminal=True, width=100, color_system=None)
    shown = LiveDisplay(out)
    shown.phase("planning")
    shown.statement('lines = read_lines("a.txt")\n')
    with shown.quiet():
        pass
    assert 'lines = read_lines("a.txt")' in screen.getvalue()
    shown.phase("running")
    shown.step(started("0", path="a.txt"))
    shown.step(finished("0"))
    shown.close()
    assert screen.getvalue().rstrip().endswith("✓ read_lines(path=a.txt)")
