"""`bicameral tools`: list, show and find tools, check tools of one's own, and confirm the effects of programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._options import CommonOptions, DefaultGroup, common_options, completer, load_config_quietly
from bicameral.cli._output import FAILED, OK, Output
from bicameral.errors import RunError, ToolError, nearest_name

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.tools import AbsentTool, DescribedEffect, Effect, LookupResult, Registry, Tool


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
        "tools": [_tool_facts(tool) for tool in registry],
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
    if tool.described is not None:
        out.show(f"the effect is {tool.described}")
    for title, names in (("accepts", tool.accepts), ("gives", tool.gives), ("can", tool.capabilities)):
        if names:
            out.show(f"{title}: {', '.join(names)}")
    if tool.words:
        out.show(f"asked for with: {', '.join(tool.words)}")
    if absent is not None:
        out.show(_absence_text(absent))
    return {"tool": _tool_facts(tool), **({} if absent is None else {"absent": absent.to_json()})}


def _tool_facts(tool: Tool) -> dict[str, Any]:
    """Everything about a tool as JSON, with what was confirmed of one that describes itself."""
    return tool.describe() | ({} if tool.described is None else {"described": tool.described.to_json()})


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
    return {"tools": [_tool_facts(tool) for tool in tools]}


@command.command("describe", context_settings={"ignore_unknown_options": True})
@click.argument("words", metavar="CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@common_options
def describe(chosen: CommonOptions, words: tuple[str, ...]) -> int:
    """Ask a command what it is (CMD --describe, confined), and show the tools that this makes."""
    from bicameral.tools import describe_tool

    tools = describe_tool(_absolute_command(words))
    if chosen.out.as_json:
        chosen.out.write_json({"ok": True, "tools": [_tool_facts(tool) for tool in tools]})
    else:
        chosen.out.show("\n".join(json.dumps(_tool_facts(tool), ensure_ascii=False, indent=2) for tool in tools))
    return 0


def _absolute_command(words: tuple[str, ...]) -> list[str]:
    """The command with a relative path made absolute; a bare name is looked up in the system's folders."""
    first = Path(words[0])
    return [str(first.absolute()) if "/" in words[0] and first.is_file() else words[0], *words[1:]]


def _effect_text(tool: Tool) -> str:
    """The effect that counts and, where a program describes itself, whether a person has confirmed it."""
    match tool.described:
        case None:
            return tool.effect
        case found if found.state == "confirmed":
            return f"{tool.effect}, confirmed"
        case found if found.state == "configured":
            return f"{tool.effect}, by your settings"
        case found if found.state == "lapsed":
            return f"{tool.effect}; no longer confirmed as {found.confirmed}"
        case found if found.proposal.effect != tool.effect:
            return f"{tool.effect}; proposed: {found.proposal.effect}"
        case _:
            return f"{tool.effect}; not confirmed"


@completer
def _complete_accepted() -> Iterable[str]:
    return _lookup_names(0)


@completer
def _complete_given() -> Iterable[str]:
    return _lookup_names(1)


@completer
def _complete_capability() -> Iterable[str]:
    return _lookup_names(2)


def _lookup_names(side: int) -> list[str]:
    from bicameral.config import open_registry
    from bicameral.tools import lookup_names

    return sorted(lookup_names(open_registry(load_config_quietly()))[side])


@command.command("find")
@click.option(
    "--accepts",
    multiple=True,
    metavar="TYPE",
    shell_complete=_complete_accepted,
    help="A MIME type (application/pdf, image/*), an ending (.pdf), or a type of values (text, table, date).",
)
@click.option("--gives", multiple=True, metavar="TYPE", shell_complete=_complete_given, help="The same for its result.")
@click.option(
    "--can", multiple=True, metavar="NAME", shell_complete=_complete_capability, help="A capability, as document-ocr."
)
@common_options
def find(chosen: CommonOptions, accepts: tuple[str, ...], gives: tuple[str, ...], can: tuple[str, ...]) -> int:
    """Tools by what they accept, give and can do. All conditions must hold.

    Where no single tool does, two in a row may. The exit code is 1 if nothing is found.
    """
    from bicameral.config import open_registry
    from bicameral.tools import find_tools

    if not (accepts or gives or can):
        raise click.UsageError("name what to look for: --accepts, --gives or --can")
    found = find_tools(open_registry(chosen.config()), accepts=accepts, gives=gives, can=can)
    if found.tools:
        _show_tools(chosen, list(found.tools))
    for chain in found.chains:
        chosen.out.show(f"{chain.first.name}, then {chain.second.name} (as {chain.argument})")
    if not found:
        chosen.out.say(_nothing_found(found))
    chosen.out.write_json(
        {
            "ok": bool(found),
            "tools": [_tool_facts(tool) for tool in found.tools],
            "chains": [chain.to_json() for chain in found.chains],
            "nearest": dict(found.nearest),
        }
    )
    return OK if found else FAILED


