"""The site has every page, no link is dead, and what is generated or computed in the pages is right."""

from __future__ import annotations

import re
from math import sqrt
from pathlib import Path

import pytest
import yaml

from scripts.links import ROOT, anchors, dead_links, navigation
from scripts.rooms import END, PAGE, layers, main, purpose, rooms, update_page

DOCS = ROOT / "docs"


def test_no_link_is_dead() -> None:
    assert [str(dead) for dead in dead_links()] == []


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of two pages, without a fault."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(
        "# Start\n\n## A part: `x` & more\n\n[here](#start) [there](other.md#two)\n"
    )
    (tmp_path / "docs" / "other.md").write_text("# One\n\n## Two\n\n```text\n# No heading\n[no](link.md)\n```\n")
    (tmp_path / "mkdocs.yml").write_text("nav:\n  - Start:\n      - index.md\n      - Other: other.md\n")
    return tmp_path


def test_a_sound_site_has_no_dead_link(site: Path) -> None:
    assert dead_links(site) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[x](missing.md)", "there is no such file"),
        ("[x](other.md#three)", "the page has no such heading"),
        ("[x](#nowhere)", "the page has no such heading"),
        ("[x](other.md#no-heading)", "the page has no such heading"),
        ("[a\nlink](missing.md)", "there is no such file"),
        ("![x](picture.svg)", "there is no such file"),
        ("[x]\n\n[x]: missing.md", "there is no such file"),
        ("[x](../mkdocs.yml)", "the site does not have it: name the file without a link"),
        # The site calls it "a-part-x-more", the repository "a-part-x--more".
        ("[x](index.md#a-part-x-more)", "the page has no such heading"),
    ],
)
def test_a_dead_link_is_found(site: Path, text: str, why: str) -> None:
    page = site / "docs" / "other.md"
    page.write_text(f"{page.read_text()}\n{text}\n")
    assert [(dead.file, dead.why) for dead in dead_links(site)] == [(Path("docs/other.md"), why)]


def test_a_page_that_the_navigation_does_not_have_is_found(site: Path) -> None:
    (site / "docs" / "third.md").write_text("# Three\n")
    (site / "mkdocs.yml").write_text("nav: [index.md, other.md, other.md, fourth.md]\n")
    assert [dead.target for dead in dead_links(site)] == ["other.md", "other.md", "fourth.md", "third.md"]


def test_a_message_that_names_a_missing_page_is_found(site: Path) -> None:
    (site / "src").mkdir()
    (site / "src" / "module.py").write_text(
        'FIX = "see docs/other.md#two"\nBAD = "see docs/other.md#three, docs/no.md"\n'
    )
    assert [(dead.line, dead.target) for dead in dead_links(site)] == [(2, "docs/other.md#three"), (2, "docs/no.md")]


def test_repeated_headings_have_no_anchor_that_both_readers_know(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n## Same\n## Same\n")
    assert anchors(page) == {"a", "same"}


def test_every_page_has_a_question_in_the_navigation_and_a_link_on_the_first_page() -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    # The pages of the patterns are generated, and listed on a page of their own.
    pages = [page for page in navigation() if page != "index.md" and not re.match(r"patterns/\w+\d", page)]
    assert [page for page in pages if f"]({page})" not in text] == []
    sections = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    questions = [
        question for section in sections for entries in section.values() for entry in entries for question in entry
    ]
    assert [question for question in questions if not question.endswith("?")] == []


def test_no_code_in_a_table_has_an_escaped_bar() -> None:
    """GitHub does not show the backslash, the site does: `<code>a&#124;b</code>` is right in both."""
    escaped = re.compile(r"^\|.*`[^`|]*\\\|", re.MULTILINE)
    assert [page.name for page in DOCS.glob("*.md") if escaped.search(page.read_text(encoding="utf-8"))] == []


def test_the_readme_names_the_test_command_and_the_first_page() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(docs/index.md)" in text
    assert "make test" in text
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_map_of_the_rooms_is_that_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == update_page(page), "run: python -m scripts.rooms"
    assert END in page
    assert main(["--check"]) == 0


def test_every_room_has_a_layer_and_says_what_it_is_for() -> None:
    assert sorted(layers()) == sorted(rooms())
    assert [room for room in layers() if len(purpose(room)) < 20] == []


def _wilson(found: int, of: int) -> tuple[float, float]:
    share, z = found / of, 1.96
    middle, half = share + z * z / (2 * of), z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return (middle - half) / (1 + z * z / of), (middle + half) / (1 + z * z / of)


def test_every_interval_is_the_wilson_interval_of_its_count() -> None:
    text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in ("docs/figures.md", "README.md"))
    counted = re.findall(r"(\d+) of (\d+)(?:, (0\.\d\d))? \[(\d\.\d\d), (\d\.\d\d)\]", text)
    assert len(counted) >= 25
    for found, of, share, low, high in counted:
        expected = _wilson(int(found), int(of))
        assert (f"{max(expected[0], 0):.2f}", f"{expected[1]:.2f}") == (low, high), (found, of)
        assert not share or abs(int(found) / int(of) - float(share)) <= 0.00501, (found, of)


def test_every_count_of_the_readme_is_among_the_figures() -> None:
    figures = (DOCS / "figures.md").read_text(encoding="utf-8")
    counts = re.findall(r"\b\d+ of \d+\b", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert counts
    assert [count for count in counts if f"{count} " not in figures and f"{count}," not in figures] == []


def test_every_section_of_the_figures_has_a_command() -> None:
    sections = re.split(r"^## ", (DOCS / "figures.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections if "```sh\n" not in section] == []
