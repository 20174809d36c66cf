"""The documentation says what the code does."""

from __future__ import annotations

import re
import tomllib

import pytest
from cli_docs import DOCS, filled
from cli_world import World

from bicameral.config import ConfigFile


@pytest.mark.parametrize(("name", "known"), [("command-line.md", "--dry-run"), ("configuration.md", "max_items")])
def test_the_tables_are_those_of_the_code(name: str, known: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    assert known in page
    assert page == filled(page), "run: python tests/cli/cli_docs.py"


def test_every_toml_snippet_is_a_valid_configuration(world: World) -> None:
    found = re.findall(r"```toml\n(.*?)```", (DOCS / "configuration.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found
    for snippet in found:
        ConfigFile.model_validate(tomllib.loads(snippet))


def test_every_short_variable_is_documented() -> None:
    from bicameral.config import SHORT_VARIABLES

    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in (*SHORT_VARIABLES, "BICAMERAL_CONFIG", "BICAMERAL_DEBUG"))


def test_the_exit_codes_are_documented() -> None:
    from bicameral.cli import _output as _exits

    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    constants = {name: value for name, value in vars(_exits).items() if name.isupper() and name[0] != "_"}
    codes = {value for value in constants.values() if isinstance(value, int)}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == codes
