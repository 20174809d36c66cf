"""Commands that describe themselves: well, badly, endlessly, and with bad intent."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bicameral.errors import ToolError
from bicameral.tools import Folders, Tool
from bicameral.tools._command_interface import CommandSettings, describe_tool
from bicameral.types import ANY, STR, DictType, ListType, RecordType

CHECKSUM = Path(__file__).parents[2] / "examples" / "tools" / "checksum"
SEED = {
    "name": "agx-ocr",
    "version": "0.1.0",
    "capabilities": ["document-ocr", "image-to-text"],
    "inputs": ["image/png", "image/jpeg", "application/pdf"],
    "outputs": ["text/plain", "application/json"],
}

Program = Callable[[str], str]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Make an executable of the body of a Python script."""

    def make(body: str) -> str:
        file = tmp_path / "tool"
        file.write_text(f"#!/usr/bin/env python3\nimport json, os, sys, time\n{body}\n")
        file.chmod(0o755)
        return str(file)

    return make


def saying(description: object, then: str = "") -> str:
    text = json.dumps(description)
    return f"if sys.argv[1:] == ['--describe']:\n  print({text!r})\n  sys.exit()\n{then}"


def refusal(path: str, **options: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        describe_tool([path], **options)
    return caught.value


def one(path: str, folders: Folders | None = None, settings: CommandSettings | None = None) -> Tool:
    (tool,) = describe_tool([path], folders, settings=settings)
    return tool


def test_the_plain_format_makes_a_tool_that_is_taken_for_the_worst(program: Program) -> None:
    tool = one(program(saying(SEED)))
    assert tool.signature == "agx_ocr(path: str) -> str"
    assert (tool.version, tool.effect, tool.idempotent) == ("0.1.0", "irreversible", False)
    assert tool.arguments[0].purpose == "directs"
    assert set(tool.words) == {"document", "ocr", "image", "text"}
    assert "image-to-text" in tool.doc


async def test_a_file_is_named_on_the_command_line(program: Program, tmp_path: Path) -> None:
    (tmp_path / "scan.png").write_bytes(b"pixels")
    path = program(saying(SEED, "print(open(sys.argv[1]).read())"))
    tool = one(path, Folders.of(tmp_path, read=[tmp_path]))
    assert await tool.call({"path": "scan.png"}) == "pixels"
    with pytest.raises(ToolError, match="outside"):
        await tool.call({"path": "/etc/passwd"})
    with pytest.raises(ToolError, match="outside"):
        await one(path).call({"path": str(tmp_path / "scan.png")})


async def test_text_goes_to_standard_input(program: Program) -> None:
    text = SEED | {"name": "upper", "inputs": ["text/plain", "text/markdown"]}
    tool = one(program(saying(text, "sys.stdout.write(sys.stdin.read().upper())")))
    assert tool.signature == "upper(text: str) -> str"
    assert await tool.call({"text": "quiet"}) == "QUIET"


@pytest.mark.parametrize(
    ("outputs", "result"),
    [
        (["application/json", "text/plain"], ANY),
        (["application/ld+json"], ANY),
        (["text/plain; charset=utf-8"], STR),
        (["text/csv"], ListType(DictType(STR))),
        ([], STR),
    ],
)
def test_the_first_output_is_the_type_of_the_result(program: Program, outputs: list[str], result: object) -> None:
    assert one(program(saying(SEED | {"outputs": outputs}))).result == result


def test_no_input_is_no_argument(program: Program) -> None:
    assert one(program(saying(SEED | {"inputs": []}))).arguments == ()


def test_the_user_can_say_what_it_does(program: Program) -> None:
    tool = one(program(saying(SEED)), settings=CommandSettings(effect="read"))
    assert (tool.effect, tool.idempotent, tool.arguments[0].purpose) == ("read", True, "selects")


async def test_the_example_describes_itself_and_works(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    tool = one(str(CHECKSUM), Folders.of(tmp_path, read=[tmp_path]))
    assert (tool.name, tool.effect) == ("checksum", "irreversible")
    assert tool.described is not None
    assert (tool.described.state, tool.described.proposal.effect) == ("unconfirmed", "read")
    assert isinstance(tool.result, RecordType)
    found = await tool.call({"path": "a.txt", "algorithm": "md5"})
    assert found == {"algorithm": "md5", "digest": "5d41402abc4b2a76b9719d911017c592", "size": 5}


def test_one_command_can_offer_several_tools(program: Program) -> None:
    tools = [{"name": "up", "argv": ["up"], "effect": "pure"}, {"name": "down", "argv": ["down"]}]
    path = program(saying(SEED | {"bicameral": {"manifest": 1, "tools": tools}}))
    found = describe_tool([path], settings=CommandSettings(believe=True))
    assert [(tool.name, tool.effect, tool.version) for tool in found] == [
        ("up", "pure", "0.1.0"),
        ("down", "irreversible", "0.1.0"),
    ]


def test_a_describe_that_hangs_is_killed(program: Program) -> None:
    started = time.monotonic()
    error = refusal(program("time.sleep(600)"), timeout=1)
    assert error.code == "tools.describe-timeout"
    assert error.fix
    assert time.monotonic() - started < 30


def test_a_describe_that_waits_for_input_gets_none(program: Program) -> None:
    assert refusal(program("print(input())"), timeout=30).code == "tools.describe-failed"


def test_a_describe_that_ignores_signals_is_killed_all_the_same(program: Program) -> None:
    body = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.fork()\ntime.sleep(600)"
    assert refusal(program(body), timeout=1).code == "tools.describe-timeout"


def test_a_gigabyte_of_description_is_cut_short(program: Program) -> None:
    started = time.monotonic()
    body = "for _ in range(1000): sys.stdout.write('x' * 1_000_000)"
    assert refusal(program(body)).code == "tools.describe-too-large"
    assert time.monotonic() - started < 30


def test_a_describe_that_fails_is_told_with_its_complaint(program: Program) -> None:
    error = refusal(program("sys.exit('unknown option --describe')"))
    assert error.code == "tools.describe-failed"
    assert "unknown option --describe" in error.message
    assert "manifest" in (error.fix or "")


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "usage: tool [options]",
        "{",
        "[]",
        "null",
        "3",
        "{}",
        json.dumps({key: value for key, value in SEED.items() if key != "outputs"}),
        json.dumps(SEED | {"inputs": "image/png"}),
        json.dumps(SEED | {"inputs": ["png"]}),
        json.dumps(SEED | {"inputs": [3]}),
        json.dumps(SEED | {"outputs": ["image/png"]}),
        json.dumps(SEED | {"version": 1}),
        json.dumps(SEED | {"name": ""}),
        json.dumps(SEED) * 2,
        json.dumps(SEED | {"bicameral": {"manifest": 2, "tools": []}}),
        json.dumps(SEED | {"bicameral": []}),
        "[" * 100_000,
    ],
)
def test_garbage_is_refused_and_says_what_was_expected(program: Program, printed: str) -> None:
    error = refusal(program(f"sys.stdout.write({printed!r})"))
    assert error.code == "tools.describe-garbage"
    assert "capabilities" in (error.expected or "")


