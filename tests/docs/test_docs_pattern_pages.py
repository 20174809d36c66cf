"""The pages of the patterns are what the catalogue, the code and the tests say, and their code runs alone."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from docs_snippets import KINDS, blocks

from bicameral.catalog import catalog
from bicameral.catalog.diagrams import WIDTH, split_steps
from bicameral.patterns import IMPLEMENTED, pattern_class
from scripts.invariants import Claim, measure_coverage
from scripts.pattern_pages.__main__ import FOLDER, find_differences, main, render_files, update_navigation
from scripts.pattern_pages.diagram import draw_pattern
from scripts.pattern_pages.example import example_code
from scripts.pattern_pages.page import ROOT, Results, render_page

PAGES = ROOT / FOLDER
NOTHING = Results({}, {})
_SVG = "{http://www.w3.org/2000/svg}"


def test_every_page_is_up_to_date() -> None:
    assert find_differences(render_files()) == [], "run: python -m scripts.pattern_pages"


def test_a_page_that_differs_is_missing_or_is_of_no_pattern_is_found(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    files = {f"{FOLDER}/A1.md": "one", f"{FOLDER}/A2.md": "two", f"{FOLDER}/A3.md": "three"}
    for name, text in {"A1.md": "one", "A2.md": "other", "Z9.md": "gone"}.items():
        (tmp_path / FOLDER / name).write_text(text)
    assert find_differences(files, tmp_path) == [f"{FOLDER}/{name}.md" for name in ("A2", "A3", "Z9")]


def test_the_check_names_the_file_and_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("scripts.pattern_pages.__main__.render_files", lambda: {f"{FOLDER}/R4.md": "other"})
    assert main(["--check"]) == 1
    assert f"{FOLDER}/R4.md is not up to date; run: python -m scripts.pattern_pages" in capsys.readouterr().err


def test_a_configuration_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no marks"):
        update_navigation("nav:\n  - index.md\n")


def test_every_pattern_has_a_page_that_says_whether_it_runs() -> None:
    for id in catalog().patterns:
        text = (PAGES / f"{id}.md").read_text(encoding="utf-8")
        assert ("\nNot implemented: " in text) != ("\nImplemented: " in text or "\nThe runtime itself " in text), id
        assert ("## Code" in text) == (id in IMPLEMENTED), id
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    assert [id for id in catalog().patterns if f"]({id}.md)" not in index] == []


def test_every_invariant_is_on_its_page_with_the_tests_that_hold_it() -> None:
    for id, claims in measure_coverage().tests.items():
        text = (PAGES / f"{id.partition('.')[0]}.md").read_text(encoding="utf-8")
        (row,) = [line for line in text.splitlines() if line.startswith(f"| {id} |")]
        assert [claim for claim in claims if f"`{claim}`" not in row] == []


# The code -----------------------------------------------------------------------------------------------------------


def load_module(code: str, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of this code alone, which can be found until the test ends."""
    file = folder / f"{name}.py"
    file.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Annotations of tools and dataclasses are resolved in the module that defines them.
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_the_code_of_every_page_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for id in IMPLEMENTED:
        shown = blocks(PAGES / f"{id}.md")
        assert {block.kind for block in shown} <= set(KINDS)
        (code,) = [block.text for block in shown if block.kind == "python"]
        folder = tmp_path / id
        folder.mkdir()
        example: Any = load_module(code, folder, f"page_{id}", monkeypatch).EXAMPLE
        assert type(example.make(folder)) is pattern_class(id), id
        example.arguments(folder)
        example.tools(folder)


def test_code_that_is_cut_out_has_what_it_uses_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "cut_out.py").write_text(
        "import json\nimport re\nfrom collections.abc import Sequence\n\n"
        "PUBLIC = 1\n_used = (2,)  # fmt: skip\n_unused = 3\n\n\n"
        "def _inner() -> Sequence[int]:\n    return [len(json.dumps(PUBLIC)), *_used]\n\n\n"
        "EXAMPLE = _inner()\n"
    )
    code = example_code("cut_out")
    assert load_module(code, tmp_path, "standing_alone", monkeypatch).EXAMPLE == [1, 2]
    assert "from cut_out import PUBLIC\n" in code
    assert not re.search(r"_unused|import re\b|fmt: skip", code)


# The diagrams -------------------------------------------------------------------------------------------------------


def drawn(id: str) -> ElementTree.Element:
    return ElementTree.fromstring(draw_pattern(catalog().pattern(id)))


def rectangles(picture: ElementTree.Element) -> Iterator[tuple[float, float, float, float]]:
    for each in picture.iter(f"{_SVG}rect"):
        x, y = float(each.get("x", 0)), float(each.get("y", 0))
        yield x, y, x + float(each.attrib["width"]), y + float(each.attrib["height"])


