"""Every invariant of an implemented pattern that code must hold has a test that says that it holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.invariants import main, measure_coverage, pattern_invariants


def test_every_invariant_held_by_type_or_by_run_has_a_test() -> None:
    found = measure_coverage()
    assert not found.missing, [f"{id}: {found.demanded[id].rule}" for id in found.missing]
    assert found.to_json()["invariants"] == found.to_json()["invariants_held"] > 0


def test_no_test_claims_what_is_not_there() -> None:
    assert not measure_coverage().faults


def test_invariants_are_counted_from_one_on() -> None:
    found = pattern_invariants("R4")
    assert "R4.0" not in found
    assert found["R4.3"].rule.startswith("one call a turn")


def _tests_with(folder: Path, text: str) -> Path:
    (folder / "tests").mkdir()
    (folder / "tests" / "test_some.py").write_text(text)
    return folder


def test_a_claim_counts_for_its_invariant_and_the_rest_is_missing(tmp_path: Path) -> None:
    root = _tests_with(tmp_path, "@holds('R4.1', 'R4.3')\ndef test_it(): ...\n")
    found = measure_coverage(root, ["R4"])
    assert not found.faults
    assert {id: [str(each) for each in claims] for id, claims in found.tests.items()} == {
        "R4.1": ["tests/test_some.py::test_it"],
        "R4.3": ["tests/test_some.py::test_it"],
    }
    assert found.missing == ["R4.2", "R4.4", "R4.5", "R4.6"], "R4.7 is the linter's"
    assert found.to_json() == {"invariants": 6, "invariants_held": 2}


@pytest.mark.parametrize(
    "text",
    [
        "@holds('R4.9')\ndef test_it(): ...",
        "@holds('R4.0')\ndef test_it(): ...",
        "@holds('Z1.1')\ndef test_it(): ...",
        "@holds('R4')\ndef test_it(): ...",
        "@holds('R4.7')\ndef test_it(): ...",
        "@holds(SOME)\ndef test_it(): ...",
        "@holds('R4.1')\ndef check_it(): ...",
        "@pytest.mark.only_live\n@holds('R4.1')\ndef test_it(): ...",
        "@holds('R4.1')\n@pytest.mark.skipif(True, reason='')\nasync def test_it(): ...",
    ],
)
def test_a_claim_of_no_such_invariant_or_of_no_such_test_is_a_fault(tmp_path: Path, text: str) -> None:
    found = measure_coverage(_tests_with(tmp_path, text), ["R4"])
    assert len(found.faults) == 1
    assert found.faults[0].startswith("tests/test_some.py:")
    assert not found.tests


def test_the_check_fails_where_an_invariant_has_no_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").mkdir()
    empty = measure_coverage(tmp_path, ["R4"])
    monkeypatch.setattr("scripts.invariants.measure_coverage", lambda: empty)
    assert main(["--check"]) == 1
    assert "no test holds R4.1" in capsys.readouterr().out
