"""The lines toolbox: laws for what keeps and orders lines, and a grep that nobody can stall."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import ToolError
from bicameral.toolboxes.lines import toolbox
from bicameral.tools import Registry, Surroundings

TOOLS = Registry(toolbox.open(Surroundings.here(Path())))
some_lines = st.lists(st.text(max_size=5) | st.sampled_from(["a", "b", "10 x", "9 x", "-3"]))


async def call(name: str, **arguments: Any) -> Any:
    return await TOOLS[name].call(arguments)


async def refusal(name: str, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await call(name, **arguments)
    return caught.value


def test_every_tool_is_pure_and_documented_in_one_line() -> None:
    assert all(tool.effect == "pure" and tool.idempotent and "\n" not in tool.doc for tool in TOOLS)


@given(some_lines, st.booleans(), st.booleans())
async def test_sorting_is_a_permutation(lines: list[str], reverse: bool, numeric: bool) -> None:
    ordered = await call("sort_lines", lines=lines, reverse=reverse, numeric=numeric)
    assert Counter(ordered) == Counter(lines)
    if not numeric:
        assert ordered == sorted(lines, reverse=reverse)


async def test_a_numeric_sort_goes_by_the_first_number_and_leaves_the_rest_last() -> None:
    lines = ["ten 10", "none", "2.5 x", "-3 y", "item-7", "also none", "2024-05-01"]
    assert await call("sort_lines", lines=lines, numeric=True) == [
        "-3 y",
        "2.5 x",
        "item-7",
        "ten 10",
        "2024-05-01",
        "none",
        "also none",
    ]
    backwards = await call("sort_lines", lines=lines, numeric=True, reverse=True)
    assert (backwards[0], backwards[-1]) == ("2024-05-01", "also none")


@given(some_lines)
async def test_unique_loses_no_line_and_keeps_the_order(lines: list[str]) -> None:
    unique = await call("unique_lines", lines=lines)
    assert set(unique) == set(lines)
    assert len(unique) == len(set(unique))
    assert [lines.index(line) for line in unique] == sorted(lines.index(line) for line in unique)


@given(some_lines, st.text(max_size=2), st.booleans())
async def test_grep_and_its_inverse_share_the_lines_out(lines: list[str], pattern: str, ignore_case: bool) -> None:
    kept = await call("grep", lines=lines, pattern=pattern, ignore_case=ignore_case)
    others = await call("grep", lines=lines, pattern=pattern, ignore_case=ignore_case, invert=True)
    assert Counter(kept) + Counter(others) == Counter(lines)
    assert all(pattern.casefold() in line.casefold() for line in kept)


async def test_grep_takes_the_pattern_as_it_stands_unless_told_otherwise() -> None:
    lines = ["Total (net): 5.00", "total", "5x00", "STRASSE", "Straße"]
    assert await call("grep", lines=lines, pattern="(net): 5.0") == lines[:1]
    assert await call("grep", lines=lines, pattern="5.00") == lines[:1]
    assert await call("grep", lines=lines, pattern="5.00", regex=True) == [lines[0], lines[2]]
    assert await call("grep", lines=lines, pattern="^TOTAL$", regex=True) == ["total"]
    assert await call("grep", lines=lines, pattern="^TOTAL$", regex=True, ignore_case=False) == []
    assert await call("grep", lines=lines, pattern="strasse") == ["STRASSE", "Straße"]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*a){20}", "a{1000}"])
async def test_no_regular_expression_takes_longer_than_its_lines_are_long(pattern: str) -> None:
    started = time.thread_time()
    await call("grep", lines=["a" * 20_000 + "!"], pattern=pattern, regex=True)
    assert time.thread_time() - started < 5


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "[z-a]", "a{2000}", "\ud800"])
async def test_a_pattern_that_cannot_be_used_is_explained(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    error = await refusal("grep", lines=["a"], pattern=pattern, regex=True)
    assert error.code == "lines.bad-pattern"
    assert "plain text" in str(error)
    assert capfd.readouterr().err == ""


async def test_without_the_regex_package_plain_text_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    assert await call("grep", lines=["a", "b"], pattern="a") == ["a"]
    assert (await refusal("grep", lines=["a"], pattern="a", regex=True)).code == "lines.no-regex"


@given(some_lines, st.integers(0, 10))
async def test_head_and_tail_are_the_two_ends(lines: list[str], count: int) -> None:
    assert await call("head", lines=lines, count=count) == lines[:count]
    assert (await call("tail", lines=lines, count=count)) == (lines[-count:] if count else [])
    assert await call("count_lines", lines=lines) == len(lines)


async def test_fields_count_from_one_and_short_lines_give_nothing() -> None:
    lines = ["a,b,c", "d", "e,f"]
    assert await call("cut", lines=lines, field=2) == ["b", "", "f"]
    assert await call("cut", lines=["a b", "c d"], field=1, delimiter=" ") == ["a", "c"]


async def test_replacing_works_on_every_line() -> None:
    assert await call("replace_lines", lines=["a.b", "c"], old=".", new="-") == ["a-b", "c"]


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("head", {"count": -1}, "lines.bad-count"),
        ("tail", {"count": -1}, "lines.bad-count"),
        ("cut", {"field": 0}, "lines.bad-field"),
        ("cut", {"field": 1, "delimiter": ""}, "lines.bad-delimiter"),
        ("replace_lines", {"old": "", "new": "x"}, "lines.bad-text"),
    ],
)
async def test_arguments_that_make_no_sense_are_refused(name: str, arguments: dict[str, Any], code: str) -> None:
    assert (await refusal(name, lines=["a"], **arguments)).code == code


async def test_a_plural_finds_its_singular_unless_case_counts() -> None:
    grep = {tool.name: tool for tool in toolbox.open(Surroundings.here())}["grep"]
    lines = ["Invoice 12", "two invoices", "one city", "many cities", "a glass", "glasses", "status"]
    assert await grep.call({"lines": lines, "pattern": "invoices"}) == ["Invoice 12", "two invoices"]
    assert await grep.call({"lines": lines, "pattern": "cities"}) == ["one city", "many cities"]
    assert await grep.call({"lines": lines, "pattern": "status"}) == ["status"]
    assert await grep.call({"lines": lines, "pattern": "glass"}) == ["a glass", "glasses"]
    assert await grep.call({"lines": lines, "pattern": "invoices", "ignore_case": False}) == ["two invoices"]
