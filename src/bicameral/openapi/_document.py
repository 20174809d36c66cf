"""OpenAPI documents: fetched or read with bounds, kept as JSON, and known by a hash of what they say.

A document is untrusted, wherever it came from. References are followed within it and nowhere else.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import unquote, urljoin

from bicameral.display import make_visible
from bicameral.errors import Place, ToolError, describe_error, require_extra
from bicameral.openapi._settings import HEADER_NAME, TRANSPORT_HEADERS

if TYPE_CHECKING:
    import httpx

MAX_DOCUMENT = 16 * 1024 * 1024
"""Bytes of a document."""
_MAX_YAML_VALUES = 500_000
_MAX_DEPTH = 90
_MAX_REFERENCES = 20
"""References that lead to references."""
_MAX_REFERENCE = 2_000
"""Characters of one reference."""
_FETCH_SECONDS = 60.0
_MAX_REDIRECTS = 3
_INDEX = re.compile("0|[1-9][0-9]{0,6}")
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def require_openapi() -> None:
    """Raise `openapi.not-installed` if the extra is not."""
    require_extra("openapi", "httpx", "re2", error=ToolError, code="openapi.not-installed", needs="APIs need")


class BadReference(ValueError):
    """A reference that leads nowhere, or out of the document."""


@dataclass(frozen=True, slots=True)
class SecurityScheme:
    """How a key is sent: in a header, a query parameter, a cookie, or as HTTP Basic or Bearer."""

    kind: Literal["header", "query", "cookie", "basic", "bearer"]
    name: str = ""

    @property
    def place(self) -> str:
        """Where the key goes, in words for people."""
        return f"in the {self.kind} {self.name}" if self.name else f"as HTTP {self.kind}"


@dataclass(frozen=True)
class OpenApiDocument:
    """A document of OpenAPI 3.0 or 3.1, with nothing in it checked but its outermost form.

    Args:
        content: All of it.
        name: What it is called in errors: a file or an address.
    """

    content: dict[str, Any]
    name: str

    @cached_property
    def digest(self) -> str:
        """A hash of what it says, however it is written."""
        text = json.dumps(self.content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    @property
    def is_3_0(self) -> bool:
        """Whether its schemas are those of OpenAPI 3.0, which are no JSON Schemas."""
        return str(self.content["openapi"]).startswith("3.0")

    @property
    def title(self) -> str:
        """What it calls itself."""
        title = as_table(self.content.get("info")).get("title")
        return title if isinstance(title, str) else ""

    @cached_property
    def security_schemes(self) -> Mapping[str, SecurityScheme]:
        """The security schemes that calls here know, by name."""
        schemes: dict[str, SecurityScheme] = {}
        for name, value in as_table(as_table(self.content.get("components")).get("securitySchemes")).items():
            try:
                scheme = _read_scheme(self.resolve(value))
            except BadReference:
                continue
            if scheme is not None:
                schemes[name] = scheme
        return schemes

    @cached_property
    def key_names(self) -> frozenset[str]:
        """The names of query parameters and cookies that hold keys, as servers may read them."""
        schemes = self.security_schemes.values()
        return frozenset(folded_name(each.name) for each in schemes if each.kind in ("query", "cookie"))

    def to_text(self) -> str:
        """The document as the JSON that is kept."""
        return json.dumps(self.content, indent=1, ensure_ascii=False) + "\n"

    def servers(self) -> Iterator[str]:
        """The absolute addresses that it proposes for calls."""
        for each in as_list(self.content.get("servers")) or [{"url": "/"}]:
            server = as_table(each)
            address = server.get("url")
            if not isinstance(address, str):
                continue
            for variable, facts in as_table(server.get("variables")).items():
                address = address.replace(f"{{{variable}}}", str(as_table(facts).get("default", "")))
            if "://" in self.name:
                address = urljoin(self.name, address)
            if re.match("https?://", address):
                yield address.rstrip("/")

    def find(self, reference: str) -> Any:
        """What a local reference stands for; a BadReference if it stands for nothing here."""
        if not reference.startswith("#"):
            raise BadReference("a reference leads out of the document")
        if len(reference) > _MAX_REFERENCE:
            raise BadReference(f"a reference has more than {_MAX_REFERENCE:,} characters")
        pointer = unquote(reference[1:])
        if not pointer.startswith("/"):
            # `#` is the whole document and `#name` an anchor: taken for a schema, the document would allow all.
            raise BadReference("a reference is no path in the document")
        found: Any = self.content
        for part in pointer[1:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = cast("dict[str, Any]", found)[name]
            elif isinstance(found, list) and _INDEX.fullmatch(name) and int(name) < len(cast("list[Any]", found)):
                found = cast("list[Any]", found)[int(name)]
            else:
                raise BadReference("a reference leads to nothing")
        return found

    def resolve(self, value: Any) -> dict[str, Any]:
        """An object of the document itself, where a reference may stand in its place."""
        for _ in range(_MAX_REFERENCES):
            table = as_table(value)
            reference = table.get("$ref")
            if not isinstance(reference, str):
                return table
            value = self.find(reference)
        raise BadReference("references lead to each other without end")


def as_table(value: object) -> dict[str, Any]:
    """An object of the document; empty if it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def folded_name(name: str) -> str:
    """The name of a field of a query or form as servers may read it: PHP has `limit` also for ` Limit\\0x`."""
    return re.sub(r"[.\s]", "_", name.partition("\0")[0].strip()).lower()


