"""Results of MCP servers as plain values: the text of their content, and the structured value if there is one."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from bicameral.foreign import ForeignResult
from bicameral.types import to_plain

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ReadResourceResult


def foreign_result(result: CallToolResult) -> ForeignResult:
    """A tool's result: its text blocks joined, and a line for each block that is no text."""
    has_structured = result.structured_content is not None
    structured = to_plain(result.structured_content) if has_structured else None
    return ForeignResult(
        "\n".join(map(_block_text, result.content)), structured, has_structured, is_error=bool(result.is_error)
    )


def resource_text(result: ReadResourceResult) -> str:
    """The text of a resource; what is not text is named with its size."""
    return "\n".join(map(_contents_text, result.contents))


def _block_text(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "resource":
            return _contents_text(block.resource)
        case "resource_link":
            return f"[resource {block.uri}]"
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {_decoded_size(block.data):,} bytes]"
        case other:
            return f"[{other}]"


def _contents_text(contents: Any) -> str:
    text = getattr(contents, "text", None)
    if isinstance(text, str):
        return text
    return f"[{contents.mime_type or 'binary'}, {_decoded_size(contents.blob):,} bytes]"


def _decoded_size(data: str) -> int:
    try:
        return len(base64.b64decode(data, validate=True))
    except ValueError:
        return len(data)
