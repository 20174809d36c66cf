"""What commands can declare: manifests are the user's word, `--describe` is the command's, and confinement is ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bicameral.errors import ToolError
from bicameral.tools import (
    CommandSettings,
    Folders,
    Origin,
    Participants,
    Tool,
    command_tools,
    describe_tool,
    parse_manifest as parse,
)

CHECKSUM = Path(__file__).parents[2] / "examples" / "tools" / "checksum"
NOWHERE = Folders.of(Path("/"), read=())
MAILS = {"list": {"record": {"id": "str", "sender": "str", "status": "str", "body": "str"}}}


def manifest(**facts: Any) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": "mails", "argv": ["true", "{box}"], "arguments": {"box": {}}, "effect": "read"}
    return {"manifest": 1, "tools": [tool | {"result": "json", "result_type": MAILS} | facts]}


def made(**facts: Any) -> Tool:
    (tool,) = command_tools(parse(manifest(**facts)), NOWHERE)
    return tool


def test_a_manifest_declares_the_parts_of_a_result() -> None:
    mails = made(
        origins={
            "": {"trust": "third_party"},
            "[].id": {"trust": "system", "readers": "public"},
            "[].status": {"trust": "system"},
            "[].body": {
                "trust": "third_party",
                "readers": ["sender"],
                "own_when": {"field": "status", "is": "sent"},
            },
        }
    )
    assert (mails.declared, mails.outbound, mails.arguments[0].purpose) == (True, False, "selects")
    assert dict(mails.origins) == {
        "": Origin("third_party"),
        "[].id": Origin("system", "public"),
        "[].status": Origin("system"),
        "[].body": Origin("third_party", Participants(("sender",)), ("status", "sent")),
    }


def test_a_manifest_that_declares_nothing_is_taken_for_the_worst() -> None:
    mails = made()
    assert (mails.declared, mails.arguments[0].purpose) == (False, "selects")
    # It has no network and its sandbox holds it, so whatever it does it tells nobody.
    assert not mails.outbound
    assert not mails.result_labels([], "0").flat.trusted
    writing = made(effect="irreversible")
    assert (writing.declared, writing.outbound, writing.arguments[0].purpose) == (False, False, "directs")


@pytest.mark.parametrize(
    ("network", "hosts"),
    [(True, ()), (["example.com:443"], ("example.com:443",)), (["example.com:443", "*:80"], ())],
)
def test_a_command_with_the_network_tells_others_something(network: Any, hosts: tuple[str, ...]) -> None:
    mails = made(network=network)
    assert (mails.outbound, mails.hosts, mails.arguments[0].purpose) == (True, hosts, "directs")


def test_a_command_that_sends_through_a_file_can_say_so() -> None:
    mails = made(outbound=True, receivers=[], arguments={"box": {"purpose": "carries"}})
    assert (mails.outbound, mails.receivers, mails.arguments[0].purpose) == (True, (), "carries")


def test_a_manifest_says_what_goes_along_by_its_name() -> None:
    sends: dict[str, Any] = {"effect": "send", "network": True, "arguments": {"box": {"purpose": "directs"}, "to": {}}}
    sends["argv"] = ["true", "{box}", "{to}"]
    assert dict(made(**sends, attaches=["box"]).attaches) == {"box": Origin("third_party")}
    listed = made(**sends, attaches={"box": {"trust": "system", "readers": "public"}})
    assert dict(listed.attaches) == {"box": Origin("system", "public")}
    assert dict(made(**sends, attaches=[]).attaches) == {}
    # Nobody said which of them names who gets it.
    assert set(made(**sends).attaches) == {"box", "to"}
    assert set(made(**sends, receivers=["to"]).attaches) == {"box"}
    with pytest.raises(ToolError, match="there is no argument 'bix'"):
        made(**sends, attaches=["bix"])


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"origins": {"[].sendr": {"trust": "system"}}}, "tools[0].origins.[].sendr", "has no part 'sendr'"),
    ({"origins": {"": {"trust": "sytem"}}}, "origins", "will not do"),
    ({"origins": {"": {}}}, "trust", "missing"),
    ({"origins": {"": {"trust": "system", "reader": "user"}}}, "reader", "no such key"),
    ({"origins": {"": {"trust": "system", "readers": "all"}}}, "readers", ""),
    ({"origins": {"": {"trust": "system", "readers": ["sendr"]}}}, "readers", "no field 'sendr'"),
    ({"origins": {"[]": {"trust": "third_party", "fresh": True}}}, "fresh", "is fresh"),
    ({"origins": {"[]": {"trust": "system", "readers": ["sendr"]}}}, "readers", "no field 'sendr'"),
    (
        {"origins": {"[]": {"trust": "third_party", "own_when": {"field": "status", "is": "sent"}}}},
        "own_when",
        "stranger",
    ),
    ({"receivers": ["too"]}, "receivers", "no argument 'too'"),
    ({"network": True, "outbound": False}, "outbound", "it has the network"),
]


@pytest.mark.parametrize(("facts", "key", "says"), BAD)
def test_a_bad_declaration_in_a_manifest_is_named(facts: dict[str, Any], key: str, says: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse(manifest(**facts))
    assert caught.value.code == "tools.bad-manifest"
    assert key in caught.value.message
    assert says in caught.value.message


def test_a_wrong_part_of_a_toml_manifest_is_found_by_its_line(tmp_path: Path) -> None:
    from bicameral.tools import read_manifest

    file = tmp_path / "m.toml"
    file.write_text('manifest = 1\n[[tools]]\nname = "x"\nargv = ["true"]\n[tools.origins]\nsize = {trust="system"}\n')
    with pytest.raises(ToolError) as caught:
        read_manifest(file)
    assert caught.value.place is not None
    assert caught.value.place.line == 6


# What a command says of itself

Program = Callable[..., str]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    def make(**facts: Any) -> str:
        tool = {"argv": ["{to}"], "arguments": {"to": {"purpose": "selects"}}} | facts
        told: dict[str, Any] = {"name": "x", "version": "1", "capabilities": [], "inputs": [], "outputs": []}
        told["bicameral"] = {"manifest": 1, "tools": [tool]}
        file = tmp_path / "x"
        file.write_text(f"#!/bin/sh\ncat <<'E'\n{json.dumps(told)}\nE\n")
        file.chmod(0o755)
        return str(file)

    return make


def described(path: str, **settings: Any) -> Tool:
    (tool,) = describe_tool([path], settings=CommandSettings(**settings))
    return tool


def test_a_command_cannot_vouch_for_itself(program: Program) -> None:
    path = program(effect="write", origins={"": {"trust": "user", "readers": "public"}}, outbound=False, receivers=[])
    tool = described(path)
    assert (tool.declared, tool.arguments[0].purpose, dict(tool.origins)) == (False, "directs", {})
    assert not tool.result_labels("x", "0").flat.trusted
    assert tool.result_labels("x", "0").flat.readers == {"user"}
    believed = described(path, believe=True)
    assert (believed.declared, believed.arguments[0].purpose) == (True, "selects")
    assert believed.result_labels("x", "0").flat.trusted


def test_a_command_that_calls_itself_pure_is_not_believed_either(program: Program) -> None:
    path = program(effect="pure")
    assert not described(path).result_labels("x", "0").flat.trusted
    assert described(path, believe=True).result_labels("x", "0").flat.trusted


def test_a_command_that_is_given_the_network_reaches_out_whatever_it_says(program: Program) -> None:
    tool = described(program(effect="read"), network=["example.com:443"])
    assert (tool.outbound, tool.arguments[0].purpose, tool.hosts) == (True, "directs", ("example.com:443",))
    with pytest.raises(ToolError, match="it has the network"):
        described(program(effect="read", outbound=False), network=True)


def test_a_bad_declaration_in_a_description_is_named(program: Program) -> None:
    with pytest.raises(ToolError) as caught:
        described(program(origins={"size": {"trust": "system"}}))
    assert caught.value.code == "tools.bad-manifest"
    assert "has no parts" in caught.value.message


def test_the_example_declares_its_result() -> None:
    assert not described(str(CHECKSUM)).declared
    assert described(str(CHECKSUM), believe=True).origins[""] == Origin("system")
