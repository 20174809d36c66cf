"""A key in the environment does not come out: not of the command line, and not into any file that it writes."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from cli_world import World

KEY = "sk-planted-4711-abcdefghij"
OTHER = "other-planted-0815-klmnop"
CONFIG = '[llm.models.fast]\nmodel = "openai/gpt-4.1"\nquarantined_api_key_env = "OTHER_KEY"\n'
# The file holds them as they are, many times, and in base64.
NOTES = f"the key is {KEY}\n{OTHER}\nc2stcGxhbnRlZC00NzExLWFiY2RlZmdoaWo=\n" + f"line with {KEY}\n" * 500


@pytest.fixture
def planted(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OTHER_KEY", OTHER)
    world.write("bicameral.toml", CONFIG)
    world.write("notes.txt", NOTES)
    return world


def _written(world: World) -> bytes:
    """Every byte of every file but the one it was planted in, with the journal's values as they are read."""
    parts = [
        file.read_bytes()
        for file in world.folder.parent.rglob("*")
        if file.is_file() and file != world.folder / "notes.txt"
    ]
    for journal in world.folder.parent.rglob("journal.db"):
        with closing(sqlite3.connect(journal)) as db:
            parts += [zlib.decompress(content) for (content,) in db.execute("SELECT content FROM blobs")]
    assert any(b"[secret OPENAI_API_KEY]" in part for part in parts)
    return b"\n".join(parts)


def _clean(text: str | bytes) -> None:
    raw = text.encode() if isinstance(text, str) else text
    for secret in (KEY, OTHER, "c2stcGxhbnRlZC00NzExLWFiY2RlZmdoaW"):
        assert secret.encode() not in raw


def test_an_answer_with_a_key_in_it_is_masked_on_the_screen_and_in_the_journal(planted: World) -> None:
    plan = planted.write("plan.py", 'lines = read_lines("notes.txt")\nanswer(lines)\n')
    shown = planted.call("run", "--plan", plan)
    assert shown.exit_code == 0, shown.output
    told = planted.json("run", "--plan", plan)
    again = planted.json("runs", "show", "last")
    for text in (shown.output, json.dumps(told), json.dumps(again)):
        assert "[secret OPENAI_API_KEY]" in text
        assert "[secret OTHER_KEY]" in text
        _clean(text)
    _clean(_written(planted))


def test_a_failure_that_quotes_a_key_is_masked(planted: World) -> None:
    plan = planted.write("plan.py", f'lines = read_lines("missing-{KEY}.txt")\nanswer(lines)\n')
    for words in (("run", "--plan", plan), ("run", "--plan", plan, "--json")):
        result = planted.call(*words)
        assert result.exit_code != 0
        assert "[secret OPENAI_API_KEY]" in result.output
        _clean(result.output)
    (planted.folder / "plan.py").unlink()
    _clean(_written(planted))


def test_a_wrong_command_line_does_not_quote_it(planted: World) -> None:
    planted.call("runs", "list")
    for words in (("run", "--plan", f"{KEY}.py"), ("runs", "show", KEY)):
        result = planted.call(*words)
        assert result.exit_code != 0
        _clean(result.output)


def test_a_fault_of_ours_does_not_quote_it(planted: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Path:
        raise RuntimeError(f"nobody foresaw {KEY}")

    monkeypatch.setenv("BICAMERAL_DEBUG", "1")
    monkeypatch.setattr("bicameral.config.open_journal", broken)
    for words in (("runs", "list"), ("runs", "list", "--json")):
        result = planted.call(*words)
        assert result.exit_code != 0
        assert "nobody foresaw [secret OPENAI_API_KEY]" in result.output
        _clean(result.output)
