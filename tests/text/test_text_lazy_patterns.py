"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from importlib.util import find_spec, module_from_spec

import pytest

import bicameral.planning
from bicameral import text
from bicameral.text import lazy_pattern

FOUND = """
import gc, bicameral.agent
from bicameral.text import _LazyPattern
lazy = [each for each in gc.get_objects() if isinstance(each, _LazyPattern)]
print(len(lazy), sum("search" in vars(each) for each in lazy))
"""


def test_it_does_what_a_compiled_one_does() -> None:
    written, flags = r"(?P<name>k\w+)-(\d)", re.IGNORECASE
    lazy, compiled = lazy_pattern(written, flags), re.compile(written, flags)
    subject = "Kim-1, kai-2 and Lee-3"
    assert lazy.pattern == compiled.pattern
    assert lazy.findall(subject) == compiled.findall(subject) == [("Kim", "1"), ("kai", "2")]
    assert [each.span("name") for each in lazy.finditer(subject)] == [(0, 3), (7, 10)]
    assert lazy.sub("x", subject) == "x, x and Lee-3"
    assert lazy.split(subject) == compiled.split(subject)
    assert lazy.flags == compiled.flags
    assert lazy.groupindex == compiled.groupindex
    assert lazy.match("Lee-3") is None
    assert lazy.fullmatch("kim-4") is not None


def test_a_pattern_that_is_none_fails_at_its_first_use() -> None:
    with pytest.raises(re.error):
        lazy_pattern("(").search("x")


def test_every_pattern_of_requests_can_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an import would have found without them."""
    made: list[tuple[str, int]] = []

    def compile_at_once(pattern: str, flags: int = 0) -> re.Pattern[str]:
        made.append((pattern, flags))
        return re.compile(pattern, flags)

    monkeypatch.setattr(text, "lazy_pattern", compile_at_once)
    for module in pkgutil.iter_modules(bicameral.planning.__path__, "bicameral.planning."):
        source = find_spec(module.name)
        assert source is not None
        assert source.loader is not None
        # A copy beside the module that everybody uses.
        copy = module_from_spec(source)
        monkeypatch.setitem(sys.modules, module.name, copy)
        source.loader.exec_module(copy)
    assert len(made) > 200


def test_an_import_compiles_none_of_them() -> None:
    said = subprocess.run([sys.executable, "-c", FOUND], capture_output=True, text=True, check=True).stdout
    known, compiled = map(int, said.split())
    assert known > 200
    assert compiled == 0
