"""The words of command tools: a typed command line becomes arguments, and arguments become words again.

A command line such as `grep -c -i ERROR app.log` is matched against the tool's argv template. The words become
arguments of the tool and nothing else: the argv is built from the template as always. A word that looks like an option
and is not in the template is refused, so there are no options that the manifest did not write, and a word is always a
single word: there is no shell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from bicameral.errors import Place, ToolError, nearest_name
from bicameral.tools._command import ConfinedCommand, find_command
from bicameral.tools._manifest import ArgumentSpec, ToolSpec
from bicameral.tools._manifest_rules import (
    ArgvElement,
    ArgvTemplate,
    OptionalGroup,
    Placeholder,
    placeholder_names,
)
from bicameral.tools._sandbox import require_confinement
from bicameral.tools._tool import Tool


def require_command(tool: Tool) -> ConfinedCommand:
    """The command behind a tool; any other tool is refused, as is a machine that cannot confine commands."""
    command = _command_of(tool)
    require_confinement(command.probe)
    return command


def _command_of(tool: Tool) -> ConfinedCommand:
    command = find_command(tool)
    if command is None:
        raise ToolError(
            "tools.not-a-command",
            f"{tool.name!r} is not a command that runs confined",
            fix="Make it with a manifest (`command_tools`).",
        )
    return command


def command_syntax(tool: Tool) -> CommandSyntax:
    """The words that a command takes, also on a machine that could not run it."""
    return CommandSyntax.from_command(_command_of(tool))


def command_usage(tool: Tool) -> str:
    """The tool as a command line, in one line: `grep [-c] [-i] [-m N] PATTERN FILES...`."""
    syntax = CommandSyntax.from_command(require_command(tool))
    options = [f"[{word}]" for word in syntax.flags]
    options += [f"[{word} {name.upper()}]" for word, name in syntax.valued_options.items()]
    options += [f"[{word}{name.upper()}]" for word, name in syntax.attached_options.items()]
    return " ".join(
        (tool.name, *options, *(_usage_word(name, syntax.spec.arguments[name]) for name in syntax.operands))
    )


def command_arguments(tool: Tool, words: Sequence[str], *, runnable: bool = True) -> dict[str, Any]:
    """The arguments of a tool from the words of a command line; `tools.bad-command-line` names a word that is wrong.

    Args:
        tool: A tool that is a command.
        words: What follows its name on the command line.
        runnable: Whether this machine must be able to run it; a list of tasks is read also where it cannot.

    Example:
        >>> command_arguments(registry["grep"], ["-c", "ERROR", "app.log"])
        {'count': True, 'pattern': 'ERROR', 'files': ['app.log']}
    """
    if runnable:
        require_command(tool)
    syntax = command_syntax(tool)
    parser = _WordParser(tool.name, syntax)
    parser.parse(list(words))
    return parser.values | _assign_operands(tool.name, syntax, parser.operands)


def _usage_word(name: str, spec: ArgumentSpec) -> str:
    word = name.upper() + ("..." if spec.type.startswith("list") else "")
    return word if _is_required(spec) else f"[{word}]"


def _is_required(spec: ArgumentSpec) -> bool:
    return not spec.optional and spec.default is None


@dataclass(frozen=True, slots=True)
class CommandSyntax:
    """What a template accepts: options by their spelling, and the operands in their order."""

    spec: ToolSpec
    fixed_words: frozenset[str]
    """Words that the template always adds, so typing them changes nothing."""
    flags: dict[str, str]
    valued_options: dict[str, str]
    """Options whose value is the next word."""
    attached_options: dict[str, str]
    """Options whose value is the rest of the word: `--max=`."""
    operands: list[str]

    @classmethod
    def from_command(cls, command: ConfinedCommand) -> CommandSyntax:
        syntax = cls(command.spec, _fixed_words(command.template), {}, {}, {}, [])
        for part in command.template:
            if isinstance(part, OptionalGroup):
                syntax._add_group(part)
            else:
                syntax._add_element(part)
        return syntax

    def _add_group(self, group: OptionalGroup) -> None:
        first, *others = group.elements
        if self.spec.arguments[group.when].type == "bool":
            self.flags[_literal_text(first)] = group.when
        elif others and not any(placeholder_names(first)) and _sole_placeholder(others[0]) == group.when:
            self.valued_options[_literal_text(first)] = group.when
        else:
            for element in group.elements:
                self._add_element(element)

    def _add_element(self, element: ArgvElement) -> None:
        match element:
            case (Placeholder(name=name),):
                self.operands.append(name)
            case (str() as prefix, Placeholder(name=name)):
                self.attached_options[prefix] = name
            case _:
                pass


@dataclass(slots=True)
class _WordParser:
    """Parses words one after another into option values and operands."""

    tool: str
    syntax: CommandSyntax
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    operands: list[str] = field(default_factory=list[str])

    def parse(self, words: list[str]) -> None:
        options = True
        while words:
            word = words.pop(0)
            if options and word == "--":
                options = False
            elif options and word.startswith("-") and word != "-":
                self._parse_option(word, words)
            elif not (options and self._parse_attached(word)):
                self.operands.append(word)

    def _parse_option(self, word: str, following: list[str]) -> None:
        syntax = self.syntax
        if word in syntax.fixed_words:
            return
        if word in syntax.flags:
            self.values[syntax.flags[word]] = True
        elif (name := syntax.valued_options.get(word) or syntax.attached_options.get(f"{word}=")) is not None:
            if not following:
                raise _command_line_error(self.tool, f"{_quote_word(word)} needs a value")
            self._set_value(name, following.pop(0))
        elif not self._parse_attached(word) and not self._parse_cluster(word):
            known = [*syntax.flags, *syntax.valued_options, *(each.rstrip("=") for each in syntax.attached_options)]
            raise _command_line_error(self.tool, f"it does not take {_quote_word(word)}", known=known, word=word)

    def _parse_attached(self, word: str) -> bool:
        """`--max=3` and `-m3`, for an option that takes a value."""
        for prefix, name in self.syntax.attached_options.items():
            if word.startswith(prefix):
                self._set_value(name, word.removeprefix(prefix))
                return True
        for option, name in self.syntax.valued_options.items():
            prefix = f"{option}=" if option.startswith("--") else option
            if word.startswith(prefix) and word != option:
                self._set_value(name, word.removeprefix(prefix))
                return True
        return False

    def _parse_cluster(self, word: str) -> bool:
        """`-ci` for `-c -i`."""
        if word.startswith("--"):
            return False
        letters = [f"-{letter}" for letter in word[1:]]
        if not all(each in self.syntax.flags or each in self.syntax.fixed_words for each in letters):
            return False
        self.values.update({self.syntax.flags[each]: True for each in letters if each in self.syntax.flags})
        return True

    def _set_value(self, name: str, word: str) -> None:
        spec = self.syntax.spec.arguments[name]
        value = _parse_word(word, spec)
        self.values[name] = [*self.values.get(name, []), value] if spec.type.startswith("list") else value


def _assign_operands(tool: str, syntax: CommandSyntax, words: Sequence[str]) -> dict[str, Any]:
    """Operand words to arguments: a list takes as many as the required arguments leave."""
    arguments, values, remaining = syntax.spec.arguments, dict[str, Any](), list(words)
    needed = sum(
        _is_required(arguments[name]) and not arguments[name].type.startswith("list") for name in syntax.operands
    )
    spare = len(remaining) - needed
    for name in syntax.operands:
        spec = arguments[name]
        if spec.type.startswith("list"):
            taken = max(spare, 0)
            if taken or _is_required(spec):
                values[name] = [_parse_word(word, spec) for word in remaining[:taken]]
            remaining, spare = remaining[taken:], 0
        elif remaining and (_is_required(spec) or spare > 0):
            spare -= not _is_required(spec)
            values[name] = _parse_word(remaining.pop(0), spec)
    if remaining:
        raise _command_line_error(tool, f"{_quote_word(remaining[0])} is one word too many")
    return values


def _parse_word(word: str, spec: ArgumentSpec) -> Any:
    try:
        return int(word) if spec.type == "int" else float(word) if spec.type == "float" else word
    except ValueError:
        # It stays a text, and the tool refuses it with the expected type.
        return word


def _fixed_words(template: ArgvTemplate) -> frozenset[str]:
    literals = (
        _literal_text(part)
        for part in template
        if not isinstance(part, OptionalGroup) and not any(placeholder_names(part))
    )
    return frozenset(each for each in literals if each != "--")


def _literal_text(element: ArgvElement) -> str:
    return "".join(part for part in element if isinstance(part, str))


def _sole_placeholder(element: ArgvElement) -> str | None:
    return element[0].name if len(element) == 1 and isinstance(element[0], Placeholder) else None


def _quote_word(word: str) -> str:
    return repr(word if len(word) <= 60 else word[:57] + "...")


def _command_line_error(tool: str, message: str, *, known: Sequence[str] = (), word: str = "") -> ToolError:
    return ToolError(
        "tools.bad-command-line",
        f"{tool}: {message}",
        place=Place(argument=tool),
        expected=", ".join(known) if known else None,
        nearest=nearest_name(word[:60], known) if known else None,
    )


def stdin_argument(tool: Tool) -> str | None:
    """The argument that a command gets on its standard input; None if it reads none, or is no command."""
    command = find_command(tool)
    return None if command is None else command.spec.stdin


def command_words(tool: Tool, values: Mapping[str, Any]) -> list[str]:
    """The words of a command line that give a command these values; its standard input is none of them.

    Example:
        >>> command_words(registry["grep"], {"count": True, "pattern": "ERROR", "files": ["app.log"]})
        ['-c', 'ERROR', 'app.log']
    """
    syntax = command_syntax(tool)
    operands = [word for name in syntax.operands for word in _texts(values.get(name))]
    # A word that looks like an option must not be parsed as one.
    guard = ["--"] if any(word.startswith("-") for word in operands) else []
    return [*_option_words(syntax, values), *guard, *operands]


def _option_words(syntax: CommandSyntax, values: Mapping[str, Any]) -> Iterator[str]:
    for word, name in syntax.flags.items():
        if values.get(name) is True:
            yield word
    for word, name in syntax.valued_options.items():
        for text in _texts(values.get(name)):
            yield from (word, text)
    for prefix, name in syntax.attached_options.items():
        for text in _texts(values.get(name)):
            yield prefix + text


def _texts(value: Any) -> list[str]:
    if value is None:
        return []
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [repr(item) if isinstance(item, float) else str(item) for item in items]
