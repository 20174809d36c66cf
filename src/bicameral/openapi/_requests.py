"""Requests from arguments: so written that no value can become a part of the address, a header or a body of its own.

Values may be untrusted text. In a path they are refused where encoding is not enough: a server decodes `%2F` before it
looks for the handler of a path, and everybody drops `..`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, unquote

from bicameral.errors import Place, ToolError
from bicameral.openapi._answers import is_json, media_type
from bicameral.openapi._document import folded_name
from bicameral.openapi._operations import Operation
from bicameral.openapi._parameters import FORM, METHOD_FIELDS, Body, Parameter

MAX_ADDRESS = 16_000
"""Characters of an address: servers take less."""
_DELIMITERS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request without keys.

    Args:
        method: In capital letters.
        path: Encoded, from the address of the API on.
        query: Encoded pairs of the query.
        headers: Names and values.
        cookies: Names and encoded values.
        content: The body.
    """

    method: str
    path: str
    query: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    cookies: tuple[tuple[str, str], ...] = ()
    content: bytes | None = None


def build_request(
    operation: Operation, arguments: Mapping[str, Any], *, path_arguments: frozenset[str] = frozenset()
) -> ApiRequest:
    """The request of a call.

    Args:
        operation: What is called.
        arguments: JSON values by the names of its arguments, checked against its schema.
        path_arguments: Arguments that are declared to be paths, and may have several parts.

    Example:
        >>> build_request(operation, {"id": "a b"}).path
        '/users/a%20b'
    """
    path = operation.path
    query: list[str] = []
    headers: list[tuple[str, str]] = [("Accept", operation.accept)]
    cookies: list[tuple[str, str]] = []
    for parameter in operation.parameters:
        if parameter.key not in arguments:
            continue
        value = arguments[parameter.key]
        match parameter.place:
            case "path":
                written = _path_value(parameter, value, several=parameter.key in path_arguments)
                path = path.replace(f"{{{parameter.name}}}", written)
            case "query":
                _check_names(operation, parameter, value)
                query += _query_pairs(parameter, value)
            case "header":
                headers.append((parameter.name, _header_value(parameter, value)))
            case "cookie":
                _check_names(operation, parameter, value)
                cookies += _cookie_pairs(parameter, value)
    _check_path(operation, path)
    content, media = _body(operation, arguments)
    if content is not None:
        headers.append(("Content-Type", media))
    if len(path) + sum(map(len, query)) > MAX_ADDRESS:
        raise ToolError(
            "openapi.bad-argument",
            f"the address would have more than {MAX_ADDRESS:,} characters",
            expected="shorter arguments",
        )
    return ApiRequest(operation.method, path, tuple(query), tuple(headers), tuple(cookies), content)


def encode_text(text: str) -> str:
    """The text for a path, a query, a form or a cookie: only letters, digits and `_.-~` stay as they are."""
    return quote(text, safe="", errors="surrogatepass")


