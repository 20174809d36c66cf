"""Operations of an OpenAPI document: each becomes a foreign tool, and what is needed to call it.

What is odd about one operation costs that operation and no other: it is left out, with the reason. Arguments are the
parameters by their names, and the fields of the body where it is a plain object; otherwise the body is one argument.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bicameral.errors import ToolError
from bicameral.foreign import ForeignTool, plain_name, read_listing, schema_problem
from bicameral.openapi._answers import is_json, media_type
from bicameral.openapi._document import METHODS, BadReference, OpenApiDocument, as_list, as_table
from bicameral.openapi._schema_bundle import SchemaBundle, SchemaTooLarge
from bicameral.openapi._settings import HEADER_NAME, TRANSPORT_HEADERS

Place = Literal["path", "query", "header", "cookie"]
_STYLES: dict[str, tuple[str, ...]] = {
    # The first is the default.
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
FORM = "application/x-www-form-urlencoded"
_MAX_OPERATIONS = 5_000
_MAX_NAME = 100
_MAX_DESCRIPTION = 8_000
_READING = ("get", "head")
_TEMPLATE = re.compile(r"(/([A-Za-z0-9_.~!$&'()*+,;=:@-]|\{[^{}/]+\})+)*/?")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_MEDIA = re.compile(r"[\w.+*-]+/[\w.+*-]+", re.ASCII)


class UnusableOperation(ValueError):
    """Why an operation makes no tool, in words for the person who reviews the document."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument that goes into the address, a header or a cookie.

    Args:
        key: The name of the argument.
        name: The name in the request.
        place: Where it goes.
        style: How lists and objects are written.
        explode: Whether their parts are written one by one.
        as_json: Whether it is written as JSON, whatever it is.
    """

    key: str
    name: str
    place: Place
    style: str
    explode: bool
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request.

    Args:
        media: Its media type.
        required: Whether it is sent also without any argument for it.
        fields: Argument and field of the body, where the fields are arguments.
        key: The argument that is the whole body, otherwise.
    """

    media: str
    required: bool
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    key: str = ""


