"""Settings of servers: where secrets may go, and what a command may reach."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from bicameral.mcp import McpSettings


def settings(**given: Any) -> McpSettings:
    return McpSettings.model_validate(given)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://ada:sesame@api.example.org/mcp", "no name and no password"),
        ("https://sesame@api.example.org/mcp", "no name and no password"),
        ("https://api.example.org\\@evil.example/mcp", "backslashes"),
        ("https://api.example.org/\nmcp", "control characters"),
        ("https://api.example.org/a b", "blanks"),
        ("https://api.example.org/\u202eabc", "control characters"),
        ("https://[::1/mcp", "the url is none"),
        ("https://api.example.org:99999/mcp", "the url is none"),
        ("ftp://api.example.org/mcp", "must begin with http"),
        ("https:///mcp", "and a host"),
    ],
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(url: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        settings(url=url)


@pytest.mark.parametrize("secret", [{"bearer": "TOKEN"}, {"headers": {"X-Key": "KEY"}}])
def test_secrets_are_not_sent_where_others_can_read_them(secret: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="over https alone"):
        settings(url="http://api.example.org/mcp", **secret)
    for url in ("https://api.example.org/mcp", "http://127.0.0.1:8080/mcp", "http://localhost/mcp", "http://[::1]/mcp"):
        assert settings(url=url, **secret).url == url
    # Not this machine, although it begins so.
    with pytest.raises(ValidationError, match="over https alone"):
        settings(url="http://localhost.example.org/mcp", **secret)
    assert settings(url="http://api.example.org/mcp").bearer is None


@pytest.mark.parametrize("place", ["none", "api.example.org", ":443", "x:0", "x:99999", "x:http", "a b:443", "-x:443"])
def test_a_place_without_a_host_or_a_port_is_refused(place: str) -> None:
    with pytest.raises(ValidationError, match="no host with a port"):
        settings(command=["x"], network=[place])


@pytest.mark.parametrize("place", ["api.example.org:443", "127.0.0.1:80", "*:443", "*:*", "[::1]:8080"])
def test_places_with_a_host_and_a_port_can_be_reached(place: str) -> None:
    assert settings(command=["x"], network=[place]).network == (place,)


def test_an_address_has_nothing_of_a_command_and_a_command_nothing_of_an_address() -> None:
    for given in ({}, {"command": ["x"], "url": "https://a.example"}):
        with pytest.raises(ValidationError, match="either a `command` or a `url`"):
            settings(**given)
    with pytest.raises(ValidationError, match="are for a command"):
        settings(url="https://a.example", read=["/srv"])
    with pytest.raises(ValidationError, match="are for a url"):
        settings(command=["x"], bearer="TOKEN")


def test_names_of_variables_and_headers_are_such() -> None:
    with pytest.raises(ValidationError, match="cannot be an environment variable"):
        settings(command=["x"], env={"A=B": "c"})
    with pytest.raises(ValidationError, match="cannot be the name of a header"):
        settings(url="https://a.example", headers={"X: Y\r\nZ": "KEY"})
