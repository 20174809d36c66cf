"""The file in which patterns keep what must not change: whatever is done to it from outside is noticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bicameral.errors import RunError
from bicameral.patterns.humanizer._sealed_log import SealedLog

KIND = "bicameral test 1"
Lines = list[bytes]


def _log(path: Path, known: str | None = None) -> SealedLog:
    return SealedLog(path, KIND, known)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    for number in range(3):
        _log(path).append({"word": f"word {number}"})
    return path


def _code(act: Callable[[], Any]) -> str:
    with pytest.raises(RunError) as refused:
        act()
    return refused.value.code


def test_records_come_back_in_the_order_in_which_they_were_written(file: Path) -> None:
    found = _log(file).entries()
    assert [(entry.number, entry.body) for entry in found] == [(at, {"word": f"word {at}"}) for at in range(3)]
    assert len({entry.seal for entry in found}) == 3


@pytest.mark.parametrize("number", range(3))
def test_a_record_that_was_changed_is_noticed_wherever_it_stands(file: Path, number: int) -> None:
    file.write_bytes(file.read_bytes().replace(b"word %d" % number, b"evil %d" % number))
    assert _code(_log(file).entries) == "pattern.store-damaged"
    assert _code(lambda: _log(file).append({})) == "pattern.store-damaged"


MOVES: dict[str, Callable[[Lines], Lines]] = {
    "left out at the beginning": lambda lines: lines[1:],
    "left out in the middle": lambda lines: [lines[0], lines[2]],
    "exchanged": lambda lines: [lines[1], lines[0], lines[2]],
    "written twice": lambda lines: [*lines, lines[2]],
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_records_that_were_moved_are_noticed(file: Path, move: Callable[[Lines], Lines]) -> None:
    file.write_bytes(b"".join(move(file.read_bytes().splitlines(keepends=True))))
    assert _code(_log(file).entries) == "pattern.store-damaged"


def test_a_record_of_another_file_does_not_fit(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    for word in ("else", "word 1", "word 2"):
        _log(other).append({"word": word})
    mixed = [file.read_bytes().splitlines(keepends=True)[0], *other.read_bytes().splitlines(keepends=True)[1:]]
    file.write_bytes(b"".join(mixed))
    assert _code(_log(file).entries) == "pattern.store-damaged"


def test_a_file_of_another_kind_is_refused(file: Path) -> None:
    assert _code(SealedLog(file, "bicameral test 2").entries) == "pattern.store-damaged"


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_seal_that_is_known_must_be_there(file: Path, left: int) -> None:
    known = _log(file).entries()[-1].seal
    assert len(_log(file, known).entries()) == 3
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:left]))
    assert len(_log(file).entries()) == left
    assert _code(_log(file, known).entries) == "pattern.store-damaged"


def test_whoever_does_not_know_the_last_record_writes_none(file: Path) -> None:
    first, *_, last = (entry.seal for entry in _log(file).entries())
    for after in ("", first):
        assert _code(lambda after=after: _log(file).append({}, after=after)) == "pattern.store-changed"
    assert _log(file).append({"word": "more"}, after=last).number == 3


def test_nobody_writes_while_somebody_reads(file: Path) -> None:
    with _log(file).lock_for_reading():
        with _log(file).lock_for_reading():
            assert _code(lambda: _log(file).append({})) == "pattern.store-in-use"
        assert len(_log(file).entries()) == 3
    assert _log(file).append({}).number == 3


def test_a_line_that_was_cut_off_was_never_there(file: Path) -> None:
    raw = file.read_bytes()
    file.write_bytes(raw + b'{"at": 17')
    assert len(_log(file).entries()) == 3
    _log(file).append({"word": "again"})
    assert file.read_bytes().startswith(raw)
    assert len(_log(file).entries()) == 4


def test_the_file_is_for_nobody_else_to_read(file: Path) -> None:
    assert file.stat().st_mode & 0o077 == 0
