"""Tools by what they accept, give and can do: media types, endings, types of values, capabilities, chains."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from bicameral.config import Config, open_registry
from bicameral.errors import ToolError
from bicameral.tools import Registry, describe_tool, find_tools, lookup_names, tool
from bicameral.tools._lookup import type_names
from bicameral.tools._media import (
    media_matches,
    media_of_request,
    normalise_capability,
    normalise_media,
    plain_capabilities,
)
from bicameral.types import DATE, INT, MONEY, STR, DictType, ListType, OptionalType, StrType

OCR = {
    "name": "agx-ocr",
    "version": "0.1.0",
    "capabilities": ["document-ocr", "image-to-text"],
    "inputs": ["image/png", "image/jpeg", "application/pdf"],
    "outputs": ["text/plain", "application/json"],
}


def names(registry: Registry, **asked: list[str]) -> list[str]:
    return [found.name for found in find_tools(registry, **asked).tools]


@pytest.fixture(scope="module")
def standard() -> Registry:
    return open_registry(Config.defaults())


@pytest.fixture
def described(tmp_path: Path) -> Registry:
    program = tmp_path / "agx-ocr"
    program.write_text(f"#!/usr/bin/env python3\nprint({json.dumps(OCR)!r})\n")
    program.chmod(0o755)
    return Registry(describe_tool([str(program)]))


def test_a_described_command_is_found_by_each_of_its_facts(described: Registry) -> None:
    for asked in (
        {"accepts": ["application/pdf"]},
        {"accepts": ["image/*"]},
        {"accepts": [".jpg"]},
        {"accepts": ["Image/JPG; q=1"]},
        {"accepts": ["path"], "gives": ["text"]},
        {"gives": ["application/json"]},
        {"can": ["document-ocr"]},
        {"can": ["ocr"]},
        {"accepts": ["application/pdf", "image/png"], "gives": ["text/plain"], "can": ["Image to Text"]},
    ):
        assert names(described, **asked) == ["agx_ocr"], asked


def test_every_condition_must_hold(described: Registry) -> None:
    for asked in (
        {"accepts": ["audio/*"]},
        {"accepts": ["application/pdf"], "gives": ["text/csv"]},
        {"accepts": ["application/pdf"], "can": ["translation"]},
        {"accepts": ["application/pdf", "image/gif"]},
        {"can": ["document-translation"]},
    ):
        assert not find_tools(described, **asked), asked


def test_the_tools_that_come_with_the_package_are_found(standard: Registry) -> None:
    assert names(standard, accepts=["application/pdf"], gives=["text/plain"])[:2] == ["read_text", "read_lines"]
    assert names(standard, accepts=["text/csv"], gives=["table"])[:1] == ["read_csv"]
    assert names(standard, accepts=[".xlsx"], gives=["table"]) == ["read_csv", "read_sheet"]
    assert names(standard, gives=["text/csv"]) == ["write_csv"]
    assert names(standard, accepts=["text/html"], gives=["page"]) == ["fetch_page"]
    assert {"list_events", "search_events"} <= set(names(standard, accepts=["date"], gives=["event"]))
    assert "today" in names(standard, gives=["date"])
    assert "send_mail" in names(standard, accepts=["email"], can=["send-mail"])
    assert names(standard, can=["back up"]) == ["copy_file"]


def test_the_tool_that_names_a_type_comes_before_one_that_covers_it(standard: Registry) -> None:
    assert names(standard, accepts=["text/csv"])[0] == "read_csv"


def test_two_tools_in_a_row_serve_where_no_single_one_does(standard: Registry) -> None:
    found = find_tools(standard, accepts=["text/csv"], gives=["int"])
    assert not found.tools
    assert [(each.first.name, each.second.name, each.argument) for each in found.chains] == [
        ("read_lines", "count_lines", "lines")
    ]
    assert find_tools(standard, accepts=["text/csv"], gives=["int"], can=["send"]).chains == ()


def test_a_text_goes_on_only_to_a_tool_that_reads_texts(described: Registry) -> None:
    @tool(effect="pure", accepts=["text/plain"])
    def words(text: str) -> int:
        """How many words."""
        return len(text.split())

    @tool(effect="read")
    def rooms(building: str) -> int:
        """How many rooms a building has."""
        return len(building)

    found = find_tools([*described, words, rooms], accepts=["image/png"], gives=["number"])
    assert [(each.first.name, each.second.name) for each in found.chains] == [("agx_ocr", "words")]


def test_nothing_found_names_the_nearest(described: Registry, standard: Registry) -> None:
    assert find_tools(described, can=["document-orc"]).nearest == (("document-orc", "document-ocr"),)
    assert find_tools(standard, accepts=["text/cvs-schema"]).tools, "text/* covers it"
    assert find_tools(described, accepts=["application/pfd"]).nearest == (("application/pfd", "application/pdf"),)
    assert find_tools(standard, gives=["tabel"]).nearest == (("tabel", "table"),)
    assert find_tools(described, accepts=["audio/mpeg"]).nearest == (("audio/mpeg", None),)
    assert find_tools(described, accepts=["image/gif"]).nearest[0][1] in ("image/jpeg", "image/png")


@pytest.mark.parametrize("word", ["app lication/pdf", "/", "image/", ".nosuch", "\x1b[31m", "", "a/b/c", "-"])
def test_what_cannot_be_looked_up_is_refused(standard: Registry, word: str) -> None:
    with pytest.raises(ToolError) as caught:
        find_tools(standard, accepts=[word])
    assert caught.value.code == "tools.bad-lookup"
    if "/" not in word:
        with pytest.raises(ToolError):
            find_tools(standard, can=[word]) if word != ".nosuch" else find_tools(standard, gives=[word])


def test_types_of_values_have_names() -> None:
    assert type_names(OptionalType(DATE)) == {"date"}
    assert type_names(ListType(DictType(STR))) == {"list", "table"}
    assert type_names(ListType(STR)) == {"list", "lines"}
    assert type_names(ListType(StrType("email"))) == {"list", "email"}
    assert type_names(StrType("path")) == {"path", "file"}
    assert type_names(INT) == {"int", "number"}
    assert type_names(MONEY) == {"record", "money"}


def test_media_types_match_by_wildcards_and_structure() -> None:
    assert media_matches("image/*", "image/png")
    assert media_matches("*/*", "image/png")
    assert media_matches("application/json", "application/ld+json")
    assert not media_matches("image/*", "application/pdf")
    assert not media_matches("application/ld+json", "application/geo+json")
    assert not media_matches("text/json5", "text/jso")


@given(st.text(max_size=30))
def test_a_name_of_a_program_is_plain_or_not_used(text: str) -> None:
    for plain in (normalise_capability(text), normalise_media(text)):
        assert plain is None or (plain.isascii() and plain.isprintable() and " " not in plain)


def test_capabilities_with_controls_or_orders_are_not_offered(tmp_path: Path) -> None:
    bad = ["\x1b]0;owned\x07", "ok\nrm -rf ~", "`reboot`", "$(reboot)", "a" * 500, "photo-tagging"]
    assert plain_capabilities(bad) == ("photo-tagging",)
    program = tmp_path / "tagger"
    program.write_text(f"#!/usr/bin/env python3\nprint({json.dumps(OCR | {'capabilities': bad})!r})\n")
    program.chmod(0o755)
    known = lookup_names(describe_tool([str(program)]))
    assert "photo-tagging" in known[2]
    assert all(name.isascii() and name.isprintable() for side in known for name in side)


def test_a_tool_with_a_wrong_media_type_is_refused() -> None:
    with pytest.raises(ToolError, match="pdf") as caught:

        @tool(effect="pure", accepts=["pdf"])
        def broken(text: str) -> str:
            """Nothing."""
            return text

    assert caught.value.code == "tools.bad-media"


def test_a_request_speaks_of_kinds_of_files() -> None:
    assert media_of_request("read scan.pdf", ["scan.pdf"]) == ("application/pdf", "image/*")
    assert media_of_request("What do the photos show?") == ("image/*",)
    assert media_of_request("Total the amounts in sales.csv", ["sales.csv"]) == ("text/csv",)
    assert media_of_request("Send the report to Ann") == ()
