"""Stacks of agents of other frameworks, read from their code, which is never run."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from framework_errors import suppress_codes
from framework_programs import LANGGRAPH, OPENAI_AGENTS, PYDANTIC_AI, PYDANTIC_AI_SAFE
from pydantic_ai import UsageLimits

from bicameral.catalog.frameworks import RecoveredStack, lint_recovered, read_code
from bicameral.catalog.lint import LintFinding
from bicameral.catalog.stacks import StackMember
from bicameral.errors import CatalogError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def recover(folder: Path, *modules: tuple[str, str]) -> RecoveredStack:
    for name, text in modules:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return read_code(folder)


def member(recovered: RecoveredStack, name: str) -> StackMember:
    return next(agent for agent in recovered.stack.agents if agent.name == name)


def found(recovered: RecoveredStack, rule: str) -> list[LintFinding]:
    return [each for each in lint_recovered(recovered).findings if rule in each.rules and not each.undecided]


def test_pydantic_ai_tools_output_and_default_limits_are_read(folder: Path) -> None:
    recovered = recover(folder, ("app.py", PYDANTIC_AI))
    agent = member(recovered, "support")
    assert agent.model == "openai:gpt-4o"
    assert agent.patterns == {"R4", "I2", "S6", "V20", "V9"}
    assert agent.tools is not None
    assert agent.tools.count == 2
    assert agent.legs == ("untrusted_content",)
    assert [(loop.steps, loop.tokens, loop.exit is not None) for loop in agent.loops or ()] == [(50, None, True)]
    (finding,) = found(recovered, "L6")
    assert (finding.place.line, finding.basis) == (30, "inferred")
    assert finding.evidence[0].startswith("inferred: tool 'refund_order' does what cannot be taken back")
    assert finding.evidence[1] == "seen: tool 'read_page' reads text from outside; seen in its body"


def test_pydantic_ai_limits_approval_and_tracing_are_read(folder: Path) -> None:
    recovered = recover(folder, ("app.py", PYDANTIC_AI_SAFE))
    agent = member(recovered, "support")
    assert {"V1", "V9", "V14"} <= agent.patterns
    assert [(loop.steps, loop.tokens, loop.seconds) for loop in agent.loops or ()] == [(8, 20_000, 60)]
    assert [(action.name, action.gate) for action in agent.actions or ()] == [("refund_order", "V1")]
    assert lint_recovered(recovered).ok


@pytest.mark.parametrize(("limit", "ok"), [("request_limit=None", False), ("request_limit=5", True)])
def test_a_limit_that_is_switched_off_is_an_error_that_was_seen(folder: Path, limit: str, ok: bool) -> None:
    recovered = recover(folder, ("app.py", PYDANTIC_AI_SAFE.replace("request_limit=8", limit)))
    missing = [each for each in found(recovered, "LAW1") if "V9" in each.wants]
    assert [(each.severity, each.basis) for each in missing] == ([] if ok else [("error", "seen")])


def test_capabilities_are_tools_tracing_or_nothing(folder: Path) -> None:
    program = """\
from pydantic_ai import Agent
from pydantic_ai.capabilities import Instrumentation, Thinking, WebSearch

helper = Agent("openai:gpt-4o", capabilities=[WebSearch(), Instrumentation(), Thinking()])
"""
    agent = member(recover(folder, ("app.py", program)), "helper")
    assert "V14" in agent.patterns
    assert agent.legs == ("untrusted_content",)
    assert agent.tools is not None
    assert agent.tools.count == 1


def test_delegation_carries_untrusted_text_to_the_agent_that_asks(folder: Path) -> None:
    program = """\
from pydantic_ai import Agent, RunContext
from pydantic_ai.common_tools.duckduckgo import duckduckgo_search_tool

finder = Agent("openai:gpt-4o", tools=[duckduckgo_search_tool()])
lead = Agent("openai:gpt-4o")

@lead.tool
async def research(ctx: RunContext[None], question: str) -> str:
    answer = await finder.run(question, usage=ctx.usage)
    return answer.output

@lead.tool_plain
def delete_account(name: str) -> str:
    return name

lead.run_sync("Tidy up.")
"""
    recovered = recover(folder, ("app.py", program))
    assert {"O6", "O17"} <= member(recovered, "lead").patterns
    assert [each.path for each in found(recovered, "L6")] == ["agents.lead.actions.delete_account"]


def test_a_graph_of_pydantic_graph_is_read(folder: Path) -> None:
    program = """\
