"""Textual interfaces of command tools: a typed command line, and a program's own `--describe`.

A command line such as `grep -c -i ERROR app.log` is matched against the tool's argv template. The words become
arguments of the tool and nothing else: the argv is built from the template as always. A word that looks like an option
and is not in the template is refused, so there are no options that the manifest did not write, and a word is always a
single word: there is no shell.

`PROGRAM --describe` prints the program's name, inputs and outputs:

    {"name": "agx-ocr", "version": "0.1.0", "capabilities": ["document-ocr", "image-to-text"],
     "inputs": ["image/png", "application/pdf"], "outputs": ["text/plain"]}

With only that, a text input goes to standard input and any other is a file named on the command line; the effect is not
known, so it is assumed to be irreversible. Under the key `bicameral` a program can declare more: a list of tools as in
a manifest, whose argv leaves the program out. The declaration is checked and the program confined, never trusted: only
the user can give it the network, files beyond its arguments, or more than the usual limits, and its declared origins
and purposes count only if the user's settings for it say `believe = true`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bicameral.documents import KeyFault, first_key_fault
from bicameral.errors import Place, ToolError, nearest_name
from bicameral.tools._argument import Effect
from bicameral.tools._command import ConfinedCommand, command_tool, find_command, program_files, program_path
from bicameral.tools._declaration import Settings
from bicameral.tools._folders import Folders
from bicameral.tools._manifest import ArgumentSpec, LimitsSpec, ToolSpec
from bicameral.tools._manifest_rules import (
    ArgvElement,
    ArgvTemplate,
    OptionalGroup,
    Placeholder,
    placeholder_names,
    spec_faults,
)
from bicameral.tools._sandbox import (
    MIB,
    CommandResult,
    Confinement,
    ConfinementProbe,
    confinement_problem,
    require_confinement,
    run_confined_sync,
)
from bicameral.tools._tool import Tool


def require_command(tool: Tool) -> ConfinedCommand:
    """The command behind a tool; any other tool is refused, as is a machine that cannot confine commands."""
    command = find_command(tool)
    if command is None:
        raise ToolError(
            "tools.not-a-command",
            f"{tool.name!r} is not a command that runs confined",
            fix="Make it with a manifest (`command_tools`).",
        )
    require_confinement(command.probe)
    return command


def command_usage(tool: Tool) -> str:
    """The tool as a command line, in one line: `grep [-c] [-i] [-m N] PATTERN FILES...`."""
    syntax = _CommandSyntax.from_command(require_command(tool))
    options = [f"[{word}]" for word in syntax.flags]
    options += [f"[{word} {name.upper()}]" for word, name in syntax.valued_options.items()]
    options += [f"[{word}{name.upper()}]" for word, name in syntax.attached_options.items()]
    return " ".join(
        (tool.name, *options, *(_usage_word(name, syntax.spec.arguments[name]) for name in syntax.operands))
    )


def command_arguments(tool: Tool, words: Sequence[str]) -> dict[str, Any]:
    """The arguments of a tool from the words of a command line; `tools.bad-command-line` names a word that is wrong.

    Example:
        >>> command_arguments(registry["grep"], ["-c", "ERROR", "app.log"])
        {'count': True, 'pattern': 'ERROR', 'files': ['app.log']}
    """
    syntax = _CommandSyntax.from_command(require_command(tool))
    parser = _WordParser(tool.name, syntax)
    parser.parse(list(words))
    return parser.values | _assign_operands(tool.name, syntax, parser.operands)


def _usage_word(name: str, spec: ArgumentSpec) -> str:
    word = name.upper() + ("..." if spec.type.startswith("list") else "")
    return word if _is_required(spec) else f"[{word}]"


def _is_required(spec: ArgumentSpec) -> bool:
    return not spec.optional and spec.default is None


@dataclass(frozen=True, slots=True)
class _CommandSyntax:
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
    def from_command(cls, command: ConfinedCommand) -> _CommandSyntax:
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
    syntax: _CommandSyntax
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


def _assign_operands(tool: str, syntax: _CommandSyntax, words: Sequence[str]) -> dict[str, Any]:
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


DESCRIBE_SECONDS = 5.0
_MAX_OUTPUT = MIB
_EXAMPLE_HINT = "examples/tools/checksum is an example."

_MIME = re.compile(r"[a-zA-Z0-9][\w.+-]*/([a-zA-Z0-9][\w.+-]*|\*)(;.*)?")


class _DescriptionExtension(BaseModel):
    """What a command says about itself to us: the tools of a manifest, without the program."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
    manifest: Literal[1]
    tools: list[dict[str, Any]] = Field(min_length=1)


