"""A command line as somebody types it, held to a command tool's argv template: `grep -c -i ERROR app.log`.

The words become the tool's arguments, and nothing else: what runs is built from the template as ever. A word that the
template does not know as an option is refused, so that no option is there that the manifest did not write, and a word
is never more than one word: there is no shell whose signs could mean anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bicameral.errors import Place, ToolError, nearest

from ._argv import Element, Group, Hole, Template, holes
from ._command import Command, command_of
from ._manifest import ArgumentSpec, ToolSpec
from ._sandbox import require_confinement
from ._tool import Tool


def ready_command(tool: Tool) -> Command:
    """The command behind a tool; any other tool is refused, and any on a machine that cannot confine it."""
    command = command_of(tool)
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
    shape = _Shape.of(ready_command(tool))
    options = [f"[{word}]" for word in shape.flags]
    options += [f"[{word} {name.upper()}]" for word, name in shape.valued.items()]
    options += [f"[{word}{name.upper()}]" for word, name in shape.attached.items()]
    return " ".join((tool.name, *options, *(_shown(name, shape.spec.arguments[name]) for name in shape.operands)))


def command_arguments(tool: Tool, words: Sequence[str]) -> dict[str, Any]:
    """The arguments that the words after a command's name mean; `tools.bad-command-line` says which word means none."""
    shape = _Shape.of(ready_command(tool))
    reading = _Reading(tool.name, shape)
    reading.read(list(words))
    return reading.values | _operands(tool.name, shape, reading.operands)


def _shown(name: str, spec: ArgumentSpec) -> str:
    word = name.upper() + ("..." if spec.type.startswith("list") else "")
    return word if _needed(spec) else f"[{word}]"


def _needed(spec: ArgumentSpec) -> bool:
    return not spec.optional and spec.default is None


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a template takes: options by how they are written, and the arguments that stand alone, in their order."""

    spec: ToolSpec
    fixed: frozenset[str]
    """Words that are always there, so that it makes no difference if they are typed."""
    flags: dict[str, str]
    valued: dict[str, str]
    """Options whose value is the next word."""
    attached: dict[str, str]
    """Options whose value is the rest of the word: `--max=`."""
    operands: tuple[str, ...]

    @classmethod
    def of(cls, command: Command) -> _Shape:
        shape = cls(command.spec, _fixed(command.template), {}, {}, {}, ())
        operands: list[str] = []
        for part in command.template:
            if isinstance(part, Group):
                shape._group(part, operands)
            else:
                shape._element(part, operands)
        return cls(shape.spec, shape.fixed, shape.flags, shape.valued, shape.attached, tuple(operands))

    def _group(self, group: Group, operands: list[str]) -> None:
        first, *others = group.elements
        if self.spec.arguments[group.when].type == "bool":
            self.flags[_literal(first)] = group.when
        elif others and not any(holes(first)) and _alone(others[0]) == group.when:
            self.valued[_literal(first)] = group.when
        else:
            for element in group.elements:
                self._element(element, operands)

    def _element(self, element: Element, operands: list[str]) -> None:
        match element:
            case (Hole(name=name),):
                operands.append(name)
            case (str() as begun, Hole(name=name)):
                self.attached[begun] = name
            case _:
                pass


@dataclass(slots=True)
class _Reading:
    """Words being read, one after another."""

    tool: str
    shape: _Shape
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    operands: list[str] = field(default_factory=list[str])

    def read(self, words: list[str]) -> None:
        options = True
        while words:
            word = words.pop(0)
            if options and word == "--":
                options = False
            elif options and word.startswith("-") and word != "-":
                self._option(word, words)
            elif not (options and self._attached(word)):
                self.operands.append(word)

    def _option(self, word: str, following: list[str]) -> None:
        shape = self.shape
        if word in shape.fixed:
            return
        if word in shape.flags:
            self.values[shape.flags[word]] = True
        elif (name := shape.valued.get(word) or shape.attached.get(f"{word}=")) is not None:
            if not following:
                raise _bad(self.tool, f"{_quoted(word)} needs a value")
            self._set(name, following.pop(0))
        elif not self._attached(word) and not self._cluster(word):
            known = [*shape.flags, *shape.valued, *(each.rstrip("=") for each in shape.attached)]
            raise _bad(self.tool, f"it does not take {_quoted(word)}", known=known, word=word)

    def _attached(self, word: str) -> bool:
        """`--max=3` and `-m3`, for an option that takes a value."""
        for begun, name in self.shape.attached.items():
            if word.startswith(begun):
                self._set(name, word.removeprefix(begun))
                return True
        for option, name in self.shape.valued.items():
            begun = f"{option}=" if option.startswith("--") else option
            if word.startswith(begun) and word != option:
                self._set(name, word.removeprefix(begun))
                return True
        return False

    def _cluster(self, word: str) -> bool:
        """`-ci` for `-c -i`."""
        if word.startswith("--"):
            return False
        letters = [f"-{letter}" for letter in word[1:]]
        if not all(each in self.shape.flags or each in self.shape.fixed for each in letters):
            return False
        self.values.update({self.shape.flags[each]: True for each in letters if each in self.shape.flags})
        return True

    def _set(self, name: str, word: str) -> None:
        spec = self.shape.spec.arguments[name]
        given = _value(word, spec)
        self.values[name] = [*self.values.get(name, []), given] if spec.type.startswith("list") else given


def _operands(tool: str, shape: _Shape, words: Sequence[str]) -> dict[str, Any]:
    """Words that stand alone, for the arguments that do: a list takes as many as the others leave it."""
    arguments, found, left = shape.spec.arguments, dict[str, Any](), list(words)
    needed = sum(_needed(arguments[name]) and not _many(arguments[name]) for name in shape.operands)
    spare = len(left) - needed
    for name in shape.operands:
        spec = arguments[name]
        if _many(spec):
            taken = max(spare, 0)
            if taken or _needed(spec):
                found[name] = [_value(word, spec) for word in left[:taken]]
            left, spare = left[taken:], 0
        elif left and (_needed(spec) or spare > 0):
            spare -= not _needed(spec)
            found[name] = _value(left.pop(0), spec)
    if left:
        raise _bad(tool, f"{_quoted(left[0])} is one word too many")
    return found


def _many(spec: ArgumentSpec) -> bool:
    return spec.type.startswith("list")


def _value(word: str, spec: ArgumentSpec) -> Any:
    try:
        return int(word) if spec.type == "int" else float(word) if spec.type == "float" else word
    except ValueError:
        # It stays a text, and the tool refuses it with the type that it wants.
        return word


def _fixed(template: Template) -> frozenset[str]:
    literals = (_literal(part) for part in template if not isinstance(part, Group) and not any(holes(part)))
    return frozenset(each for each in literals if each != "--")


def _literal(element: Element) -> str:
    return "".join(part for part in element if isinstance(part, str))


def _alone(element: Element) -> str | None:
    return element[0].name if len(element) == 1 and isinstance(element[0], Hole) else None


def _quoted(word: str) -> str:
    return repr(word if len(word) <= 60 else word[:57] + "...")


def _bad(tool: str, message: str, *, known: Sequence[str] = (), word: str = "") -> ToolError:
    return ToolError(
        "tools.bad-command-line",
        f"{tool}: {message}",
        place=Place(argument=tool),
        expected=", ".join(known) if known else None,
        nearest=nearest(word[:60], known) if known else None,
    )
