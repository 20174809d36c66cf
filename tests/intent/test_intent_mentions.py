"""Whether a request says a text as a whole."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from bicameral.text import mentions, mentions_path

REQUEST = (
    'Mail "the menu" (menu.txt) to kim@example.com, see https://example.com/a?b=1. Copy it into the folder backup.'
)


@pytest.mark.parametrize(
    "text", ["kim@example.com", "KIM@example.com", "menu.txt", "https://example.com/a?b=1", "backup"]
)
def test_what_stands_in_the_request_is_said(text: str) -> None:
    assert mentions(REQUEST, text)


@pytest.mark.parametrize(
    "text",
    [
        "im@example.com",
        "kim@example.co",
        "kim@example",
        "example.com",
        "https://example.com",
        "https://example.com/a",
        "ttps://example.com/a?b=1",
        "menu",
        "enu.txt",
        "",
        " ",
        "/",
    ],
)
def test_a_part_of_what_stands_there_is_not_said(text: str) -> None:
    request = REQUEST.replace('"the menu" ', "")
    assert not mentions(request, text)


def test_the_end_of_a_sentence_is_no_part_of_a_name() -> None:
    assert mentions("Write to kim@example.com.", "kim@example.com")
    assert mentions("Is it menu.txt? Or menu.md?", "menu.txt")
    assert not mentions("Write to kim@example.com.evil.example", "kim@example.com")
    assert mentions("Fetch https://example.com/", "https://example.com")


@pytest.mark.parametrize("path", ["backup/menu.txt", "./backup/menu.txt", "menu.txt", "Backup/menu.txt"])
def test_a_path_is_said_by_its_parts(path: str) -> None:
    assert mentions_path(REQUEST, path)


@pytest.mark.parametrize(
    "path",
    ["/backup/menu.txt", "../menu.txt", "backup/../menu.txt", "~/menu.txt", "backup//menu.txt", "backup/menu.sh"],
)
def test_a_path_that_leads_elsewhere_must_stand_in_the_request_as_it_is(path: str) -> None:
    assert not mentions_path(REQUEST, path)
    assert mentions_path(f"Write to {path} please", path)


@given(st.from_regex(r"[a-z]{1,6}@[a-z]{1,6}\.com", fullmatch=True), st.sampled_from(["x", "@", ".x", "-x", "_"]))
def test_an_address_with_more_at_its_end_is_another(address: str, more: str) -> None:
    assert mentions(f"to {address}, please", address)
    assert not mentions(f"to {address}{more}, please", address)