class CommandDescription(BaseModel):
    """What `--describe` prints. Keys that are not known are left alone: others use this format too."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, defer_build=True)
    name: str = Field(min_length=1, max_length=100)
    version: str = Field(max_length=100)
    capabilities: list[str]
    inputs: list[str]
    outputs: list[str]
    bicameral: _DescriptionExtension | None = None


class CommandSettings(Settings):
    """What a user can set for a command that describes itself."""

    effect: Effect | None = Field(
        default=None, description="What it does to the world, where it does not say so itself."
    )
    network: bool | list[str] = Field(default=False, description='Nothing, everything, or a list of `"host:port"`.')
    needs: list[str] = Field(default_factory=list, description="Absolute paths of the program's own files.")
    believe: bool = Field(
        default=False,
        description="Whether what it says about origins, purposes and receivers counts; without, the worst is assumed.",
    )


def describe_tool(
    argv: Sequence[str],
    folders: Folders | None = None,
    *,
    settings: CommandSettings | None = None,
    timeout: float = DESCRIBE_SECONDS,
    probe: ConfinementProbe = confinement_problem,
) -> list[Tool]:
    """The tools of a command, from its own `--describe`, which runs confined, without files and network.

    Args:
        argv: The command without `--describe`.
        folders: Where the tools may read and write; nowhere by default.
        settings: What the user grants the command.
        timeout: Seconds for `--describe`.
        probe: Says why commands cannot be confined here, or None.
    """
    if not argv:
        raise ToolError("tools.command-not-found", "there is no command to describe", expected="at least one word")
    start = [program_path(argv[0]), *argv[1:]]
    granted = settings or CommandSettings()
    confinement = Confinement(
        read=(*program_files(start), *map(Path, granted.needs)), timeout=timeout, memory=512 * MIB, output=_MAX_OUTPUT
    )
    result = run_confined_sync([*start, "--describe"], confinement, probe=probe)
    command = " ".join([*argv, "--describe"])
    _check_describe_result(result, command, timeout)
    described = _parse_description(result.stdout, command)
    allowed = folders or Folders.of(Path("/"), read=())
    return [
        command_tool(spec, allowed, program=start, believed=granted.believe, probe=probe)
        for spec in _tool_specs(described, command, granted)
    ]


def _check_describe_result(result: CommandResult, command: str, timeout: float) -> None:
    match result.ended:
        case "exited" if result.exit_code == 0:
            return
        case "timeout":
            raise ToolError(
                "tools.describe-timeout",
                f"`{command}` gave no answer within {timeout:g} seconds and was killed",
                fix="It must print its description and exit at once, whatever its standard input; "
                "or write a manifest for it.",
            )
        case "output":
            raise ToolError(
                "tools.describe-too-large",
                f"`{command}` printed more than {_MAX_OUTPUT:,} bytes and was killed",
                expected="one JSON object",
            )
        case _:
            last = result.stderr.decode(errors="replace").strip().splitlines()[-1:]
            reason = f": {last[0][:300]}" if last else ""
            raise ToolError(
                "tools.describe-failed",
                f"`{command}` failed with exit code {result.exit_code}{reason}",
                fix="A command that knows no --describe needs a manifest; files of its own outside the system's "
                "folders are named there under `needs`.",
            )


def _parse_description(stdout: bytes, command: str) -> CommandDescription:
    try:
        content = json.loads(stdout.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _description_error(command, f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _description_error(command, f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError):
        raise _description_error(command, "it is nested too deeply") from None
    try:
        described = CommandDescription.model_validate(content)
    except ValidationError as error:
        fault = first_key_fault(error, CommandDescription)
        raise _description_error(command, f"{fault.key}: {fault.message}" if fault.path else fault.message) from None
    for kind in (*described.inputs, *described.outputs):
        if not _MIME.fullmatch(kind):
            raise _description_error(command, f"{kind[:60]!r} is not a MIME type")
    return described


def _description_error(command: str, reason: str) -> ToolError:
    return ToolError(
        "tools.describe-garbage",
        f"what `{command}` printed is no description: {reason}",
        expected="a JSON object with name, version, capabilities, inputs, outputs",
        fix=_EXAMPLE_HINT,
    )


def _tool_specs(described: CommandDescription, command: str, settings: CommandSettings) -> list[ToolSpec]:
    if described.bicameral is None:
        raw = [_plain_tool(described, command)]
    else:
        defaults: dict[str, Any] = {"name": _tool_name(described.name), "version": described.version, "argv": []}
        raw = [defaults | each for each in described.bicameral.tools]
    return [_tool_spec(each, number, command, settings) for number, each in enumerate(raw)]


def _tool_spec(content: dict[str, Any], number: int, command: str, settings: CommandSettings) -> ToolSpec:
    try:
        spec = ToolSpec.model_validate(({"effect": settings.effect} if settings.effect else {}) | content)
    except ValidationError as error:
        raise _spec_error(first_key_fault(error, ToolSpec), number, command) from None
    # What the program declared here is overwritten: only the user's settings grant network and files.
    granted = spec.model_copy(update={"network": settings.network, "needs": settings.needs})
    for fault in (*_self_grant_faults(spec), *spec_faults(granted, program=False)):
        raise _spec_error(fault, number, command)
    return granted


def _self_grant_faults(spec: ToolSpec) -> Iterator[KeyFault]:
    """What a command tries to grant itself: only the user's settings can."""
    if spec.network:
        yield KeyFault(
            ("network",), "a command cannot give itself the network", "`network` in the user's settings for it"
        )
    if spec.needs:
        yield KeyFault(("needs",), "a command cannot give itself files", "`needs` in the user's settings for it")
    for name, limit in LimitsSpec().model_dump().items():
        if getattr(spec.limits, name) > limit:
            yield KeyFault(("limits", name), "a command cannot raise its own limits", f"at most {limit}")


