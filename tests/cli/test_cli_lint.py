"""`bicameral lint`: what it prints, and its exit codes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from cli_world import World

from bicameral.secrets import register_secret

ROOT = Path(__file__).parents[2]
CLEAN = (ROOT / "examples" / "stacks" / "triage.stack.yaml").read_text(encoding="utf-8")
LOOSE = "name: Coder\npatterns:\n  - V9\n  - V14\n  - V11\n  - R13\n"
WARNED = "patterns: [V9, V14]\n"
MODULE = """\
import dataclasses
described = {"name": "Coder", "patterns": ["R13", "V9", "V14", "V11"]}
several = [described, {"patterns": ["V8"]}]
number = 3
class Holder:
    inner = described
"""


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command adds its folder to where modules are looked for."""
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_a_clean_stack_gives_nothing(world: World) -> None:
    world.write("clean.yaml", CLEAN)
    result = world.call("lint", "clean.yaml")
    assert result.exit_code == 0
    assert result.stdout == "clean.yaml: nothing to say\n"


def test_an_error_is_told_with_place_reason_and_fix(world: World) -> None:
    world.write("coder.yaml", LOOSE)
    result = world.call("lint", "coder.yaml")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "coder.yaml:6:5: error: V8 (Tool Sandboxing) is missing: R13 needs it  [REQ-R13-V8, CRIT5]"
    assert lines[1] == "    at:  patterns[3]"
    assert lines[2].startswith("    why: code that a model wrote")
    assert lines[3] == "    fix: Add V8 (Tool Sandboxing)."
    assert "not decided, because nobody says it:" in lines
    assert re.search(r"^ +facts\.production +real users depend on it \(true or false\)  \[LAW5", result.stdout, re.M)
    assert re.fullmatch(r"coder.yaml: 1 error, \d+ warnings?, \d+ notes?", lines[-1])


def test_quiet_leaves_notes_out(world: World) -> None:
    world.write("coder.yaml", LOOSE)
    assert "not decided" not in world.call("lint", "coder.yaml", "--quiet").stdout


def test_warnings_fail_only_if_that_is_asked_for(world: World) -> None:
    world.write("warned.yaml", WARNED)
    assert world.call("lint", "warned.yaml").exit_code == 0
    assert world.call("lint", "warned.yaml", "--strict").exit_code == 1


def test_standard_input_is_read(world: World) -> None:
    result = world.call("lint", "-", stdin=LOOSE)
    assert result.exit_code == 1
    assert result.stdout.startswith("-:6:5: error: V8")
    assert world.call("lint", "-", stdin="").exit_code == 2
    assert world.call("lint", "-", stdin=b"\xff\xfe").exit_code == 2


def test_python_objects_are_linted(world: World) -> None:
    world.write("own_agents.py", MODULE)
    for name in ("described", "Holder.inner"):
        result = world.call("lint", f"own_agents:{name}")
        assert result.exit_code == 1, result.output
        assert "V8 (Tool Sandboxing) is missing" in result.stdout
    assert "V8" not in world.call("lint", "own_agents:several", "--quiet").stdout


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("own_agents:number", "an object of int does not say what it is made of"),
        ("own_agents:describd", "Did you mean 'described'? [stack.cannot-read]"),
        ("no_such_module:x", "[stack.cannot-read]"),
        ("none.yaml", "there is no such file"),
        (".", "no agent is found in this code"),
        ("EX99", "there is no such file"),
    ],
)
def test_what_cannot_be_read_ends_with_two(world: World, what: str, said: str) -> None:
    world.write("own_agents.py", MODULE)
    result = world.call("lint", what)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


def test_a_mistake_in_a_stack_is_told_with_its_place(world: World) -> None:
    world.write("s.yaml", "patterns: [V9]\nfacts: {prodction: true}\n")
    result = world.call("lint", "s.yaml")
    assert result.exit_code == 2
    assert "s.yaml, line 2, column 9: there is no fact 'prodction'. Did you mean 'production'?" in result.stderr
    assert world.json("lint", "s.yaml", code=2)["error"]["place"]["line"] == 2


def test_several_files_are_all_told_of_even_if_one_cannot_be_read(world: World) -> None:
    world.write("coder.yaml", LOOSE)
    world.write("bad.yaml", "patterns: [")
    result = world.call("lint", "coder.yaml", "bad.yaml", "EX2", "--quiet")
    assert result.exit_code == 2
    assert "coder.yaml: 1 error" in result.stdout
    assert "EX2: 1 error" in result.stdout
    assert "bad.yaml, line 1, column 12" in result.stderr


