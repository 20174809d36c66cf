"""Requests of an API: arguments written as the document says, and never as anything else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from openapi_apis import document, operation, parameter, path_parameter, serving, users_api

from bicameral.errors import ToolError
from bicameral.openapi import OpenApiSettings, parse_document
from bicameral.openapi._calls import ApiServer
from bicameral.openapi._operations import Operation, operation_entries, read_operation
from bicameral.openapi._parameters import UnusableOperation
from bicameral.openapi._requests import ApiRequest, build_request
from property_examples import THOUSAND, examples


def _operation(path: str, method: str, facts: dict[str, Any], **more: Any) -> Operation:
    found = parse_document(json.dumps(document({path: {method: facts}}, **more)), "test")
    return read_operation(found, operation_entries(found)[0])


def _request(parameters: list[dict[str, Any]], arguments: dict[str, Any], path: str = "/x") -> ApiRequest:
    return build_request(_operation(path, "get", operation(*parameters)), arguments)


LIST, OBJECT = ["a b", "c&d"], {"k": "v 1", "n": 2}
TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
TABLE: dict[str, Any] = {"type": "object"}

QUERIES: list[tuple[dict[str, Any], Any, tuple[str, ...]]] = [
    (parameter("q", "query"), "a b&c=d#e", ("q=a%20b%26c%3Dd%23e",)),
    (parameter("q", "query", {"type": "boolean"}), True, ("q=true",)),
    (parameter("q", "query", {"type": "number"}), 1.5, ("q=1.5",)),
    (parameter("odd name&x", "query"), "v", ("odd%20name%26x=v",)),
    (parameter("q", "query", TEXTS), LIST, ("q=a%20b", "q=c%26d")),
    (parameter("q", "query", TEXTS, explode=False), LIST, ("q=a%20b,c%26d",)),
    (parameter("q", "query", TEXTS, style="spaceDelimited", explode=False), LIST, ("q=a%20b%20c%26d",)),
    (parameter("q", "query", TEXTS, style="pipeDelimited", explode=False), LIST, ("q=a%20b%7Cc%26d",)),
    (parameter("q", "query", TABLE), OBJECT, ("k=v%201", "n=2")),
    (parameter("q", "query", TABLE, explode=False), OBJECT, ("q=k,v%201,n,2",)),
    (parameter("q", "query", TABLE, style="deepObject"), OBJECT, ("q%5Bk%5D=v%201", "q%5Bn%5D=2")),
    (
        {"name": "q", "in": "query", "style": "deepObject", "content": {"application/json": {"schema": TABLE}}},
        {"k": 1},
        ("q=%7B%22k%22%3A1%7D",),
    ),
    (parameter("q", "query", TEXTS), [], ()),
    (
        {"name": "q", "in": "query", "content": {"application/json": {"schema": TABLE}}},
        {"k": [1]},
        ("q=%7B%22k%22%3A%5B1%5D%7D",),
    ),
]


@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_a_query_is_written_in_its_style(number: int) -> None:
    described, value, expected = QUERIES[number]
    assert _request([described], {described["name"]: value}).query == expected


PATHS: list[tuple[dict[str, Any], Any, str]] = [
    (path_parameter("p"), "a b?c#d;e%f", "/x/a%20b%3Fc%23d%3Be%25f"),
    (path_parameter("p", TEXTS), LIST, "/x/a%20b,c%26d"),
    (path_parameter("p", TABLE), OBJECT, "/x/k,v%201,n,2"),
    (path_parameter("p", TABLE, explode=True), OBJECT, "/x/k=v%201,n=2"),
    (path_parameter("p", style="label"), "a", "/x/.a"),
    (path_parameter("p", TEXTS, style="label", explode=True), LIST, "/x/.a%20b.c%26d"),
    (path_parameter("p", style="matrix"), "a", "/x/;p=a"),
    (path_parameter("p", TEXTS, style="matrix"), LIST, "/x/;p=a%20b,c%26d"),
    (path_parameter("p", TEXTS, style="matrix", explode=True), LIST, "/x/;p=a%20b;p=c%26d"),
    (path_parameter("p", TABLE, style="matrix", explode=True), OBJECT, "/x/;k=v%201;n=2"),
]


@pytest.mark.parametrize("number", range(len(PATHS)))
def test_a_path_is_written_in_its_style(number: int) -> None:
    described, value, expected = PATHS[number]
    assert _request([described], {"p": value}, "/x/{p}").path == expected


def test_headers_and_cookies_are_written_as_they_are_described() -> None:
    found = _request(
        [parameter("X-Id", "header"), parameter("X-Many", "header", TEXTS), parameter("c", "cookie")],
        {"X-Id": "7", "X-Many": ["a", "b"], "c": "v;w x"},
    )
    assert dict(found.headers) == {"Accept": "application/json", "X-Id": "7", "X-Many": "a,b"}
    assert found.cookies == (("c", "v%3Bw%20x"),)


def test_a_list_in_cookies_is_several_cookies_of_one_name() -> None:
    assert _request([parameter("c", "cookie", TEXTS)], {"c": ["a", "b;"]}).cookies == (("c", "a"), ("c", "b%3B"))
    assert _request([parameter("c", "cookie", TEXTS, explode=False)], {"c": ["a", "b"]}).cookies == (("c", "a%2Cb"),)


def _body(content: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    return operation(requestBody={"required": required, "content": content})


USER: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}


def test_the_fields_of_a_body_are_arguments() -> None:
    found = _operation("/x", "post", _body({"application/json": {"schema": USER}}))
    assert found.tool.input_schema["required"] == ["name"]
    request = build_request(found, {"name": "a\r\nb", "age": 3})
    assert json.loads(request.content or b"") == {"name": "a\r\nb", "age": 3}
    assert dict(request.headers)["Content-Type"] == "application/json"


def test_a_form_is_encoded() -> None:
    found = _operation("/x", "post", _body({"application/x-www-form-urlencoded": {"schema": USER}}))
    assert build_request(found, {"name": "a&age=9 b", "age": 3}).content == b"name=a%26age%3D9%20b&age=3"


FORM = "application/x-www-form-urlencoded"
ADDRESS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
FIELDS: list[tuple[dict[str, Any], dict[str, Any], Any, bytes]] = [
    ({}, TEXTS, ["a", "b c"], b"f=a&f=b%20c"),
    ({}, ADDRESS, {"city": "Ulm"}, b"f=%7B%22city%22%3A%20%22Ulm%22%7D"),
    ({"style": "form", "explode": False}, TEXTS, ["a", "b"], b"f=a,b"),
    ({"style": "form"}, TEXTS, ["a", "b"], b"f=a&f=b"),
    ({"style": "pipeDelimited", "explode": False}, TEXTS, ["a", "b"], b"f=a%7Cb"),
    ({"style": "deepObject", "explode": True}, ADDRESS, {"city": "Ulm", "a&b": "c"}, b"f%5Bcity%5D=Ulm&f%5Ba%26b%5D=c"),
    ({"explode": True}, ADDRESS, {"city": "Ulm"}, b"city=Ulm"),
    ({"contentType": "application/json"}, TEXTS, ["a", "b"], b"f=%5B%22a%22%2C%22b%22%5D"),
    ({"contentType": "text/plain"}, {"type": "string"}, "a", b"f=a"),
]


@pytest.mark.parametrize("number", range(len(FIELDS)))
def test_a_field_of_a_form_is_written_in_its_style(number: int) -> None:
    encoding, schema, value, expected = FIELDS[number]
    described = {"schema": {"type": "object", "properties": {"f": schema, "g": {}}}, "encoding": {"f": encoding}}
    found = _operation("/x", "post", _body({FORM: described}))
    assert build_request(found, {"f": value}).content == expected
    assert found.notes == ()


def test_a_field_of_a_form_in_a_style_without_a_form_is_left_out() -> None:
    described: dict[str, Any] = {
        "schema": {"type": "object", "properties": {"f": TEXTS, "g": {"type": "string"}}},
        "encoding": {"f": {"style": "deepObject"}},
    }
    found = _operation("/x", "post", _body({FORM: described}))
    assert list(found.tool.input_schema["properties"]) == ["g"]
    assert "deepObject" in found.notes[0]
    described["schema"]["required"] = ["f"]
    with pytest.raises(UnusableOperation, match="deepObject"):
        _operation("/x", "post", _body({FORM: described}))
    with pytest.raises(UnusableOperation, match="style"):
        _operation("/x", "post", _body({FORM: described | {"encoding": {"f": {"style": "odd"}}}}))


def test_names_in_an_object_of_a_form_cannot_stand_for_its_other_fields() -> None:
    described = {
        "schema": {"type": "object", "properties": {"f": ADDRESS, "amount": {"type": "integer"}}},
        "encoding": {"f": {"explode": True}},
    }
    found = _operation("/x", "post", _body({FORM: described}))
    assert build_request(found, {"f": {"city": "Ulm"}, "amount": 1}).content == b"city=Ulm&amount=1"
    for name in ("amount", " Amount", "_method", "amount[]"):
        with pytest.raises(ToolError, match="stand for something else"):
            build_request(found, {"f": {name: "9"}, "amount": 1})


def test_a_body_that_is_no_plain_object_is_one_argument() -> None:
    schemas: list[Any] = [{"type": "array", "items": {}}, {"anyOf": [USER, {"type": "null"}]}, {"type": "object"}]
    for schema in schemas:
        found = _operation("/x", "put", _body({"application/json": {"schema": schema}}))
        assert list(found.tool.input_schema["properties"]) == ["body"]
        assert build_request(found, {"body": [1, "x"]}).content == b'[1, "x"]'
    plain = _operation("/x", "put", _body({"text/plain": {}}))
    assert build_request(plain, {"body": "ü"}).content == "ü".encode()


def test_a_body_that_nobody_gave_is_not_sent_unless_it_must_be() -> None:
    optional = _operation("/x", "post", _body({"application/json": {"schema": USER}}, required=False))
    assert "required" not in optional.tool.input_schema
    assert build_request(optional, {}).content is None
    needed: dict[str, Any] = {**USER, "required": []}
    assert build_request(_operation("/x", "post", _body({"application/json": {"schema": needed}})), {}).content == b"{}"


def test_arguments_of_one_name_get_names_of_their_own() -> None:
    facts = operation(
        path_parameter("id"),
        parameter("id", "query"),
        requestBody={"content": {"application/json": {"schema": {**USER, "properties": {"id": {"type": "string"}}}}}},
    )
    facts["requestBody"]["content"]["application/json"]["schema"].pop("required")
    found = _operation("/x/{id}", "post", facts)
    assert list(found.tool.input_schema["properties"]) == ["id", "id_query", "id_body"]
    request = build_request(found, {"id": "1", "id_query": "2", "id_body": "3"})
    assert (request.path, request.query, request.content) == ("/x/1", ("id=2",), b'{"id": "3"}')


HOSTILE_PATHS = [
    "..",
    ".",
    "../admin",
    "..%2fadmin",
    "a/secret",
    "/admin",
    "//evil.example/x",
    "a\\..\\admin",
    "",
    "a/../../admin",
    "a\x00b",
    "a\r\nX: y",
]


@pytest.mark.parametrize("value", HOSTILE_PATHS)
def test_a_value_cannot_change_the_path(value: str) -> None:
    found = _operation("/users/{user}", "get", operation(path_parameter("user")))
    if value == "..%2fadmin":
        assert build_request(found, {"user": value}).path == "/users/..%252fadmin"
        return
    with pytest.raises(ToolError) as caught:
        build_request(found, {"user": value})
    assert caught.value.code == "openapi.bad-argument"
    assert "evil" not in str(caught.value)


@pytest.mark.parametrize("value", [["a", "b/c"], ["a", ""], [], {"../x": "v"}, {"k": ".."}, {"k": "/"}])
def test_a_part_of_a_value_cannot_change_the_path(value: Any) -> None:
    schema = TEXTS if isinstance(value, list) else TABLE
    found = _operation("/users/{user}", "get", operation(path_parameter("user", schema, explode=True)))
    if value == {"k": ".."}:
        # With the name in front it is no part of its own.
        assert build_request(found, {"user": value}).path == "/users/k=.."
        return
    with pytest.raises(ToolError, match="another path"):
        build_request(found, {"user": value})


def test_values_beside_each_other_cannot_make_a_step_up() -> None:
    found = _operation("/x/{a}{b}/y", "get", operation(path_parameter("a"), path_parameter("b")))
    with pytest.raises(ToolError, match="another path"):
        build_request(found, {"a": ".", "b": "."})
    assert build_request(found, {"a": "1.", "b": ".2"}).path == "/x/1..2/y"


def test_a_declared_path_may_have_parts_and_no_steps_up() -> None:
    found = _operation("/files/{path}", "get", operation(path_parameter("path")))
    declared = frozenset({"path"})
    assert build_request(found, {"path": "a/b c.txt"}, path_arguments=declared).path == "/files/a/b%20c.txt"
    for value in ("../b", "a/./b", "/a", "a//b", "a/..", "a\\b"):
        with pytest.raises(ToolError, match="another path"):
            build_request(found, {"path": value}, path_arguments=declared)


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "\x00", "a\x7f", "ü", " a", "a ", ""])
def test_a_value_cannot_add_a_header(value: str) -> None:
    with pytest.raises(ToolError, match="cannot stand in a header"):
        _request([parameter("X-Id", "header")], {"X-Id": value})


def test_a_name_in_an_object_cannot_add_a_header() -> None:
    described = parameter("X-Id", "header", TABLE, explode=True)
    assert dict(_request([described], {"X-Id": {"k": "v"}}).headers)["X-Id"] == "k=v"
    with pytest.raises(ToolError, match="cannot stand in a header"):
        _request([described], {"X-Id": {"a\r\nX-Admin": "1"}})


def test_names_of_an_object_cannot_stand_for_other_parameters_or_keys() -> None:
    schemes = {"securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "api_key"}}}
    facts = operation(parameter("filter", "query", TABLE), parameter("admin", "query", {"type": "boolean"}))
    found = _operation("/x", "get", facts, components=schemes)
    assert build_request(found, {"filter": {"colour": "red"}}).query == ("colour=red",)
    for name in (
        *("admin", "ADMIN", "api_key", "filter", "a[b]", "", " ", "admin ", " admin", "\tadmin", "admin\x00"),
        *("admin\x00x", "api.key", "api key", "_method", "X-HTTP-Method-Override", "_METHOD "),
    ):
        with pytest.raises(ToolError, match="stand for something else"):
            build_request(found, {"filter": {name: "true"}})


def test_names_of_an_object_that_are_not_written_alone_may_be_those_of_parameters() -> None:
    state = parameter("state", "query")
    deep = [parameter("filter", "query", TABLE, style="deepObject"), state]
    assert _request(deep, {"filter": {"state": "open"}, "state": "x"}).query == ("filter%5Bstate%5D=open", "state=x")
    joined = [parameter("filter", "query", TABLE, explode=False), state]
    assert _request(joined, {"filter": {"state": "open"}}).query == ("filter=state,open",)
    as_json = {"name": "filter", "in": "query", "content": {"application/json": {"schema": TABLE}}}
    assert _request([as_json, state], {"filter": {"state": 1}}).query == ("filter=%7B%22state%22%3A1%7D",)
    # The name as it is written still stands for itself alone.
    for name in ("a]", "a][b", "a\x00", "", "key"):
        with pytest.raises(ToolError, match="stand for something else"):
            _request([*deep, parameter("filter[key]", "query")], {"filter": {name: "open"}})


def test_a_value_with_a_shape_that_has_no_form_is_refused() -> None:
    with pytest.raises(ToolError, match="no form in an address"):
        _request([parameter("q", "query", TABLE, style="deepObject")], {"q": {"k": {"deeper": 1}}})
    with pytest.raises(ToolError, match="deepObject"):
        _request([parameter("q", "query", {}, style="deepObject")], {"q": "text"})


def test_an_address_without_end_is_refused() -> None:
    with pytest.raises(ToolError, match="characters"):
        _request([parameter("q", "query")], {"q": "x" * 20_000})


@pytest.fixture(scope="module")
def users() -> Any:
    seen: list[str] = []
    with serving(users_api(seen)) as address:
        yield address, seen


@settings(max_examples=examples(THOUSAND, quick=60))
@given(
    value=st.one_of(
        st.text(max_size=12),
        st.lists(st.sampled_from(["..", ".", "/", "%2f", "%2e", "\\", "a", "?", "#", ";", "secret"]), max_size=6).map(
            "".join
        ),
    )
)
def test_whatever_a_value_is_the_server_sees_it_in_its_place_or_nothing_is_sent(users: Any, value: str) -> None:
    address, seen = users
    seen.clear()
    found = _operation("/users/{user}", "get", operation(path_parameter("user"), parameter("q", "query")))
    server = ApiServer("users", OpenApiSettings(document="d.json", server=address), {})
    refused = ""
    try:
        asyncio.run(server.call(found, {"user": value, "q": value}, seconds=10))
    except ToolError as error:
        refused = error.code
    assert (refused, seen) in (("openapi.bad-argument", []), ("", [f"user:{value}"]))
