"""A tool's code is told from any other, and from nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bicameral.tools import Tool
from bicameral.tools._code import code_of_function, code_of_program

SOURCE = """
from bicameral.tools import tool

def helper(text: str, times: int = 2) -> str:
    return text * times

@tool(effect="write")
def post(text: str) -> str:
    \"\"\"Post a text.\"\"\"
    return helper(text) if text in {"a", "b"} else (lambda x: x + "!")(text)
"""


def made(source: str) -> Tool:
    names: dict[str, object] = {"__name__": "own"}
    exec(compile(source, "own.py", "exec", dont_inherit=True), names)
    found = names["post"]
    assert isinstance(found, Tool)
    return found


def code(source: str) -> str:
    found = made(source).code
    assert found is not None
    return found()


@pytest.mark.parametrize(
    "source",
    [
        SOURCE,
        "# A comment.\n\n" + SOURCE,
        SOURCE.replace("    return text", "    # Another one.\n    return text"),
        SOURCE + "\ndef elsewhere() -> int:\n    return 5\n",
    ],
)
def test_what_does_the_same_has_the_same_code(source: str) -> None:
    assert code(source) == code(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('+ "!"', '+ "?"'),
        ("text * times", "text + text"),
        ("times: int = 2", "times: int = 3"),
        ('{"a", "b"}', '{"a", "c"}'),
        ("return helper(text)", "return helper(text, 2)"),
    ],
)
def test_what_does_something_else_has_another(old: str, new: str) -> None:
    assert old in SOURCE
    assert code(SOURCE.replace(old, new)) != code(SOURCE)


def test_recursive_functions_have_a_code_hash() -> None:
    """Functions that call themselves or each other are visited once; the search used to go round for ever."""
    recursive = SOURCE.replace("return text * times", "return text * times if times < 3 else other(text, times - 1)")
    recursive += "\ndef other(text: str, times: int) -> str:\n    return helper(text, times)\n"
    assert code(recursive) == code(recursive)
    assert code(recursive) != code(recursive.replace("times - 1", "times - 2"))


def test_it_is_the_same_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SOURCE)
    script = "import own; print(own.post.code())"
    said = {
        subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(said) == 1
    assert said == {code(SOURCE) + "\n"}


def test_a_method_and_a_thing_without_code_are_told_too() -> None:
    class Box:
        def get(self) -> int:
            return 1

    class Other:
        def get(self) -> int:
            return 2

    assert code_of_function(Box().get)() == code_of_function(Box().get)()
    assert code_of_function(Box().get)() != code_of_function(Other().get)()
    assert code_of_function(len)() == code_of_function(len)()


def test_a_program_is_its_files(tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text("echo 1")
    known = code_of_program(["/bin/sh", str(script)])
    first = known()
    assert known() == first
    script.write_text("echo 22")
    assert known() != first
    script.write_text("echo 1")
    assert known() == first
    script.unlink()
    assert known() != first