def test_json_has_every_finding(world: World) -> None:
    world.write("coder.yaml", LOOSE)
    told = world.json("lint", "coder.yaml", code=1)
    assert told["ok"] is False
    (stack,) = told["stacks"]
    first = stack["findings"][0]
    assert first["rule"] == "REQ-R13-V8"
    assert first["wants"] == ["V8"]
    assert first["place"] == {"file": "coder.yaml", "line": 6, "column": 5}
    assert first["reference"] == "bicameral lint --explain REQ-R13-V8; bicameral patterns show V8"
    assert json.loads(world.call("lint", "coder.yaml", "--format", "json").stdout) == told


def test_sarif_goes_to_standard_output(world: World) -> None:
    world.write("coder.yaml", LOOSE)
    result = world.call("lint", "coder.yaml", "none.yaml", "--format", "sarif")
    assert result.exit_code == 2
    sarif = json.loads(result.stdout)
    assert sarif["version"] == "2.1.0"
    run = sarif["runs"][0]
    assert run["results"][0]["ruleId"] == "REQ-R13-V8"
    assert run["invocations"][0]["executionSuccessful"] is False
    alone = world.call("lint", "none.yaml", "--format", "sarif")
    assert alone.exit_code == 2
    assert json.loads(alone.stdout)["runs"][0]["results"] == []


@pytest.mark.parametrize("form", ["sarif", "json"])
def test_no_form_prints_hidden_characters_or_secrets(world: World, form: str) -> None:
    secret = "sk-very-secret-value-1234567890"
    register_secret("OPENAI_API_KEY", secret)
    name = f"a\u202eb\u200b {secret}.yaml"
    world.write(name, "patterns: [V9]\nno_such_key: 1\n")
    result = world.call("lint", name, "EX1", "--format", form)
    assert result.exit_code == 2
    # The same text for whoever reads the JSON, and nothing in it that a terminal or a log would obey.
    assert "a\u202eb\u200b" in json.dumps(json.loads(result.stdout), ensure_ascii=False)
    assert not {"\u202e", "\u200b"} & set(result.stdout)
    assert secret not in result.stdout


def test_another_folder_can_be_named(world: World) -> None:
    (world.folder / "inner").mkdir()
    world.write("inner/coder.yaml", LOOSE)
    assert "V8" in world.call("lint", "coder.yaml", "--folder", "inner").stdout


def test_rules_and_facts_are_listed_and_explained(world: World) -> None:
    listed = world.call("lint", "--rules")
    assert listed.exit_code == 0
    assert len(listed.stdout.splitlines()) == 247
    assert len(world.json("lint", "--rules")["rules"]) == 247
    assert "facts.calls_independent" in world.call("lint", "--facts").stdout
    assert any(fact["name"] == "cache_ttl" for fact in world.json("lint", "--facts")["facts"])
    explained = world.call("lint", "--explain", "conn_j").stdout
    assert explained.startswith("CONN_J: ")
    assert "asks: V20.max_retries, prompt_tokens, token_cap" in explained
    assert world.json("lint", "--explain", "CRIT1")["rule"]["needs"] == ["calls_independent"]
    unknown = world.call("lint", "--explain", "CRIT11")
    assert unknown.exit_code == 2
    assert "Did you mean 'CRIT1'?" in unknown.stderr


def test_nothing_to_lint_is_a_mistake(world: World) -> None:
    result = world.call("lint")
    assert result.exit_code == 2
    assert "Nothing to lint" in result.stderr


def test_the_hook_of_pre_commit_runs_the_linter(world: World) -> None:
    from bicameral.documents import parse_yaml

    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    hook = parse_yaml("hooks:\n" + text, Path("hooks")).settings["hooks"][0]
    assert hook["entry"] == "bicameral lint"
    assert hook["language"] == "python"
    assert re.search(hook["files"], "stacks/triage.stack.yaml")
    assert re.search(hook["files"], "triage.stack.yml")
    assert not re.search(hook["files"], "docker-compose.yaml")