def _read_scheme(facts: Mapping[str, Any]) -> SecurityScheme | None:
    match facts.get("type"), facts.get("in"), str(facts.get("scheme", "")).lower():
        case "apiKey", ("header" | "query" | "cookie") as place, _:
            key = facts.get("name")
            return SecurityScheme(place, key) if isinstance(key, str) and _is_key_name(place, key) else None
        case "http", _, ("basic" | "bearer") as kind:
            return SecurityScheme(kind)
        case (("oauth2" | "openIdConnect"), _, _):
            # The token is the user's to get; how is not asked of the document.
            return SecurityScheme("bearer")
        case _:
            return None


def _is_key_name(place: str, name: str) -> bool:
    if place == "query":
        return bool(name)
    return HEADER_NAME.fullmatch(name) is not None and name.lower() not in TRANSPORT_HEADERS


def is_address(source: str) -> bool:
    return re.match("https?://", source) is not None


def fetch_document(source: str, base: Path) -> OpenApiDocument:
    """The document at an address or in a file.

    Args:
        source: The address or the file.
        base: Where a relative path starts.

    Example:
        >>> fetch_document("https://api.example.com/openapi.json", Path.cwd()).title
        'Example'
    """
    if is_address(source):
        text, name = _decode(_download(source), source), source
    else:
        file = (base / source).expanduser()
        text, name = _decode(_read_file(file), str(file)), str(file)
    return parse_document(text, name)


def read_stored_document(file: Path) -> OpenApiDocument:
    """The copy of a document that was reviewed."""
    return parse_document(_decode(_read_file(file), str(file)), str(file))


def parse_document(text: str, name: str) -> OpenApiDocument:
    """A document in JSON or YAML; `openapi.bad-document` if it is none that can be used."""
    from bicameral.parsing import InvalidJson, ParseLimitError, read_json

    start = text.lstrip()[:200].lower()
    if start.startswith("{"):
        try:
            found = read_json(text, what=name)
        except (InvalidJson, ParseLimitError) as error:
            why = error.why if isinstance(error, InvalidJson) else error.message
            raise _bad_document(name, f"it is no JSON: {why}") from None
    elif start.startswith(("<!doctype", "<html")):
        raise _bad_document(
            name,
            "it is a web page",
            fix="Name the document that the page shows; its address often ends with openapi.json.",
        )
    else:
        found = _parse_yaml(text, name)
    document = _checked_document(found, name)
    if re.search("\\\\[uU]0*[dD][89A-Fa-f]|[\ud800-\udfff]", text):
        _require_storable(document)
    return document


def _require_storable(document: OpenApiDocument) -> None:
    """Refuse a document with half a character: it cannot be written as UTF-8, neither as a copy nor in a call."""
    try:
        document.to_text().encode()
    except UnicodeEncodeError:
        raise _bad_document(document.name, "a text in it has half of a surrogate pair, which is no character") from None


