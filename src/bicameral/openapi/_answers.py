"""Answers of HTTP servers: their bodies within a limit, also compressed ones, and what kind of value they are."""

from __future__ import annotations

import codecs
import re
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

_CHARSETS = frozenset({"utf-8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "windows-1252", "utf-16"})


class AnswerTooLarge(Exception):
    """The body is larger than its limit."""


class BadAnswer(Exception):
    """The answer cannot be read; the message says why, in fixed words."""


class BodyReader:
    """Collects a body and decompresses it here: a library that does it by itself does it without a limit.

    Args:
        encoding: The header Content-Encoding.
        limit: Bytes of the decompressed body.
    """

    def __init__(self, encoding: str | None, limit: int) -> None:
        self._limit = limit
        self._body = bytearray()
        match (encoding or "identity").strip().lower():
            case "identity":
                self._inflate = None
            case "gzip" | "x-gzip" | "deflate":
                self._inflate = zlib.decompressobj(wbits=47)
            case _:
                raise BadAnswer("the body is compressed in a way that was not asked for")

    def feed(self, piece: bytes) -> None:
        """One more piece as it came; AnswerTooLarge as soon as it is too much."""
        if self._inflate is None:
            self._body += piece
        else:
            try:
                # One byte more than may come, so that it is noticed.
                self._body += self._inflate.decompress(piece, self._limit - len(self._body) + 1)
            except zlib.error:
                raise BadAnswer("the body is not compressed as it says") from None
            if self._inflate.unused_data:
                # What comes after the end would be kept in memory, and is counted by nobody.
                raise BadAnswer("the body goes on after its end")
        if len(self._body) > self._limit:
            raise AnswerTooLarge

    def finish(self) -> bytes:
        """The whole body."""
        if self._inflate is not None and not self._inflate.eof and self._body:
            raise BadAnswer("the body ends before its end")
        return bytes(self._body)


def same_origin(one: httpx.URL, other: httpx.URL) -> bool:
    """Whether two addresses are of one server: scheme, host and port."""
    ports = {"http": 80, "https": 443}
    # The host as it is sent: to be read as Unicode it would be decoded, which fails for `xn--a`.
    return (one.scheme, one.raw_host, one.port or ports.get(one.scheme)) == (
        other.scheme,
        other.raw_host,
        other.port or ports.get(other.scheme),
    )


def redirect_target(target: httpx.URL, answer: httpx.Response) -> httpx.URL:
    """Where a redirect leads; a BadAnswer if that is no address."""
    import httpx

    try:
        return target.join(answer.headers["location"])
    except (httpx.InvalidURL, UnicodeError):
        raise BadAnswer("it redirects to what is no address") from None


def media_type(header: str | None) -> str:
    """The media type of a Content-Type, in small letters and without parameters."""
    return (header or "").partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    return media == "application/json" or media.endswith("+json")


def is_text(media: str) -> bool:
    """Whether a body of this type is shown as text; one of no type is."""
    return media in ("", "application/xml", "application/yaml", "application/javascript") or media.startswith("text/")


def decode_body(body: bytes, content_type: str | None) -> str:
    """A body as text in the charset that it names."""
    found = re.search(r"charset=[\"']?([\w-]+)", content_type or "", re.IGNORECASE)
    charset = found[1].lower() if found else "utf-8"
    # Not every codec of Python is one of texts, or takes linear time.
    codec = charset if charset in _CHARSETS else "utf-8"
    text = body.decode(codec, "replace")
    return text.removeprefix(codecs.BOM_UTF8.decode())


def read_json_body(body: bytes) -> Any:
    """The value of a JSON body; a BadAnswer if it is none."""
    from bicameral.parsing import InvalidJson, ParseLimitError, read_json

    try:
        return read_json(body.decode("utf-8-sig"), what="the answer")
    except UnicodeDecodeError:
        raise BadAnswer("the body is not UTF-8") from None
    except InvalidJson as error:
        raise BadAnswer(f"the body is no JSON: {error.why}") from None
    except ParseLimitError:
        raise BadAnswer("the body takes too much work to be read") from None