from __future__ import annotations
from dataclasses import dataclass
from pydantic_ai import Agent
from pydantic_ai.common_tools.tavily import tavily_search_tool
from pydantic_graph import BaseNode, End, Graph, GraphRunContext

writer = Agent("openai:gpt-4o", tools=[tavily_search_tool("key")])
critic = Agent("openai:gpt-4o-mini")

@dataclass
class Write(BaseNode[None]):
    async def run(self, ctx: GraphRunContext) -> Critique:
        return Critique((await writer.run("Write.")).output)

@dataclass
class Critique(BaseNode[None, None, str]):
    text: str
    async def run(self, ctx: GraphRunContext) -> "Write | End[str]":
        verdict = await critic.run(self.text)
        return End(self.text) if verdict.output == "good" else Write()

feedback = Graph(nodes=(Write, Critique))
feedback.run_sync(Write())
"""
    recovered = recover(folder, ("app.py", program))
    assert [agent.name for agent in recovered.stack.agents] == ["writer", "critic", "feedback"]
    graph = member(recovered, "feedback")
    assert "O5" in graph.patterns
    assert graph.legs == ("untrusted_content",)
    (finding,) = [each for each in found(recovered, "A3") if "'graph'" in each.message]
    assert (finding.severity, finding.basis) == ("error", "seen")
    straight = program.replace('"Write | End[str]"', "End[str]")
    graph = member(recover(folder, ("app.py", straight)), "feedback")
    assert graph.patterns == {"O2"}
    assert graph.loops is None


def test_langgraph_nodes_edges_and_tools_are_read(folder: Path) -> None:
    recovered = recover(folder, ("app.py", LANGGRAPH))
    agent = member(recovered, "assistant")
    assert agent.model == "gpt-4o-mini"
    assert {"R4", "I2"} <= agent.patterns
    assert "V9" not in agent.patterns
    assert agent.legs == ("untrusted_content", "external_comms")
    (limits,) = [each for each in found(recovered, "LAW1") if "V9" in each.wants]
    # The default of LangGraph is a limit, but which one depends on the release.
    assert (limits.severity, limits.basis) == ("warning", "inferred")
    (finding,) = found(recovered, "L6")
    assert (finding.severity, finding.basis, finding.place.line) == ("error", "seen", 22)


def test_langgraph_limit_checkpoint_and_interrupt_are_read(folder: Path) -> None:
    program = LANGGRAPH.replace(
        "builder.compile()", 'builder.compile(checkpointer=InMemorySaver(), interrupt_before=["tools"])'
    ).replace('[("user", question)]})', '[("user", question)]}, config={"recursion_limit": 12})')
    recovered = recover(folder, ("app.py", f"from langgraph.checkpoint.memory import InMemorySaver\n{program}"))
    agent = member(recovered, "assistant")
    assert {"V9", "V10", "V1"} <= agent.patterns
    assert [loop.steps for loop in agent.loops or ()] == [12]
    assert [action.gate for action in agent.actions or ()] == ["V1"]
    assert not found(recovered, "L6")
    assert not found(recovered, "LAW2")


def test_langgraph_shapes_are_told_apart(folder: Path) -> None:
    head = """\
from typing import Literal, TypedDict
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")

def first(state): return {"text": llm.invoke("a").content}
def second(state): return {"text": llm.invoke("b").content}
def critic(state): return {"text": llm.invoke("c").content}
"""
    chain = 'chain = StateGraph(dict).add_sequence([first, second]).set_entry_point("first").compile()\n'
    route = """\
def choose(state) -> Literal["first", "second"]: ...
router = StateGraph(dict)
router.add_node(first)
router.add_node(second)
router.add_conditional_edges(START, choose)
routing = router.compile()
"""
    fan = """\
wide = StateGraph(dict)
wide.add_node(first)
wide.add_node(second)
wide.add_edge(START, "first")
wide.add_edge(START, "second")
fan = wide.compile()
"""
    improve = """\
