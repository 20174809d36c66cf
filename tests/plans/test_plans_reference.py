"""The page about the language says what the code does."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from bicameral.binding import Binder, PlanBinder, WorldSource
from bicameral.plans import FUNCTIONS, RUN_CODES, check, parse
from bicameral.plans.evaluate._bounds import MAX_BITS, MAX_ITEMS, MAX_TEXT, MAX_WORK
from bicameral.tools import Registry, Surroundings
from scripts.language_tables import update_tables

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
TEXT = PAGE.read_text(encoding="utf-8")
TOOLBOXES = ("files", "lines", "tables", "mail", "calendar", "clock")


def test_the_tables_of_the_page_are_those_of_the_library() -> None:
    assert update_tables(TEXT) == TEXT, "run: python -m scripts.language_tables docs/language.md"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_on_the_page(name: str) -> None:
    assert f"`{name}(" in TEXT or f".{name}(" in TEXT


def test_every_code_of_the_run_is_on_the_page() -> None:
    assert all(f"`{code}`" in TEXT for code in RUN_CODES)


def test_the_limits_are_those_on_the_page() -> None:
    assert (MAX_TEXT, MAX_ITEMS, MAX_BITS, MAX_WORK) == (10_000_000, 1_000_000, 1000, 2_000_000)


@pytest.mark.parametrize("snippet", re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
async def test_every_plan_on_the_page_is_bound_and_passes_the_check(snippet: str, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("country,amount\nat,1.5\nde,2\n")
    (tmp_path / "expenses.csv").write_text("category,amount\ntravel,12.5\nfood,3\n")
    surroundings = Surroundings.here(tmp_path)
    boxes = [import_module(f"bicameral.toolboxes.{name}").toolbox for name in TOOLBOXES]
    registry = Registry(tool for box in boxes for tool in box.open(surroundings))
    bound = await PlanBinder(registry, Binder(WorldSource(registry))).bind(parse(snippet, registry).plan)
    bound.require()
    report = check(bound.plan, registry)
    assert [str(finding) for finding in report.findings] == []