def test_every_diagram_has_all_participants_and_steps_inside_of_the_picture() -> None:
    for id, facts in catalog().patterns.items():
        picture = drawn(id)
        texts = [each.text or "" for each in picture.iter(f"{_SVG}text")]
        assert {each.name for each in facts.participants} <= set(texts), id
        words = " ".join(texts).split()
        assert all(word in words for step in split_steps(facts.how) for word in step.split()), id
        height = float(picture.attrib["viewBox"].split()[3])
        whole, *boxes = rectangles(picture)
        assert whole == (0, 0, WIDTH, height)
        assert len(boxes) == len(facts.participants) + len(split_steps(facts.how)), id
        assert all(left > 0 and right < WIDTH and top > 0 and bottom < height for left, top, right, bottom in boxes), id


def test_no_two_boxes_of_a_diagram_overlap() -> None:
    for id in catalog().patterns:
        _, *boxes = rectangles(drawn(id))
        for number, (left, top, right, bottom) in enumerate(boxes):
            for other in boxes[number + 1 :]:
                assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top, id


def test_only_a_pattern_that_loops_has_an_arrow_back() -> None:
    dashed = {id for id in catalog().patterns if "stroke-dasharray" in draw_pattern(catalog().pattern(id))}
    assert dashed == {id for id, facts in catalog().patterns.items() if facts.loops}


def test_sentences_are_steps() -> None:
    assert split_steps("A model plans. Is it\n  fine? Then code runs it.") == [
        "A model plans",
        "Is it fine?",
        "Then code runs it",
    ]


# What was measured --------------------------------------------------------------------------------------------------

ROW = {"ok": True, "calls": 3, "calls_expected": 2.5, "tokens": 1200, "tokens_expected": 1100, "replayed": True}
COMPARED = {"cases": 240, "all tools": 0.5, "chosen tools": 0.75, "gain": 0.25, "low": 0.19, "high": 0.31}


def page(id: str, results: Results, tests: dict[str, list[Claim]] | None = None) -> str:
    return render_page(catalog().pattern(id), tests or {}, results)


def test_a_pattern_without_results_says_so() -> None:
    assert "\n## Measured\n\nNot measured yet.\n" in page("V13", NOTHING)


def test_results_are_shown_with_what_was_foreseen_and_with_their_interval() -> None:
    text = page("V13", Results({"V13": ROW}, {"V13": {"0.5b": COMPARED}}))
    assert "Not measured" not in text
    assert "| model calls | 3 | 2.5 |" in text
    assert "| tokens | 1,200 | 1,100 |" in text
    assert "| 0.5b | 240 | 0.5 | 0.75 | 0.25 | 0.19 to 0.31 |" in text


@pytest.mark.parametrize(("low", "high"), [(-0.1, 0.2), (0.0, 0.2), (-0.2, 0.0)])
def test_a_gain_whose_interval_has_zero_in_it_is_called_null(low: float, high: float) -> None:
    found = {"cases": 240, "mean": 0.5, "gate": 0.5, "gain": 0.0, "low": low, "high": high}
    text = page("V16", Results({}, {"V16": found}))
    assert f"| none | 240 | 0.5 | 0.5 | 0 | {low:g} to {high:g}, a null result |" in text


def test_a_comparison_of_gates_says_how_often_they_stop_what_has_not_changed() -> None:
    found = {**dict.fromkeys(("mean", "gate", "gain", "low", "high"), 0.1), "cases": 9}
    text = page("V16", Results({}, {"V16": {**found, "false_alarms": {"mean": 0.5, "gate": 0.125}}}))
    assert "Stopped though nothing had changed: mean 0.5, gate 0.125." in text


def test_results_are_read_from_the_files_and_missing_files_are_none(tmp_path: Path) -> None:
    assert Results.read(tmp_path) == NOTHING
    (tmp_path / "benchmarks" / "patterns").mkdir(parents=True)
    (tmp_path / "benchmarks" / "patterns" / "results.json").write_text('{"rows": [{"pattern": "R4", "ok": true}]}')
    assert Results.read(tmp_path) == Results({"R4": {"pattern": "R4", "ok": True}}, {})


def test_words_of_the_catalogue_are_no_markup() -> None:
    text = page("R4", NOTHING, {"R4.1": [Claim("R4.1", "tests/a.py", "test_b", 1)]})
    assert "`tests/a.py::test_b`" in text
    outside = re.sub(r"```.*?```|`[^`]*`|<code>.*?</code>", "", text, flags=re.DOTALL)
    assert re.findall(r"(?<!\\)[*_]", outside.replace("create_react_agent", "")) == []