def good(state): return END if state["ok"] else "first"
loop = StateGraph(dict)
loop.add_node("first", first)
loop.add_node("critic", critic)
loop.add_edge("first", "critic")
loop.add_conditional_edges("critic", good)
improving = loop.compile()
"""
    recovered = recover(folder, ("app.py", head + chain + route + fan + improve))
    assert member(recovered, "chain").patterns == {"O2"}
    assert member(recovered, "routing").patterns == {"O3"}
    assert member(recovered, "fan").patterns == {"O4"}
    assert member(recovered, "improving").patterns == {"O5"}


def test_langgraph_supervisors_chains_and_partials_are_read(folder: Path) -> None:
    program = """\
from functools import partial
from typing import Literal
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI
from langchain_tavily import TavilySearch
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command

llm = ChatOpenAI(model="gpt-4o")
decide = ChatPromptTemplate.from_template("Who is next?") | llm.with_structured_output(dict)

def remove_file(path: str) -> str: ...

searcher = create_react_agent(llm, tools=[TavilySearch()])
cleaner = create_react_agent(llm, tools=[remove_file])

def work(state, agent): return agent.invoke(state)
def lead(state) -> Command[Literal["search", "clean", "__end__"]]:
    return Command(goto=decide.invoke(state)["next"])

team = StateGraph(dict)
team.add_node(lead)
team.add_node("search", partial(work, agent=searcher))
team.add_node("clean", partial(work, agent=cleaner))
team.add_edge(START, "lead")
team.add_edge("search", "lead")
team.add_edge("clean", "lead")
app = team.compile()
app.invoke({})
"""
    recovered = recover(folder, ("app.py", program))
    graph = member(recovered, "app")
    assert {"O6", "S6"} <= graph.patterns
    assert graph.model == "gpt-4o"
    # The agents share the messages of the graph: what one has read, the others read too.
    assert graph.legs == ("untrusted_content",)
    assert [each.path for each in found(recovered, "L6")] == ["agents.cleaner.actions.remove_file"]


def test_langchain_agents_and_their_middleware_are_read(folder: Path) -> None:
    program = """\
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelCallLimitMiddleware

def send_mail(to: str) -> str: return to
def drop_table(name: str) -> str: return name

assistant = create_agent(
    "openai:gpt-4o",
    tools=[send_mail, drop_table],
    middleware=[
        HumanInTheLoopMiddleware(interrupt_on={"send_mail": True, "drop_table": False}),
        ModelCallLimitMiddleware(run_limit=6),
    ],
)
assistant.invoke({"messages": []})
"""
    agent = member(recover(folder, ("app.py", program)), "assistant")
    assert {action.name: action.gate for action in agent.actions or ()} == {"send_mail": "V1", "drop_table": "none"}
    assert {"R4", "V9", "V1"} <= agent.patterns
    assert [loop.steps for loop in agent.loops or ()] == [6]


def test_openai_agents_handoffs_tools_and_turns_are_read(folder: Path) -> None:
    recovered = recover(folder, ("app.py", OPENAI_AGENTS))
    assert {"O15", "O3"} <= member(recovered, "Triage").patterns
    fixer = member(recovered, "Fixer")
    assert fixer.model == "gpt-4.1"
    assert {"I4", "R4", "V14"} <= fixer.patterns
    assert "V9" not in fixer.patterns
    assert found(recovered, "IA2")
    (limits,) = [each for each in found(recovered, "LAW1") if "V9" in each.wants]
    assert (limits.severity, limits.basis) == ("error", "seen")
    assert [each.path for each in found(recovered, "L6")] == ["agents.Fixer.actions.run_line"]


def test_openai_agents_guardrails_and_approvals_are_read(folder: Path) -> None:
    program = """\
from agents import Agent, Runner, WebSearchTool, function_tool, input_guardrail, set_tracing_disabled

set_tracing_disabled(True)

@input_guardrail
async def polite(context, agent, text): ...

@function_tool(needs_approval=True, name_override="refund")
def pay_back(number: int) -> str:
    return str(number)

