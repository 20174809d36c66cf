"""Calls of real servers: keys go where they belong, and nothing that a server does is more than an error."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_apis import KEY, document, odd_api, operation, parameter, serving

from bicameral.errors import BicameralError, ConfigError, ToolError
from bicameral.foreign import ForeignResult
from bicameral.openapi import OpenApiSettings, parse_document, security_schemes
from bicameral.openapi._answers import BadAnswer, BodyReader
from bicameral.openapi._calls import ApiServer
from bicameral.openapi._operations import operation_entries, read_operation
from bicameral.secrets import isolate_secrets
from bicameral.tools import use_call_key

SCHEMES: dict[str, Any] = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "api_key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "session"},
    "basic": {"type": "http", "scheme": "Basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "mutual": {"type": "mutualTLS"},
}


@pytest.fixture(scope="module")
def odd() -> Iterator[str]:
    with serving(odd_api()) as address:
        yield address


def _call(
    address: str,
    path: str,
    arguments: dict[str, Any] | None = None,
    *,
    facts: dict[str, Any] | None = None,
    method: str = "get",
    settings: dict[str, Any] | None = None,
    seconds: float = 10,
    keyed: bool = False,
) -> ForeignResult:
    found = parse_document(
        json.dumps(document({path: {method: facts or operation()}}, components={"securitySchemes": SCHEMES})), "test"
    )
    given = OpenApiSettings.model_validate({"document": "d.json", "server": address, **(settings or {})})
    server = ApiServer("odd", given, security_schemes(found), {"KEY": KEY, "BAD": "a\nb" * 9})
    made = read_operation(found, operation_entries(found)[0])
    return asyncio.run(server.call(made, arguments or {}, seconds=seconds, keyed=keyed))


def _echo(address: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    found = _call(address, "/echo/x", arguments, **more).structured
    return {**found, "headers": dict(found["headers"])}


def test_a_call_is_sent_as_it_is_described(odd: str) -> None:
    facts = operation(
        parameter("q", "query"),
        parameter("X-Id", "header"),
        parameter("c", "cookie"),
        requestBody={"content": {"application/json": {"schema": {"type": "object", "properties": {"n": {}}}}}},
    )
    found = _echo(odd, {"q": "a&b", "X-Id": "7", "c": "d;e", "n": [1]}, facts=facts, method="post")
    assert (found["path"], found["query"], found["body"]) == ("/echo/x", "q=a%26b", '{"n": [1]}')
    assert found["headers"]["x-id"] == "7"
    assert found["headers"]["cookie"] == "c=d%3Be"
    assert found["headers"]["content-type"] == "application/json"


def test_the_address_of_the_settings_has_a_path_of_its_own(odd: str) -> None:
    assert _echo(f"{odd}/echo/v2/")["path"] == "/echo/v2/echo/x"


KEYS: list[tuple[str, dict[str, str]]] = [
    ("header", {"x-key": "[secret KEY]"}),
    ("bearer", {"authorization": "Bearer [secret KEY]"}),
    ("oauth", {"authorization": "Bearer [secret KEY]"}),
    ("cookie", {"cookie": "session=[secret KEY]"}),
]


@pytest.mark.parametrize(("scheme", "expected"), KEYS)
def test_a_key_goes_where_its_scheme_says_and_its_echo_is_masked(
    odd: str, scheme: str, expected: dict[str, str]
) -> None:
    with isolate_secrets():
        found = _echo(odd, facts=operation(security=[{scheme: []}]), settings={"keys": {scheme: "KEY"}})
    assert expected.items() <= found["headers"].items()
    assert KEY not in json.dumps(found)


def test_keys_in_the_query_and_of_basic_are_sent_and_masked(odd: str) -> None:
    with isolate_secrets():
        found = _echo(odd, facts=operation(security=[{"query": []}]), settings={"keys": {"query": "KEY"}})
        assert found["query"] == "api_key=[secret KEY]"
        found = _echo(odd, facts=operation(security=[{"basic": []}]), settings={"keys": {"basic": "KEY"}})
        assert found["headers"]["authorization"].startswith("Basic ")
        assert "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5" not in json.dumps(found)


def test_the_first_alternative_with_all_its_keys_is_used(odd: str) -> None:
    facts = operation(security=[{"mutual": []}, {"header": [], "query": []}, {"bearer": []}])
    assert "authorization" in _echo(odd, facts=facts, settings={"keys": {"header": "KEY", "bearer": "KEY"}})["headers"]
    both = _echo(odd, facts=facts, settings={"keys": {"header": "KEY", "query": "KEY", "bearer": "KEY"}})
    assert "x-key" in both["headers"]
    assert both["query"].startswith("api_key=")
    assert "authorization" not in both["headers"]


def test_a_key_that_an_operation_can_do_without_is_sent_if_there_is_one(odd: str) -> None:
    alternatives: list[dict[str, Any]] = [{}, {"bearer": []}]
    for security in (alternatives, alternatives[::-1]):
        facts = operation(security=security)
        assert "authorization" in _echo(odd, facts=facts, settings={"keys": {"bearer": "KEY"}})["headers"]
        assert "authorization" not in _echo(odd, facts=facts)["headers"]


def test_a_list_in_cookies_and_a_key_are_all_sent(odd: str) -> None:
    facts = operation(
        parameter("c", "cookie", {"type": "array", "items": {"type": "integer"}}),
        parameter("Session", "cookie"),
        security=[{"bearer": []}],
    )
    keys = {"keys": {"bearer": "KEY"}}
    assert _echo(odd, {"c": [1, 2]}, facts=facts, settings=keys)["headers"]["cookie"] == "c=1; c=2"
    # The user's own cookie replaces one of an argument, however that writes its name.
    keyed: dict[str, Any] = facts | {"security": [{"cookie": []}]}
    with isolate_secrets():
        found = _echo(odd, {"c": [1, 2]}, facts=keyed, settings={"keys": {"cookie": "KEY"}})
    assert found["headers"]["cookie"] == "c=1; c=2; session=[secret KEY]"


def test_the_name_of_the_client_can_be_an_argument(odd: str) -> None:
    facts = operation(parameter("user-agent", "header"))
    for arguments, expected in (({"user-agent": "weather app"}, "weather app"), ({}, "bicameral")):
        sent = [
            value
            for name, value in _call(odd, "/echo/x", arguments, facts=facts).structured["headers"]
            if name == "user-agent"
        ]
        assert sent == [expected]


def test_an_operation_without_security_gets_no_key(odd: str) -> None:
    found = _echo(odd, settings={"keys": {"header": "KEY"}})
    assert "x-key" not in found["headers"]


def test_headers_and_a_token_of_the_settings_are_always_sent(odd: str) -> None:
    found = _echo(odd, settings={"bearer": "KEY", "headers": {"X-Tenant": "KEY"}})
    assert {"authorization", "x-tenant"} <= found["headers"].keys()


def test_an_argument_cannot_replace_a_key(odd: str) -> None:
    facts = operation(parameter("X-Tenant", "header"), parameter("session", "cookie"), security=[])
    settings = {"headers": {"X-Tenant": "KEY"}}
    with isolate_secrets():
        found = _echo(odd, {"X-Tenant": "mine", "session": "mine"}, facts=facts, settings=settings)
    assert found["headers"]["x-tenant"] == "[secret KEY]"
    # The key of an operation is no argument at all.
    secured = operation(parameter("X-Key", "header"), parameter("session", "cookie"), security=[{"header": []}])
    made = parse_document(
        json.dumps(document({"/x": {"get": secured}}, components={"securitySchemes": SCHEMES})), "test"
    )
    tool = read_operation(made, operation_entries(made)[0]).tool
    assert list(tool.input_schema["properties"]) == ["session"]


def test_a_missing_key_is_named_before_anything_is_sent(odd: str) -> None:
    facts = operation(security=[{"header": []}])
    with pytest.raises(ConfigError, match="needs a key: header") as caught:
        _echo(odd, facts=facts)
    assert caught.value.code == "openapi.no-key"
    with pytest.raises(ConfigError) as caught:
        _echo(odd, facts=facts, settings={"keys": {"header": "ABSENT"}})
    assert caught.value.code == "foreign.no-secret"
    with pytest.raises(ConfigError) as caught:
        _echo(odd, facts=facts, settings={"keys": {"haeder": "KEY"}})
    assert (caught.value.code, caught.value.nearest) == ("openapi.unknown-key", "header")


def test_a_key_with_a_line_end_is_not_sent(odd: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _echo(odd, settings={"bearer": "BAD"})
    assert caught.value.code == "openapi.bad-key"
    assert "a\nb" not in str(caught.value)


def _error(*arguments: Any, **more: Any) -> BicameralError:
    with pytest.raises(ToolError) as caught:
        _call(*arguments, **more)
    return caught.value


def test_an_answer_without_end_is_cut_off(odd: str) -> None:
    error = _error(odd, "/endless", settings={"max_result": 100_000})
    assert error.code == "openapi.too-large"


def test_a_small_answer_that_unpacks_to_a_large_one_is_cut_off(odd: str) -> None:
    assert _error(odd, "/bomb", settings={"max_result": 100_000}).code == "openapi.too-large"
    assert len(_call(odd, "/bomb", settings={"max_result": 9_000_000}).structured) == 8_000_000


def test_an_answer_that_drips_ends_at_the_time_limit(odd: str) -> None:
    assert _error(odd, "/slow", seconds=0.3).code == "openapi.timeout"


PACKED = gzip.compress(b'"x"')


@pytest.mark.parametrize("pieces", [[PACKED + b"x"], [PACKED, b"x"], [PACKED, PACKED], [PACKED[:9], PACKED[9:] + b"x"]])
def test_a_compressed_body_ends_at_its_end(pieces: list[bytes]) -> None:
    """Attack: what comes after the end of the compressed body has no limit and fills the memory."""

    def feed(given: list[bytes]) -> bytes:
        reader = BodyReader("gzip", 100)
        for piece in given:
            reader.feed(piece)
        return reader.finish()

    with pytest.raises(BadAnswer, match="goes on"):
        feed(pieces)
    assert feed([PACKED]) == feed([PACKED[:9], PACKED[9:], b""]) == b'"x"'


def test_an_answer_that_goes_on_after_its_end_is_cut_off_at_once(odd: str) -> None:
    error = _error(odd, "/trailing", seconds=10)
    assert error.code == "openapi.bad-answer"
    assert "goes on after its end" in error.message


QUERY = operation(*(parameter(name, "query") for name in ("to", "kind", "text", "status", "more")))


def test_a_redirect_to_another_server_is_not_followed(odd: str) -> None:
    with serving(odd_api()) as other:
        for target in (f"{other}/echo/stolen", "https://evil.example/x", "//evil.example/x"):
            error = _error(
                odd,
                "/redirect",
                {"to": target},
                facts=QUERY | {"security": [{"header": []}]},
                settings={"keys": {"header": "KEY"}},
            )
            assert error.code == "openapi.redirected"


@pytest.mark.parametrize("location", ["http://xn--a/", "http://xn--/", "//[::1/", "http://a:99999999/", "javascript:x"])
def test_a_redirect_to_what_is_no_address_is_a_bad_answer(odd: str, location: str) -> None:
    facts = operation(parameter("location", "query"))
    error = _error(odd, "/nowhere", {"location": location}, facts=facts)
    assert error.code in ("openapi.bad-answer", "openapi.redirected", "openapi.unreachable")


def test_a_server_whose_name_cannot_be_read_is_called_by_it(odd: str) -> None:
    assert _error("http://xn--a.invalid:9", "/x").code in ("openapi.bad-answer", "openapi.unreachable")


def test_a_redirect_on_the_same_server_is_followed_for_a_call_that_reads(odd: str) -> None:
    assert _call(odd, "/redirect", {"to": "/echo/there"}, facts=QUERY).structured["path"] == "/echo/there"
    posted = _error(odd, "/redirect", {"to": "/echo/there"}, facts=QUERY, method="post")
    assert posted.code == "openapi.redirected"
    assert "not one that reads" in posted.message
    loop = "/redirect?to=/redirect%3Fto%3D/redirect%253Fto%253D/redirect%25253Fto%25253D/redirect%2525253Fto%2525253D/x"
    assert _error(odd, "/redirect", {"to": loop}, facts=QUERY).code == "openapi.redirected"


def test_no_cookie_of_an_answer_is_sent_with_the_next_call(odd: str) -> None:
    assert _call(odd, "/cookie").structured == {"cookie": ""}
    assert _call(odd, "/cookie").structured == {"cookie": ""}


def _answer(odd: str, kind: str, text: str, **more: str) -> ForeignResult:
    return _call(odd, "/body", {"kind": kind, "text": text, **more}, facts=QUERY)


def test_json_is_a_value_and_text_is_text(odd: str) -> None:
    assert _answer(odd, "application/json", '{"a": [1, null]}').structured == {"a": [1, None]}
    assert _answer(odd, "application/problem+json", "[]").structured == []
    plain = _answer(odd, "text/plain; charset=utf-8", "héllo")
    assert (plain.text, plain.has_structured) == ("héllo", False)
    assert _answer(odd, "application/json", "").structured is None


def test_an_answer_that_is_not_what_it_says_is_an_error(odd: str) -> None:
    for kind, text in (("application/json", "{"), ("application/json", "NaN"), ("image/png", "x")):
        with pytest.raises(ToolError) as caught:
            _answer(odd, kind, text)
        assert caught.value.code == "openapi.bad-answer"
    nested = "[" * 700 + "]" * 700
    with pytest.raises(ToolError, match="no JSON"):
        _answer(odd, "application/json", nested)
    for encoding in ("br", "gzip", "zstd"):
        with pytest.raises(ToolError, match="compressed"):
            _answer(odd, "application/json", "{}", more=json.dumps({"Content-Encoding": encoding}))


def test_an_operation_that_describes_no_answer_gives_none(odd: str) -> None:
    facts = operation(responses={"201": {"description": "it is there"}})
    assert _call(odd, "/echo/x", facts=facts, method="post").structured is None
    assert _call(odd, "/echo/x", method="post").structured["path"] == "/echo/x"


def test_an_error_of_the_server_is_a_result_with_its_status(odd: str) -> None:
    found = _answer(odd, "application/json", '{"why": "no"}', status="404")
    assert found.is_error
    assert found.text == 'HTTP 404 {"why": "no"}'


def test_a_server_that_is_not_there_is_named(odd: str) -> None:
    error = _error("http://127.0.0.1:9", "/x")
    assert error.code == "openapi.unreachable"


def test_a_rate_is_kept(odd: str) -> None:
    found = parse_document(json.dumps(document({"/echo/x": {"get": operation()}})), "test")
    server = ApiServer("odd", OpenApiSettings(document="d", server=odd, rate="2/h"), {})
    made = read_operation(found, operation_entries(found)[0])

    async def thrice() -> None:
        for _ in range(3):
            await server.call(made, {}, seconds=10)

    with pytest.raises(ToolError, match="2 times"):
        asyncio.run(thrice())


def test_a_keyed_call_sends_its_key(odd: str) -> None:
    with use_call_key("run-1/step-2"):
        assert _echo(odd, keyed=True)["headers"]["idempotency-key"] == "run-1/step-2"
        assert "idempotency-key" not in _echo(odd)["headers"]


def test_a_head_call_has_no_value(odd: str) -> None:
    found = _call(odd, "/echo/x", method="head")
    assert (found.structured, found.is_error) == (None, False)


@pytest.mark.parametrize(
    "server",
    [
        "ftp://a.example",
        "https://user:word@a.example",
        "https://a.example/?x=1",
        "https://a.example/#x",
        "https://a.example/../x",
        "https://a.example/%2e%2e/x",
        "a.example",
        "https:///x",
    ],
)
def test_an_address_that_hides_something_is_no_server(server: str) -> None:
    with pytest.raises(ValueError, match="server"):
        OpenApiSettings(document="d", server=server)


def test_headers_that_frame_a_message_cannot_be_set() -> None:
    for name in ("Host", "content-length", "Transfer-Encoding", "Cookie", "a b", "x\r\ny"):
        with pytest.raises(ValueError, match="header"):
            OpenApiSettings(document="d", server="https://a.example", headers={name: "KEY"})
    with pytest.raises(ValueError, match="same header"):
        OpenApiSettings(document="d", server="https://a.example", bearer="KEY", headers={"authorization": "KEY"})
    with pytest.raises(ValueError, match="names no secret"):
        OpenApiSettings(document="d", server="https://a.example", keys={"k": "Bearer abc.def"})
