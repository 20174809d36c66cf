"""Operations of a document as foreign tools: names, arguments, results, and what is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from openapi_apis import document, operation, parameter, path_parameter

from bicameral.foreign import ForeignTool, schema_problem, type_from_schema
from bicameral.openapi import OpenApiDocument, parse_document, review_document
from bicameral.openapi._operations import Operation, UnusableOperation, operation_entries, read_operation
from bicameral.types import RecordType, type_to_json
from property_examples import THOUSAND, examples


def _parsed(paths: dict[str, Any], **more: Any) -> OpenApiDocument:
    return parse_document(json.dumps(document(paths, **more)), "test")


def _read(facts: dict[str, Any], path: str = "/x", method: str = "get", **more: Any) -> Operation:
    found = _parsed({path: {method: facts}}, **more)
    return read_operation(found, operation_entries(found)[0])


def _names(paths: dict[str, Any]) -> list[str]:
    return [entry.name for entry in operation_entries(_parsed(paths))]


def test_names_are_ids_or_made_of_method_and_path() -> None:
    assert _names(
        {
            "/users": {"get": {"operationId": "listUsers"}, "post": {}},
            "/users/{id}/keys": {"get": {}},
            "/repos": {"get": {"operationId": "repos/list-for user"}},
            "/": {"get": {}},
        }
    ) == ["listUsers", "post_users", "get_users_id_keys", "repos_list-for_user", "get"]


def test_an_id_that_two_operations_have_is_neithers() -> None:
    names = _names({"/a": {"get": {"operationId": "same"}}, "/b": {"get": {"operationId": "Same"}}})
    assert names == ["get_a", "get_b"]


def test_names_that_would_be_one_name_in_plans_are_kept_apart() -> None:
    names = _names({"/a/b": {"get": {}}, "/a-b": {"get": {}}, "/a_b": {"get": {"operationId": "get_a_b"}}})
    assert len({name.replace("-", "_") for name in names}) == 3
    long = _names({f"/{'x' * 90}/{n}": {"get": {}} for n in range(3)})
    assert len({name[:60] for name in long}) == 3


def test_the_name_of_a_function_is_found_in_a_generated_id() -> None:
    facts = {"operationId": "read_item_items__item_id__get"}
    assert _names({"/items/{item_id}": {"get": facts}}) == ["read_item"]


def test_a_tool_has_typed_arguments_and_a_typed_result() -> None:
    facts = operation(
        path_parameter("id", {"type": "integer"}),
        parameter("since", "query", {"type": "string", "format": "date"}),
        responses={
            "200": {
                "description": "",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/User"}}},
            },
            "404": {"description": "", "content": {"application/json": {"schema": {"type": "string"}}}},
        },
    )
    user = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "boss": {"$ref": "#/components/schemas/User"}},
    }
    found = _read(facts, "/users/{id}", components={"schemas": {"User": user}}).tool
    assert type_to_json(type_from_schema(found.input_schema)) == {
        "record": {"id": "int", "since": {"optional": "date"}}
    }
    assert found.output_schema is not None
    assert found.output_schema["$defs"].keys() == {"User"}
    assert schema_problem(found.output_schema) is None
    assert isinstance(type_from_schema(found.output_schema), RecordType)
    assert (found.title, found.annotations) == ("GET /users/{id}", {"readOnlyHint": True})


def _result(responses: dict[str, Any]) -> dict[str, Any] | None:
    schema = _read(operation(responses=responses)).tool.output_schema
    return None if schema is None else dict(schema)


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": "", "content": {"application/json": {"schema": schema}}}


def test_the_result_is_that_of_the_good_answers() -> None:
    text, number = {"type": "string"}, {"type": "integer"}
    assert _result({"200": _json(text), "500": _json(number), "default": _json(number)}) == text
    assert _result({"200": _json(text), "201": _json(text)}) == text
    assert _result({"200": _json(text), "2XX": _json(number)}) == {"anyOf": [text, number]}
    assert _result({"200": _json(text), "204": {"description": ""}}) == {"anyOf": [text, {"type": "null"}]}
    assert _result({"204": {"description": ""}}) == {"type": "null"}
    assert _result({"200": {"description": "", "content": {"text/csv": {}}}}) is None
    assert _result({"200": {"description": "", "content": {"application/vnd.api+json": {}}}}) == {}
    assert _result({"default": _json(text)}) is None


def _argument(schema: dict[str, Any], *, version: str = "3.0.3", **schemas: Any) -> Any:
    facts = operation(parameter("a", "query", schema))
    found = _read(facts, version=version, components={"schemas": schemas}).tool.input_schema
    assert schema_problem(found) is None
    return found["properties"]["a"]


def test_schemas_of_3_0_become_json_schemas() -> None:
    assert _argument({"type": "string", "nullable": True}) == {"type": ["string", "null"]}
    assert _argument({"type": "string", "enum": ["a"], "nullable": True})["enum"] == ["a", None]
    assert _argument({"type": "integer", "minimum": 1, "exclusiveMinimum": True}) == {
        "type": "integer",
        "exclusiveMinimum": 1,
    }
    assert _argument({"type": "integer", "maximum": 9, "exclusiveMaximum": False}) == {"type": "integer", "maximum": 9}
    assert _argument({"allOf": [{"$ref": "#/components/schemas/S"}], "nullable": True}, S={"type": "string"}) == {
        "anyOf": [{"allOf": [{"$ref": "#/$defs/S"}]}, {"type": "null"}]
    }
    # Beside a reference nothing counts there.
    assert _argument({"$ref": "#/components/schemas/S", "maxLength": 1}, S={}) == {"$ref": "#/$defs/S"}
    assert _argument({"$ref": "#/components/schemas/S", "maxLength": 1}, version="3.1.0", S={})["maxLength"] == 1


def test_what_says_nothing_of_values_is_left_out() -> None:
    assert _argument({"type": "string", "example": "x", "title": "T", "default": "d", "xml": {}, "x-y": 1}) == {
        "type": "string"
    }
    # A pattern that cannot be matched in linear time bounds nothing here.
    assert _argument({"type": "string", "pattern": "(?=a)b"}) == {"type": "string"}
    assert _argument({"type": "string", "pattern": "^a+$"})["pattern"] == "^a+$"
    named: dict[str, Any] = {"type": "object", "patternProperties": {"(?=a)": {}}, "additionalProperties": False}
    assert _argument(named, version="3.1.0")["additionalProperties"] is True


def test_fields_that_only_one_side_writes_are_not_asked_of_the_other() -> None:
    user = {
        "type": "object",
        "required": ["id", "name", "password"],
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "name": {"type": "string"},
            "password": {"type": "string", "writeOnly": True},
        },
    }
    body = {"required": True, "content": {"application/json": {"schema": user}}}
    found = _read(operation(requestBody=body, responses={"200": _json(user)}), method="post").tool
    assert found.input_schema["required"] == ["name", "password"]
    assert "id" not in found.input_schema["properties"]
    assert found.output_schema is not None
    assert found.output_schema["required"] == ["id", "name"]


def test_methods_say_what_they_claim() -> None:
    claims = {
        method: _read(operation(), method=method).tool.annotations
        for method in ("get", "head", "post", "put", "delete")
    }
    assert claims["get"] == claims["head"] == {"readOnlyHint": True}
    assert claims["post"] == {"readOnlyHint": False}
    assert claims["put"] == {"readOnlyHint": False, "idempotentHint": True}
    assert claims["delete"]["destructiveHint"] is True


def test_a_call_that_reads_is_proposed_to_read_and_all_else_asks() -> None:
    found = _parsed(
        {"/x": {method: operation(operationId=f"{method}_x") for method in ("get", "post", "put", "patch")}}
    )
    review = review_document("api", found)
    effects = {each.tool.name: each.declaration.effect for each in review.proposals}
    assert effects.pop("get_x") == "read"
    assert set(effects.values()) == {"irreversible"}
    # What a name says counts more than the method.
    gone = review_document("api", _parsed({"/x": {"get": operation(operationId="delete_x")}}))
    assert gone.proposals[0].declaration.effect == "irreversible"


UNUSABLE: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "a reference out": (
        operation(parameter("a", "query", {"$ref": "other.yaml#/A"})),
        "/x",
        "get",
        "out of the document",
    ),
    "a remote reference": (operation({"$ref": "https://evil.example/p"}), "/x", "get", "out of the document"),
    "a reference to nothing": (operation(parameter("a", "query", {"$ref": "#/no"})), "/x", "get", "leads to nothing"),
    "a reference in a circle": (operation({"$ref": "#/paths/~1x/get/parameters/0"}), "/x", "get", "without end"),
    "a parameter that its path lacks": (operation(path_parameter("id")), "/x", "get", "parameters of its path"),
    "a path with an unknown parameter": (operation(), "/x/{id}", "get", "parameters of its path"),
    "a parameter twice in its path": (operation(path_parameter("a")), "/{a}/{a}", "get", "parameters of its path"),
    "a step up in its path": (operation(), "/a/../b", "get", "no template"),
    "another host in its path": (operation(), "//evil.example/x", "get", "no template"),
    "a query in its path": (operation(), "/x?admin=1", "get", "no template"),
    "a fragment in its path": (operation(), "/x#y", "get", "no template"),
    "a space in its path": (operation(), "/x y", "get", "no template"),
    "a line end in its path": (operation(), "/x\r\nHost: evil", "get", "no template"),
    "a method for others": (operation(), "/x", "trace", "look at servers"),
    "another server": (operation(servers=[{"url": "https://evil.example"}]), "/x", "get", "another address"),
    "an unknown style": (operation(parameter("a", "query", style="odd")), "/x", "get", "a style"),
    "an unknown place": (operation(parameter("a", "body")), "/x", "get", "no place"),
    "a header that frames": (operation(parameter("Host", "header", required=True)), "/x", "get", "set by the client"),
    "a header with a line end": (operation(parameter("A\r\nB", "header", required=True)), "/x", "get", "no header"),
    "a cookie with a semicolon": (operation(parameter("a;b", "cookie", required=True)), "/x", "get", "no cookie"),
    "files": (
        operation(requestBody={"required": True, "content": {"multipart/form-data": {"schema": {}}}}),
        "/x",
        "post",
        "media type",
    ),
    "a schema that is none": (operation(parameter("a", "query", {"type": "date"})), "/x", "get", "cannot be used"),
    "parameters that are none": ({**operation(), "parameters": ["x"]}, "/x", "get", "no name"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_operation_that_cannot_be_called_says_why(name: str) -> None:
    facts, path, method, expected = UNUSABLE[name]
    with pytest.raises(UnusableOperation, match=expected) as caught:
        _read(facts, path, method)
    assert "evil" not in str(caught.value)


def test_what_is_odd_about_one_operation_costs_no_other() -> None:
    paths = {"/good": {"get": operation()}, "/bad": {"get": operation(path_parameter("a"))}, "/none": {"$ref": "#/no"}}
    review = review_document("api", _parsed(paths))
    assert [each.tool.title for each in review.operations] == ["GET /good"]
    assert list(review.refused) == ["get_bad"]


def test_a_parameter_that_is_not_needed_is_left_out_and_noted() -> None:
    found = _read(operation(parameter("Host", "header"), parameter("q", "query")))
    assert list(found.tool.input_schema["properties"]) == ["q"]
    assert found.notes == ("the header 'Host' is set by the client",)


def test_parameters_of_a_path_are_those_of_its_operations_unless_these_say_otherwise() -> None:
    item = {
        "parameters": [path_parameter("id"), parameter("q", "query", {"type": "integer"})],
        "get": operation(parameter("q", "query")),
    }
    found = _parsed({"/x/{id}": item})
    tool = read_operation(found, operation_entries(found)[0]).tool
    assert tool.input_schema["properties"] == {"id": {"type": "string"}, "q": {"type": "string"}}


def test_a_schema_that_stands_for_very_many_is_refused_soon() -> None:
    fields: dict[str, Any] = {
        f"f{n}": {"type": "object", "properties": {f"g{m}": {} for m in range(90)}} for n in range(90)
    }
    with pytest.raises(UnusableOperation, match="too large"):
        _read(operation(parameter("a", "query", {"type": "object", "properties": fields})))
    schemas = {f"S{n}": {"allOf": [{"$ref": f"#/components/schemas/S{n + 1}"}] * 2} for n in range(40)}
    found = _read(
        operation(parameter("a", "query", {"$ref": "#/components/schemas/S0"})),
        components={"schemas": schemas | {"S40": {"$ref": "#/components/schemas/S0"}}},
    )
    assert len(found.tool.input_schema["$defs"]) == 41


def test_a_result_whose_schema_cannot_be_used_is_any_json() -> None:
    found = _read(operation(responses={"200": _json({"type": "frog"})}))
    assert found.tool.output_schema == {}
    assert "counts as any JSON" in found.notes[0]


_JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["", "x", "#/paths", "get", "path", "{a}"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                "get post parameters requestBody responses content schema $ref name in required type properties items "
                "200 application/json style explode security operationId".split()
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=examples(THOUSAND, quick=100))
@given(_JUNK, _JUNK, _JUNK)
def test_whatever_a_document_holds_it_is_read_or_refused(item: Any, facts: Any, parts: Any) -> None:
    paths = {"/x/{a}": item, "/y": {"get": facts, "parameters": parts}}
    found = _parsed(paths, components={"securitySchemes": parts, "schemas": item}, security=parts)
    review = review_document("api", found)
    for each in review.operations:
        assert schema_problem(each.tool.input_schema) is None
        assert ForeignTool.from_json(each.tool.to_json()) == each.tool
