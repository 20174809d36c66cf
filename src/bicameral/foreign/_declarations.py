"""Declaration files: what a person has reviewed of a server's tools, in a TOML file that the person owns.

    version = 1
    server = "time"

    [tools.get_current_time]
    pin = "sha256:…"                        # what was reviewed; another tool of this name is not used
    doc = "The time now in a time zone."    # the only text about it that any model reads
    effect = "read"
    outbound = false
    arguments.timezone = { purpose = "selects", doc = "Such as 'Europe/Berlin'." }
    origins."" = { trust = "system" }

What is left out is assumed to be the worst case, as in manifests of commands. Beside the file lies `NAME.pins.json`:
the listing as it was reviewed, from which tools are made, as far as it has the hashes of the declaration file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bicameral.cache import write_private_file
from bicameral.display import make_visible
from bicameral.documents import KeyFault, first_key_fault, toml_key, toml_pairs
from bicameral.errors import Place, ToolError
from bicameral.foreign._listing import ForeignTool
from bicameral.tools import OriginSpec, Purpose, ReferenceKind

MAX_FILE = 4 * 1024 * 1024
MAX_DOC = 500
"""Characters of a reviewed text: it stands in every prompt."""

ForeignEffect = Literal["read", "write", "send", "irreversible"]
"""What a call of a foreign tool may do. Never `pure`: what another program computes must be recorded to be replayed."""

ResultKind = Literal["text", "json", "structured"]

_PIN = re.compile(r"sha256:[0-9a-f]{64}")


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class ArgumentDeclaration(_StrictModel):
    """What a person says of one argument."""

    purpose: Purpose | None = Field(
        default=None,
        description="What it is for: it selects what is read, directs an effect, or carries content out. "
        "Left out: `directs` if the tool changes something, else `selects`.",
    )
    doc: str = Field(default="", max_length=MAX_DOC, description="What it is, in a few words for people and models.")
    format: Literal["path", "email", "url", "id"] | None = Field(
        default=None, description="For a text: what it names, so that words of a request can stand for it."
    )
    refers: ReferenceKind | None = Field(default=None, description="What words of a request may stand for it.")


class ToolDeclaration(_StrictModel):
    """What a person says of one tool."""

    pin: str = Field(default="", description="A hash of what was reviewed. Without it the tool is not used.")
    use: bool = Field(default=True, description="Whether it may be called at all.")
    reviewed: bool = Field(
        default=True, description="Whether a person has decided about it. While it is false, every call asks."
    )
    name: str | None = Field(default=None, description="Its name in plans; left out: SERVER_TOOL.")
    doc: str = Field(default="", max_length=MAX_DOC, description="What it does, in one line. Models read this.")
    effect: ForeignEffect = Field(default="irreversible", description="What a call does to the world.")
    outbound: bool | None = Field(
        default=None, description="Whether a call tells somebody else something, if only by asking. Left out: yes."
    )
    idempotent: bool | None = Field(
        default=None, description="Whether calling it twice is the same as once; left out: if pure or read."
    )
    keyed: bool = Field(
        default=False,
        description="Whether calls with the same key in `_meta` (`bicameral/callKey`) do the thing once.",
    )
    timeout: Annotated[float, Field(gt=0, le=86_400)] | None = Field(
        default=None, description="Seconds that a call may take; left out: what the server's settings say."
    )
    words: list[str] = Field(default_factory=list, description="What people say when they ask for its effect.")
    receivers: list[str] | None = Field(
        default=None, description="The arguments that name who gets what it carries; left out: all that direct it."
    )
    attaches: dict[str, OriginSpec] | list[str] | None = Field(
        default=None, description="The arguments that name something kept elsewhere which goes out with a call."
    )
    arguments: dict[str, ArgumentDeclaration] = Field(
        default_factory=dict, description="By the server's own names; those left out get the worst case."
    )
    result: ResultKind | None = Field(
        default=None,
        description="How to read the result: `structured` by the tool's output schema, `json` from its text, or its "
        "`text`. Left out: structured if there is a schema.",
    )
    result_type: Any = Field(
        default=None, description='For `json`: the type, as `"int"` or `{"record": {"size": "int"}}`.'
    )
    origins: dict[str, OriginSpec] = Field(
        default_factory=dict,
        description='Where each part of the result comes from: `""` is the value itself, `"[].sender"` a field of each '
        "item. Left out: anybody, for the user alone.",
    )


class DeclarationFile(_StrictModel):
    """The reviewed tools of one server."""

    schema_: str | None = Field(default=None, alias="$schema", description="For editors; not used.")
    version: Literal[1] = Field(description="The version of this format.")
    server: str = Field(default="", description="The name of the server, or of the document.")
    document: str = Field(default="", description="For OpenAPI: a hash of the document that was reviewed.")
    resources: bool = Field(default=False, description="Whether its resources can be read: untrusted documents.")
    prompts: bool = Field(default=False, description="Whether its prompts can be read: untrusted documents, too.")
    tools: dict[str, ToolDeclaration] = Field(default_factory=dict, description="By the server's own names.")


def declarations_schema() -> dict[str, Any]:
    """The published JSON Schema of declaration files."""
    schema = DeclarationFile.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:bicameral:foreign-tools:v1",
        **schema,
        "title": "Bicameral declarations of foreign tools, version 1",
    }


def parse_declarations(text: str, file: str | None = None) -> DeclarationFile:
    """The declarations in a TOML text; `foreign.bad-declaration` says what is wrong and where."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(found[1]), int(found[2])) if found else (None, None)
        raise _bad_declaration(f"this is not TOML: {str(error).split(' (at ')[0]}", Place(file, line, column)) from None
    except RecursionError:
        raise _bad_declaration("it is nested too deeply", Place(file)) from None
    try:
        found_file = DeclarationFile.model_validate(content)
    except ValidationError as error:
        raise _fault_error(first_key_fault(error, DeclarationFile), file, text) from None
    for name, tool in found_file.tools.items():
        if tool.pin and not _PIN.fullmatch(tool.pin):
            fault = KeyFault(("tools", name, "pin"), "this is no pin", "'sha256:' and 64 hexadecimal digits")
            raise _fault_error(fault, file, text)
        if "\n" in tool.doc:
            raise _fault_error(KeyFault(("tools", name, "doc"), "a doc is one line"), file, text)
    return found_file


