"""Operations of an OpenAPI document: each becomes a foreign tool, and what is needed to call it.

What is odd about one operation costs that operation and no other: it is left out, with the reason. Arguments are the
parameters by their names, and the fields of the body where it is a plain object; otherwise the body is one argument.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bicameral.errors import ToolError
from bicameral.foreign import ForeignTool, plain_name, read_listing, schema_problem
from bicameral.openapi._answers import is_json, media_type
from bicameral.openapi._document import (
    METHODS,
    BadReference,
    OpenApiDocument,
    SecurityScheme,
    as_list,
    as_table,
    folded_name,
)
from bicameral.openapi._parameters import (
    DESCRIBED_ELSEWHERE,
    FORM,
    STYLES,
    Body,
    Parameter,
    UnusableOperation,
    can_be_object,
    name_fault,
    read_style,
)
from bicameral.openapi._schema_bundle import SchemaBundle, SchemaTooLarge

_MAX_OPERATIONS = 5_000
_MAX_NAME = 100
_MOST_KEYS = 100
"""Alternatives of keys for one operation."""
_MAX_DESCRIPTION = 8_000
_READING = ("get", "head")
_TEMPLATE = re.compile(r"(?=/)(/([A-Za-z0-9_.~!$&'()*+,;=:@-]|\{[^{}/]+\})+)*/?")
_MEDIA = re.compile(r"[\w.+*-]+/[\w.+*-]+", re.ASCII)
_ODD_LIMITS = "a limit in its schemas is no number, and bounds nothing here"


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
        key_names: Names of query parameters and cookies that hold keys, as `folded_name` writes them.
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
    names = _FreeNames()
    for method, path, item, operation in found:
        name = _operation_id(method, path, operation)
        if not name or ids[_plain(name)] > 1:
            name = _path_name(method, path)
        tags = tuple(each for each in as_list(operation.get("tags")) if isinstance(each, str))
        entries.append(OperationEntry(names.take(name), method, path, tags, item, operation))
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


class _FreeNames:
    """Gives names that differ also as names in plans, in linear time: a document may have thousands of one name."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._numbers: Counter[str] = Counter()

    def take(self, name: str) -> str:
        """The name, or with a number if it is taken."""
        # In front of the end, since a long name is cut there.
        free, start = name, name[:50]
        while (plain := _plain(free)) in self._used:
            self._numbers[_plain(start)] += 1
            free = f"{start}_{self._numbers[_plain(start)] + 1}"
        self._used.add(plain)
        return free