helper = Agent(name="Helper", tools=[WebSearchTool(), pay_back], input_guardrails=[polite], output_type=list[str])
boss = Agent(name="Boss", tools=[helper.as_tool(tool_name="help", tool_description="Helps.")])
Runner.run_sync(boss, "Help.", max_turns=4)
"""
    recovered = recover(folder, ("app.py", program))
    helper = member(recovered, "Helper")
    assert helper.guards == ("input",)
    assert {"V5", "V1", "V20", "V9"} <= helper.patterns
    assert "V14" not in helper.patterns
    assert [(action.name, action.gate) for action in helper.actions or ()] == [("refund", "V1")]
    boss = member(recovered, "Boss")
    assert {"O6", "O17", "V9"} <= boss.patterns
    # What a worker wrote after it read the web reaches the one that asked it.
    assert boss.legs == ("untrusted_content",)
    assert not found(recovered, "L6")


def test_names_are_followed_across_modules_and_aliases(folder: Path) -> None:
    recovered = recover(
        folder,
        ("shop/__init__.py", ""),
        (
            "shop/tools.py",
            "import requests as web\n\ndef look(url):\n    return _get(url)\n\n"
            "def _get(url):\n    return web.get(url).text\n",
        ),
        (
            "shop/settings.py",
            "from pydantic_ai import UsageLimits as Caps\nMODEL = 'openai:gpt-4o'\nCAPS = Caps(request_limit=3)\n",
        ),
        (
            "shop/agents.py",
            "import pydantic_ai as pai\nfrom . import settings\nfrom .tools import look as peek\n"
            "EXTRA = [peek]\nhelper = pai.Agent(settings.MODEL, tools=[*EXTRA])\n",
        ),
        (
            "main.py",
            "from shop.agents import helper as it\nfrom shop import settings\n"
            "def go(): return it.run_sync('hi', usage_limits=settings.CAPS)\n",
        ),
    )
    agent = member(recovered, "helper")
    assert agent.model == "openai:gpt-4o"
    assert agent.legs == ("untrusted_content",)
    assert [loop.steps for loop in agent.loops or ()] == [3]
    assert recovered.unresolved == ()


def test_a_module_of_the_folder_is_not_taken_for_the_sdk(folder: Path) -> None:
    with pytest.raises(CatalogError) as caught:
        recover(
            folder,
            ("agents.py", "class Agent:\n    def __init__(self, **given): ...\n"),
            ("main.py", "from agents import Agent\nclerk = Agent(name='Clerk')\n"),
        )
    assert caught.value.code == "stack.no-agent"


def test_what_only_a_run_decides_is_said_and_not_guessed(folder: Path) -> None:
    program = """\
import os
from pydantic_ai import Agent, UsageLimits

def load_tools(): ...

helper = Agent("openai:gpt-4o", tools=load_tools())
helper.run_sync("hi", usage_limits=UsageLimits(request_limit=int(os.environ["STEPS"])))
"""
    recovered = recover(folder, ("app.py", program))
    assert member(recovered, "helper").tools is None
    assert {each.place.line for each in recovered.unresolved} >= {6, 7}
    assert all(each.basis == "inferred" for each in found(recovered, "LAW1"))


def test_a_name_with_two_values_is_not_followed(folder: Path) -> None:
    program = """\
import sys
from pydantic_ai import Agent
if sys.argv:
    MODEL = "openai:gpt-4o"
else:
    MODEL = "openai:gpt-4o-mini"
helper = Agent(MODEL)
"""
    assert member(recover(folder, ("app.py", program)), "helper").model is None


def test_a_loop_of_the_program_without_a_counter_is_found(folder: Path) -> None:
    program = """\
from agents import Agent, Runner
writer = Agent(name="Writer")
while True:
    draft = Runner.run_sync(writer, "Write.", max_turns=3)
    if draft.final_output: break
"""
    (finding,) = [each for each in found(recover(folder, ("app.py", program)), "A3") if "while" in each.message]
    assert (finding.place.line, finding.basis) == (3, "seen")
    chat = program.replace("while True:\n", "while True:\n    line = input()\n")
    assert not [each for each in found(recover(folder, ("app.py", chat)), "A3") if "while" in each.message]


def test_agents_side_by_side_are_parallel(folder: Path) -> None:
    program = """\
import asyncio
from agents import Agent, Runner
one, two = Agent(name="One"), Agent(name="Two")
first = Agent(name="First")
second = Agent(name="Second")
async def main():
    await asyncio.gather(Runner.run(first, "a"), Runner.run(second, "b"))
"""
    recovered = recover(folder, ("app.py", program))
    assert "O4" in member(recovered, "First").patterns & member(recovered, "Second").patterns
    assert "O4" not in member(recovered, "One").patterns


def test_nothing_of_the_code_is_run(folder: Path) -> None:
    witness = folder / "was-run"
    program = f"""\
