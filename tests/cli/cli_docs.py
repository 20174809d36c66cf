"""The tables in the documentation, made from the code. `python tests/cli/cli_docs.py` writes them again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from bicameral.cli import main
from bicameral.config import ConfigFile
from bicameral.config._llm_settings import attribute_docstrings

DOCS = Path(__file__).parents[2] / "docs"


def command_tables() -> str:
    """Every command with its arguments and its own options; the shared ones come once, at the end."""
    shared: dict[str, str] = {}
    parts: list[str] = []
    for name, command in _commands(main, click.Context(main, info_name="bicameral")):
        options = {_flags(option): _help(option) for option in command.params if isinstance(option, click.Option)}
        common = {flags: told for flags, told in options.items() if flags in _SHARED}
        shared |= common
        own = {flags: told for flags, told in options.items() if flags not in common}
        parts.append(_section(name, command, own))
    parts.append("### Options that every command but `completion` has\n\n" + _table("option", "what it does", shared))
    return "\n\n".join(parts)


_SHARED = (
    "`--json`",
    "`--folder DIRECTORY`",
    "`--config FILE`",
    "<code>--profile default&#124;small&#124;FILE.yaml</code>",
)


def setting_tables() -> str:
    """Every setting with its default."""
    parts = [_table("setting", "what it is", dict(_settings(ConfigFile)))]
    for path, model in _tables(ConfigFile, ""):
        told = _table("setting", "what it is", dict(_settings(model)))
        parts.append(f"### `{path}`\n\n{' '.join((model.__doc__ or '').split())}\n\n{told}")
    return "\n\n".join(parts)


def _tables(model: type[BaseModel], before: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Every table with its header: `[limits]`, `[llm.models.NAME]`, `[[llm.routing.rules]]`."""
    for name, field in model.model_fields.items():
        inner: Any = field.annotation
        several = [each for each in getattr(inner, "__args__", ()) if _is_table(each)]
        path = f"{before}{name}"
        if _is_table(inner):
            yield f"[{path}]", inner
            yield from _tables(inner, f"{path}.")
        elif several and getattr(inner, "__origin__", None) is dict:
            yield f"[{path}.NAME]", several[0]
            yield from _tables(several[0], f"{path}.NAME.")
        elif several and getattr(inner, "__origin__", None) is tuple:
            yield f"[[{path}]]", several[0]
        elif several:
            yield f"[{path}]", several[0]


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def filled(page: str) -> str:
    """The page as it should be."""
    for name, make in (("commands", command_tables), ("settings", setting_tables)):
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if begin in page:
            before, _, rest = page.partition(begin)
            page = f"{before}{begin}\n\n{make()}\n\n{end}{rest.partition(end)[2]}"
    return page


def _commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name)
        if isinstance(command, click.Group):
            # A group that does something by itself is a command too.
            if command.invoke_without_command:
                yield inner.command_path, command
            yield from _commands(command, inner)
        else:
            yield inner.command_path, command


def _section(path: str, command: click.Command, options: dict[str, str]) -> str:
    arguments = "".join(f" {_argument(given)}" for given in command.params if isinstance(given, click.Argument))
    told = " ".join((command.help or "").partition("\b")[0].split())
    section = f"### `{path}{arguments}`\n\n{told}"
    return section + (f"\n\n{_table('option', 'what it does', options)}" if options else "")


def _argument(argument: click.Argument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _flags(option: click.Option) -> str:
    flags = ", ".join(option.opts)
    if option.is_flag:
        return f"`{flags}`"
    kind = "|".join(map(str, option.type.choices)) if isinstance(option.type, click.Choice) else ""
    value = kind or (option.metavar or "") or option.type.name.upper().replace("INTEGER RANGE", "NUMBER")
    # A bar inside backticks ends a table's cell on GitHub, and `\\|` keeps its backslash on the site.
    return f"<code>{flags} {value.replace('|', '&#124;')}</code>" if "|" in value else f"`{flags} {value}`"


def _help(option: click.Option) -> str:
    default = f" Default: {option.default}." if option.show_default else ""
    return (option.help or "") + default


def _settings(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    docs = attribute_docstrings(model)
    for name, field in model.model_fields.items():
        if _is_table(field.annotation):
            continue
        yield f"`{name}`", f"{' '.join((field.description or docs.get(name, '')).split())} {_default(field)}".strip()


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default(call_default_factory=True)
    return "" if value is None or value is PydanticUndefined else f"Default: `{json.dumps(value)}`."


def _table(first: str, second: str, rows: dict[str, str]) -> str:
    lines = [f"| {first} | {second} |", "|---|---|", *(f"| {name} | {told} |" for name, told in rows.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    for file in (DOCS / "command-line.md", DOCS / "configuration.md"):
        file.write_text(filled(file.read_text(encoding="utf-8")), encoding="utf-8")
