"""What a command printed, as the value that its manifest promises."""

from __future__ import annotations

import csv
import io
from typing import Any

from bicameral.errors import ToolError
from bicameral.parsing import NotJson, read_json

from ._manifest import ToolSpec


def parse_result(spec: ToolSpec, stdout: bytes) -> object:
    """The value in the output; `tools.bad-output` says why there is none."""
    try:
        text = stdout.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad(spec, f"byte {error.start} is not UTF-8", "UTF-8 text") from None
    match spec.result:
        case "text":
            # As in `$(…)`: the line end that every command prints last is not part of the answer.
            return text.removesuffix("\n")
        case "lines":
            return text.removesuffix("\n").split("\n") if text else []
        case "json":
            return _json(spec, text)
        case "table":
            return _table(spec, text)


def _json(spec: ToolSpec, text: str) -> Any:
    try:
        return read_json(text, what=f"the output of {spec.name!r}")
    except NotJson as error:
        where = "" if error.line is None else f" at line {error.line}, column {error.column}"
        raise _bad(spec, f"{error.why}{where}", "JSON") from None


def _table(spec: ToolSpec, text: str) -> list[dict[str, str]]:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise _bad(spec, str(error), "CSV with a header") from None
    if not rows:
        return []
    header, *body = rows
    if len(set(header)) != len(header):
        raise _bad(spec, "two columns have the same name", "CSV with a header")
    for number, row in enumerate(body, 2):
        if row and len(row) != len(header):
            raise _bad(spec, f"row {number} has {len(row)} cells, not {len(header)}", "CSV with a header")
    return [dict(zip(header, row, strict=True)) for row in body if row]


def _bad(spec: ToolSpec, reason: str, expected: str) -> ToolError:
    return ToolError(
        "tools.bad-output", f"{spec.name!r} printed something that cannot be read: {reason}", expected=expected
    )