def _nothing_found(found: LookupResult) -> str:
    lines = ["no tool is found"]
    for word, nearest in found.nearest:
        lines.append(f"  nothing has {word!r}" + (f"; the nearest is {nearest!r}" if nearest else ""))
    if not found.nearest:
        lines.append("  each condition holds for some tool, and no tool meets all of them")
    return "\n".join(lines)


@completer
def _complete_described() -> Iterable[str]:
    from bicameral.config import open_registry

    return [tool.name for tool in open_registry(load_config_quietly()) if tool.described is not None]


@command.command("accept")
@click.argument("name", shell_complete=_complete_described)
@click.option(
    "--effect",
    type=click.Choice(["pure", "read", "write", "send", "irreversible"]),
    help="Another effect than the proposed one.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common_options
def accept(chosen: CommonOptions, name: str, effect: Effect | None, yes: bool) -> int:
    """Confirm the effect of a tool of a program that describes itself.

    It holds for the program and its description as they are now: when either changes, it lapses.
    """
    from bicameral.tools import confirm_effect

    out, found = chosen.out, _described_tool(chosen, name)
    parts, wanted = found.identity.parts(), effect or found.proposal.effect
    out.say(f"{name}, of {found.program}")
    for reason in found.proposal.reasons:
        out.say(f"  {reason}")
    out.say(
        f"proposed: {found.proposal.effect}" + ("" if effect in (None, found.proposal.effect) else f"; you: {effect}")
    )
    if not _confirm(out, f"Treat {name} as {wanted!r} from now on?", yes):
        return FAILED
    confirm_effect(found, wanted, parts)
    out.show(f"confirmed: {name} is {wanted}")
    out.write_json({"ok": True, "name": name, "effect": wanted, "proposed": found.proposal.effect, "parts": parts})
    return OK


@command.command("forget")
@click.argument("name", shell_complete=_complete_described)
@common_options
def forget(chosen: CommonOptions, name: str) -> dict[str, Any]:
    """Withdraw what was confirmed of a tool: it is irreversible again."""
    from bicameral.tools import forget_effect

    known = forget_effect(_described_tool(chosen, name))
    chosen.out.show(f"no longer confirmed: {name}" if known else f"it was not confirmed: {name}")
    return {"name": name, "was_confirmed": known}


def _described_tool(chosen: CommonOptions, name: str) -> DescribedEffect:
    from bicameral.config import open_registry

    registry = open_registry(chosen.config())
    if (found := registry[name].described) is None:
        described = [tool.name for tool in registry if tool.described is not None]
        raise ToolError(
            "tools.not-described",
            f"{name!r} is no program that describes itself, so that its effect is declared and needs no confirmation",
            expected=", ".join(described) or None,
            nearest=nearest_name(name, described),
        )
    return found


def _confirm(out: Output, question: str, yes: bool) -> bool:
    """Whether the person says so; without a terminal only `--yes` does."""
    if yes:
        return True
    if not out.is_interactive:
        raise RunError("run.needs-answer", f"nobody is there to be asked: {question}", fix="--yes says yes.")
    import asyncio

    from bicameral.cli._prompts import confirm_yes

    if asyncio.run(confirm_yes(question)):
        return True
    out.say("nothing was confirmed")
    return False


def _show_tools(chosen: CommonOptions, tools: list[Tool], absent: Iterable[AbsentTool] = ()) -> None:
    lacking = {each.name: each for each in absent}
    boxes: dict[str, list[Tool]] = {}
    for tool in tools:
        boxes.setdefault(tool.toolbox, []).append(tool)
    for box, inside in boxes.items():
        chosen.out.show(f"{box}")
        for tool in inside:
            chosen.out.show(f"  {tool.signature}  [{_effect_text(tool)}]")
            if tool.doc:
                chosen.out.show(f"      {tool.doc.splitlines()[0]}")
            if (found := lacking.pop(tool.name, None)) is not None:
                chosen.out.show(f"      {_absence_text(found)}")
    # Toolboxes that are left out, of which no tool is known.
    for name, found in lacking.items():
        chosen.out.show(f"{name}\n  {_absence_text(found)}")