from pathlib import Path
Path({str(witness)!r}).touch()
from pydantic_ai import Agent
helper = Agent("openai:gpt-4o", name=str(Path({str(witness)!r}).touch()))

@helper.tool_plain
def act(x: int = Path({str(witness)!r}).touch()) -> int:
    return x
"""
    (folder / "sitecustomize.py").write_text(program, encoding="utf-8")
    recovered = recover(folder, ("app.py", program), ("conftest.py", program))
    assert recovered.stack.agents
    assert not witness.exists()
    # The same text does write the file where it is run.
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it raises, it was run
        exec(compile(program.replace("from pydantic_ai", "raise SystemError\nfrom pydantic_ai"), "app", "exec"), {})
    assert witness.exists()


def test_links_that_leave_the_folder_are_not_followed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.py").write_text(
        "from pydantic_ai import Agent\nhidden = Agent('m', name='hidden')\n", encoding="utf-8"
    )
    (folder / "linked").symlink_to(outside)
    (folder / "link.py").symlink_to(outside / "secret.py")
    recovered = recover(
        folder, ("app.py", "from link import hidden\nfrom pydantic_ai import Agent\nown = Agent('m')\n")
    )
    assert [agent.name for agent in recovered.stack.agents] == ["own"]
    assert any("link" in each.what for each in recovered.unresolved)


@pytest.mark.parametrize(
    "text",
    [
        b"def (:\n",
        b"\xff\xfe\x00",
        b"x = '\x00'\n",
        b"(" * 5_000 + b")" * 5_000,
        b"x = " + b"-" * 50_000 + b"1\n",
        b"x = 1\n" * 200_000,
    ],
    ids=["syntax", "bytes", "null", "parentheses", "minus", "long"],
)
def test_a_file_that_cannot_be_read_is_said_and_the_others_go_on(folder: Path, text: bytes) -> None:
    (folder / "bad.py").write_bytes(text)
    recovered = recover(folder, ("app.py", PYDANTIC_AI_SAFE))
    assert [agent.name for agent in recovered.stack.agents] == ["support"]
    assert [Path(each.place.file or "").name for each in recovered.unresolved] == ["bad.py"]
    with pytest.raises(CatalogError) as caught:
        read_code(folder / "bad.py")
    assert caught.value.code == "stack.cannot-read"


def test_names_that_lead_in_circles_or_multiply_end(folder: Path) -> None:
    lines = ["from pydantic_ai import Agent", "a0 = a1 = a0", "tools0 = []"]
    lines += [f"tools{number + 1} = tools{number} + tools{number}" for number in range(40)]
    lines += [f"n{number} = n{number + 1}\nn{number} = n{number + 1}" for number in range(40)]
    lines += [
        "helper = Agent(n0, tools=tools40)",
        "other = Agent(a0, name=n0)",
        "def f(): return f()",
        "f().run_sync('x')",
    ]
    recovered = recover(folder, ("app.py", "\n".join(lines)))
    assert [agent.name for agent in recovered.stack.agents] == ["helper", "other"]
    lines = ["from langgraph.graph import StateGraph", "from langchain_openai import ChatOpenAI", "c0 = ChatOpenAI()"]
    lines += [f"c{number + 1} = c{number} | c{number}" for number in range(40)]
    lines += ["def ask(state): return c40.invoke(state)", "g = StateGraph(dict).add_node(ask).compile()"]
    assert [agent.name for agent in recover(folder, ("app.py", "\n".join(lines))).stack.agents] == ["g"]


def test_the_default_limit_is_that_of_pydantic_ai() -> None:
    assert UsageLimits().request_limit == 50


def test_clients_that_come_with_the_dependencies_are_followed(folder: Path) -> None:
    program = """\
from dataclasses import dataclass
import httpx
from pydantic_ai import Agent, RunContext

@dataclass
class Deps:
    client: httpx.AsyncClient
    key: str

helper = Agent("openai:gpt-4o", deps_type=Deps)

@helper.tool
async def lookup(ctx: RunContext[Deps], name: str) -> str:
    return (await ctx.deps.client.get(name)).text

@helper.tool
async def note(ctx: RunContext[Deps], text: str) -> str:
    return (await ctx.deps.client.post("https://example.org", json=text)).text

