"""How severe a finding is in code of other frameworks: an error is what endangers somebody, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from bicameral.catalog.frameworks import lint_recovered, read_code
from bicameral.catalog.lint import LintFinding, LintReport


def lint_program(folder: Path, program: str) -> LintReport:
    (folder / "app.py").write_text(program, encoding="utf-8")
    return lint_recovered(read_code(folder))


def shown(report: LintReport) -> list[tuple[str, str, int | None]]:
    """Every finding that is no note: its severity, rule and line."""
    return [(each.severity, each.rule, each.place.line) for each in report.findings if each.severity != "note"]


def findings(report: LintReport, rule: str) -> list[LintFinding]:
    return [each for each in report.findings if rule in each.rules and not each.undecided]


PLAIN = {
    "openai": "from agents import Agent, Runner\na = Agent(name='A')\nRunner.run_sync(a, 'Hello.')\n",
    "pydantic": "from pydantic_ai import Agent\na = Agent('openai:gpt-4o', output_type=int)\na.run_sync('Hello.')\n",
    "langgraph": (
        "from langchain.agents import create_agent\na = create_agent('openai:gpt-4o')\n"
        "a.invoke({}, {'recursion_limit': 4})\n"
    ),
}


@pytest.mark.parametrize("framework", sorted(PLAIN))
def test_an_agent_that_only_answers_has_no_finding(tmp_path: Path, framework: str) -> None:
    assert shown(lint_program(tmp_path, PLAIN[framework])) == []


HARMLESS_TOOL = """\
from agents import Agent, Runner, function_tool

@function_tool
def add(one: int, other: int) -> int:
    return one + other

helper = Agent(name="Helper", tools=[add])
Runner.run_sync(helper, "Add."{turns})
"""


@pytest.mark.parametrize(
    ("turns", "severity"), [("", "note"), (", max_turns=5", "note"), (", max_turns=None", "error")]
)
def test_a_loop_is_an_error_only_where_nothing_ends_it(tmp_path: Path, turns: str, severity: str) -> None:
    (finding,) = findings(lint_program(tmp_path, HARMLESS_TOOL.format(turns=turns)), "A3")
    assert finding.severity == severity


@pytest.mark.parametrize(
    "limit", ["'recursion_limit': LIMIT", "'recursion_limit': int(os.environ['STEPS'])", "**settings()"]
)
def test_a_limit_that_only_the_run_knows_is_not_taken_for_none(tmp_path: Path, limit: str) -> None:
    program = f"""\
import os
from langchain.agents import create_agent
LIMIT = 2 * int(os.environ["STEPS"])
def settings(): ...
def look(word: str) -> str: return word
helper = create_agent("openai:gpt-4o", tools=[look])
helper.invoke({{}}, {{{limit}}})
"""
    report = lint_program(tmp_path, program)
    assert shown(report) == []
    assert any("only known when the program runs" in each.what for each in read_code(tmp_path).unresolved)
    # Its twin names no limit at all, and its default depends on the release.
    bare = lint_program(tmp_path, program.replace(f", {{{limit}}}", ""))
    assert {severity for severity, *_ in shown(bare)} == {"warning"}


def test_a_request_limit_that_only_the_run_knows_is_not_taken_for_none(tmp_path: Path) -> None:
    program = """\
from pydantic_ai import Agent, UsageLimits
from settings import limit
helper = Agent("openai:gpt-4o")
@helper.tool_plain
def look(word: str) -> str: return word
helper.run_sync("Look.", usage_limits=UsageLimits(request_limit={limit}))
"""
    assert shown(lint_program(tmp_path, program.format(limit="limit()"))) == []
    # Its twin switches the limit off.
    off = lint_program(tmp_path, program.format(limit="None"))
    assert ("error", "A3", 6) in shown(off)


def test_settings_of_a_graph_that_are_no_run_limit_nothing_and_lack_nothing(tmp_path: Path) -> None:
    program = """\
