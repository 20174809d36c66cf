"""The files of identities and skills: what is not as it was written is not used, and what is written is there whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from bicameral.errors import RunError
from bicameral.patterns.humanizer._sealed_log import SealedLog
from property_examples import examples

BODIES = [{"n": 1}, {"n": 2, "text": "ä€\ud800"}, {"n": 3, "deep": [{"x": None}]}]


def written(path: Path, bodies: list[dict[str, Any]] | None = None) -> SealedLog:
    file = SealedLog(path, "test 1")
    for body in bodies or BODIES:
        file.append(body)
    return file


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=examples(40))
@given(bodies=st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=5))
def test_what_was_appended_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[dict[str, Any]]
) -> None:
    file = SealedLog(tmp_path_factory.mktemp("chain") / "file.jsonl", "test 1")
    appended = [file.append(body) for body in bodies]
    assert list(file.entries()) == appended
    assert [entry.body for entry in appended] == bodies
    assert [entry.number for entry in appended] == list(range(len(bodies)))


def changed(lines: list[str], how: str) -> list[str]:
    match how:
        case "a body":
            return [lines[0], lines[1].replace('"n":2', '"n":9'), lines[2]]
        case "a time":
            facts = json.loads(lines[1])
            return [lines[0], json.dumps(facts | {"at": 1.0}, sort_keys=True, separators=(",", ":")), lines[2]]
        case "left out":
            return [lines[0], lines[2]]
        case "first left out":
            return lines[1:]
        case "moved":
            return [lines[1], lines[0], lines[2]]
        case "doubled":
            return [lines[0], lines[0], *lines[1:]]
        case "slipped in":
            return [*lines, lines[2].replace('"n":3', '"n":4')]
        case "written otherwise":
            return [lines[0], lines[1].replace('"n":2', '"n": 2'), lines[2]]
        case "a key twice":
            return [lines[0], lines[1].replace('"n":2', '"n":9,"n":2'), lines[2]]
        case "empty line":
            return [lines[0], "", *lines[1:]]
        case _:
            return [*lines, "no JSON"]


@pytest.mark.parametrize(
    "how",
    [
        "a body",
        "a time",
        "left out",
        "first left out",
        "moved",
        "doubled",
        "slipped in",
        "written otherwise",
        "a key twice",
        "empty line",
        "no JSON",
    ],
)
def test_a_file_that_was_tampered_with_is_refused_and_not_written_to(tmp_path: Path, how: str) -> None:
    path = tmp_path / "file.jsonl"
    file = written(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(changed(lines, how)) + "\n")
    before = path.read_bytes()
    for attempt in (file.entries, lambda: file.append({"n": 4})):
        with pytest.raises(RunError) as caught:
            attempt()
        assert caught.value.code == "pattern.store-damaged"
    assert path.read_bytes() == before


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "file.jsonl")
    with pytest.raises(RunError, match="does not follow"):
        SealedLog(tmp_path / "file.jsonl", "other 1").entries()


@pytest.mark.parametrize("attack", ["cut short", "written anew"])
def test_what_a_chain_cannot_show_a_remembered_seal_does(tmp_path: Path, attack: str) -> None:
    path = tmp_path / "file.jsonl"
    known = written(path).entries()[-1].seal
    if attack == "cut short":
        path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:2]))
    else:
        path.unlink()
        written(path, [{"n": 1}, {"n": 2}, {"n": 666}])
    assert SealedLog(path, "test 1").entries()
    with pytest.raises(RunError, match="known to be there"):
        SealedLog(path, "test 1", known).entries()


@pytest.mark.parametrize("cut", [1, 20, 150])
def test_a_line_that_was_cut_off_by_a_crash_was_never_there(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "file.jsonl"
    file = written(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert [entry.body["n"] for entry in file.entries()] == [1, 2]
    file.append({"n": 4})
    assert [entry.body["n"] for entry in file.entries()] == [1, 2, 4]


def test_nobody_writes_while_somebody_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    file = written(path)
    with file.lock_for_reading(), file.lock_for_reading(), pytest.raises(RunError) as caught:
        file.append({"n": 4})
    assert caught.value.code == "pattern.store-in-use"
    assert len(file.entries()) == 3
    file.append({"n": 4})


def test_nor_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    written(path)
    code = (
        "import sys; from pathlib import Path; from bicameral.patterns.humanizer._sealed_log import SealedLog\n"
        f"with SealedLog(Path({str(path)!r}), 'test 1').lock_for_reading():\n"
        "    print('held', flush=True); sys.stdin.readline()"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdin is not None
    assert other.stdout.readline() == "held\n"
    with pytest.raises(RunError, match="has this file open"):
        SealedLog(path, "test 1").append({"n": 4})
    other.communicate("\n", timeout=30)
    SealedLog(path, "test 1").append({"n": 4})


def test_a_record_is_written_only_after_the_one_that_was_read(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    file = written(path)
    seal = file.entries()[-1].seal
    file.append({"n": 4})
    for after in (seal, ""):
        with pytest.raises(RunError, match="written in between"):
            file.append({"n": 5}, after=after)
    assert len(file.entries()) == 4


def test_others_cannot_read_it_and_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.jsonl"
    written(path)
    assert path.stat().st_mode & 0o077 == 0
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError) as caught:
        SealedLog(tmp_path / "file" / "x.jsonl", "test 1").append({})
    assert caught.value.code == "pattern.store-failed"
    assert os.path.isfile(tmp_path / "file")
