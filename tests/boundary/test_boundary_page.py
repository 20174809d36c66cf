"""The page about the quarantine names the numbers and the types that the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bicameral.boundary import COPIED_TYPES
from bicameral.boundary._privileged_view import MAX_CODES, MAX_ITEMS
from bicameral.boundary._reply import MAX_TEXT
from bicameral.plans import parse
from bicameral.types import is_bounded, type_from_json
from bicameral.types._formats import MAX_CODE

PAGE = (Path(__file__).parents[2] / "docs" / "quarantine.md").read_text(encoding="utf-8")
ROWS = [
    line.strip("|").replace("\\|", "").split("|") for line in re.findall(r"^\| `.*(?:yes|no).*$", PAGE, re.MULTILINE)
]
TYPES = [
    (name, says.strip(), copied.strip())
    for names, _, says, copied in (row for row in ROWS if len(row) == 4)
    for name in re.findall("`([^`]+)`", names)
]


@pytest.mark.parametrize(
    "said",
    [
        f"up to {MAX_TEXT:,} characters",
        f"up to {MAX_CODE} letters",
        f"the first {MAX_ITEMS}, of a record its fields",
        f"at most {['none', 'one', 'two', 'three', 'four'][MAX_CODES]} of them cross by value",
    ],
)
def test_the_page_names_the_numbers_of_the_code(said: str) -> None:
    assert said in " ".join(PAGE.split())


@pytest.mark.parametrize(("name", "says", "copied"), TYPES, ids=[each[0] for each in TYPES])
def test_the_page_says_of_each_type_whether_it_is_bounded_and_copied(name: str, says: str, copied: str) -> None:
    written = name.replace("…", '"a"')
    (step, _) = parse(f"x = extract('t', 'i', {written})\nanswer(x)").plan.steps
    assert is_bounded(type_from_json(step.model_dump()["type"])) == (says == "yes")
    assert (written in COPIED_TYPES) == copied.startswith("yes")


def test_the_page_names_every_type_that_must_be_copied() -> None:
    assert {name for name, _, copied in TYPES if copied.startswith("yes")} == COPIED_TYPES