def _parse_yaml(text: str, name: str) -> Any:
    from bicameral.documents import YamlLimits, read_yaml

    def make_error(message: str, *, place: Place | None = None, **_: Any) -> ToolError:
        return _bad_document(name, message, line=None if place is None else place.line)

    # Plain YAML: no anchors, which would let a few lines stand for a whole memory, and `200` as a key is a text.
    limits = YamlLimits(values=_MAX_YAML_VALUES, depth=_MAX_DEPTH, plain=True)
    return read_yaml(text, Path(name), make_error, limits).settings


def _checked_document(found: Any, name: str) -> OpenApiDocument:
    content = as_table(found)
    version = content.get("openapi")
    if isinstance(version, float):
        # `openapi: 3.1` without quotation marks is a number.
        version = str(version)
        content = {**content, "openapi": version}
    if "swagger" in content:
        raise _bad_document(name, "it is a document of Swagger 2", fix="Convert it to OpenAPI 3 first.")
    if not isinstance(version, str) or not re.fullmatch(r"3\.[0-9]{1,2}(\.[0-9]{1,3})?([-+][\w.-]+)?", version):
        raise _bad_document(name, "it does not say that it is OpenAPI 3", expected='"openapi": "3.0…" or "3.1…"')
    if not isinstance(content.get("paths"), dict):
        raise _bad_document(name, "it has no paths, so that there is nothing to call")
    if not _is_shallow(content):
        raise _bad_document(name, f"it is nested more than {_MAX_DEPTH} levels deep")
    return OpenApiDocument(content, name)


def _is_shallow(content: object) -> bool:
    level: list[object] = [content]
    for _ in range(_MAX_DEPTH):
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner += cast("dict[str, object]", each).values()
            elif isinstance(each, list):
                inner += cast("list[object]", each)
        if not inner:
            return True
        level = inner
    return False


def _decode(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _bad_document(name, f"byte {error.start} is not UTF-8") from None


def _read_file(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_DOCUMENT + 1)
    except OSError as error:
        raise _bad_document(str(file), f"it cannot be read: {error.strerror or error}") from None
    if len(raw) > MAX_DOCUMENT:
        raise _bad_document(str(file), f"it is larger than {MAX_DOCUMENT // 1024 // 1024} MiB")
    return raw


def _download(address: str) -> bytes:
    require_openapi()
    import httpx

    from bicameral.openapi._answers import AnswerTooLarge, BadAnswer, BodyReader, redirect_target, same_origin

    try:
        target = httpx.URL(address)
        with httpx.Client(timeout=_FETCH_SECONDS, follow_redirects=False) as client:
            for _ in range(_MAX_REDIRECTS + 1):
                headers = {"Accept": "application/json, application/yaml, text/yaml, */*;q=0.1"}
                with client.stream("GET", target, headers=headers | {"Accept-Encoding": "gzip"}) as answer:
                    if answer.has_redirect_location:
                        following = redirect_target(target, answer)
                        if not same_origin(target, following):
                            host = make_visible(following.raw_host.decode())[:100]
                            raise _bad_document(
                                address,
                                "the server sends to another address, which is not followed",
                                fix=f"If you know {host!r}, name the document there.",
                            )
                        target = following
                        continue
                    if not answer.is_success:
                        raise _bad_document(address, f"the server answered with {answer.status_code}")
                    return _read_answer(answer, BodyReader(answer.headers.get("content-encoding"), MAX_DOCUMENT))
    except AnswerTooLarge:
        raise _bad_document(address, f"it is larger than {MAX_DOCUMENT // 1024 // 1024} MiB") from None
    except (BadAnswer, httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError) as error:
        raise _bad_document(address, f"it cannot be fetched: {make_visible(describe_error(error))[:300]}") from None
    raise _bad_document(address, "the server redirects without end")


def _read_answer(answer: httpx.Response, reader: Any) -> bytes:
    import time

    # The time limit of the client is one for each read; a server that sends a byte a minute never meets it.
    end = time.monotonic() + _FETCH_SECONDS
    for piece in answer.iter_raw():
        reader.feed(piece)
        if time.monotonic() > end:
            raise ValueError("it took too long")
    return reader.finish()


def _bad_document(name: str, message: str, *, line: int | None = None, **more: Any) -> ToolError:
    return ToolError(
        "openapi.bad-document", f"this document cannot be used: {message}", place=Place(name, line), **more
    )