def read_declarations(file: Path) -> DeclarationFile:
    """The declarations in a file; `foreign.bad-declaration` says what is wrong with it and where."""
    try:
        if file.stat().st_size > MAX_FILE:
            raise _bad_declaration(f"the file is larger than {MAX_FILE:,} bytes", Place(str(file)))
        text = file.read_text("utf-8")
    except OSError as error:
        raise _bad_declaration(f"the file cannot be read: {error.strerror or error}", Place(str(file))) from None
    except UnicodeDecodeError as error:
        raise _bad_declaration(f"the file is not UTF-8 text (byte {error.start})", Place(str(file))) from None
    return parse_declarations(text, str(file))


def pins_file(declarations: Path) -> Path:
    """The file beside the declarations with the listing as it was reviewed."""
    return declarations.with_name(f"{declarations.stem}.pins.json")


def declarations_head(file: Path, otherwise: str) -> str:
    """The comment at the top of a declaration file, which its user may have changed; another text if there is none."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    head = [line.removeprefix("#").removeprefix(" ") for line in takewhile(lambda line: line.startswith("#"), lines)]
    return "\n".join(head) or otherwise


def write_declarations(file: Path, declared: DeclarationFile, listed: Iterable[ForeignTool], *, head: str = "") -> None:
    """Write declarations and, beside them, the listing that was reviewed. Each takes its place as a whole."""
    if file.parent.is_symlink() or file.is_symlink():
        # A folder that somebody sent may have links, which lead out of it to other files of the user.
        raise ToolError(
            "foreign.unwritable",
            f"the declarations cannot be written: {'the file' if file.is_symlink() else 'their folder'} is a link",
            place=Place(str(file)),
            fix="Look where it leads. Put a folder or file in its place, or name another under `tools`.",
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # The listing first: if it cannot be written, the declarations that refer to it are not changed. Its order is
        # that of the arguments in plans, and stays.
        pins = json.dumps([tool.to_json() for tool in listed], indent=1, ensure_ascii=True)
        write_private_file(pins_file(file), [pins.encode()])
        write_private_file(file, [render_declarations(declared, head=head).encode()])
    except OSError as error:
        raise ToolError(
            "foreign.unwritable",
            f"the declarations cannot be written: {error.strerror or error}",
            place=Place(str(file)),
        ) from None


def read_reviewed_listing(declarations: Path) -> dict[str, ForeignTool]:
    """The tools as they were reviewed, by name; none if the file is not there or is damaged.

    Which of them is used is decided by the hashes in the declarations: whoever changes this file changes no tool.
    """
    try:
        found: Any = json.loads(pins_file(declarations).read_text("utf-8"))
        return {tool.name: tool for tool in map(ForeignTool.from_json, found)}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, ToolError):
        return {}


def render_declarations(declared: DeclarationFile, *, head: str = "") -> str:
    """Declarations as TOML, one table a tool, without what has its default value.

    Example:
        >>> parse_declarations(render_declarations(declared)) == declared
        True
    """
    lines = [f"# {make_visible(line)}".rstrip() for line in head.splitlines()]
    top = declared.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"tools"})
    lines += toml_pairs({"version": 1} | top)
    for name, tool in declared.tools.items():
        lines += ["", f"[tools.{toml_key(name)}]", *_tool_lines(tool)]
    return "\n".join(lines) + "\n"


def _tool_lines(tool: ToolDeclaration) -> Iterator[str]:
    facts: dict[str, Any] = tool.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    # What decides is written even where it is the default: whoever reviews the file should see it.
    facts = {"pin": tool.pin, "doc": tool.doc, "effect": tool.effect} | facts
    nested = {part: facts.pop(part) for part in ("arguments", "origins") if part in facts}
    yield from toml_pairs(facts)
    for part, table in nested.items():
        for line in toml_pairs(table):
            yield f"{part}.{line}"


def _fault_error(fault: KeyFault, file: str | None, text: str) -> ToolError:
    message = f"{fault.key}: {fault.message}" if fault.path else fault.message
    return ToolError(
        "foreign.bad-declaration",
        message,
        place=Place(file, _line_of(text, fault.path)),
        expected=fault.expected,
        nearest=fault.nearest,
        fix="The format is in schemas/foreign-tools.v1.json.",
    )


def _line_of(text: str, path: tuple[str | int, ...]) -> int | None:
    """The line of a key: the last of its parts that is found, each after the one before."""
    lines, at, found = text.splitlines(), 0, None
    for part in path:
        pattern = re.compile(rf"(?<![\w-])[\"']?{re.escape(str(part))}[\"']?\s*[\].=]")
        number = next((n for n in range(at, len(lines)) if pattern.search(lines[n])), None)
        if number is not None:
            at, found = number, number + 1
    return found


def _bad_declaration(message: str, place: Place) -> ToolError:
    return ToolError(
        "foreign.bad-declaration", message, place=place, fix="The format is in schemas/foreign-tools.v1.json."
    )
