"""Bytes of a file to text: UTF-8 or a clear refusal."""

from __future__ import annotations

from bicameral.errors import ToolError

from ._folder_errors import quoted

_CONTROL = bytes(range(7)) + bytes(range(14, 27)) + bytes(range(28, 32)) + b"\x7f"
_MARKS_OF_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_FIX = "Save it as UTF-8 and try again."


def decoded(raw: bytes, path: str) -> str:
    """The text in these bytes; a byte order mark is dropped, everything else stays as it is."""
    if raw.startswith(_MARKS_OF_UTF16) and _is_utf16(raw):
        raise ToolError("files.encoding", f"{quoted(path)} is UTF-16 text", expected="UTF-8", fix=_FIX)
    if b"\0" in raw:
        raise _binary(path)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts from behind a byte order mark; the person who looks into the file does not.
        start = error.start + (3 if raw.startswith(b"\xef\xbb\xbf") else 0)
    if len(raw) - len(raw.translate(None, _CONTROL)) > len(raw) // 50:
        raise _binary(path)
    raise ToolError(
        "files.encoding",
        f"{quoted(path)} is not UTF-8 text: byte {start} is 0x{raw[start]:02x}",
        expected="UTF-8",
        fix=_FIX,
    )


def _is_utf16(raw: bytes) -> bool:
    try:
        raw.decode("utf-16")
    except UnicodeDecodeError:
        return False
    return True


def _binary(path: str) -> ToolError:
    return ToolError("files.binary", f"{quoted(path)} is a binary file", expected="text")


def encoded(text: str, path: str) -> bytes:
    """The text as UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            "files.encoding",
            f"the text for {quoted(path)} has half a character (U+{ord(text[error.start]):04X}) at {error.start}",
            expected="text that can be written as UTF-8",
        ) from None
