"""Tokens that end: by the clock, by removal, by changing hands, and however the file is written."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bicameral.errors import ServerError
from bicameral.server import TokenFile, new_token


def test_a_token_holds_until_it_expires_by_the_clock_that_is_given(tmp_path: Path) -> None:
    now = [1_000.0]
    tokens = TokenFile(tmp_path / "tokens.json", clock=lambda: now[0])
    token, text = tokens.add("ana", seconds=60)
    assert tokens.is_valid(token)
    now[0] = 1_060.0
    assert not tokens.is_valid(token)
    assert tokens.find_holder(text) is None


def test_a_token_that_was_removed_or_given_to_somebody_else_does_not_hold(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    token, _ = tokens.add("ana")
    assert not tokens.is_valid(replace(token, user="ben"))
    TokenFile(tokens.file).remove(token.id)
    assert not tokens.is_valid(token)


def test_a_file_that_looks_like_the_one_before_is_read_again_while_it_is_fresh(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    tokens = TokenFile(file)
    token, text = tokens.add("ana")
    assert tokens.find_holder(text) is not None
    state = file.stat()
    with file.open("r+") as stream:
        stream.write(file.read_text().replace(token.hash, "0" * 64))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert tokens.find_holder(text) is None


def test_a_file_that_is_gone_or_broken_holds_nobody(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    token, _ = tokens.add("ana")
    (tmp_path / "tokens.json").write_text("{")
    with pytest.raises(ServerError):
        tokens.is_valid(token)
    (tmp_path / "tokens.json").unlink()
    assert not tokens.is_valid(token)


def test_whoever_changes_the_file_at_the_same_time_loses_nothing(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    gone = [TokenFile(file).add("ana")[0] for _ in range(8)]
    threads = [threading.Thread(target=TokenFile(file).remove, args=(token.id,)) for token in gone]
    threads += [threading.Thread(target=TokenFile(file).add, args=("ben",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(token.user for token in TokenFile(file).all_tokens()) == ["ben"] * 8


def test_tokens_of_no_file_cannot_be_changed() -> None:
    token, _ = new_token("ana")
    with pytest.raises(ServerError):
        TokenFile(None, [token]).remove(token.id)
