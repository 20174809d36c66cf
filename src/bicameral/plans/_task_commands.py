"""Commands of task lists: the names of tools, and the usual commands for lines with their usual options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bicameral.errors import Place, PlanError, nearest
from bicameral.tools import Registry, Tool

from ._expressions import Const, Expr


@dataclass(frozen=True, slots=True)
class Command:
    """A usual command: the tool that does its work, its switches, and its options that take a value."""

    tool: str
    switches: Mapping[str, tuple[str, bool] | None] = field(default_factory=dict[str, "tuple[str, bool] | None"])
    options: Mapping[str, tuple[str, type[int] | type[str]]] = field(
        default_factory=dict[str, "tuple[str, type[int] | type[str]]"]
    )
    reads_input: bool = True


COMMANDS: Mapping[str, Command] = {
    "cat": Command("read_lines", reads_input=False),
    "sort": Command("sort_lines", {"-r": ("reverse", True), "-n": ("numeric", True)}),
    "uniq": Command("unique_lines"),
    "grep": Command(
        "grep",
        {"-i": ("ignore_case", True), "-v": ("invert", True), "-E": ("regex", True), "-F": ("regex", False)},
        {"-e": ("pattern", str)},
    ),
    "head": Command("head", options={"-n": ("count", int)}),
    "tail": Command("tail", options={"-n": ("count", int)}),
    "cut": Command("cut", options={"-f": ("field", int), "-d": ("delimiter", str)}),
    "wc": Command("count_lines", {"-l": None}),
}


@dataclass(frozen=True, slots=True)
class Operands:
    """The arguments of a command: those given by an option, and the other words in order."""

    named: dict[str, Expr]
    words: list[str]
    reads_input: bool


def tool_for(name: str, words: list[str], registry: Registry, place: Place) -> tuple[Tool, Operands]:
    """The tool that a command means and its arguments as far as the command line says them."""
    command = COMMANDS.get(name)
    wanted = command.tool if command else name.replace("-", "_")
    tool = registry.get(wanted)
    if tool is None:
        known = {*registry.names, *(alias for alias, one in COMMANDS.items() if one.tool in registry)}
        raise PlanError(
            "plan.unknown-tool", f"there is no tool {name!r}", place=place, nearest=nearest(name, sorted(known))
        )
    if command is None:
        return tool, Operands({}, list(words), reads_input=False)
    return tool, _operands(name, command, words, place)


def _operands(name: str, command: Command, words: list[str], place: Place) -> Operands:
    found = Operands({}, [], command.reads_input)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            found.words.extend(rest)
            break
        if word in command.switches:
            if switch := command.switches[word]:
                found.named[switch[0]] = Const(value=switch[1])
        elif option := command.options.get(word[:2]):
            value = word[2:] or (rest.pop(0) if rest else "")
            found.named[option[0]] = _option_value(word[:2], value, option[1], place)
        elif word.startswith("-") and word[1:].isdigit() and "-n" in command.options:
            found.named[command.options["-n"][0]] = Const(value=int(word[1:]))
        elif word.startswith("-") and len(word) > 1:
            known = (*command.switches, *command.options)
            raise PlanError(
                "plan.unknown-argument",
                f"the option {word!r} of {name!r} is not known",
                place=place,
                expected=", ".join(known) or "no option",
            )
        else:
            found.words.append(word)
    return found


def _option_value(option: str, value: str, type_: type[int] | type[str], place: Place) -> Expr:
    if type_ is str and value:
        return Const(value=value)
    if value.isascii() and value.isdigit() and len(value) < 10:
        return Const(value=int(value))
    raise PlanError(
        "plan.wrong-type",
        f"{value!r} cannot be the value of {option!r}",
        place=place,
        expected="a whole number" if type_ is int else "a text",
    )
