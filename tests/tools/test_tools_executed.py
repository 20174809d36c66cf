"""Which files other programs execute or obey, by name and by what stands there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from bicameral.errors import ToolError
from bicameral.labels import TRUSTED_USER
from bicameral.plans import call_facts
from bicameral.policy import Ask, Policy
from bicameral.tools import FindTarget, Folders, Tool, WriteTarget, tool
from bicameral.types import FilePath


@pytest.mark.parametrize(
    "path",
    [
        *("run.py", "run.SH", "a/b.ps1", "x.desktop", "x.service", "mod.pth", "page.html", "pic.svg", "sheet.xlsm"),
        *("Makefile", "makefile.am", "Dockerfile", "Dockerfile.dev", "package.json", "pyproject.toml", "crontab"),
        *("requirements.txt", "requirements-dev.txt", "docker-compose.yml", "CMakeLists.txt", "run.py. "),
        *(".bashrc", ".env", ".git/hooks/pre-commit", ".github/workflows/ci.yml", ".vscode/tasks.json", "a/.npmrc"),
        *("bin/x", "node_modules/a/b.txt", "autostart/x", "__pycache__/x"),
    ],
)
def test_programs_execute_or_obey_these(tmp_path: Path, path: str) -> None:
    assert Folders.of(tmp_path, read=[tmp_path], write=[tmp_path]).target(path).executed is True


@pytest.mark.parametrize(
    "path",
    ["notes.txt", "a.md", "table.csv", "data.json", "invoice.pdf", "run.py.txt", "hooks/list.txt", "README", "x.ics"],
)
def test_nothing_executes_these(tmp_path: Path, path: str) -> None:
    assert Folders.of(tmp_path, read=[tmp_path], write=[tmp_path]).target(path) == WriteTarget(executed=False)


def test_a_working_folder_inside_a_hidden_one_is_an_ordinary_folder(tmp_path: Path) -> None:
    work = tmp_path / ".work" / "notes"
    work.mkdir(parents=True)
    assert Folders.of(work, read=[work], write=[work]).target("a.txt").executed is False


def test_a_working_folder_inside_a_repositorys_own_is_not(tmp_path: Path) -> None:
    work = tmp_path / ".git"
    work.mkdir()
    assert Folders.of(work, read=[work], write=[work]).target("hooks/pre-commit").executed is True


def test_the_executable_bit_and_a_script_without_an_ending_count(tmp_path: Path) -> None:
    folders = Folders.of(tmp_path, read=[tmp_path], write=[tmp_path])
    for name, text, mode in (("a", "x", 0o755), ("b", "#!/bin/sh\n", 0o644), ("c", "x", 0o644)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    assert [folders.target(name).executed for name in "abc"] == [True, True, False]


def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("x")
    (tmp_path / "notes.txt").symlink_to("run.sh")
    assert Folders.of(tmp_path, read=[tmp_path], write=[tmp_path]).target("notes.txt").executed is True


def test_what_is_not_known_yet_is_not_known(tmp_path: Path) -> None:
    assert Folders.of(tmp_path, read=[tmp_path], write=[tmp_path]).target(None).executed is None


def test_a_tool_with_an_argument_of_the_type_path_is_judged_by_the_name() -> None:
    @tool(effect="write", purpose={"text": "carries"})
    def save(path: FilePath, text: str) -> None:
        """Save."""

    assert save.write_target({"path": "a.txt"}) == WriteTarget(executed=False)
    assert save.write_target({"path": "a.sh"}) == WriteTarget(executed=True)
    assert save.write_target({"text": "x"}) == WriteTarget(executed=None)


def test_a_tool_that_fetches_what_it_writes_is_asked_about_where_programs_execute_it() -> None:
    """The name tells where it writes, and the selecting argument that it reads the content itself."""

    @tool(effect="write", purpose={"mail": "selects"})
    def save_attachment(mail: str, path: FilePath) -> None:
        """Save the attachment of a mail."""

    labels = {"mail": TRUSTED_USER, "path": TRUSTED_USER}
    decided = [
        Policy.load().decide(
            replace(
                call_facts(save_attachment, labels, {"mail": "7", "path": path}, "1", TRUSTED_USER, "strict"),
                lures=frozenset(),
            )
        )
        for path in ("run.sh", "invoice.pdf")
    ]
    assert [getattr(decision, "rules", ()) for decision in decided] == [("strangers-text-executed",), ()]


def _broken(_given: object) -> WriteTarget:
    raise ValueError("no")


def _silent(_given: object) -> None:
    """A target that is wrongly declared: None would mean that the call writes no file."""


def _copying(_given: object) -> WriteTarget:
    return WriteTarget(executed=True, copied=True)


def saving(target: FindTarget) -> Tool:
    @tool(effect="write", purpose={"text": "carries"}, target=target)
    def save(path: str, text: str) -> None:
        """Save."""

    return save


def test_a_tool_that_cannot_say_has_an_unknown_target() -> None:
    assert saving(_broken).write_target({"path": "a.txt"}) == WriteTarget(executed=None, copied=True)
    assert saving(cast("FindTarget", _silent)).write_target({"path": "a.txt"}) == WriteTarget(
        executed=None, copied=True
    )


def test_an_unknown_target_is_asked_about_wherever_a_known_one_would_be() -> None:
    """The content may be copied from anywhere, even if every argument is the user's own."""
    for target in (_copying, _broken):
        labels = {"path": TRUSTED_USER, "text": TRUSTED_USER}
        facts = call_facts(saving(target), labels, {"path": "a.txt", "text": "x"}, "1", TRUSTED_USER, "strict")
        decision = Policy.load().decide(replace(facts, lures=frozenset()))
        assert isinstance(decision, Ask)
        assert decision.rules == ("strangers-text-executed",)


def test_a_target_that_raises_since_the_file_is_protected_is_protected() -> None:
    reason = "'a.txt' is the journal, and no tool may change that"

    def refuses(_given: object) -> WriteTarget:
        raise ToolError("tools.protected", reason)

    found = saving(refuses).write_target({"path": "a.txt"})
    assert found == WriteTarget(executed=None, copied=True, protected=reason)
