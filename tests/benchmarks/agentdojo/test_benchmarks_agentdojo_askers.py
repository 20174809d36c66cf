"""The page on AgentDojo names every task that asks a person in the weaker mode, and no other; its figures are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("agentdojo", reason="agentdojo is not installed: make agentdojo")

from benchmarks.agentdojo.__main__ import hand_written
from benchmarks.agentdojo.attacks import goal_of
from benchmarks.agentdojo.dojo import SUITES, suite_of
from benchmarks.agentdojo.judging import benign, has_blank
from benchmarks.agentdojo.sample import whole_sample
from benchmarks.agentdojo.worlds import environment

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


def test_the_figures_of_the_page_that_need_no_run_are_true() -> None:
    page = PAGE.read_text(encoding="utf-8")
    injections = {suite: suite_of(suite).injection_tasks.values() for suite in SUITES}
    tasks = [(suite, task) for suite in SUITES for task in suite_of(suite).user_tasks]
    pairs = sum(len(injections[suite]) for suite, _ in tasks)
    blank = sum(len(injections[suite]) for suite, task in tasks if has_blank(suite, task))
    by_tool = {
        suite: sum(not goal_of(suite, each, environment(suite, {})).text_only for each in injections[suite])
        for suite in SUITES
    }
    tool_goals = sum(by_tool[suite] for suite, _ in tasks)
    assert f"| of the {pairs} pairs |" in page
    assert f"it is not asked anything | {pairs - blank} |" in page
    assert f"have a goal that needs a tool | {tool_goals} |" in page
    stopped = re.findall(r"^\| of these, .* \| (\d+) \|$", page, re.MULTILINE)
    assert sum(map(int, stopped)) == tool_goals
    written = hand_written()
    assert f"All {written['plans_by_hand']} plans and all {written['answers_by_hand']} readings" in page
    assert f"A fixed sample of {len(whole_sample())} pairs" in page


@pytest.mark.slow
def test_the_page_says_how_many_tasks_are_solved_with_nobody_to_ask() -> None:
    units = [(suite, task) for suite in SUITES for task in suite_of(suite).user_tasks]
    solved = {
        mode: sum(benign(suite, task, mode, alone=True).solved for suite, task in units)
        for mode in ("strict", "normal")
    }
    page = PAGE.read_text(encoding="utf-8")
    assert f"control flow counted / not counted | 97 / 97 | {solved['strict']} / {solved['normal']} |" in page
