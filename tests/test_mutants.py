"""The list of mutants is as it should be: each is about code and tests that are there. `make mutants` tries them."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from scripts.mutants import MUTANTS, ROOMS, Mutant, StaleMutant, apply_mutant
from scripts.mutants.__main__ import PytestRun, find_stale, judge, main, needed_tests

ROOT = Path(__file__).parents[1]
LEAST = 150


def test_there_are_enough_mutants_of_every_room() -> None:
    assert len(MUTANTS) >= LEAST
    assert set(ROOMS) == {
        *("labels", "policy", "proof", "plans", "approvals", "evidence", "reply", "journal", "records"),
        *("router", "budgets", "leases", "sandbox", "folders", "acceptance", "secrets", "binding", "planning"),
        *(
            "doubts",
            "evaluation",
            "tables",
            "find",
            "plan-choice",
            "undo",
            "console",
            "conversations",
            "strategies",
            "quarantine",
            "trials",
            "own-models",
            "foreign",
            "mcp",
            "openapi",
            "schemas",
            "firewall",
            "servers",
            "mcp-serve",
        ),
        *("tasks", "patterns", "invariants", "compositions"),
    }
    assert min(Counter(mutant.room for mutant in MUTANTS).values()) >= 4


def test_no_two_mutants_are_the_same() -> None:
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.module, mutant.function, mutant.new, mutant.old) for mutant in MUTANTS}) == len(MUTANTS)


def test_every_mutant_changes_code_that_is_there() -> None:
    assert find_stale(MUTANTS) == []
    assert all(mutant.why and mutant.old != mutant.new for mutant in MUTANTS)


def test_the_tests_of_every_mutant_are_there() -> None:
    known: dict[str, set[str]] = {}
    for test in sorted({test for mutant in MUTANTS for test in mutant.tests}):
        file, _, name = test.partition("::")
        if file not in known:
            nodes = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
            known[file] = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert not name or name in known[file], f"there is no {test}"
    assert all(mutant.tests for mutant in MUTANTS)


MODULE = """
def decide(ok):
    return ok and ok

class Gate:
    @property
    def open(self):
        return ok and ok
"""


def _mutant(function: str, old: str = "and", new: str = "or", module: str = "gate.py") -> Mutant:
    return Mutant("labels.x", module, function, old, new, "", ())


def test_a_snippet_is_looked_for_in_its_function_alone(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text(MODULE)
    path, text = apply_mutant(_mutant("Gate.open"), tmp_path)
    assert (path, text) == (tmp_path / "gate.py", MODULE.replace("        return ok and", "        return ok or"))
    assert (tmp_path / "gate.py").read_text() == MODULE


@pytest.mark.parametrize(
    ("mutant", "message"),
    [
        (_mutant("shut"), "there is no 'shut'"),
        (_mutant("Gate"), "not a function"),
        (_mutant("Gate.open", "xor"), "occurs 0 times"),
        (_mutant("decide", "ok"), "occurs 3 times"),
        (_mutant("", "and"), "occurs 2 times"),
        (_mutant("decide", module="door.py"), "no such file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mutant_whose_code_is_gone_says_so(mutant: Mutant, message: str, tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text(MODULE)
    with pytest.raises(StaleMutant, match=message):
        apply_mutant(mutant, tmp_path)


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        (PytestRun(0, (), ""), "survived"),
        (PytestRun(1, (("test_x", "AssertionError"),), ""), "killed"),
        (PytestRun(1, (("test_x", "ImportError"),), ""), "broken"),
        (PytestRun(1, (), ""), "broken"),
        (PytestRun(2, (("test_x", "CollectError"),), ""), "broken"),
        (PytestRun(4, (), "no such test"), "broken"),
        (PytestRun(None, (), ""), "broken"),
    ],
)
def test_only_a_test_that_failed_kills(run: PytestRun, verdict: str) -> None:
    assert judge(run)[0] == verdict


def test_every_test_is_tried_once_without_a_mutant() -> None:
    mutants = [Mutant("a.b", "", "", "", "", "", tests) for tests in (("f::x", "g"), ("g::y", "f::z"), ("h",))]
    assert needed_tests(mutants) == [["f::x", "f::z", "g", "h"]]
    assert needed_tests(mutants, 2) == [["f::x", "f::z", "h"], ["g"]]


def test_the_list_can_be_read_and_an_unknown_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--room", "secrets"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == sum(mutant.room == "secrets" for mutant in MUTANTS)
    with pytest.raises(SystemExit, match=r"no mutant 'labels\.nothing'"):
        main(["--only", "labels.nothing"])
