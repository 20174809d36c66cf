"""What the readers of all frameworks share: agents by the calls that make them, their tools, runs and loops."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bicameral.catalog.frameworks._modules import (
    Defined,
    External,
    FunctionNode,
    Project,
    Scope,
    argument,
    hides_arguments,
    nodes_in,
)
from bicameral.catalog.frameworks._recovery import AgentDraft, ArchitectureDraft, safe_name
from bicameral.catalog.frameworks._tool_effects import (
    HOSTED_TOOLS,
    SANDBOXED_TOOLS,
    ToolEffects,
    effects_of_calls,
    effects_of_name,
)
from bicameral.errors import Place

MAX_TOOLS = 200
_BY_NAME = "judged by its name"
_MAX_BODIES = 40
"""Functions of the folder that are looked into for one tool."""
_PROMPTS = frozenset(
    {
        *("builtins.input", "click.prompt", "click.confirm", "typer.prompt", "typer.confirm"),
        *(f"rich.prompt.{kind}.ask" for kind in ("Prompt", "Confirm", "IntPrompt", "FloatPrompt")),
        *("rich.console.Console.input", "prompt_toolkit.prompt", "prompt_toolkit.PromptSession.prompt"),
        *("prompt_toolkit.PromptSession.prompt_async", "getpass.getpass"),
    }
)
"""Calls that wait for a line of a person."""
_APPROVAL_CALLS = frozenset(
    {"langgraph.types.interrupt", "pydantic_ai.ApprovalRequired", "pydantic_ai.exceptions.ApprovalRequired"}
)


@dataclass(frozen=True, slots=True)
class FoundTool:
    """A tool of an agent."""

    name: str
    place: Place
    claims: tuple[tuple[ToolEffects, str], ...] = ()
    """What it does, and on what that rests."""
    gated: bool | None = False
    """Whether a person is asked first; None if only the run of the program decides that."""
    sandboxed: bool = False
    delegates_to: AgentDraft | None = None
    shell_line: bool = False


def either(one: bool | None, other: bool | None) -> bool | None:
    """Whether one of two holds, as far as that is known."""
    return True if one or other else None if None in (one, other) else False


class CodeReader(ABC):
    """The base of a reader: agents are the calls that make them."""

    framework = ""
    packages: frozenset[str] = frozenset()
    """The packages without which there is nothing to read."""
    agent_calls: frozenset[str] = frozenset()
    """The qualified names of what makes an agent."""

    def __init__(self, project: Project, draft: ArchitectureDraft) -> None:
        self.project = project
        self.draft = draft
        self.agents: dict[int, AgentDraft] = {}
        """Agents by the call that makes each."""
        self.made: dict[str, tuple[ast.Call, Scope]] = {}
        self.tools: dict[str, dict[str, FoundTool]] = {}
        self.incomplete: set[str] = set()
        """Agents of which something could not be followed."""

    @abstractmethod
    def read(self) -> None:
        """Add the agents of this framework to the draft."""

    def find_agents(self) -> None:
        """Start an agent for each call that makes one."""
        if not any(self.packages & module.packages for module in self.project.modules.values()):
            return
        for call, scope in self.project.calls():
            if self.call_name(call, scope) in self.agent_calls:
                self.start_agent(call, scope, self._agent_name(call, scope))

    def start_agent(self, call: ast.Call, scope: Scope, name: str) -> AgentDraft:
        """A new agent for a call."""
        agent = self.draft.agent(name, scope.module.place(call), f"an agent of {self.framework} is made here")
        agent.visible.add("V1")
        self.agents[id(call)] = agent
        self.made[agent.name] = (call, scope)
        if hides_arguments(call):
            self.miss(agent, scope.module.place(call), "arguments of this call are only known when the program runs")
        return agent

    def miss(self, agent: AgentDraft | None, place: Place, what: str) -> None:
        """Note something that cannot be followed; what an agent lacks is then not certain any more."""
        self.draft.miss(place, what)
        if agent is not None:
            agent.visible.clear()
            self.incomplete.add(agent.name)

    def call_name(self, call: ast.Call, scope: Scope) -> str:
        """The qualified name of what is called."""
        return self.project.call_name(call, scope)

    def _agent_name(self, call: ast.Call, scope: Scope) -> str:
        given = argument(call, "name")
        name: Any = self.project.literal(given, scope) if given is not None else None
        return name if isinstance(name, str) and name.strip() else self.target_name(call, scope)

    def target_name(self, call: ast.Call, scope: Scope) -> str:
        """The name of the variable that holds what a call gives, or else of the function that returns it."""
        for above in scope.module.ancestors(call):
            match above:
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    return name
                case ast.Assign(targets=[ast.Attribute(attr=name)]):
                    return name
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    return name
                case ast.stmt() if not isinstance(above, ast.Return):
                    break
                case _:
                    pass
        return "agent"

    def agent_of(self, node: ast.AST, scope: Scope, hops: int = 8) -> AgentDraft | None:
        """The agent that an expression stands for, also where a function of the folder makes it."""
        found = self.project.resolve(node, scope)
        if not isinstance(found, Defined) or not isinstance(found.node, ast.Call) or hops <= 0:
            return None
        if id(found.node) in self.agents:
            return self.agents[id(found.node)]
        maker = self.project.resolve(found.node.func, found.scope)
        if isinstance(maker, Defined) and isinstance(maker.node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = maker.scope.module.scopes[id(maker.node)]
            given = [each.value for each in nodes_in(maker.node) if isinstance(each, ast.Return) and each.value]
            return self.agent_of(given[0], inner, hops - 1) if len(given) == 1 else None
        return None

    def agents_of(self, node: ast.AST, scope: Scope) -> list[AgentDraft]:
        """The agents that an expression may stand for: a name may be bound to several, one after another."""
        one = self.agent_of(node, scope)
        if one is not None or not isinstance(node, ast.Name):
            return [] if one is None else [one]
        known = (self.agent_of(value, at) for value, at in self.project.assigned(node.id, scope))
        return [*dict.fromkeys(each for each in known if each is not None)]

    def set_model(self, agent: AgentDraft, node: ast.expr | None, scope: Scope) -> None:
        """Note the model of an agent: a name, or an object that is made with one."""
        if node is None:
            return
        found = self.project.resolve(node, scope)
        if not isinstance(found, Defined):
            return
        if isinstance(found.node, ast.Call):
            if self.call_name(found.node, found.scope).endswith(".FallbackModel"):
                agent.use("V19", found.place, "another model answers where the first fails")
            name = argument(found.node, "model_name", 0) or argument(found.node, "model")
            value: Any = self.project.literal(name, found.scope) if name is not None else ...
        else:
            value = self.project.literal(node, scope)
        if isinstance(value, str):
            agent.model = safe_name(value)

    def add_tools(self, agent: AgentDraft, node: ast.expr | None, scope: Scope) -> None:
        """Add the tools of a list to an agent."""
        if node is None:
            return
        for item in self.project.items(node, scope):
            if isinstance(item, Place):
                self.miss(agent, item, "which tools these are is only known when the program runs")
            else:
                self.add_tool(agent, self.find_tool(agent, *item))

    def add_tool(self, agent: AgentDraft, tool: FoundTool | None) -> None:
        """Add a tool to an agent."""
        known = self.tools.setdefault(agent.name, {})
        if tool is not None and len(known) < MAX_TOOLS:
            known.setdefault(tool.name, tool)

    def find_tool(self, agent: AgentDraft, node: ast.expr, scope: Scope) -> FoundTool | None:
        """The tool that an item of a list of tools is."""
        found = self.project.resolve(node, scope)
        if isinstance(found, External):
            return self.tool_by_name(found.name.rpartition(".")[2], scope.module.place(node))
        if found is None:
            self.miss(agent, scope.module.place(node), "which tool this is is only known when the program runs")
            return None
        if isinstance(found.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return self.tool_of_function(found.node, found.scope)
        if isinstance(found.node, ast.Call):
            return self.tool_of_call(agent, found.node, found.scope)
        self.miss(agent, found.place, "which tool this is is only known when the program runs")
        return None

    def tool_of_call(self, agent: AgentDraft, call: ast.Call, scope: Scope) -> FoundTool | None:
        """The tool that a call makes: a wrapped function, or one that the framework brings."""
        name = self.call_name(call, scope).rpartition(".")[2]
        inner = argument(call, "function") or argument(call, "func") or (call.args[0] if call.args else None)
        if name in ("Tool", "StructuredTool", "from_function", "function_tool", "tool") and inner is not None:
            tool = self.find_tool(agent, inner, scope)
            return None if tool is None else replace(tool, gated=either(tool.gated, self.asks_first(call, scope)))
        if not name:
            self.miss(agent, scope.module.place(call), "which tool this makes is only known when the program runs")
            return None
        tool = self.tool_by_name(name, scope.module.place(call))
        return replace(tool, gated=self.asks_first(call, scope))

    def tool_by_name(self, name: str, place: Place) -> FoundTool:
        """A tool of which no more than its name is known."""
        if name in HOSTED_TOOLS:
            why = f"{self.framework} says so"
            return FoundTool(name, place, ((HOSTED_TOOLS[name], why),), sandboxed=name in SANDBOXED_TOOLS)
        return FoundTool(name, place, ((effects_of_name(name), _BY_NAME),))

    def asks_first(self, call: ast.Call, scope: Scope) -> bool | None:
        """Whether a call declares that a person is asked before the tool is called; None if that is not known."""
        given = argument(call, "requires_approval") or argument(call, "needs_approval")
        if given is None:
            return False
        found = self.project.resolve(given, scope)
        decides = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
        if isinstance(found, Defined) and isinstance(found.node, decides):
            # A function that decides for each call is a gate, too.
            return True
        value: Any = self.project.literal(given, scope)
        if value is ...:
            self.draft.miss(scope.module.place(given), "whether a person is asked is only known when the program runs")
            return None
        return value is True

    def tool_of_function(self, function: FunctionNode, scope: Scope) -> FoundTool:
        """A tool that is a function of the folder, judged by what its body calls, and by its name.

        The name counts where the body shows no effect: a call that cannot be followed may have one.
        """
        gated: bool | None = False
        shell_line, writes = False, False
        names: list[str] = []
        for call, inner in self._calls_below(function, scope):
            name = self.call_name(call, inner)
            names.append(name.removeprefix("builtins."))
            gated = gated or name in _APPROVAL_CALLS
            writes = writes or (name == "builtins.open" and self._opens_to_write(call, inner))
            shell_line = shell_line or self._is_shell_line(name, call, inner)
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call):
                gated = either(gated, self.asks_first(decorator, scope))
        effects = effects_of_calls(names, writes_files=writes)
        claims = [(effects, "seen in its body")] if effects.has_any else []
        if not effects.acts:
            claims += [(effects_of_name(name), _BY_NAME) for name in self.tool_names(function, scope)]
        place = scope.module.place(function)
        return FoundTool(self.tool_names(function, scope)[0], place, tuple(claims), gated, shell_line=shell_line)

    def tool_names(self, function: FunctionNode, scope: Scope) -> Sequence[str]:
        """The name by which the model knows a tool, and others that it has."""
        return (function.name,)

    def _calls_below(self, function: FunctionNode, scope: Scope) -> Iterator[tuple[ast.Call, Scope]]:
        """The calls in a function, and in the functions of the folder that it calls."""
        waiting: list[tuple[FunctionNode, Scope]] = [(function, scope)]
        seen = {id(function)}
        while waiting and len(seen) <= _MAX_BODIES:
            each, at = waiting.pop()
            inner = at.module.scopes[id(each)]
            for node in nodes_in(each):
                if isinstance(node, ast.Call) and not any(node is made for made in each.decorator_list):
                    yield node, inner
                    called = self.project.resolve(node.func, inner)
                    if not isinstance(called, Defined) or id(called.node) in seen:
                        continue
                    if isinstance(called.node, ast.FunctionDef | ast.AsyncFunctionDef):
                        seen.add(id(called.node))
                        waiting.append((called.node, called.scope))

    def _opens_to_write(self, call: ast.Call, scope: Scope) -> bool:
        mode = argument(call, "mode", 1)
        value: Any = self.project.literal(mode, scope) if mode is not None else "r"
        return not isinstance(value, str) or any(letter in value for letter in "wax+")

    def _is_shell_line(self, name: str, call: ast.Call, scope: Scope) -> bool:
        if name in ("os.system", "os.popen", "asyncio.create_subprocess_shell"):
            return True
        shell = argument(call, "shell")
        return name.startswith("subprocess.") and shell is not None and self.project.literal(shell, scope) is not False

    def describe_tools(self, agent: AgentDraft) -> None:
        """Describe the tools of an agent: their number, the legs and actions that they bring, and their gates."""
        tools = [*self.tools.get(agent.name, {}).values()]
        if not tools:
            return
        exact = agent.name not in self.incomplete
        agent.count_tools(len(tools), tools[0].place, "the tools that the code gives to the agent", certain=exact)
        agent.use("I2", tools[0].place, "the model calls tools")
        agent.use("S6", tools[0].place, f"{self.framework} makes a schema of the arguments of each tool")
        agent.use("V20", tools[0].place, f"{self.framework} checks the arguments of each call against the schema")
        for tool in tools:
            self._describe_tool(agent, tool)

    def _describe_tool(self, agent: AgentDraft, tool: FoundTool) -> None:
        if tool.delegates_to is not None:
            agent.use("O6", tool.place, f"the agent {tool.delegates_to.name!r} is one of its tools")
            agent.use("O17", tool.place, "an agent that is a tool begins with a context of its own")
        for effects, why in tool.claims:
            if tool.gated is None:
                # No gate is seen, so that none counts; but there may be one.
                effects, why = replace(effects, certain=False), f"{why}; whether a person is asked is not known"
            gate = "V1" if tool.gated else "none"
            agent.add_tool_effects(tool.name, effects, tool.place, gate=gate, why=why, sandboxed=tool.sandboxed)
        if tool.gated:
            agent.use("V1", tool.place, f"a person is asked before {safe_name(tool.name)!r} is called")
        for effects, _ in tool.claims:
            if effects.runs_code:
                agent.use("R13", tool.place, f"tool {safe_name(tool.name)!r} runs code", certain=effects.certain)
            if effects.runs_commands:
                agent.use("I4", tool.place, f"tool {safe_name(tool.name)!r} runs commands", certain=effects.certain)
        if tool.sandboxed:
            agent.use("V8", tool.place, "the provider runs the code apart from the agent")
        if tool.shell_line:
            agent.add_fact("shell_strings", True, tool.place, "a shell reads the line that the tool makes")

    def spread_untrusted(self, flows: Iterable[tuple[AgentDraft, AgentDraft, Place]]) -> None:
        """Carry untrusted text from agents that read it to agents that read what those wrote."""
        known = [*flows]
        delegations = (
            (tool.delegates_to, agent, tool.place)
            for agent in self.agents.values()
            for tool in self.tools.get(agent.name, {}).values()
            if tool.delegates_to is not None
        )
        known += delegations
        changed = True
        while changed:
            changed = False
            for source, target, place in known:
                certain = source.leg("untrusted_content")
                if certain is not None and target.leg("untrusted_content") is None:
                    what = f"it reads what {source.name!r} wrote, which has read untrusted text"
                    target.add_leg("untrusted_content", place, what, certain=certain)
                    changed = True

    def loops_over_tools(self, agent: AgentDraft) -> bool:
        """Whether the model may be called more than once in a run: it has tools, or may have some."""
        return bool(self.tools.get(agent.name)) or agent.name in self.incomplete

    def describe_repeats(self, agent: AgentDraft, call: ast.Call, scope: Scope) -> None:
        """Describe the loop of the program in which an agent is run."""
        for above in scope.module.ancestors(call):
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                return
            place = scope.module.place(above)
            if isinstance(above, ast.While) and isinstance(above.test, ast.Constant) and above.test.value:
                if not self._asks_user(above, scope) and not _counts_rounds(above):
                    name = f"while at line {place.line}"
                    leaves = any(isinstance(each, ast.Break | ast.Return) for each in nodes_in(above))
                    exit = "the code leaves it" if leaves else None
                    agent.add_loop(name, place, "the agent is run in a loop that counts nothing", exit=exit)
                return

    def _asks_user(self, loop: ast.While, scope: Scope) -> bool:
        """Whether a loop waits for a line of a person in each round, as a chat does."""
        for call in (each for each in nodes_in(loop) if isinstance(each, ast.Call)):
            if self.call_name(call, scope) in _PROMPTS:
                return True
            called = self.project.resolve(call.func, scope)
            if not isinstance(called, Defined) or not isinstance(called.node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if any(self.call_name(*each) in _PROMPTS for each in self._calls_below(called.node, called.scope)):
                return True
        return False

    def describe_parallel(self, calls: Iterable[tuple[ast.Call, Scope, AgentDraft]]) -> None:
        """Describe the runs of agents that `asyncio.gather` or a task group starts side by side."""
        for call, scope, agent in calls:
            for above in scope.module.ancestors(call):
                if isinstance(above, ast.stmt):
                    break
                if isinstance(above, ast.Call) and self.call_name(above, scope) in ("asyncio.gather", "asyncio.wait"):
                    agent.use("O4", scope.module.place(above), "runs of agents are started side by side")

    def time_limit(self, call: ast.Call, scope: Scope) -> float | None:
        """The seconds after which a run is stopped by the code around it."""
        for above in scope.module.ancestors(call):
            if isinstance(above, ast.Call) and self.call_name(above, scope) == "asyncio.wait_for":
                return self.number(argument(above, "timeout", 1), scope)
            if isinstance(above, ast.AsyncWith):
                for item in above.items:
                    timer = item.context_expr
                    if isinstance(timer, ast.Call) and self.call_name(timer, scope) == "asyncio.timeout":
                        return self.number(argument(timer, "delay", 0), scope)
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
                return None
        return None

    def number(self, node: ast.expr | None, scope: Scope) -> float | None:
        """A number above 0 that an expression stands for."""
        value: Any = self.project.literal(node, scope) if node is not None else None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return value if is_number and 0 < value < 1e15 else None


def _counts_rounds(loop: ast.While) -> bool:
    """Whether a loop counts up or down and compares that number."""
    steps = (each.target for each in nodes_in(loop) if isinstance(each, ast.AugAssign))
    counters = {each.id for each in steps if isinstance(each, ast.Name)}
    compared = (part for each in nodes_in(loop) if isinstance(each, ast.Compare) for part in ast.walk(each))
    return any(isinstance(part, ast.Name) and part.id in counters for part in compared)