def _text(parameter: Parameter, value: Any) -> str:
    """A single value as text."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return json.dumps(value)
        case None:
            return ""
        case _:
            raise _argument_error(parameter, "has a list or object within one, which has no form in an address")


def _parts(parameter: Parameter, value: Any) -> list[tuple[str | None, str]]:
    """A value as texts; those of an object with their names."""
    if parameter.as_json:
        return [(None, json.dumps(value, ensure_ascii=False, separators=(",", ":")))]
    if isinstance(value, dict):
        return [(name, _text(parameter, each)) for name, each in cast("dict[str, Any]", value).items()]
    if isinstance(value, list):
        return [(None, _text(parameter, each)) for each in cast("list[Any]", value)]
    return [(None, _text(parameter, value))]


def _path_value(parameter: Parameter, value: Any, *, several: bool) -> str:
    parts = _parts(parameter, value)
    pieces = [piece for _, text in parts for piece in (text.split("/") if several else [text])]
    if not pieces or not all(pieces):
        raise _argument_error(parameter, "is empty, or a part of it, which would make another path")
    for text in (*pieces, *(name for name, _ in parts if name is not None)):
        if re.search(r"[/\\\x00-\x1f\x7f]", text):
            raise _argument_error(parameter, "has a slash or a control character, which would make another path")
    encode = _encode_path if several else encode_text
    written = [(None if name is None else encode_text(name), encode(text)) for name, text in parts]
    prefix, delimiter = {"simple": ("", ","), "label": (".", "."), "matrix": (";", ";")}[parameter.style]
    own = encode_text(parameter.name)
    if parameter.style == "matrix" and not (parameter.explode and isinstance(value, list | dict)):
        return f";{own}={','.join(_flat(written))}"
    if parameter.style == "matrix":
        return prefix + delimiter.join(f"{own if name is None else name}={text}" for name, text in written)
    if parameter.explode:
        return prefix + delimiter.join(text if name is None else f"{name}={text}" for name, text in written)
    return prefix + ("," if parameter.style == "simple" else delimiter).join(_flat(written))


def _encode_path(text: str) -> str:
    return "/".join(map(encode_text, text.split("/")))


def _flat(written: list[tuple[str | None, str]]) -> Iterator[str]:
    for name, text in written:
        if name is not None:
            yield name
        yield text


def _check_path(operation: Operation, path: str) -> None:
    """Refuse a path that others would shorten: one with a part `.` or `..`, which no encoding keeps."""
    if any(unquote(part) in (".", "..") for part in path.split("/")):
        raise ToolError(
            "openapi.bad-argument",
            f"an argument of {operation.tool.name!r} would make another path of it",
            expected="no part of a path that is '.' or '..'",
        )


def _check_names(operation: Operation, parameter: Parameter, value: Any) -> None:
    """Refuse an object whose names would stand for other parameters, for keys, or for the method of the call."""
    is_deep = parameter.style == "deepObject"
    if not isinstance(value, dict) or parameter.as_json or not (is_deep or parameter.explode):
        return
    if operation.body is not None and parameter.key in operation.body.styled:
        names = operation.body.fields.values()
    else:
        names = [each.name for each in operation.parameters if each.place == parameter.place]
    others = {*map(folded_name, names)} | METHOD_FIELDS
    for name in cast("dict[str, Any]", value):
        # A bracket or NUL ends a name early, for some servers.
        is_odd = not name.strip() or re.search(r"[\[\]\x00]", name) is not None
        written = folded_name(f"{parameter.name}[{name}]" if is_deep else name)
        if is_odd or written in others | operation.key_names:
            raise _argument_error(parameter, "has a name that would stand for something else")


def _query_pairs(parameter: Parameter, value: Any) -> Iterator[str]:
    name = encode_text(parameter.name)
    written = [(None if key is None else encode_text(key), encode_text(text)) for key, text in _parts(parameter, value)]
    if parameter.style == "deepObject":
        if not isinstance(value, dict):
            raise _argument_error(parameter, "is no object, and is written in the style deepObject")
        yield from (f"{name}%5B{key}%5D={text}" for key, text in written)
    elif parameter.explode and isinstance(value, dict) and not parameter.as_json:
        yield from (f"{key}={text}" for key, text in written)
    elif parameter.explode and parameter.style == "form":
        yield from (f"{name}={text}" for _, text in written)
    elif written:
        yield f"{name}={_DELIMITERS[parameter.style].join(_flat(written))}"


def _header_value(parameter: Parameter, value: Any) -> str:
    parts = _parts(parameter, value)
    if parameter.explode and isinstance(value, dict) and not parameter.as_json:
        text = ",".join(f"{name}={each}" for name, each in parts)
    else:
        text = ",".join(_flat(parts))
    if not _HEADER_VALUE.fullmatch(text):
        # A line end would begin a header of its own.
        raise _argument_error(parameter, "cannot stand in a header: only visible ASCII characters can")
    return text


def _cookie_pairs(parameter: Parameter, value: Any) -> Iterator[tuple[str, str]]:
    parts = _parts(parameter, value)
    if parameter.explode and isinstance(value, dict) and not parameter.as_json:
        for name, text in parts:
            yield encode_text(name or ""), encode_text(text)
    elif parameter.explode and isinstance(value, list) and not parameter.as_json:
        for _, text in parts:
            yield parameter.name, encode_text(text)
    else:
        yield parameter.name, "%2C".join(map(encode_text, _flat(parts)))


def _body(operation: Operation, arguments: Mapping[str, Any]) -> tuple[bytes | None, str]:
    body = operation.body
    if body is None:
        return None, ""
    if body.key:
        if body.key not in arguments:
            return None, ""
        value: Any = arguments[body.key]
    else:
        value = {name: arguments[key] for key, name in body.fields.items() if key in arguments}
        if not value and not body.required:
            return None, ""
    media = media_type(body.media)
    if is_json(media):
        return json.dumps(value, ensure_ascii=True, allow_nan=False).encode(), body.media
    if media == FORM:
        return "&".join(_form_pairs(operation, body, arguments)).encode(), FORM
    return str(value).encode("utf-8", "surrogatepass"), f"{media}; charset=utf-8"


def _form_pairs(operation: Operation, body: Body, arguments: Mapping[str, Any]) -> Iterator[str]:
    for key, name in body.fields.items():
        if key not in arguments:
            continue
        value = arguments[key]
        if (styled := body.styled.get(key)) is not None:
            _check_names(operation, styled, value)
            yield from _query_pairs(styled, value)
            continue
        for each in cast("list[Any]", value) if isinstance(value, list) else [value]:
            text = each if isinstance(each, str) else json.dumps(each)
            yield f"{encode_text(name)}={encode_text(text)}"


def _argument_error(parameter: Parameter, what: str) -> ToolError:
    # The value is not quoted: it may be untrusted, or private.
    return ToolError(
        "openapi.bad-argument", f"the argument {parameter.key!r} {what}", place=Place(argument=parameter.key)
    )
