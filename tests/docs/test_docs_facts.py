"""Numbers that the pages name are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from bicameral.planning import MAX_REQUEST
from bicameral.planning._delta import EXAMPLE_COUNT, MAX_REPAIRS
from bicameral.planning._matching import SHOW_ALL_UP_TO, SHOWN_TOOLS
from bicameral.runs._effect_execution import GRACE_SECONDS, MAX_ATTEMPTS
from bicameral.runs._engine import MAX_CONCURRENT_STEPS, MAX_CONCURRENT_TURNS
from bicameral.tools._command_interface import DESCRIBE_SECONDS

DOCS = Path(__file__).parents[2] / "docs"
WORDS = {2: "twice", 3: "three", 5: "five"}


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("how-planning-works.md", f"Up to {SHOW_ALL_UP_TO} tools all go into the prompt"),
        ("how-planning-works.md", f"the {SHOWN_TOOLS} best do"),
        ("how-planning-works.md", f"up to {WORDS[EXAMPLE_COUNT]} whose words are nearest"),
        ("how-planning-works.md", f"at most {WORDS[MAX_REPAIRS]}\n(`repairs`"),
        ("runs.md", f"up to {MAX_CONCURRENT_STEPS} steps at a time"),
        ("runs.md", f"side by side, {MAX_CONCURRENT_TURNS} at a time"),
        ("runs.md", f"tried up to {WORDS[MAX_ATTEMPTS]} times"),
        ("runs.md", f"given {WORDS[int(GRACE_SECONDS)]} seconds"),
        ("tools.md", f"has {WORDS[int(DESCRIBE_SECONDS)]} seconds"),
        ("errors.md", f"more than {MAX_REQUEST:,} characters"),
    ],
)
def test_a_page_names_the_number_that_the_code_has(page: str, said: str) -> None:
    assert said in (DOCS / page).read_text(encoding="utf-8")