CODE = """\
import requests
from agents import Agent, Runner, WebSearchTool, function_tool


@function_tool
def publish(text: str) -> str:
    return requests.post("https://example.org", data=text).text


writer = Agent(name="Writer", tools=[WebSearchTool(), publish])
Runner.run_sync(writer, "Write.", max_turns=5)
"""
SPANS = [
    ("a1", "", "invoke_agent", {"gen_ai.agent.name": "helper\x1b[31m"}, 0, 90),
    ("b1", "a1", "chat", {"gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 1200}, 1, 2),
    ("b2", "a1", "execute_tool", {"gen_ai.tool.name": "fetch_page"}, 3, 4),
    ("b3", "a1", "chat", {"gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 800}, 5, 6),
    ("b4", "a1", "execute_tool", {"gen_ai.tool.name": "send_email"}, 7, 8),
]


def _trace() -> str:
    lines: list[str] = []
    for id, parent, operation, facts, start, end in SPANS:
        span = {
            "name": operation,
            "context": {"trace_id": "0x01", "span_id": f"0x{id}"},
            "parent_id": f"0x{parent}" if parent else None,
            "start_time": f"2026-01-01T00:00:{start:02}.000000Z",
            "end_time": f"2026-01-01T00:01:{end % 60:02}.000000Z" if end > 60 else f"2026-01-01T00:00:{end:02}.000000Z",
            "status": {"status_code": "UNSET"},
            "attributes": {"gen_ai.operation.name": operation, **facts},
        }
        lines.append(json.dumps(span, indent=4))
    return "\n".join(lines)


def test_code_of_another_framework_is_linted(world: World) -> None:
    (world.folder / "app").mkdir()
    world.write("app/writer.py", CODE)
    result = world.call("lint", "app")
    assert result.exit_code == 1
    first = (
        "app/writer.py:6:1: error: the agent reads untrusted text and calls the action 'publish' without asking  [L6]"
    )
    assert result.stdout.splitlines()[:3] == [
        first,
        "    at:  agents.Writer.actions.publish",
        "    seen: tool 'publish' sends something out; seen in its body",
    ]
    assert "what code cannot show:" in result.stdout
    assert world.call("lint", "app/writer.py", "--quiet").stdout.startswith(first)
    # With a person before the action, nothing is an error any more.
    world.write("app/writer.py", CODE.replace("@function_tool\n", "@function_tool(needs_approval=True)\n"))
    result = world.call("lint", "app")
    assert result.exit_code == 0
    assert ": error: " not in result.stdout


def test_a_trace_is_linted_and_says_what_it_cannot_show(world: World) -> None:
    world.write("run.json", _trace())
    result = world.call("lint", "--trace", "run.json")
    assert result.exit_code == 1
    assert re.match(r"run\.json:\d+:1 \(span b4\): error: .*'send_email' without asking  \[L6\]\n", result.stdout)
    assert "what a trace cannot show:" in result.stdout
    assert "5 spans: 2 calls of models, 2 of tools, 0 failed; 2,000 tokens in, 0 out" in result.stdout
    assert "\x1b" not in result.stdout
    assert "\x1b" not in world.call("lint", "--trace", "run.json", "--format", "sarif").stdout


def test_recovered_stacks_are_told_to_programs(world: World) -> None:
    (world.folder / "app").mkdir()
    world.write("app/writer.py", CODE + "Agent(**settings)\n")
    world.write("run.json", _trace())
    told = world.json("lint", "app", "--trace", "run.json", code=1)
    code, trace = told["stacks"]
    assert code["recovered"]["kind"] == "code"
    assert code["findings"][0]["basis"] == "seen"
    assert [each["place"]["line"] for each in code["recovered"]["unresolved"]] == [12, 12]
    assert trace["recovered"]["counts"]["tool_calls"] == 2
    sarif = json.loads(world.call("lint", "app", "--trace", "run.json", "--format", "sarif").stdout)["runs"][0]
    assert sarif["invocations"][0]["executionSuccessful"] is True
    assert {each["level"] for each in sarif["invocations"][0]["toolExecutionNotifications"]} == {"note"}
    places = [each["locations"][0] for each in sarif["results"] if each["ruleId"] == "L6"]
    assert places[0]["physicalLocation"]["artifactLocation"]["uri"] == "app/writer.py"
    assert {"fullyQualifiedName": "span b4", "kind": "span"} in places[1]["logicalLocations"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--trace", "none.json"), "there is no such file"),
        (("--trace", "."), "this is a folder"),
        (("--trace", "writer.py"), "[stack.not-a-trace]"),
        (("empty.py",), "[stack.no-agent]"),
        (("broken.py",), "this is no Python"),
        (("none.py",), "there is no such file"),
    ],
)
def test_code_and_traces_that_cannot_be_read_end_with_two(world: World, words: tuple[str, ...], said: str) -> None:
    world.write("writer.py", CODE)
    world.write("empty.py", "x = 1\n")
    world.write("broken.py", "def (\n")
    result = world.call("lint", *words)
    assert result.exit_code == 2
    assert said in result.stderr


def test_names_in_code_and_of_files_do_nothing_to_a_terminal(world: World) -> None:
    name = "own\x1b]0;owned\x07\u202e\n.py"
    world.write(name, CODE.replace('name="Writer"', 'name="W\\x1b[2J\\u202er"').replace("publish", "pu\u0431lish_post"))
    world.write("bad\x1b[31m.py", "def (\n")
    for words in ((), ("--format", "json"), ("--format", "sarif")):
        for what in (".", name):
            shown = world.call("lint", what, *words)
            assert shown.exit_code == 1, shown.output
            assert not {"\x1b", "\x07", "\u202e"} & set(shown.output)
    assert not {"\x1b", "\x07"} & set(world.call("lint", "bad\x1b[31m.py").output)