def test_bytes_that_are_no_text_are_garbage(program: Program) -> None:
    assert refusal(program("sys.stdout.buffer.write(b'\\xff\\xfe\\x00')")).code == "tools.describe-garbage"


@pytest.mark.parametrize(
    ("tool", "key"),
    [
        ({"efect": "pure"}, "efect"),
        ({"name": "1x"}, "name"),
        ({"argv": ["{nothing}"]}, "argv"),
        ({"arguments": {"x": {}}}, "arguments"),
        ({"network": True}, "network"),
        ({"network": ["example.com:443"]}, "network"),
        ({"needs": ["/home"]}, "needs"),
        ({"limits": {"memory_mb": 100_000}}, "limits"),
    ],
)
def test_an_extension_that_is_wrong_or_takes_liberties_is_refused(
    program: Program, tool: dict[str, Any], key: str
) -> None:
    error = refusal(program(saying(SEED | {"bicameral": {"manifest": 1, "tools": [tool]}})))
    assert error.code == "tools.bad-manifest"
    assert error.message.startswith(f"bicameral.tools[0].{key}")


def test_a_name_that_no_plan_can_write_is_refused(program: Program) -> None:
    assert refusal(program(saying(SEED | {"name": "!!!"}))).code == "tools.bad-manifest"


def test_a_describe_sees_no_file_no_network_and_no_secret(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "hush")
    (tmp_path / "secret.txt").write_text("hush")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        body = f"""
import socket
found = []
for attempt in (lambda: open({str(tmp_path / "secret.txt")!r}).read(), lambda: os.environ["API_KEY"],
                lambda: open({str(tmp_path / "new.txt")!r}, "w"), lambda: os.listdir(os.path.expanduser("~")),
                lambda: socket.create_connection(("127.0.0.1", {listener.getsockname()[1]}), 2)):
    try:
        attempt()
        found.append(attempt.__code__.co_firstlineno)
    except (OSError, KeyError):
        pass
print(json.dumps({SEED!r} | {{"capabilities": [str(each) for each in found]}}))
"""
        tool = one(program(body))
    assert tool.doc == "agx-ocr"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.txt", "tool"]


def test_a_command_that_is_not_there_is_named() -> None:
    assert refusal("/no/such/tool").code == "tools.command-not-found"
    assert refusal("no-such-tool").code == "tools.command-not-found"
    assert refusal("./tool").code == "tools.command-not-found"
    with pytest.raises(ToolError, match="command-not-found"):
        describe_tool([])


def test_an_interpreter_and_its_script_are_described_together(tmp_path: Path) -> None:
    script = tmp_path / "tool.py"
    script.write_text(f"import json\nprint({json.dumps(SEED)!r})")
    assert describe_tool(["python3", str(script)])[0].name == "agx_ocr"


def test_where_nothing_can_be_confined_nothing_is_described(program: Program, tmp_path: Path) -> None:
    path = program(saying(SEED))
    assert refusal(path, probe=lambda: "this is Darwin").code == "tools.cannot-confine"