def security_schemes(document: OpenApiDocument) -> Mapping[str, SecurityScheme]:
    """The schemes of a document that calls here know, by name."""
    return document.security_schemes


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
        self._schemes = document.security_schemes
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
        # How it is sent is not in the schemas. It is reviewed and pinned with them, since it decides what goes where.
        sent = self._sent(parameters, body, accept, security)
        annotations = {**_annotations(entry.method), "request": sent}
        tool = ForeignTool(entry.name, self._description(), self._input_schema(), output, annotations, entry.title)
        if self._bundle.has_odd_limits:
            self._notes.append(_ODD_LIMITS)
        read_listing([tool.to_json()])
        if problem := schema_problem(tool.input_schema):
            raise UnusableOperation(f"the schema of its arguments cannot be used: {problem}")
        names, notes = self._document.key_names, tuple(dict.fromkeys(self._notes))
        return Operation(tool, entry.method.upper(), entry.path, parameters, body, accept, security, names, notes)

    def _sent(
        self, parameters: Iterable[Parameter], body: Body | None, accept: str, security: Iterable[tuple[str, ...]]
    ) -> dict[str, Any]:
        """How the operation is sent, in words for the person who reviews it."""
        arguments = {each.key: each.place_text for each in parameters}
        if body is not None:
            arguments |= {key: f"body {name}" for key, name in body.fields.items()}
            arguments |= {key: each.place_text.replace("query", "body", 1) for key, each in body.styled.items()}
            arguments |= {body.key: "body"} if body.key else {}
        return {
            "arguments": arguments,
            "accept": accept,
            **({} if body is None else {"body": body.media}),
            "keys": [" and ".join(map(self._key, names)) or "none" for names in security],
        }

    def _key(self, name: str) -> str:
        scheme = self._schemes.get(name)
        return f"{name}, {'not known here' if scheme is None else scheme.place}"

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
        needed = as_list(self._entry.operation.get("security", self._document.content.get("security")))
        # One list may be that of all operations.
        if len(needed) > _MOST_KEYS or any(len(as_table(each)) > _MOST_KEYS for each in needed):
            raise UnusableOperation(f"it may be called with more than {_MOST_KEYS} keys")
        return tuple(tuple(as_table(each)) for each in needed)

    def _parameters(self, security: Iterable[tuple[str, ...]]) -> Iterator[Parameter]:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for each in (*as_list(self._entry.item.get("parameters")), *as_list(self._entry.operation.get("parameters"))):
            facts = self._document.resolve(each)
            name, place = facts.get("name"), facts.get("in")
            if not isinstance(name, str) or not name or not isinstance(place, str) or place not in STYLES:
                raise UnusableOperation("a parameter has no name or no place")
            found[name, place] = facts
        in_path = re.findall(r"\{([^{}/]+)\}", self._entry.path)
        if sorted(in_path) != sorted(name for name, place in found if place == "path"):
            raise UnusableOperation("the parameters of its path are not those that it describes")
        keys = {
            (self._schemes[name].kind, folded_name(self._schemes[name].name))
            for each in security
            for name in each
            if name in self._schemes
        }
        for (name, place), facts in found.items():
            if (place, folded_name(name)) in keys:
                # A key is set by the runtime from the user's settings, and never by a plan.
                continue
            if place == "header" and name.lower() in DESCRIBED_ELSEWHERE:
                self._notes.append(f"the header {name!r} is set by the client, as OpenAPI has it")
                continue
            schema = None if as_table(facts.get("content")) else facts.get("schema", {})
            if fault := name_fault(place, name) or self._style_fault(facts, schema):
                self._leave_out(fault, needed=facts.get("required") is True)
                continue
            yield self._parameter(name, place, facts)

    def _leave_out(self, fault: str, *, needed: bool) -> None:
        """Note a part that is left out; without one that is needed there is no operation."""
        if needed:
            raise UnusableOperation(fault)
        self._notes.append(fault)

    def _style_fault(self, facts: Mapping[str, Any], schema: Any) -> str | None:
        """Why no value could be written: deepObject has a form for the fields of an object alone."""
        if facts.get("style") != "deepObject" or schema is None:
            return None
        resolved = self._document.resolve(schema)
        choices = as_list(resolved.get("anyOf")) or as_list(resolved.get("oneOf")) or [resolved]
        if any(can_be_object(self._document.resolve(each)) for each in choices):
            return None
        return "what is written in the style deepObject is no object"

    def _parameter(self, name: str, place: Any, facts: dict[str, Any]) -> Parameter:
        content = as_table(facts.get("content"))
        schema: Any = facts.get("schema", {})
        if content:
            media, inner = next(iter(content.items()))
            if not is_json(media_type(media)):
                raise UnusableOperation("a parameter is of a media type that is not known here")
            schema = as_table(inner).get("schema", {})
        style, explode = read_style(place, {} if content else facts)
        converted: Any = self._bundle.convert(schema)
        if isinstance(facts.get("description"), str) and not isinstance(converted, bool):
            converted = as_table(converted) | {"description": facts["description"][:1_000]}
        key = self._add(name, place, converted, required=place == "path" or facts.get("required") is True)
        return Parameter(key, name, place, style, explode, bool(content))

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
            self._leave_out("its body is of a media type that is not known here", needed=required)
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
        # What is said about the forms of fields counts in a form alone.
        encodings = as_table(as_table(content[media]).get("encoding")) if kind == FORM else {}
        return self._fields_body(kind, flat, encodings, required=required)

    def _fields_body(
        self, media: str, flat: tuple[dict[str, Any], set[str]], encodings: Mapping[str, Any], *, required: bool
    ) -> Body:
        fields: dict[str, str] = {}
        styled: dict[str, Parameter] = {}
        properties, needed = flat
        for name, schema in properties.items():
            facts = as_table(encodings.get(name))
            if fault := name_fault("body", name) or self._style_fault(facts, schema):
                self._leave_out(fault, needed=name in needed)
                continue
            key = self._add(name, "body", self._bundle.convert(schema), required=required and name in needed)
            fields[key] = name
            if facts.keys() & {"style", "explode"}:
                styled[key] = Parameter(key, name, "query", *read_style("query", facts))
            elif is_json(media_type(str(facts.get("contentType", "")))):
                styled[key] = Parameter(key, name, "query", "form", explode=True, as_json=True)
        return Body(media, required, fields, styled=styled)

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
        if self._entry.method == "head":
            return "*/*", {"type": "null"}
        accept, schemas, has_text = "", list[Any](), False
        problem: str | None = None
        for status, value in sorted(as_table(self._entry.operation.get("responses")).items()):
            if not re.fullmatch(r"2([0-9]{2}|XX)", status, re.IGNORECASE):
                continue
            try:
                given = as_table(self._document.resolve(value).get("content"))
            except BadReference as error:
                problem = str(error)
                continue
            content = {each: facts for each, facts in given.items() if _MEDIA.fullmatch(media_type(each))}
            media = next((each for each in content if is_json(media_type(each))), None)
            if media is not None:
                accept = accept or media_type(media)
                schemas.append(as_table(content[media]).get("schema", {}))
            elif content:
                has_text = True
            else:
                schemas.append({"type": "null"})
        if has_text or not (schemas or problem):
            return accept or "*/*", None
        return accept or "*/*", self._answer_schema(schemas, problem)

    def _answer_schema(self, schemas: Iterable[Any], problem: str | None) -> dict[str, Any]:
        """The schema of a JSON answer; that of any JSON if what the document says of it cannot be used."""
        bundle = SchemaBundle(self._document, "response")
        try:
            converted = [as_table(bundle.convert(each)) for each in schemas]
        except (BadReference, SchemaTooLarge) as error:
            converted, problem = list[dict[str, Any]](), str(error)
        distinct = [each for number, each in enumerate(converted) if each not in converted[:number]]
        schema = bundle.with_definitions(distinct[0] if len(distinct) == 1 else {"anyOf": distinct})
        if problem := problem or schema_problem(schema) or _listing_problem(schema):
            self._notes.append(f"its answer counts as any JSON, since the schema cannot be used: {problem}")
            return {}
        if bundle.has_odd_limits:
            self._notes.append(_ODD_LIMITS)
        return schema


def _listing_problem(schema: dict[str, Any]) -> str | None:
    """Why a listing cannot have this schema of an answer."""
    try:
        read_listing([ForeignTool("answer", output_schema=schema).to_json()])
    except ToolError:
        return "it is too large"
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