def _spec_error(fault: KeyFault, number: int, command: str) -> ToolError:
    fault = replace(fault, path=("bicameral", "tools", number, *fault.path))
    return ToolError(
        "tools.bad-manifest",
        f"{fault.key}: {fault.message}",
        place=Place(f"`{command}`"),
        expected=fault.expected,
        nearest=fault.nearest,
        fix=_EXAMPLE_HINT,
    )


def _plain_tool(described: CommandDescription, command: str) -> dict[str, Any]:
    """The tool of a description without the key `bicameral`."""
    words = dict.fromkeys(word for each in described.capabilities for word in re.findall(r"[^\W_]{3,}", each.lower()))
    doc = f"{described.name}: {', '.join(described.capabilities)}." if described.capabilities else described.name
    content: dict[str, Any] = {
        "name": _tool_name(described.name),
        "version": described.version,
        "doc": doc,
        "words": list(words),
        "result": _result_kind(described.outputs, command),
        "argv": [],
    }
    if described.inputs and all(kind.startswith("text/") for kind in described.inputs):
        content |= {"stdin": "text", "arguments": {"text": {"doc": "The text to work on."}}}
    elif described.inputs:
        kinds = ", ".join(described.inputs)
        content |= {"argv": ["{path}"], "arguments": {"path": {"type": "path", "doc": f"A file: {kinds}."}}}
    return content


def _tool_name(name: str) -> str:
    """The name as a Python identifier: `agx-ocr` becomes `agx_ocr`."""
    return re.sub(r"\W+", "_", name).strip("_").lower()


def _result_kind(outputs: Sequence[str], command: str) -> str:
    """How to read the output: by the first kind, which a command prints by default."""
    first = outputs[0].split(";")[0] if outputs else "text/plain"
    if first == "application/json" or first.endswith("+json"):
        return "json"
    if first == "text/csv":
        return "table"
    if first.startswith("text/"):
        return "text"
    raise _description_error(
        command, f"its first output is {first!r}, and a plan has no such values (text/* and application/json)"
    )
