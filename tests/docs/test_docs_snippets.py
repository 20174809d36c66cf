"""Everything that the README and the pages show is true: snippets run, and commands and targets exist."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from docs_snippets import (
    KINDS,
    PAGES,
    ROOT,
    Block,
    blocks,
    commands,
    extras,
    fits,
    make_targets,
    printed,
    shell_words,
)

from bicameral.catalog.lint import lint
from bicameral.catalog.stacks import parse_stack
from bicameral.cli import main
from bicameral.config import ConfigFile
from bicameral.config._llm_settings import LlmConfigFile, ProfileFile
from bicameral.documents import parse_yaml
from bicameral.evaluation import parse_suite
from bicameral.foreign import parse_declarations
from bicameral.tools import parse_manifest

EVERY = [pytest.param(page, id=page.name) for page in PAGES]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples, with a user of its own and no weights."""
    for variable in [name for name in os.environ if name.startswith("BICAMERAL_")]:
        monkeypatch.delenv(variable)
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns(".bicameral"))
    # The reader has accepted the configuration of the world that the pages work in.
    monkeypatch.setenv("BICAMERAL_ACCEPT", str(tmp_path / "examples" / "world"))
    monkeypatch.chdir(tmp_path / "examples" / "world")
    return Path.cwd()


@pytest.mark.parametrize("page", EVERY)
def test_every_snippet_does_what_the_page_says(page: Path, world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "docs"}
    for block in blocks(page):
        match block.kind:
            case "python":
                code = compile("\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True)
                exec(code, names)
                assert capsys.readouterr().out == printed(block), f"{page.name}, line {block.line}"
            case "console":
                _try_console(page, block)
            case _:
                continue


def _try_console(page: Path, block: Block) -> None:
    for command in commands(block):
        found = _output_here(command.text) if page.name != "README.md" else None
        if found is None:
            done = subprocess.run(
                ["bash", "-c", command.text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60
            )
            found = done.stdout
        place = f"{page.name}, line {block.line}: {command.text}"
        assert fits(command.expected, found), f"{place}\nprinted:\n{found}"


def _output_here(command: str) -> str | None:
    """What the command line prints in this process; None where the command needs a shell."""
    # What a shell would not take as it stands it would have to be asked about.
    if re.search(r"[|&;<>$`*?~!\n\\#]", command):
        return None
    program, *words = shlex.split(command)
    return CliRunner().invoke(main, words, prog_name=program).output if program == "bicameral" else None


@pytest.mark.parametrize("page", EVERY)
def test_every_command_that_is_not_run_exists(page: Path) -> None:
    for block in blocks(page):
        if block.kind in ("sh", ""):
            for command in shell_words(block):
                assert _exists(shlex.split(command)), f"{page.name}, line {block.line}: {command}"


def _exists(words: list[str]) -> bool:
    match words:
        case ["make", *targets]:
            return set(targets) <= make_targets()
        case ["pip", "install", wanted]:
            return all(extra in extras() for extra in re.findall(r"\[(.*)\]", wanted))
        case [".venv/bin/python" | "python", "-m", module, *_]:
            return any((ROOT / place).exists() for place in _files(module))
        case [".venv/bin/python" | "python", file]:
            return (ROOT / file).is_file()
        case [program, *given] if program.endswith("bicameral"):
            return _parses(given)
        case ["cat" | "grep", *_] if "|" in words:
            return _exists(words[words.index("|") + 1 :])
        case ["git" | "cd" | "eval" | "error:", *_]:
            return True
        case [word, *_]:
            return re.match(r"BICAMERAL_\w+=|\.venv/bin/pytest$", word) is not None
        case _:
            return False


def _files(module: str) -> list[str]:
    path = module.replace(".", "/")
    return [f"{base}{path}{ending}" for base in ("", "src/") for ending in (".py", "/__main__.py")]


def _parses(words: list[str]) -> bool:
    """Whether the command line knows this command and its options; nothing is run."""
    group: click.Command = main
    context = click.Context(main)
    while isinstance(group, click.Group) and words:
        command = group.get_command(context, words[0])
        if command is None:
            return False
        group, words = command, words[1:]
    group.make_context("bicameral", words)
    return True


@pytest.mark.parametrize("page", EVERY)
def test_every_toml_snippet_is_valid(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "toml":
            content = tomllib.loads(block.text)
            if "manifest" in content:
                parse_manifest(content)
            elif "server" in content and "tools" in content and "mcp" not in content:
                parse_declarations(block.text)
            elif "project" not in content:
                ConfigFile.model_validate(content)


@pytest.mark.parametrize("page", EVERY)
def test_every_yaml_snippet_is_valid(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "yaml":
            content = parse_yaml(block.text, page).settings
            if "patterns" in content:
                lint(parse_stack(block.text, file=page.name))
                continue
            if "repos" in content:
                continue
            if "cases" in content:
                parse_suite(block.text, page)
                continue
            (LlmConfigFile if "models" in content else ProfileFile).model_validate(content)


@pytest.mark.parametrize("page", EVERY)
def test_every_block_says_what_it_is(page: Path) -> None:
    allowed = {*KINDS, ""} if page.name in ("command-line.md", "configuration.md") else set(KINDS)
    assert {block.kind for block in blocks(page)} <= allowed
