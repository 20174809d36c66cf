"""Options that every command has, commands that stand for a group, and the list of runs."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from cli_world import PLAN, REQUEST, World

from bicameral.cli import main
from bicameral.cli._options import DefaultGroup
from bicameral.cli._plain_values import age_text, render_table
from bicameral.display import break_line, column_width, shorten, wrap_text

EXCEPTIONS = {
    "completion": "prints a script for a shell, which depends on no folder and is no object",
}
"""Commands without `--folder` or `--json`, and why."""


def every_command(group: click.Group, context: click.Context, path: str = "") -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from every_command(command, context, f"{path}{name} ")
            if isinstance(command, DefaultGroup):
                # Without a subcommand it is its default, with all options of that one.
                default = command.get_command(context, command.default)
                assert default is not None, name
                yield f"{path}{name}", default
            if isinstance(command, DefaultGroup) or not command.invoke_without_command:
                continue
        yield f"{path}{name}", command


def test_every_command_has_folder_and_json() -> None:
    assert isinstance(main, click.Group)
    missing = {
        path
        for path, command in every_command(main, click.Context(main))
        if not {"--folder", "--json"} <= {option for given in command.params for option in given.opts}
    }
    assert missing == set(EXCEPTIONS)


@pytest.mark.parametrize("group", ["tools", "policy", "models", "runs", "approvals", "patterns", "config"])
def test_a_group_takes_the_options_of_its_default(world: World, group: str) -> None:
    assert world.json(group)["ok"] is True
    assert world.json(group, "--folder", str(world.folder))["ok"] is True
    assert "Commands" in world.call(group, "--help").stdout


def test_the_list_of_runs_is_a_table_with_the_newest_first(world: World) -> None:
    first = world.json("run", REQUEST, script=[PLAN])["run"]
    second = world.json("run", REQUEST, script=[PLAN])["run"]
    lines = world.call("runs", "list").stdout.splitlines()
    assert lines[0].split() == ["run", "age", "outcome", "request"]
    assert [line.split()[0] for line in lines[2:]] == [second, first]
    assert lines[2].endswith(REQUEST)
    assert "finished" in lines[2]
    assert world.call("runs", "--limit", "1").stdout.splitlines()[2:] == lines[2:3]


@pytest.mark.parametrize("width", [80, 40])
def test_the_list_of_runs_fits_the_terminal_and_its_short_ids_name_runs(
    world: World, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.json("run", REQUEST, script=[PLAN])["run"]
    monkeypatch.setattr("bicameral.cli._output.Output.width", property(lambda _: width))
    lines = world.call("runs").stdout.splitlines()
    assert all(column_width(line) <= width for line in lines)
    assert len(lines) <= (3 if width == 80 else 5)
    short = lines[2].split()[0]
    assert run.endswith(f"-{short}")
    words = {word for line in lines[2:] for word in line.split()}
    assert words <= {short, "0", "1", "2", "3", "s", "finished", "…", *REQUEST.split()}
    assert world.json("runs", "show", short)["run"] == run
    assert world.json("runs", "replay", short)["ok"] is True


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (59, "59 s"), (61, "1 min"), (7200, "2 h"), (90_000, "1 d"), (3_000_000, "4 w")],
)
def test_an_age_has_one_unit(seconds: float, text: str) -> None:
    assert age_text(seconds) == text


def test_a_word_is_broken_only_if_it_is_longer_than_a_line_and_then_after_a_mark() -> None:
    assert break_line("mail the invoice to kim", 10) == ["mail the", "invoice to", "kim"]
    assert break_line("kim.example@mail.example.org", 14) == ["kim.example@", "mail.example.", "org"]
    assert break_line("1. a_very_long_name_of_a_file.txt", 12) == ["1. a_very_", "long_name_", "of_a_file.", "txt"]
    assert wrap_text("  error: it is not there", 16) == "  error: it is\n    not there"
    assert shorten("mail the invoice to kim", 12) == "mail the …"


def test_a_table_that_is_too_wide_is_wrapped_in_its_columns_and_then_written_as_lines() -> None:
    rows: list[dict[str, object]] = [{"name": "Kim Meyer", "note": "has not paid the bill of May", "amount": 12.5}]
    wrapped = render_table(rows, 34).splitlines()
    assert all(column_width(line) <= 34 for line in wrapped)
    assert len(wrapped) > 3
    assert {word for line in wrapped[2:] for word in line.split()} == {
        *"Kim Meyer has not paid the bill of May 12.5".split()
    }
    assert render_table(rows, 18).splitlines() == [
        "name: Kim Meyer",
        "note: has not paid",
        "  the bill of May",
        "amount: 12.5",
    ]
