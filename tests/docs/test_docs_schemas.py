"""The published schemas are those of the code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from scripts.schemas import FOLDER, differing, main, schemas


def test_the_published_schemas_are_those_of_the_code() -> None:
    assert differing() == [], "run: make schemas"


@pytest.mark.parametrize("name", schemas())
def test_a_published_schema_is_a_valid_schema(name: str) -> None:
    Draft202012Validator.check_schema(json.loads((FOLDER / name).read_text(encoding="utf-8")))


def test_a_file_that_differs_is_named_and_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--folder", str(tmp_path)]) == 0
    (tmp_path / "plan.v1.json").write_text("{}\n")
    assert main(["--check", "--folder", str(tmp_path)]) == 1
    assert "plan.v1.json" in capsys.readouterr().err
    assert main(["--folder", str(tmp_path)]) == 0
    assert main(["--check", "--folder", str(tmp_path)]) == 0
