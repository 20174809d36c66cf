"""`bicameral tools`: list and show tools, and check tools of one's own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._options import CommonOptions, DefaultGroup, common_options, completer, load_config_quietly

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.tools import AbsentTool, Registry, Tool


@click.group(short_help="The tools that plans can use.", cls=DefaultGroup)
def command() -> None:
    """The tools that plans can use. Without a subcommand: the list."""


@command.command("list")
@common_options
def list_tools(chosen: CommonOptions) -> dict[str, Any]:
    """Every tool, by toolbox, with its signature and effect."""
    from bicameral.config import open_registry

    config = chosen.config()
    registry = open_registry(config)
    absent = _absent_tools(config, registry)
    _show_tools(chosen, list(registry), absent)
    return {
        "tools": [tool.describe() for tool in registry],
        "absent": [each.to_json() for each in absent],
    }


def _absent_tools(config: Config, registry: Registry) -> list[AbsentTool]:
    """The tools that cannot work as things are, whether a setting is missing or what it names."""
    from bicameral.config import absent_tools, surroundings_of, unready_tools

    around = surroundings_of(config)
    return [*absent_tools(config, registry, around), *unready_tools(config, registry, around)]


@completer
def _complete_tool() -> Iterable[str]:
    from bicameral.config import open_registry

    return open_registry(load_config_quietly()).names


@command.command("show")
@click.argument("name", shell_complete=_complete_tool)
@common_options
def show_tool(chosen: CommonOptions, name: str) -> dict[str, Any]:
    """Everything about one tool."""
    from bicameral.config import open_registry

    config = chosen.config()
    registry = open_registry(config)
    tool, out = registry[name], chosen.out
    absent = next((each for each in _absent_tools(config, registry) if each.name == name), None)
    out.show(f"{tool.signature}\n\n{tool.doc}\n")
    for argument in tool.arguments:
        declared = f"  {argument.name}: {argument.type}" + ("" if argument.required else f" = {argument.default!r}")
        out.show(f"{declared}  ({argument.purpose}" + (f"; {argument.doc})" if argument.doc else ")"))
    again = "may be retried" if tool.idempotent or tool.keyed else "is never retried"
    out.show(
        f"\ntoolbox {tool.toolbox}, version {tool.version}; effect {tool.effect}; at most {tool.timeout:g} s; {again}"
    )
    out.show("\n".join(_policy_facts(tool)))
    if tool.words:
        out.show(f"asked for with: {', '.join(tool.words)}")
    if absent is not None:
        out.show(_absence_text(absent))
    return {"tool": tool.describe(), **({} if absent is None else {"absent": absent.to_json()})}


def _absence_text(absent: AbsentTool) -> str:
    return f"cannot be used: {absent.missing.lacking}. {absent.missing.fix}"


def _policy_facts(tool: Tool) -> Iterator[str]:
    """The declarations of a tool that policies use."""
    reaches = f" (only {', '.join(tool.hosts)})" if tool.hosts else ""
    yield f"tells others something{reaches}" if tool.outbound else "tells nobody anything"
    if not tool.declared:
        yield "declares nothing: its result is a stranger's, and whatever it is given directs it"
    for part, origin in tool.origins.items():
        named = origin.to_json()["readers"]
        readers = named if isinstance(named, str) else f"whom {' and '.join(named)} name"
        yield f"result {part or 'as a whole'}: {origin.trust}, read by {readers}"


@command.command("add-check")
@click.argument("file", type=click.Path(path_type=Path))
@common_options
def add_check(chosen: CommonOptions, file: Path) -> dict[str, Any]:
    """Load the tools in FILE beside the configured ones, and say what they would add."""
    from bicameral.config import open_registry, surroundings_of
    from bicameral.tools import Registry, load_file

    config = chosen.config()
    tools = load_file(file.absolute(), surroundings_of(config), config.toolbox.get(file.stem, {}))
    Registry([*open_registry(config), *tools])
    _show_tools(chosen, tools)
    chosen.out.say(f'sound. To use them, add "{file}" to `files` in [toolboxes] of bicameral.toml')
    return {"tools": [tool.describe() for tool in tools]}


@command.command("describe", context_settings={"ignore_unknown_options": True})
@click.argument("words", metavar="CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@common_options
def describe(chosen: CommonOptions, words: tuple[str, ...]) -> int:
    """Ask a command what it is (CMD --describe, confined), and show the tools that this makes."""
    from bicameral.tools import describe_tool

    tools = describe_tool(_absolute_command(words))
    if chosen.out.as_json:
        chosen.out.write_json({"ok": True, "tools": [tool.describe() for tool in tools]})
    else:
        chosen.out.show("\n".join(json.dumps(tool.describe(), ensure_ascii=False, indent=2) for tool in tools))
    return 0


def _absolute_command(words: tuple[str, ...]) -> list[str]:
    """The command with a relative path made absolute; a bare name is looked up in the system's folders."""
    first = Path(words[0])
    return [str(first.absolute()) if "/" in words[0] and first.is_file() else words[0], *words[1:]]


def _show_tools(chosen: CommonOptions, tools: list[Tool], absent: Iterable[AbsentTool] = ()) -> None:
    lacking = {each.name: each for each in absent}
    boxes: dict[str, list[Tool]] = {}
    for tool in tools:
        boxes.setdefault(tool.toolbox, []).append(tool)
    for box, inside in boxes.items():
        chosen.out.show(f"{box}")
        for tool in inside:
            chosen.out.show(f"  {tool.signature}  [{tool.effect}]")
            if tool.doc:
                chosen.out.show(f"      {tool.doc.splitlines()[0]}")
            if (found := lacking.pop(tool.name, None)) is not None:
                chosen.out.show(f"      {_absence_text(found)}")
    # Toolboxes that are left out, of which no tool is known.
    for name, found in lacking.items():
        chosen.out.show(f"{name}\n  {_absence_text(found)}")