from langchain.agents import create_agent
def look(word: str) -> str: return word
helper = create_agent("openai:gpt-4o", tools=[look]).with_config(config={"configurable": {"key": 1}})
"""
    assert shown(lint_program(tmp_path, program)) == []


def test_what_is_appended_to_a_list_belongs_to_it(tmp_path: Path) -> None:
    program = """\
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware
tools = []
middleware = []
def send_mail(to: str) -> str: return to
tools.append(send_mail)
middleware.append(ModelCallLimitMiddleware(run_limit=6))
middleware.extend(middleware)
helper = create_agent("openai:gpt-4o", tools=tools, middleware=middleware)
helper.invoke({})
"""
    (tmp_path / "app.py").write_text(program, encoding="utf-8")
    (agent,) = read_code(tmp_path).stack.agents
    assert [action.name for action in agent.actions or ()] == ["send_mail"]
    assert [loop.steps for loop in agent.loops or ()] == [6]


JUDGED = """\
from agents import Agent, Runner
writer = Agent(name="Writer")
def ask() -> str: return input("Go on? ")
rounds = 0
while True:
    draft = Runner.run_sync(writer, "Write.")
    {inside}
"""


@pytest.mark.parametrize(
    ("inside", "found"),
    [
        ("if draft.final_output: break", True),
        ("rounds += 1; print(draft)", True),
        ("rounds += 1\n    if rounds > 3: break", False),
        ("if ask() == 'no': break", False),
    ],
)
def test_a_loop_that_counts_or_asks_a_person_ends(tmp_path: Path, inside: str, found: bool) -> None:
    report = lint_program(tmp_path, JUDGED.format(inside=inside))
    assert bool([each for each in findings(report, "A3") if each.severity == "error"]) is found


CONTAINER = """\
from agents import Agent, ShellTool, WebSearchTool, CodeInterpreterTool, Runner
def run(request): ...
shell = {shell}
helper = Agent(name="Helper", tools=[WebSearchTool(), shell])
Runner.run_sync(helper, "Sum it up.", max_turns=3)
"""


@pytest.mark.parametrize(
    ("shell", "acts"),
    [
        ("ShellTool(executor=run)", True),
        ('ShellTool(environment={"type": "local"}, executor=run)', True),
        ('ShellTool(environment={"type": "container_auto"})', False),
        ('ShellTool(environment={"type": "container_auto", "network_policy": {"type": "disabled"}})', False),
        ('ShellTool(environment={"type": "container_auto", "network_policy": {"type": "allowlist"}})', True),
        ('ShellTool(environment={"type": "container_auto", **settings})', True),
        ("CodeInterpreterTool(tool_config={})", False),
    ],
)
def test_commands_in_a_container_without_a_network_are_no_action(tmp_path: Path, shell: str, acts: bool) -> None:
    report = lint_program(tmp_path, CONTAINER.format(shell=shell))
    assert bool(findings(report, "L6")) is acts
    assert bool(findings(report, "LAW2")) is acts


def test_a_container_that_another_program_made_may_reach_the_network(tmp_path: Path) -> None:
    shell = 'ShellTool(environment={"type": "container_reference", "container_id": "c"})'
    (finding,) = findings(lint_program(tmp_path, CONTAINER.format(shell=shell)), "LAW2")
    assert (finding.severity, finding.basis) == ("warning", "inferred")
    assert "whose network is not known" in finding.evidence[0]


def test_an_action_is_one_finding_and_not_one_more_for_its_agent(tmp_path: Path) -> None:
    report = lint_program(tmp_path, CONTAINER.format(shell="ShellTool(executor=run)"))
    assert len(findings(report, "LAW2")) == 1


def test_a_tool_that_is_made_of_its_handler_does_what_that_does(tmp_path: Path) -> None:
    program = """\
import subprocess
from agents import Agent, FunctionTool

async def invoke(context, arguments):
    return subprocess.run(arguments, shell=True)

tool = FunctionTool(name="helper_line", description="", params_json_schema={}, on_invoke_tool=invoke{asks})
helper = Agent(name="Helper", tools=[tool])
"""
    (finding,) = findings(lint_program(tmp_path, program.replace("{asks}", "")), "LAW2")
    assert (finding.basis, finding.path) == ("seen", "agents.Helper.actions.helper_line")
    gated = lint_program(tmp_path, program.replace("{asks}", ", needs_approval=True"))
    assert not findings(gated, "LAW2")


def test_a_gate_that_only_the_run_decides_makes_the_finding_a_guess(tmp_path: Path) -> None:
    program = """\
