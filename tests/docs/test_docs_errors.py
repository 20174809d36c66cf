"""The page about errors has every code, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from bicameral.plans import RUN_CODES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
_CODE = re.compile(r"([a-z]+)\.([a-z]+(?:-[a-z]+)*)")
_FILE_ENDINGS = frozenset("css db gguf html ics js json mbox md py svg toml txt".split())


def _nodes() -> Iterator[ast.AST]:
    for file in (ROOT / "src").rglob("*.py"):
        yield from ast.walk(ast.parse(file.read_text(encoding="utf-8")))


def _raised(calls: list[ast.Call]) -> set[str]:
    """The codes that stand first in the call of an error, or are given to a function as its `code`."""
    first = [call.args[0] for call in calls if call.args and ast.unparse(call.func).endswith("Error")]
    named = [keyword.value for call in calls for keyword in call.keywords if keyword.arg == "code"]
    return {node.value for node in (*first, *named) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def codes_in_the_source() -> set[str]:
    """Every text in the source that is a code: one of a room in which errors are raised, and no name of a file."""
    nodes = [node for node in _nodes() if isinstance(node, ast.Call | ast.Constant)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    rooms = {code.partition(".")[0] for code in _raised(calls) if _CODE.fullmatch(code)} | {"cli"}
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {
        text
        for text in texts
        if (found := _CODE.fullmatch(text)) and found[1] in rooms and found[2] not in _FILE_ENDINGS
    }


def test_every_code_is_on_the_page_and_no_other() -> None:
    listed = re.findall(r"`([a-z]+\.[a-z-]+)`", "\n".join(re.findall(r"^\| `.*$", PAGE, re.MULTILINE)))
    known = codes_in_the_source()
    assert known >= set(RUN_CODES)
    assert known - set(listed) == set(), "these are not in docs/errors.md"
    assert set(listed) - known == set(), "these are in docs/errors.md and nowhere else"
    assert len(listed) == len(set(listed))
