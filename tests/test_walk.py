"""`python -m scripts.walk` measures one run, and one run checks and proves its plan once."""

from __future__ import annotations

import json

import pytest

from scripts.walk import LIMITS, main


def test_a_run_checks_and_proves_its_plan_once(capsys: pytest.CaptureFixture[str]) -> None:
    status = main([])
    found = json.loads(capsys.readouterr().out)
    # The planner's check is that of the run, where nothing had to be bound.
    assert (found["checks"], found["checks_neutral"], found["proofs"]) == (0, 1, 1)
    assert found["calls"] > found["functions"] > found["files"] > found["rooms"] > 10
    assert found["limits"] == LIMITS
    assert status == (1 if any(found[name] > limit for name, limit in LIMITS.items()) else 0)


def test_the_files_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    files = capsys.readouterr().out.splitlines()
    assert files == sorted(set(files))
    assert {"runs/_run.py", "plans/check/_checker.py", "toolboxes/lines.py"} <= set(files)
