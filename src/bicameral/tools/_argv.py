"""Argv templates: `"--max-count={n}"` becomes `"--max-count=3"`, and no value ever becomes an option or a second word.

A `{name}` stands for an argument, `{{` and `}}` for braces. An argument that is a list must be a whole element and
becomes as many elements as it has items. There is no shell anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bicameral.errors import Place, ToolError

_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|[{}]")
# The kernel takes no longer element, and in all no more than a quarter of the stack.
_LONGEST_ELEMENT = 128 * 1024 - 1
_LONGEST_ARGV = 1024 * 1024

Value = str | int | float | bool | Path | None | Sequence[str] | Sequence[Path]


@dataclass(frozen=True, slots=True)
class Hole:
    """A place in an element where an argument goes."""

    name: str


Element = tuple[str | Hole, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Elements that are only there when an argument is given (and is not false)."""

    when: str
    elements: tuple[Element, ...]


Template = tuple[Element | Group, ...]


def parse_element(text: str) -> Element:
    """The parts of one element; a ValueError says what is wrong with its braces."""
    parts: list[str | Hole] = []
    end = 0
    for token in _TOKEN.finditer(text):
        parts.append(text[end : token.start()])
        end = token.end()
        if name := token["name"]:
            parts.append(Hole(name))
        elif token[0] in ("{{", "}}"):
            parts.append(token[0][0])
        else:
            raise ValueError(f"{text!r} has a single {token[0]!r}; write it twice to mean the character itself")
    parts.append(text[end:])
    return tuple(part for part in parts if part != "")


def holes(element: Element) -> Iterator[str]:
    """The names of the arguments in an element."""
    return (part.name for part in element if isinstance(part, Hole))


def fill(template: Template, values: Mapping[str, Value], *, fixed: Collection[str] = ()) -> list[str]:
    """The argv for these values. `fixed` names arguments whose few values the manifest itself wrote.

    A value that would begin an element with `-` is refused, unless a literal `--` stands before it in the template:
    the author says by it that the program takes everything after it as an operand.
    """
    argv: list[str] = []
    operands = False
    for part in _chosen(template, values):
        for element in _filled(part, values):
            hole = part[0] if part else ""
            if isinstance(hole, Hole) and element.startswith("-") and not operands and hole.name not in fixed:
                raise _option_like(hole.name, element)
            argv.append(element)
        operands = operands or part == ("--",)
    _check_length(argv)
    return argv


def _chosen(template: Template, values: Mapping[str, Value]) -> Iterator[Element]:
    for part in template:
        if not isinstance(part, Group):
            yield part
        elif (value := values.get(part.when)) is not None and value is not False:
            yield from part.elements


def _filled(element: Element, values: Mapping[str, Value]) -> list[str]:
    if len(element) == 1 and isinstance(hole := element[0], Hole):
        value = values[hole.name]
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [word(item, hole.name) for item in value]
    return ["".join(part if isinstance(part, str) else word(values[part.name], part.name) for part in element)]


def word(value: Value, argument: str) -> str:
    """One value as the program sees it."""
    text = repr(value) if isinstance(value, float) else str(value)
    try:
        clean = b"\0" not in text.encode()
    except UnicodeEncodeError:
        clean = False
    if not clean:
        raise ToolError(
            "tools.bad-argument",
            "the text holds a character that no command can be given",
            place=Place(argument=argument),
            expected="Unicode text without the character NUL",
        )
    return text


def _option_like(argument: str, element: str) -> ToolError:
    shown = element if len(element) <= 40 else element[:37] + "..."
    return ToolError(
        "tools.option-like",
        f"{shown!r} begins with '-', and the program would take it for an option",
        place=Place(argument=argument),
        expected="a value that does not begin with '-'",
        fix='If the program knows `--`, put "--" before the argument in the manifest\'s argv; else use "--option={x}".',
    )


def _check_length(argv: Sequence[str]) -> None:
    sizes = [len(element.encode()) for element in argv]
    if max(sizes, default=0) > _LONGEST_ELEMENT or sum(sizes) > _LONGEST_ARGV:
        raise ToolError(
            "tools.argument-too-large",
            f"{argv[0]!r} cannot be given {sum(sizes):,} bytes of arguments",
            expected=f"at most {_LONGEST_ELEMENT:,} bytes each and {_LONGEST_ARGV:,} together",
            fix="Large content goes to a command through `stdin` in its manifest, or as a file.",
        )
