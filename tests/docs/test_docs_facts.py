"""Numbers that the pages name are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from bicameral.delta._delta import EXAMPLES, REPAIRS
from bicameral.delta._matching import MOST_TIES
from bicameral.delta._neutral_names import MOST_NAMES
from bicameral.delta._relevance import SHOW_ALL, SHOWN
from bicameral.intent import MAX_REQUEST
from bicameral.runs._engine import STEPS_AT_ONCE, TURNS_AT_ONCE
from bicameral.runs._hands import ATTEMPTS, GRACE
from bicameral.toolboxes._tables_shape import MAX_FIELDS
from bicameral.tools._describe import DESCRIBE_SECONDS

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


def test_the_page_says_how_many_names_are_shown_and_matched() -> None:
    planning = " ".join((DOCS / "how-planning-works.md").read_text(encoding="utf-8").split())
    assert f"At most {MOST_NAMES} names of a file are shown" in planning
    assert MOST_NAMES == MAX_FIELDS
    assert f"fits more than {WORDS[MOST_TIES]} names says nothing" in planning
