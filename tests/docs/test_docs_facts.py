"""Numbers that the pages name are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from bicameral.delta._delta import EXAMPLES, REPAIRS
from bicameral.delta._relevance import SHOW_ALL, SHOWN
from bicameral.intent import MAX_REQUEST
from bicameral.runs._engine import STEPS_AT_ONCE, TURNS_AT_ONCE
from bicameral.runs._hands import ATTEMPTS, GRACE
from bicameral.toolboxes._tables_shape import LONGEST_NAME, MAX_FIELDS, MOST_WORDS, shape
from bicameral.tools._describe import DESCRIBE_SECONDS
from bicameral.types import RecordType

DOCS = Path(__file__).parents[2] / "docs"
WORDS = {2: "twice", 3: "three", 5: "five"}


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("how-planning-works.md", f"Up to {SHOW_ALL} tools all go into the prompt"),
        ("how-planning-works.md", f"the {SHOWN} best do"),
        ("how-planning-works.md", f"up to {WORDS[EXAMPLES]} whose words are nearest"),
        ("how-planning-works.md", f"at most {WORDS[REPAIRS]}\n(`repairs`"),
        ("runs.md", f"up to {STEPS_AT_ONCE} steps at a time"),
        ("runs.md", f"side by side, {TURNS_AT_ONCE} at a time"),
        ("runs.md", f"tried up to {WORDS[ATTEMPTS]} times"),
        ("runs.md", f"given {WORDS[int(GRACE)]} seconds"),
        ("tools.md", f"has {WORDS[int(DESCRIBE_SECONDS)]} seconds"),
        ("errors.md", f"more than {MAX_REQUEST:,} characters"),
    ],
)
def test_a_page_names_the_number_that_the_code_has(page: str, said: str) -> None:
    assert said in (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("header", "passed_on"),
    [
        ("a" * LONGEST_NAME, True),
        ("a" * (LONGEST_NAME + 1), False),
        ("one two three four", True),
        ("one two three four five", False),
        ("a: b", False),
    ],
)
def test_only_short_names_of_columns_reach_the_planner(header: str, passed_on: bool) -> None:
    assert isinstance(shape({"amount": 1, header: 2}), RecordType) is passed_on
    planning = " ".join((DOCS / "how-planning-works.md").read_text(encoding="utf-8").split())
    assert f"at most {LONGEST_NAME} letters, digits and underscores in up to four words" in planning
    declared = " ".join((DOCS / "declarations.md").read_text(encoding="utf-8").split())
    assert f"at most {LONGEST_NAME} characters and four words long" in declared
    assert f"no more than {MAX_FIELDS} names in all" in declared
    assert MOST_WORDS == 4