@helper.tool
async def key(ctx: RunContext[Deps]) -> str:
    return ctx.deps.key.upper()
"""
    agent = member(recover(folder, ("app.py", program)), "helper")
    assert agent.legs == ("untrusted_content", "external_comms")
    assert [(action.name, action.gate) for action in agent.actions or ()] == [("note", "none")]


@pytest.mark.parametrize(
    ("given", "gate"),
    [
        ("True", "V1"),
        ("decide", "V1"),
        ("lambda *given: True", "V1"),
        ("False", "none"),
        ("None", "none"),
        ("FLAG", "none"),
    ],
)
def test_only_what_surely_asks_is_a_gate(folder: Path, given: str, gate: str) -> None:
    program = f"""\
import os
from agents import Agent, function_tool
FLAG = bool(os.environ.get("ASK"))
async def decide(context, arguments, call): return True
@function_tool(needs_approval={given})
def delete_account(name: str) -> str: return name
helper = Agent(name="Helper", tools=[delete_account])
"""
    recovered = recover(folder, ("app.py", program))
    assert [action.gate for action in member(recovered, "Helper").actions or ()] == [gate]
    assert ("whether a person is asked" in str(recovered.unresolved)) is (given == "FLAG")


def test_a_name_says_what_a_body_does_not_show(folder: Path) -> None:
    program = """\
import sqlite3
from agents import Agent, function_tool

@function_tool
def send_report(mailer, to: str) -> str:
    rows = sqlite3.connect("orders.db").execute("select 1").fetchall()
    return mailer.deliver(to, rows)

helper = Agent(name="Helper", tools=[send_report])
"""
    recovered = recover(folder, ("app.py", program))
    assert member(recovered, "Helper").legs == ("private_data", "external_comms")
    (finding,) = [each for each in found(recovered, "LAW2") if each.path.endswith("send_report")]
    assert finding.basis == "inferred"


def test_two_tools_that_look_alike_do_not_hide_the_worse_one(folder: Path) -> None:
    program = """\
from agents import Agent, function_tool
@function_tool(name_override="delete.account")
def first(name: str) -> str: ...
@function_tool(name_override="delete_account", needs_approval=True)
def second(name: str) -> str: ...
"""
    for order in ("first, second", "second, first"):
        text = f"{program}helper = Agent(name='Helper', tools=[{order}])\n"
        agent = member(recover(folder, ("app.py", text)), "Helper")
        assert [(action.name, action.gate) for action in agent.actions or ()] == [("delete_account", "none")]


@pytest.mark.parametrize("turns", ["0", "-1", "True", "1" + "0" * 400, "2.5e300"])
def test_a_number_that_is_no_limit_is_not_taken_for_one(folder: Path, turns: str) -> None:
    program = (
        "from agents import Agent, Runner, WebSearchTool\nhelper = Agent(name='Helper', tools=[WebSearchTool()])\n"
    )
    recovered = recover(folder, ("app.py", f"{program}Runner.run_sync(helper, 'x', max_turns={turns})\n"))
    assert "V9" not in member(recovered, "Helper").patterns
    assert [each.place.line for each in recovered.unresolved] == [3]


def test_a_relative_import_is_not_taken_for_a_package_outside(folder: Path) -> None:
    (folder / "app.py").write_text("from .agents import Agent\nclerk = Agent(name='Clerk')\n", encoding="utf-8")
    for what in (folder, folder / "app.py"):
        with pytest.raises(CatalogError) as caught:
            read_code(what)
        assert caught.value.code == "stack.no-agent"


def test_broken_programs_end_in_a_stack_or_an_error(folder: Path) -> None:
    chance = random.Random(7)
    for program in (PYDANTIC_AI, PYDANTIC_AI_SAFE, LANGGRAPH, OPENAI_AGENTS):
        for _ in range(25):
            words = re.split(r"(\W)", program)
            for _ in range(chance.randint(1, 12)):
                at, other = chance.randrange(len(words)), chance.randrange(len(words))
                words[at] = chance.choice([words[other], "", "None", "*", "self.x", "[]", "lambda: 0"])
            (folder / "app.py").write_text("".join(words), encoding="utf-8")
            with suppress_codes("stack.no-agent", "stack.cannot-read"):
                lint_recovered(read_code(folder))
