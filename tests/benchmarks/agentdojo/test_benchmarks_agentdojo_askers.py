"""The page on AgentDojo names every task that asks a person in the weaker mode, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("agentdojo", reason="agentdojo is not installed: make agentdojo")

from benchmarks.agentdojo.dojo import SUITES, suite_of
from benchmarks.agentdojo.judging import benign

PAGE = Path(__file__).parents[3] / "docs" / "agentdojo.md"


def test_the_page_explains_each_task_that_asks_and_no_other() -> None:
    told = re.findall(r"^\| (\w+) (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    asks = [
        (suite, task.removeprefix("user_task_"))
        for suite in SUITES
        for task in suite_of(suite).user_tasks
        if benign(suite, task, "normal").questions
    ]
    assert sorted(told) == sorted(asks)
    assert f"and {len(asks)} where it does not" in PAGE.read_text(encoding="utf-8")
