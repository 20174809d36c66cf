"""Programs in the style of three frameworks, as texts: they are parsed and never run."""

from __future__ import annotations

PYDANTIC_AI = '''\
from dataclasses import dataclass

import httpx
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext, UsageLimits


@dataclass
class Deps:
    client: httpx.AsyncClient


class Reply(BaseModel):
    text: str
    urgent: bool


support = Agent("openai:gpt-4o", deps_type=Deps, output_type=Reply, system_prompt="Help the customer.")


@support.tool
async def read_page(ctx: RunContext[Deps], url: str) -> str:
    """Read a page of the web."""
    async with httpx.AsyncClient() as client:
        answer = await client.get(url)
        return answer.text


@support.tool_plain
def refund_order(number: int) -> str:
    """Pay the money of an order back."""
    return gateway_refund(number)


async def main(question: str) -> Reply:
    result = await support.run(question, deps=Deps(httpx.AsyncClient()))
    return result.output
'''

PYDANTIC_AI_SAFE = '''\
import asyncio

import logfire
from pydantic_ai import Agent, Tool, UsageLimits

logfire.instrument_pydantic_ai()
LIMITS = UsageLimits(request_limit=8, total_tokens_limit=20_000)


def refund_order(number: int) -> str:
    """Pay the money of an order back."""
    return str(number)


support = Agent("openai:gpt-4o", name="support", tools=[Tool(refund_order, requires_approval=True)])


async def main(question: str) -> str:
    result = await asyncio.wait_for(support.run(question, usage_limits=LIMITS), timeout=60)
    return result.output
'''

LANGGRAPH = '''\
from typing import Annotated, TypedDict

import requests
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode


class State(TypedDict):
    messages: Annotated[list, add_messages]


@tool
def browse(url: str) -> str:
    """Read a page of the web."""
    return requests.get(url, timeout=10).text


@tool
def post_comment(text: str) -> str:
    """Write a comment that everybody can read."""
    return requests.post("https://example.org/comments", json={"text": text}, timeout=10).text


TOOLS = [browse, post_comment]
llm = ChatOpenAI(model="gpt-4o-mini").bind_tools(TOOLS)


def call_model(state: State):
    return {"messages": [llm.invoke(state["messages"])]}


def should_continue(state: State):
    if state["messages"][-1].tool_calls:
        return "tools"
    return END


builder = StateGraph(State)
builder.add_node("model", call_model)
builder.add_node("tools", ToolNode(TOOLS))
builder.add_edge(START, "model")
builder.add_conditional_edges("model", should_continue)
builder.add_edge("tools", "model")
assistant = builder.compile()


def answer(question: str):
    return assistant.invoke({"messages": [("user", question)]})
'''

OPENAI_AGENTS = '''\
import asyncio
import subprocess

from agents import Agent, Runner, WebSearchTool, function_tool, handoff


@function_tool
def run_line(line: str) -> str:
    """Run a line in a shell."""
    return subprocess.run(line, shell=True, capture_output=True, text=True).stdout


research = Agent(name="Research", instructions="Find facts.", tools=[WebSearchTool()])
fixer = Agent(name="Fixer", instructions="Repair the machine.", model="gpt-4.1", tools=[WebSearchTool(), run_line])
triage = Agent(name="Triage", instructions="Choose who helps.", handoffs=[research, handoff(fixer)])


async def main() -> None:
    result = await Runner.run(triage, "My disk is full.", max_turns=None)
    print(result.final_output)


asyncio.run(main())
'''
