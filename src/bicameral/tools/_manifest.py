"""Manifests: a TOML or JSON file that declares a command's name, arguments, result and effect.

What a manifest leaves out is assumed to be the worst case: an undeclared effect is irreversible, and then every
argument directs it; no network, no files but the arguments of type path; a result without origins is untrusted.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bicameral.documents import KeyFault, first_key_fault
from bicameral.errors import Place, ToolError
from bicameral.labels import Trust
from bicameral.tools._argument import Effect, Purpose
from bicameral.tools._manifest_rules import spec_faults

ArgumentKind = Literal["str", "int", "float", "bool", "path", "list[str]", "list[path]", "literal"]
ResultKind = Literal["text", "lines", "json", "table"]

_MAX_BYTES = 1024 * 1024


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class ArgumentSpec(_StrictModel):
    """One argument of a command-line tool."""

    type: ArgumentKind = Field(default="str", description="What it is; a path is held against the configured folders.")
    values: list[str] = Field(default_factory=list, description="For `literal`: the texts it can be.")
    doc: str = Field(default="", description="What it is, in a few words for people and models.")
    purpose: Purpose | None = Field(
        default=None,
        description="What it is for: it selects what is read, directs an effect, or carries content out. "
        "Left out: `directs` if the tool changes something, else `selects`.",
    )
    default: str | int | float | bool | list[str] | None = Field(default=None, description="What it is when not given.")
    optional: bool = Field(default=False, description="Whether it can be left out without a default.")
    access: Literal["read", "write", "edit"] = Field(
        default="read",
        description="For paths. `write`: the command makes the file anew (or writes into the folder); "
        "`edit`: it is given the file as it is and may change it. A file takes its place only if all went well.",
    )


class When(_StrictModel):
    """Elements of argv that are only there when an argument is given, and is not false."""

    when: str = Field(description="The argument.")
    add: list[str] = Field(min_length=1, description="The elements.")


class OwnSpec(_StrictModel):
    """When a part of a result was written by the user himself."""

    field: str = Field(description="A field of the same record, set by the service.")
    is_: str = Field(alias="is", description="Its value where the user wrote the part.")


class OriginSpec(_StrictModel):
    """Where a part of a result comes from."""

    trust: Trust = Field(
        description="Who wrote it: the user, the service itself (ids, balances, times), or possibly anybody."
    )
    readers: Literal["public", "user"] | list[str] = Field(
        default="user", description="Who may read it: everyone, the user alone, or those whom these fields name."
    )
    own_when: OwnSpec | None = Field(default=None, description="When it is the user's own after all.")
    fresh: bool = Field(default=False, description="A name or number that the service gives to what the call makes.")
    names: str | None = Field(
        default=None,
        description="For a name or number: the field of the same record that is the thing it names. Whoever may read "
        "that may be sent the thing by its name.",
    )


class LimitsSpec(_StrictModel):
    """What a command may use up before it is ended."""

    memory_mb: int = Field(
        default=1024, ge=16, le=1024 * 1024, description="Memory that all its programs reserve together."
    )
    output_kb: int = Field(default=8192, ge=1, le=1024 * 1024, description="What it may print.")
    processes: int = Field(default=32, ge=1, le=4096, description="Programs at a time.")


class ToolSpec(_StrictModel):
    """One command-line tool."""

    name: str = Field(description="The name that plans use: a Python identifier.")
    version: str = Field(default="1", description="Changes when the tool's behaviour does.")
    doc: str = Field(default="", description="What it does, in a sentence.")
    argv: list[str | When] = Field(
        description="The program (a bare name, looked up in the system's folders, or an absolute path) and its "
        'arguments. `{name}` stands for an argument. Write "--" where operands begin, if the program knows it.'
    )
    stdin: str | None = Field(
        default=None, description="The argument that is fed to standard input; a list goes as lines."
    )
    arguments: dict[str, ArgumentSpec] = Field(default_factory=dict, description="By name, in their order.")
    effect: Effect = Field(default="irreversible", description="What a call does to the world.")
    timeout: Annotated[float, Field(gt=0, le=86_400)] = Field(default=30.0, description="Seconds until it is killed.")
    idempotent: bool | None = Field(
        default=None, description="Whether calling it twice is the same as once; left out: if pure or read."
    )
    keyed: bool = Field(
        default=False,
        description="Whether calls with the same `BICAMERAL_CALL_KEY` in the environment do the thing once.",
    )
    words: list[str] = Field(default_factory=list, description="What people say when they ask for its effect.")
    accepts: list[str] = Field(
        default_factory=list, description="MIME types of the files and texts that it takes, such as `application/pdf`."
    )
    gives: list[str] = Field(default_factory=list, description="MIME types of what it gives.")
    capabilities: list[str] = Field(
        default_factory=list, description="What it can do, for a lookup: words joined by hyphens, as `document-ocr`."
    )
    result: ResultKind = Field(default="text", description="How to read what it prints; a table is CSV with a header.")
    result_type: Any = Field(
        default=None,
        description='For `json`: the type, as `"int"`, `{"list": "str"}` or `{"record": {"size": "int"}}`.',
    )
    origins: dict[str, OriginSpec] = Field(
        default_factory=dict,
        description='Where each part of the result comes from: `""` is the value itself, `"[]"` the items of a list, '
        '`"[].sender"` a field of each, `"*"` the values of a dict. Left out: anybody, for the user alone.',
    )
    outbound: bool | None = Field(
        default=None,
        description="Whether a call tells somebody else something, if only by asking. "
        "Left out: if it has the network, or its effect is `send`.",
    )
    receivers: list[str] | None = Field(
        default=None, description="The arguments that name who gets what it carries; left out: all that direct it."
    )
    attaches: dict[str, OriginSpec] | list[str] | None = Field(
        default=None,
        description="The arguments that name something kept elsewhere which goes out with a call, such as the path of "
        "an attachment; with where those things come from, or alone. Left out: all that may name something.",
    )
    ok_exit_codes: list[Annotated[int, Field(ge=0, le=255)]] = Field(
        default_factory=lambda: [0], min_length=1, description="Exit codes that mean success."
    )
    limits: LimitsSpec = Field(default_factory=LimitsSpec)
    network: bool | list[str] = Field(default=False, description='Nothing, everything, or a list of `"host:port"`.')
    needs: list[str] = Field(
        default_factory=list, description="Absolute paths of the program's own files, outside the system's folders."
    )
    env: dict[str, str] = Field(default_factory=dict, description="Environment variables beside PATH and LANG.")
    scratch: bool = Field(default=False, description="Whether it gets an empty folder of its own, named by TMPDIR.")


class Manifest(_StrictModel):
    """A file of command-line tools."""

    schema_: str | None = Field(default=None, alias="$schema", description="For editors; not used.")
    manifest: Literal[1] = Field(description="The version of this format.")
    doc: str = Field(default="", description="What these tools are for.")
    tools: list[ToolSpec] = Field(min_length=1)


def read_manifest(path: Path) -> Manifest:
    """The manifest in a `.toml` or `.json` file; `tools.bad-manifest` says what is wrong with it and where.

    Example:
        >>> [tool.name for tool in read_manifest(Path("examples/tools/wordcount.toml")).tools]
        ['count_words', 'longest_line', 'count_in_files']
    """
    text = _read_manifest_text(path)
    try:
        content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(place[1]), int(place[2])) if place else (None, None)
        reason = str(error).split(" (at ")[0]
        raise _manifest_error(f"this is not TOML: {reason}", Place(str(path), line, column)) from None
    except json.JSONDecodeError as error:
        raise _manifest_error(f"this is not JSON: {error.msg}", Place(str(path), error.lineno, error.colno)) from None
    except RecursionError:
        raise _manifest_error("it is nested too deeply", Place(str(path))) from None
    return parse_manifest(content, file=str(path), text=text if path.suffix == ".toml" else "")


def parse_manifest(content: object, *, file: str | None = None, text: str = "") -> Manifest:
    """The manifest in plain values, as TOML and JSON give them.

    Args:
        content: The values.
        file: The file, for errors.
        text: The text of a TOML file, to find the line of an error.
    """
    try:
        manifest = Manifest.model_validate(content)
    except ValidationError as error:
        raise _fault_error(first_key_fault(error, Manifest), file, text) from None
    for number, spec in enumerate(manifest.tools):
        for fault in spec_faults(spec):
            raise _fault_error(replace(fault, path=("tools", number, *fault.path)), file, text)
    return manifest


def manifest_schema() -> dict[str, Any]:
    """The JSON Schema of a manifest, as published in `schemas/tool-manifest.v1.json`."""
    schema = Manifest.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:bicameral:tool-manifest:v1",
        **schema,
        "title": "Bicameral tool manifest, version 1",
    }


def _read_manifest_text(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise _manifest_error(f"the file is larger than {_MAX_BYTES:,} bytes", Place(str(path)))
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _manifest_error(f"the file cannot be read: {error.strerror or error}", Place(str(path))) from None
    except UnicodeDecodeError as error:
        raise _manifest_error(f"the file is not UTF-8 text (byte {error.start})", Place(str(path))) from None


def _fault_error(fault: KeyFault, file: str | None, text: str) -> ToolError:
    message = f"{fault.key}: {fault.message}" if fault.path else fault.message
    return _manifest_error(
        message, Place(file, _key_line(text, fault.path)), expected=fault.expected, nearest=fault.nearest
    )


def _manifest_error(
    message: str, place: Place, *, expected: str | None = None, nearest: str | None = None
) -> ToolError:
    return ToolError(
        "tools.bad-manifest",
        message,
        place=place,
        expected=expected,
        nearest=nearest,
        fix="The format is in schemas/tool-manifest.v1.json; examples/tools/wordcount.toml is an example.",
    )


def _key_line(text: str, path: tuple[str | int, ...]) -> int | None:
    """The line of a key in TOML: along the path, the last line on which one of its parts is written."""
    lines = text.splitlines()
    headers = [number for number, line in enumerate(lines) if re.match(r"\s*\[\[\s*tools\s*\]\]", line)]
    start, end = None, len(lines)
    for index, part in enumerate(path):
        if isinstance(part, str):
            key = re.compile(rf"(\s*\[.*|.*)\b{re.escape(part)}[\"']?\s*(=|\])")
            start = next((number for number in range(start or 0, end) if key.match(lines[number])), start)
        elif index == 1 and part < len(headers):
            start, end = headers[part], next(iter(headers[part + 1 :]), end)
        else:
            break
    return None if start is None else start + 1