@dataclass(frozen=True, slots=True)
class SecurityScheme:
    """How a key is sent: in a header, a query parameter, a cookie, or as HTTP Basic or Bearer."""

    kind: Literal["header", "query", "cookie", "basic", "bearer"]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, as a foreign tool and as a request.

    Args:
        tool: The tool as it is reviewed and pinned.
        method: In capital letters.
        path: The template of the path, from the document.
        parameters: The arguments outside of the body.
        body: The body, if there is one.
        accept: The media type that is asked for.
        security: Alternatives, each the names of schemes that are needed together. None at all: it needs no key.
        key_names: Names of query parameters and cookies that hold keys, in small letters.
        notes: What is left out of it, for the person who reviews it.
    """

    tool: ForeignTool
    method: str
    path: str
    parameters: tuple[Parameter, ...]
    body: Body | None
    accept: str
    security: tuple[tuple[str, ...], ...]
    key_names: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OperationEntry:
    """An operation in its document, not read yet."""

    name: str
    method: str
    path: str
    tags: tuple[str, ...]
    item: dict[str, Any]
    operation: dict[str, Any]

    @property
    def title(self) -> str:
        """Its method and path."""
        return f"{self.method.upper()} {self.path}"


def operation_entries(document: OpenApiDocument) -> list[OperationEntry]:
    """Every operation of a document under a name of its own: its id, or what its method and path make."""
    found: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = []
    for path, value in as_table(document.content["paths"]).items():
        try:
            item = document.resolve(value)
        except BadReference:
            # Without its methods nothing is known that could be named.
            continue
        for method in METHODS:
            if isinstance(item.get(method), dict):
                found.append((method, path, item, item[method]))
        if len(found) > _MAX_OPERATIONS:
            raise ToolError(
                "openapi.bad-document", f"it has more than {_MAX_OPERATIONS:,} operations", expected="fewer operations"
            )
    # An id that two operations have is neither's. Names that make the same name in plans are taken for the same.
    ids = Counter(_plain(_operation_id(method, path, each)) for method, path, _, each in found)
    entries: list[OperationEntry] = []
    used: set[str] = set()
    for method, path, item, operation in found:
        name = _operation_id(method, path, operation)
        if not name or ids[_plain(name)] > 1:
            name = _path_name(method, path)
        name = _free(name, used)
        used.add(_plain(name))
        tags = tuple(each for each in as_list(operation.get("tags")) if isinstance(each, str))
        entries.append(OperationEntry(name, method, path, tags, item, operation))
    return entries


def _operation_id(method: str, path: str, operation: dict[str, Any]) -> str:
    given = operation.get("operationId")
    if not isinstance(given, str):
        return ""
    # FastAPI appends path and method to the name of the function: `list_users_users__get`.
    generated = re.sub(r"\W", "_", path) + f"_{method}"
    return _clean(given.removesuffix(generated)) or _clean(given)


def _path_name(method: str, path: str) -> str:
    return _clean(f"{method}_{path}") or method


def _clean(text: str) -> str:
    return re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_.:/-]|[/{}]", "_", text)).strip("_.:/-")[:_MAX_NAME].rstrip("_")


def _plain(name: str) -> str:
    return plain_name(name).lower()


def _free(name: str, used: set[str]) -> str:
    free, number = name, 2
    while _plain(free) in used:
        # In front of the end, since a long name is cut there.
        free, number = f"{name[:50]}_{number}", number + 1
    return free


def security_schemes(document: OpenApiDocument) -> dict[str, SecurityScheme]:
    """The schemes of a document that calls here know, by name."""
    schemes: dict[str, SecurityScheme] = {}
    for name, value in as_table(as_table(document.content.get("components")).get("securitySchemes")).items():
        try:
            facts = document.resolve(value)
        except BadReference:
            continue
        match facts.get("type"), facts.get("in"), str(facts.get("scheme", "")).lower():
            case "apiKey", ("header" | "query" | "cookie") as place, _:
                key = facts.get("name")
                if isinstance(key, str) and _is_key_name(place, key):
                    schemes[name] = SecurityScheme(place, key)
            case "http", _, ("basic" | "bearer") as kind:
                schemes[name] = SecurityScheme(kind)
            case (("oauth2" | "openIdConnect"), _, _):
                # The token is the user's to get; how is not asked of the document.
                schemes[name] = SecurityScheme("bearer")
            case _:
                pass
    return schemes


def _is_key_name(place: str, name: str) -> bool:
    if place == "query":
        return bool(name)
    return _TOKEN.fullmatch(name) is not None and name.lower() not in TRANSPORT_HEADERS


def read_operation(document: OpenApiDocument, entry: OperationEntry) -> Operation:
    """One operation; an UnusableOperation says why it makes no tool."""
    try:
        return _OperationReader(document, entry).read()
    except (BadReference, SchemaTooLarge) as error:
        raise UnusableOperation(str(error)) from None
    except ToolError as error:
        raise UnusableOperation(error.message) from None


class _OperationReader:
    def __init__(self, document: OpenApiDocument, entry: OperationEntry) -> None:
        self._document, self._entry = document, entry
        self._bundle = SchemaBundle(document, "request")
        self._schemes = security_schemes(document)
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        self._notes: list[str] = []

    def read(self) -> Operation:
        entry = self._entry
        if entry.method in ("trace", "options"):
            raise UnusableOperation(f"{entry.method.upper()} is for programs that look at servers")
        if not _TEMPLATE.fullmatch(entry.path) or any(part in (".", "..") for part in entry.path.split("/")):
            raise UnusableOperation("its path is no template of a path")
        if as_list(entry.operation.get("servers")) or as_list(entry.item.get("servers")):
            raise UnusableOperation("it is served at another address than the rest")
        security = self._security()
        parameters = tuple(self._parameters(security))
        body = self._body()
        accept, output = self._output()
        tool = ForeignTool(
            entry.name,
            self._description(),
            self._input_schema(),
            output,
            _annotations(entry.method),
            entry.title,
        )
        read_listing([tool.to_json()])
        if problem := schema_problem(tool.input_schema):
            raise UnusableOperation(f"the schema of its arguments cannot be used: {problem}")
        keys = frozenset(each.name.lower() for each in self._schemes.values() if each.kind in ("query", "cookie"))
        return Operation(
            tool, entry.method.upper(), entry.path, parameters, body, accept, security, keys, tuple(self._notes)
        )

    def _description(self) -> str:
        texts = (self._entry.operation.get(key) for key in ("summary", "description"))
        return "\n\n".join(each for each in texts if isinstance(each, str) and each.strip())[:_MAX_DESCRIPTION]

    def _input_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object", "properties": self._properties, "additionalProperties": False}
        if self._required:
            # Sorted, so that the pin does not depend on the order in which a document lists its fields.
            schema["required"] = sorted(self._required)
        return self._bundle.with_definitions(schema)

    def _add(self, name: str, place: str, schema: Any, *, required: bool) -> str:
        """Add an argument and return its name: that of the document, unless something else has it already."""
        key = name if name not in self._properties else f"{name}_{place}"
        while key in self._properties:
            key += "_"
        self._properties[key] = schema
        if required:
            self._required.append(key)
        return key

    def _security(self) -> tuple[tuple[str, ...], ...]:
        needed = self._entry.operation.get("security", self._document.content.get("security"))
        return tuple(tuple(as_table(each)) for each in as_list(needed))

    def _parameters(self, security: Iterable[tuple[str, ...]]) -> Iterator[Parameter]:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for each in (*as_list(self._entry.item.get("parameters")), *as_list(self._entry.operation.get("parameters"))):
            facts = self._document.resolve(each)
            name, place = facts.get("name"), facts.get("in")
            if not isinstance(name, str) or not name or place not in _STYLES:
                raise UnusableOperation("a parameter has no name or no place")
            found[name, place] = facts
        in_path = re.findall(r"\{([^{}/]+)\}", self._entry.path)
        if sorted(in_path) != sorted(name for name, place in found if place == "path"):
            raise UnusableOperation("the parameters of its path are not those that it describes")
        keys = {
            (self._schemes[name].kind, self._schemes[name].name.lower())
            for each in security
            for name in each
            if name in self._schemes
        }
        for (name, place), facts in found.items():
            if (place, name.lower()) in keys:
                # A key is set by the runtime from the user's settings, and never by a plan.
                continue
            if fault := _name_fault(place, name):
                if facts.get("required") is True:
                    raise UnusableOperation(fault)
                self._notes.append(fault)
                continue
            yield self._parameter(name, place, facts)

    def _parameter(self, name: str, place: Any, facts: dict[str, Any]) -> Parameter:
        content = as_table(facts.get("content"))
        schema: Any = facts.get("schema", {})
        if content:
            media, inner = next(iter(content.items()))
            if not is_json(media_type(media)):
                raise UnusableOperation("a parameter is of a media type that is not known here")
            schema = as_table(inner).get("schema", {})
        style = facts.get("style", _STYLES[place][0])
        if style not in _STYLES[place]:
            raise UnusableOperation("a parameter is written in a style that is not known here")
        explode = facts.get("explode", style == "form")
        converted: Any = self._bundle.convert(schema)
        if isinstance(facts.get("description"), str) and not isinstance(converted, bool):
            converted = as_table(converted) | {"description": facts["description"][:1_000]}
        key = self._add(name, place, converted, required=place == "path" or facts.get("required") is True)
        return Parameter(key, name, place, style, explode is True, bool(content))

    def _body(self) -> Body | None:
        given = self._document.resolve(self._entry.operation.get("requestBody"))
        content = as_table(given.get("content"))
        required = given.get("required") is True
        if not content:
            return None
        if self._entry.method in _READING:
            if required:
                raise UnusableOperation("it reads and needs a body")
            return None
        media = _best_media(content)
        if media is None:
            if required:
                raise UnusableOperation("its body is of a media type that is not known here")
            self._notes.append("its body is left out, which is of a media type that is not known here")
            return None
        schema: Any = as_table(content[media]).get("schema", {})
        if media_type(media) == "text/plain":
            return Body(
                media_type(media), required, key=self._add("body", "body", {"type": "string"}, required=required)
            )
        flat = self._flat_fields(schema)
        kind = "application/json" if media == "*/*" else media_type(media)
        if flat is None:
            if media_type(media) == FORM:
                raise UnusableOperation("its body is a form without fields")
            key = self._add("body", "body", self._bundle.convert(schema), required=required)
            return Body(kind, required, key=key)
        properties, needed = flat
        fields = {
            self._add(name, "body", self._bundle.convert(each), required=required and name in needed): name
            for name, each in properties.items()
        }
        return Body(kind, required, fields)

    def _flat_fields(self, schema: Any) -> tuple[dict[str, Any], set[str]] | None:
        """The fields of a body that is a plain object, and which of them it needs."""
        if as_table(schema).keys() - {"$ref", "description"} and "$ref" in as_table(schema):
            return None
        resolved = self._bundle.resolve(schema)
        properties = as_table(resolved.get("properties"))
        if not properties or resolved.get("type", "object") not in ("object", ["object"]):
            return None
        # What combines schemas, or allows other fields, is more than its fields.
        if resolved.keys() & {"allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "$ref"}:
            return None
        if resolved.get("additionalProperties", False) is not False or resolved.get("nullable") is True:
            return None
        required = {each for each in as_list(resolved.get("required")) if isinstance(each, str)}
        visible = {name: each for name, each in properties.items() if not self._bundle.is_hidden(each)}
        needed = {each for each in required if each in visible or each not in properties}
        return (visible, needed) if needed <= visible.keys() else None

    def _output(self) -> tuple[str, dict[str, Any] | None]:
        """The media type to ask for, and the schema of a good answer; None if that is text."""
        bundle = SchemaBundle(self._document, "response")
        accept, schemas, has_text = "", list[dict[str, Any]](), False
        if self._entry.method == "head":
            return "*/*", {"type": "null"}
        answers = as_table(self._entry.operation.get("responses"))
        for status, value in sorted(answers.items()):
            if not re.fullmatch(r"2([0-9]{2}|XX)", status, re.IGNORECASE):
                continue
            given = as_table(self._document.resolve(value).get("content"))
            content = {each: facts for each, facts in given.items() if _MEDIA.fullmatch(media_type(each))}
            media = next((each for each in content if is_json(media_type(each))), None)
            if media is not None:
                accept = accept or media_type(media)
                schemas.append(as_table(bundle.convert(as_table(content[media]).get("schema", {}))))
            elif content:
                has_text = True
            else:
                schemas.append({"type": "null"})
        distinct = [each for number, each in enumerate(schemas) if each not in schemas[:number]]
        if has_text or not distinct:
            return accept or "*/*", None
        schema = bundle.with_definitions(distinct[0] if len(distinct) == 1 else {"anyOf": distinct})
        if problem := schema_problem(schema):
            self._notes.append(f"its answer counts as any JSON, since the schema cannot be used: {problem}")
            return accept or "*/*", {}
        return accept or "*/*", schema


def _name_fault(place: str, name: str) -> str | None:
    """Why a parameter of this name is not sent."""
    if place == "header":
        if not HEADER_NAME.fullmatch(name):
            return "a header has a name that no header can have"
        if name.lower() in TRANSPORT_HEADERS or name.lower() == "authorization":
            return f"the header {name!r} is set by the client"
    if place == "cookie" and not _TOKEN.fullmatch(name):
        return "a cookie has a name that no cookie can have"
    return None


def _best_media(content: dict[str, Any]) -> str | None:
    usable = {media_type(media): media for media in content if _MEDIA.fullmatch(media_type(media))}
    known = (*filter(is_json, usable), "*/*", FORM, "text/plain")
    return next((usable[media] for media in known if media in usable), None)


def _annotations(method: str) -> dict[str, Any]:
    """What HTTP says of a method, as claims like those of an MCP server."""
    match method:
        case "get" | "head":
            return {"readOnlyHint": True}
        case "delete":
            return {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}
        case "put":
            return {"readOnlyHint": False, "idempotentHint": True}
        case _:
            return {"readOnlyHint": False}
