"""OpenAPI documents: what can be read, and what is said of one that cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from openapi_apis import document, operation, serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from bicameral.errors import ToolError
from bicameral.openapi import fetch_document, parse_document
from bicameral.openapi._document import BadReference

MINIMAL = document({"/x": {"get": operation()}})

YAML = """\
openapi: 3.0.3
info: {title: Notes, version: 1.0.0}
paths:
  /notes:
    get:
      operationId: listNotes
      responses:
        200:
          description: ok
          content: {application/json: {schema: {type: array, items: {type: string}}}}
"""


def test_a_document_is_read_from_json_and_yaml(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("\ufeff" + json.dumps(MINIMAL), "utf-8")
    (tmp_path / "a.yaml").write_text(YAML, "utf-8")
    assert fetch_document("a.json", tmp_path).content == MINIMAL
    found = fetch_document("a.yaml", tmp_path)
    assert (found.title, found.is_3_0) == ("Notes", True)
    assert "200" in found.content["paths"]["/notes"]["get"]["responses"]


def test_the_hash_of_a_document_is_of_what_it_says() -> None:
    first = parse_document(json.dumps(MINIMAL), "a")
    assert parse_document(first.to_text(), "b").digest == first.digest
    assert parse_document(json.dumps(dict(reversed(MINIMAL.items()))), "c").digest == first.digest
    changed = {**MINIMAL, "info": {"title": "Other", "version": "1"}}
    assert parse_document(json.dumps(changed), "d").digest != first.digest


BAD: dict[str, tuple[str, str]] = {
    "a page": ("<!DOCTYPE html><html>", "web page"),
    "broken JSON": ('{"openapi": ', "no JSON"),
    "broken YAML": ("openapi: [", "not YAML"),
    "an anchor": ("a: &a [1]\nb: *a", "anchors"),
    "a list": ("[]", "does not say"),
    "Swagger 2": ('{"swagger": "2.0", "paths": {}}', "Swagger 2"),
    "no version": ('{"paths": {}}', "does not say"),
    "OpenAPI 4": ('{"openapi": "4.0.0", "paths": {}}', "does not say"),
    "another number as the version": ('{"openapi": 4.1, "paths": {}}', "does not say"),
    "a whole number as the version": ('{"openapi": 3, "paths": {}}', "does not say"),
    "half a character": ('{"openapi": "3.1.0", "paths": {}, "info": {"title": "\\ud800"}}', "surrogate pair"),
    "half a character as a name": ('{"openapi": "3.1.0", "paths": {"/\\uDFFF": {}}}', "surrogate pair"),
    "no paths": ('{"openapi": "3.1.0"}', "no paths"),
    "paths in a list": ('{"openapi": "3.1.0", "paths": []}', "no paths"),
    "nothing": ("", "does not say"),
    "deep": (json.dumps(MINIMAL)[:-1] + ', "x": ' + "[" * 95 + "]" * 95 + "}", "levels deep"),
    "very deep": ('{"openapi": "3.1.0", "paths": ' + "[" * 9_000 + "]" * 9_000 + "}", "no JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_document_that_cannot_be_used_says_why(name: str) -> None:
    text, expected = BAD[name]
    with pytest.raises(ToolError, match=expected) as caught:
        parse_document(text, "the document")
    assert caught.value.code == "openapi.bad-document"
    assert caught.value.place is not None
    assert caught.value.place.file == "the document"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"absent\.json"):
        fetch_document("absent.json", tmp_path)
    (tmp_path / "b.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ToolError, match="UTF-8"):
        fetch_document("b.json", tmp_path)


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    large = tmp_path / "large.json"
    with large.open("wb") as stream:
        stream.truncate(40 * 1024 * 1024)
    with pytest.raises(ToolError, match="larger than 16 MiB"):
        fetch_document(str(large), tmp_path)


def test_a_character_of_two_surrogates_is_one() -> None:
    found = parse_document('{"openapi": "3.1.0", "paths": {}, "info": {"title": "\\ud83d\\ude00"}}', "the document")
    assert found.title.encode() == b"\xf0\x9f\x98\x80"
    assert parse_document(found.to_text(), "its copy").digest == found.digest


def test_a_version_without_quotation_marks_is_one() -> None:
    for version, is_3_0 in (("3.1", False), ("3.0", True)):
        found = parse_document(f"openapi: {version}\npaths: {{}}\n", "a.yaml")
        assert found.is_3_0 is is_3_0
        assert found.digest == parse_document(f"openapi: '{version}'\npaths: {{}}\n", "a.yaml").digest
        assert parse_document(found.to_text(), "its copy").digest == found.digest


@pytest.mark.parametrize(
    "reference", ["#", "#name", "#%23", "#x/y", f"#/x/{'9' * 5_000}", "#/x/1", "#/x/٠", f"#/{'a' * 3_000}", "other#/x"]
)
def test_a_reference_that_is_no_path_in_the_document_leads_nowhere(reference: str) -> None:
    found = parse_document(json.dumps({**MINIMAL, "x": ["first"]}), "the document")
    assert found.find("#/x/0") == "first"
    with pytest.raises(BadReference, match="a reference"):
        found.find(reference)


def _documents() -> Starlette:
    async def answer(request: Request) -> Response:
        match request.path_params["what"]:
            case "openapi.json":
                return JSONResponse(MINIMAL)
            case "moved":
                return RedirectResponse("/openapi.json")
            case "away":
                return RedirectResponse("http://evil.example/openapi.json")
            case "loop":
                return RedirectResponse("/loop")
            case "nowhere":
                return Response(status_code=302, headers={"Location": "http://xn--a/"})
            case "packed":
                return JSONResponse(MINIMAL, headers={"Content-Encoding": "br"})
            case "large":
                return PlainTextResponse("x" * (17 * 1024 * 1024))
            case _:
                return PlainTextResponse("no", 404)

    return Starlette(routes=[Route("/{what:path}", answer)])


def test_a_document_is_fetched_with_bounds() -> None:
    with serving(_documents()) as address:
        assert fetch_document(f"{address}/openapi.json", Path()).content == MINIMAL
        assert fetch_document(f"{address}/moved", Path()).content == MINIMAL
        for what, expected in (
            ("away", "another address"),
            ("loop", "without end"),
            ("nowhere", "cannot be fetched"),
            ("packed", "compressed in a way"),
            ("large", "larger than"),
            ("absent", "answered with 404"),
        ):
            with pytest.raises(ToolError, match=expected):
                fetch_document(f"{address}/{what}", Path())
    for odd in ("http://[::1", "http://xn--a/", "http://a b/"):
        with pytest.raises(ToolError, match="cannot be fetched"):
            fetch_document(odd, Path())
    with pytest.raises(ToolError, match="cannot be fetched"):
        fetch_document(f"{address}/openapi.json", Path())


def test_addresses_that_a_document_proposes_are_made_absolute() -> None:
    servers: list[Any] = [
        {"url": "/v2/"},
        {"url": "https://{region}.api.example/", "variables": {"region": {"default": "eu"}}},
        {"url": "ftp://x"},
        {},
    ]
    found = parse_document(json.dumps({**MINIMAL, "servers": servers}), "https://host.example/docs/openapi.json")
    assert list(found.servers()) == ["https://host.example/v2", "https://eu.api.example"]
    assert list(parse_document(json.dumps(MINIMAL), "file.json").servers()) == []