import os, shutil
from agents import Agent, function_tool
@function_tool(needs_approval={asks})
def clean(folder: str) -> None: shutil.rmtree(folder)
helper = Agent(name="Helper", tools=[clean])
"""
    (known,) = findings(lint_program(tmp_path, program.format(asks="False")), "LAW2")
    (open_gate,) = findings(lint_program(tmp_path, program.format(asks='bool(os.environ["ASK"])')), "LAW2")
    assert (known.severity, known.basis) == ("error", "seen")
    assert (open_gate.severity, open_gate.basis) == ("warning", "inferred")
    assert "whether a person is asked is not known" in open_gate.evidence[0]


def test_tracing_that_one_program_switches_off_is_on_in_the_others(tmp_path: Path) -> None:
    head = "from agents import Agent, Runner, RunConfig, set_tracing_disabled\n"
    (tmp_path / "one.py").write_text(
        head + "set_tracing_disabled(True)\none = Agent(name='One')\nRunner.run_sync(one, 'x')\n", encoding="utf-8"
    )
    (tmp_path / "two.py").write_text(
        head + "two = Agent(name='Two')\nRunner.run_sync(two, 'x', run_config=RunConfig(tracing_disabled=True))\n",
        encoding="utf-8",
    )
    (tmp_path / "three.py").write_text(
        head + "three = Agent(name='Three')\nRunner.run_sync(three, 'x', run_config={'tracing_disabled': True})\n",
        encoding="utf-8",
    )
    (tmp_path / "four.py").write_text(
        head + "four = Agent(name='Four')\nRunner.run_sync(four, 'x')\n", encoding="utf-8"
    )
    agents = {agent.name: "V14" in agent.patterns for agent in read_code(tmp_path).stack.agents}
    assert agents == {"One": False, "Two": False, "Three": False, "Four": True}


def test_a_name_that_stands_for_one_agent_after_another_is_run_as_each(tmp_path: Path) -> None:
    program = """\
from agents import Agent, Runner
billing = Agent(name="Billing")
front = Agent(name="Front", handoffs=[billing])
current = front
while True:
    result = Runner.run_sync(current, input(), max_turns=4)
    current = result.last_agent
"""
    (tmp_path / "app.py").write_text(program, encoding="utf-8")
    recovered = read_code(tmp_path)
    assert {agent.name: "V9" in agent.patterns for agent in recovered.stack.agents} == {"Billing": True, "Front": True}
    assert recovered.unresolved == ()


def test_a_sandbox_agent_has_a_shell_in_a_sandbox(tmp_path: Path) -> None:
    program = """\
from agents import Runner, WebSearchTool
from agents.sandbox import SandboxAgent
coder = SandboxAgent(name="Coder", tools=[WebSearchTool()])
Runner.run_sync(coder, "Repair it.", max_turns=9)
"""
    report = lint_program(tmp_path, program)
    (agent,) = read_code(tmp_path).stack.agents
    assert {"I4", "V8", "R4"} <= agent.patterns
    assert not findings(report, "L6")
    assert any("which sandbox" in each.what for each in read_code(tmp_path).unresolved)


def test_findings_are_listed_file_by_file(tmp_path: Path) -> None:
    text = "from agents import Agent, function_tool\n{gap}@function_tool\ndef {name}(x: str) -> None: ...\n"
    for file, gap, name in (("a.py", "\n" * 9, "delete_one"), ("b.py", "", "delete_two")):
        made = text.format(gap=gap, name=name) + f"agent = Agent(name='{file[0]}', tools=[{name}])\n"
        (tmp_path / file).write_text(made, encoding="utf-8")
    places = [Path(each.place.file or "").name for each in findings(lint_recovered(read_code(tmp_path)), "LAW2")]
    assert places == sorted(places)
    assert len(places) == 2
