"""The files of the catalogue are read strictly, lazily and fast, and a wrong one is told with its place."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import bicameral.catalog
from bicameral.catalog import CATEGORIES, Catalog, CatalogError, catalog
from bicameral.catalog.facts._reader import read_rows

DATA = Path(bicameral.catalog.__file__).with_name("data")
Edit = Callable[[str], str]


@pytest.fixture
def edited(tmp_path: Path) -> Callable[[str, Edit], Catalog]:
    """A copy of the catalogue in which one file was changed."""

    def make(file: str, edit: Edit) -> Catalog:
        shutil.copytree(DATA, tmp_path / "data")
        path = tmp_path / "data" / file
        changed = edit(path.read_text(encoding="utf-8"))
        assert changed != path.read_text(encoding="utf-8")
        path.write_text(changed, encoding="utf-8")
        return Catalog(tmp_path / "data")

    return make


def _swap(old: str, new: str) -> Edit:
    return lambda text: text.replace(old, new, 1)


def _replace_block(key: str, value: str) -> Edit:
    return lambda text: re.sub(rf"  {key}:\n(    .*\n)+", f"  {key}: {value}\n", text, count=1)


FILE = "patterns/orchestration.yaml"
RULES = ("mechanisms", "requirements", "conflicts", "laws", "anti_patterns", "cache_rules")


MISTAKES: list[tuple[Edit, str]] = [
    (_swap("  name: Single Agent", "  nmae: Single Agent"), "O1: there is no key 'nmae'"),
    (_swap("  name: Single Agent\n", ""), "O1: the key 'name' is missing"),
    (_swap("  name: Single Agent", "  name: [Single, Agent]"), "O1: name: ['Single', 'Agent'] cannot stand here"),
    (_swap("  name: Single Agent", '  name: ""'), "O1: name: '' cannot stand here"),
    (_swap("  loops: true", "  loops: maybe"), "O1: loops: 'maybe' cannot stand here"),
    (
        _swap("kind: model, tier: large", "kind: modle, tier: large"),
        "O1: participants.0.kind: 'modle' cannot stand",
    ),
    (_swap("kind: model, tier: large", "kind: model, size: large"), "O1: participants.0: there is no key 'size'"),
    (_swap("held: run}", "held: wish}"), "O1: invariants.0.held: 'wish' cannot stand here"),
    (_swap("least: 1, most: 20", "least: one, most: 20"), "O1: knobs.max_steps.least: 'one' cannot stand here"),
    (
        _swap("default: 12, least: 1", "default: 0, least: 1"),
        "O1: knobs.max_steps: the default 0 is below its least",
    ),
    (_swap("default: 12, least: 1, most: 20", "default: 99, most: 20"), "the default 99 is above its most"),
    (
        _swap("default: sections, choices", "default: others, choices"),
        "O4: knobs.mode: the default 'others' is none",
    ),
    (_swap("    max_steps: {default", "    steps: {default"), "O1: knobs.steps: 'steps' is the name of a size"),
    (_swap("bounded_by: [max_steps]", "bounded_by: [max_stpes]"), "O1: bounded_by: there is no knob 'max_stpes'"),
    (
        _swap('worst: "max_steps"', 'worst: "max_stpes"'),
        "O1: cost: there is no size and no numeric knob 'max_stpes'",
    ),
    (
        _swap('worst: "max_steps"', 'worst: "max_steps ** 9"'),
        "O1: cost.sessions.0.worst: 'max_steps ** 9' is no cost",
    ),
    (
        _swap('prompt: "input", grows', "prompt: [input], grows"),
        "O1: cost.sessions.0.prompt: ['input'] cannot stand here",
    ),
    (
        _swap('prompt: "input", grows', 'prompt: "mode", grows'),
        "O1: cost: there is no size and no numeric knob 'mode'",
    ),
    (_swap("- id: O2", "- id: O1"), "O1: this id is there twice"),
    (_swap("- id: O2", "- id: X2"), "these are not the patterns of orchestration: O2 is missing"),
    (_swap("- id: O2\n", "- ib: O2\n"), "a record has no id"),
    (_swap("- id: O1\n", "- just words\n- id: O1\n"), "'just words' stands among the mappings"),
    (_replace_block("when", "{}"), "O1: when: {} cannot stand here"),
    (_replace_block("knobs", "[]"), "O1: knobs: [] cannot stand here"),
    (_swap("- id: O1\n", "- id: O1\n  id: O1\n"), "the key 'id' is there twice"),
    (_swap("  name: Single Agent", "  name: &name Single Agent"), "anchors are not understood here"),
    (_swap("  name: Single Agent", "  name: !!python/name:os.system x"), "cannot stand here"),
    (_swap("  name: Single Agent", "  name: 'Single Agent"), "this is not YAML"),
    (_swap("  name: Single Agent", "  name: a: b"), "this is not YAML"),
    (_swap("  name: Single Agent", "  {a: b}: c"), "a key is no text"),
    (lambda text: text + "\n---\n- id: O19\n", "there is a second document"),
    (lambda text: "", "the file is no list"),
    (lambda text: "id: O1\n", "the file is no list"),
    (lambda text: "- " * 30 + "a\n", "nested deeper"),
    (lambda text: "- id: \x07\n", "this is not YAML"),
]


@pytest.mark.parametrize(("edit", "said"), MISTAKES)
def test_a_mistake_in_a_file_is_told_with_file_line_and_id(
    edited: Callable[[str, Edit], Catalog], edit: Edit, said: str
) -> None:
    with pytest.raises(CatalogError) as told:
        edited(FILE, edit).category("orchestration")
    assert told.value.code in ("catalog.bad-data", "catalog.bad-expression")
    assert said in told.value.message
    place = told.value.place
    assert place is not None
    assert place.file == "data/patterns/orchestration.yaml"
    assert place.line is not None


def test_the_place_is_the_line_of_the_part_that_is_wrong(edited: Callable[[str, Edit], Catalog]) -> None:
    mistaken = _swap("{rule: exactly one peer is in control, held: type}", "{rule: exactly one peer is in control}")
    with pytest.raises(CatalogError) as told:
        edited(FILE, mistaken).category("orchestration")
    lines = (DATA / FILE).read_text(encoding="utf-8").splitlines()
    line = next(number for number, line in enumerate(lines, 1) if "exactly one peer is in control" in line)
    assert told.value.place is not None
    assert told.value.place.line == line
    assert told.value.message == "O10: invariants.0: the key 'held' is missing"


def test_a_key_that_is_nearly_right_is_told_with_the_right_one(edited: Callable[[str, Edit], Catalog]) -> None:
    with pytest.raises(CatalogError) as told:
        edited("mechanisms.yaml", _swap("  grade: A\n", "  graed: A\n")).mechanisms  # noqa: B018
    assert told.value.nearest == "grade"


@pytest.mark.parametrize("what", RULES)
def test_each_file_is_read_only_when_it_is_asked_for(edited: Callable[[str, Edit], Catalog], what: str) -> None:
    broken = edited(f"{what}.yaml", lambda text: "- [")
    assert broken.pattern("O6").name == "Orchestrator-Workers"
    with pytest.raises(CatalogError) as told:
        getattr(broken, what)
    assert told.value.place is not None
    assert told.value.place.file == f"data/{what}.yaml"


def test_a_category_is_read_without_the_others(edited: Callable[[str, Edit], Catalog]) -> None:
    broken = edited("patterns/signal.yaml", lambda text: "")
    assert broken.pattern("V9").id == "V9"
    with pytest.raises(CatalogError):
        broken.pattern("S1")
    # The nearest id is told even where the names cannot be read.
    with pytest.raises(CatalogError) as told:
        broken.pattern("O66")
    assert told.value.nearest == "O6"


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as told:
        Catalog(tmp_path).pattern("O6")
    assert told.value.code == "catalog.bad-data"
    assert "the file is not there" in told.value.message


def test_a_pattern_that_does_not_exist_is_told_with_the_nearest() -> None:
    for asked, near in (
        ("06", "O6"),
        ("o66", "O6"),
        ("ReWO", "R5"),
        ("orchestrator workers", "O6"),
        ("S7", "R17"),
        ("R15", "H6"),
    ):
        with pytest.raises(CatalogError) as told:
            catalog().pattern(asked)
        assert told.value.code == "catalog.unknown-pattern"
        assert told.value.nearest == near, asked
        assert told.value.fix
    with pytest.raises(CatalogError) as told:
        catalog().pattern("qqqqqqqqqq")
    assert told.value.nearest is None


def test_an_id_may_be_written_small_and_with_spaces() -> None:
    assert catalog().pattern(" o6 ").id == "O6"


def test_a_category_that_does_not_exist_is_told_with_the_nearest() -> None:
    with pytest.raises(CatalogError) as told:
        catalog().category("orchestraton")
    assert (told.value.code, told.value.nearest) == ("catalog.unknown-category", "orchestration")


def test_facts_cannot_be_changed() -> None:
    pattern = catalog().pattern("O6")
    with pytest.raises(AttributeError):
        pattern.name = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        pattern.knobs["max_workers"] = pattern.knobs["max_depth"]  # type: ignore[index]
    with pytest.raises(TypeError):
        catalog().patterns["O6"] = pattern  # type: ignore[index]


@pytest.mark.parametrize("file", [*(f"patterns/{name}" for name in CATEGORIES), *RULES])
def test_our_reader_reads_what_every_reader_of_yaml_reads(file: str) -> None:
    text = (DATA / f"{file}.yaml").read_text(encoding="utf-8")
    assert [at.value for at in read_rows(text, file)] == yaml.safe_load(text)


def test_both_parsers_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DATA / FILE).read_text(encoding="utf-8")
    with_c = [at.value for at in read_rows(text, FILE)]
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert [at.value for at in read_rows(text, FILE)] == with_c


def test_only_plain_values_are_understood() -> None:
    rows = read_rows("- {a: 1, b: '1', c: true, d: no, e: ~, f: 1.5, g: 2027-03-01, h: -3, i: '', j: 1e5}\n", "f")
    assert [at.value for at in rows] == [
        {"a": 1, "b": "1", "c": True, "d": "no", "e": None, "f": 1.5, "g": "2027-03-01", "h": -3, "i": "", "j": "1e5"}
    ]


def test_all_patterns_are_read_in_a_blink() -> None:
    best = min(_timed() for _ in range(3))
    assert best < 0.3, f"{best:.3f} s"


def _timed() -> float:
    """Seconds of this process, so that what else the machine does is not counted."""
    fresh = Catalog(DATA)
    started = time.thread_time()
    assert len(fresh.patterns) == 94
    return time.thread_time() - started


def test_importing_the_room_reads_nothing() -> None:
    code = (
        "import sys, bicameral, bicameral.catalog;"
        "print([name for name in ('yaml', 'bicameral.catalog.facts', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
