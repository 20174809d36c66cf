"""Agents of pydantic-ai, read from code: tools, output types, usage limits, approvals, delegation, instrumentation."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from bicameral.catalog.frameworks._code_reader import CodeReader, FoundTool
from bicameral.catalog.frameworks._graphs import END, AgentGraph
from bicameral.catalog.frameworks._modules import Defined, FunctionNode, Scope, argument
from bicameral.catalog.frameworks._recovery import AgentDraft
from bicameral.catalog.frameworks._tool_effects import HOSTED_TOOLS
from bicameral.errors import Place

_RUNS = frozenset({"run", "run_sync", "run_stream", "run_stream_events", "iter", "to_cli", "to_cli_sync"})
_TOOL_CAPABILITIES = frozenset({"Toolset", "NativeTool", "LocalWorkspace", "Capability"})
_DEFAULT_REQUESTS = 50
"""`UsageLimits.request_limit` where nobody sets it, since 0.0.20."""


_GRAPHS = frozenset({"pydantic_graph.Graph", "pydantic_graph.graph.Graph"})


def _annotation_names(annotation: ast.expr | None) -> set[str]:
    """The names in an annotation, those in quotes included, without what stands in brackets."""
    found: set[str] = set()
    waiting: list[ast.AST] = [annotation] if annotation is not None else []
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.add(name)
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                waiting += [left, right]
            case ast.Subscript(value=ast.Name(id="Union"), slice=ast.Tuple(elts=elements)):
                waiting += elements
            case ast.Subscript(value=value):
                waiting.append(value)
            case ast.Constant(value=str() as text) if len(text) < 500:
                try:
                    waiting.append(ast.parse(text, mode="eval").body)
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    continue
            case _:
                continue
    return found


class PydanticAIReader(CodeReader):
    """Reads agents of pydantic-ai."""

    framework = "pydantic-ai"
    packages = frozenset({"pydantic_ai", "pydantic_graph"})
    agent_calls = frozenset({"pydantic_ai.Agent", "pydantic_ai.agent.Agent", *_GRAPHS})

    def read(self) -> None:
        self.find_agents()
        if not self.agents:
            return
        graphs: list[AgentGraph] = []
        for agent in [*self.agents.values()]:
            call, scope = self.made[agent.name]
            if self.call_name(call, scope) in _GRAPHS:
                graphs.append(self._read_graph(agent, call, scope))
            else:
                self._read_arguments(agent, call, scope)
        self._read_decorators()
        self._read_runs()
        for agent in self.agents.values():
            self.describe_tools(agent)
            if agent.uses("I2"):
                agent.use("R4", agent.place, "pydantic-ai calls the model again after each tool")
        for graph in graphs:
            graph.describe()
        # The nodes of a graph share its state.
        self.spread_untrusted((sub, graph.agent, at) for graph in graphs for sub, at in graph.subagents.values())

    def _read_graph(self, agent: AgentDraft, call: ast.Call, scope: Scope) -> AgentGraph:
        """A graph of pydantic-graph: what `run` of a node may return are the nodes that come next."""
        graph = AgentGraph(agent)
        given = argument(call, "nodes", 0)
        nodes: dict[str, Defined] = {}
        for item in self.project.items(given, scope) if given is not None else ():
            found = None if isinstance(item, Place) else self.project.resolve(*item)
            if isinstance(found, Defined) and isinstance(found.node, ast.ClassDef):
                nodes[found.node.name] = found
            else:
                self.miss(agent, scope.module.place(call), "which nodes these are is only known when the program runs")
        for name, found in nodes.items():
            graph.nodes[name] = found.place
            body = found.node.body if isinstance(found.node, ast.ClassDef) else []
            for each in body:
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == "run":
                    self._read_graph_node(graph, name, each, found.scope.module.scopes[id(found.node)])
        # A graph counts no steps, so that a limit would be seen nowhere else.
        agent.visible.add("V9")
        return graph

    def _read_graph_node(self, graph: AgentGraph, name: str, run: FunctionNode, scope: Scope) -> None:
        place = scope.module.place(run)
        following = _annotation_names(run.returns)
        if len(following) > 1:
            graph.branches[name] = place
        for each in sorted(following):
            graph.connect(name, END if each == "End" else each, place)
        for call, inner in self._calls_below(run, scope):
            if isinstance(call.func, ast.Attribute) and call.func.attr in _RUNS:
                other = self.agent_of(call.func.value, inner)
                if other is not None and other is not graph.agent:
                    graph.subagents[name] = (other, inner.module.place(call))

    def _read_arguments(self, agent: AgentDraft, call: ast.Call, scope: Scope) -> None:
        self.set_model(agent, argument(call, "model", 0), scope)
        for name in ("tools", "builtin_tools"):
            self.add_tools(agent, argument(call, name), scope)
        self._read_capabilities(agent, argument(call, "capabilities"), scope)
        for name in ("toolsets", "mcp_servers"):
            self._read_toolsets(agent, argument(call, name), scope)
        output = argument(call, "output_type") or argument(call, "result_type")
        if output is not None and not (isinstance(output, ast.Name) and output.id == "str"):
            place = scope.module.place(output)
            agent.use("S6", place, "the output has a type")
            agent.use("V20", place, "the output is validated, and the model is asked again where it does not fit")
        if (given := argument(call, "instrument")) is not None and self.project.literal(given, scope) is not False:
            agent.use("V14", scope.module.place(given), "runs are traced")

    def _read_capabilities(self, agent: AgentDraft, node: ast.expr | None, scope: Scope) -> None:
        """Capabilities bring tools, tracing or other models; those that do none of this are left out."""
        for item in self.project.items(node, scope) if node is not None else ():
            if isinstance(item, Place):
                self.miss(agent, item, "which capabilities these are is only known when the program runs")
                continue
            found = self.project.resolve(*item)
            place = item[1].module.place(item[0])
            if not isinstance(found, Defined) or not isinstance(found.node, ast.Call):
                self.miss(agent, place, "which capability this is is only known when the program runs")
                continue
            name = self.call_name(found.node, found.scope).rpartition(".")[2]
            if name == "Instrumentation":
                agent.use("V14", place, "runs are traced")
            elif name == "ModelFallback":
                agent.use("V19", place, "another model answers where the first fails")
            elif name in HOSTED_TOOLS:
                self.add_tool(agent, self.tool_by_name(name, place))
            elif name == "MCP":
                agent.use("I3", place, "tools of an MCP server")
                self.miss(agent, place, "the tools of an MCP server are not in the code")
            elif name in _TOOL_CAPABILITIES or not name:
                self.miss(agent, place, "the tools of this capability are not followed")

    def _read_toolsets(self, agent: AgentDraft, node: ast.expr | None, scope: Scope) -> None:
        for item in self.project.items(node, scope) if node is not None else ():
            if isinstance(item, Place):
                self.miss(agent, item, "which toolsets these are is only known when the program runs")
                continue
            found = self.project.resolve(*item)
            if not isinstance(found, Defined) or not isinstance(found.node, ast.Call):
                self.miss(agent, item[1].module.place(item[0]), "which toolset this is is only known when it runs")
                continue
            self._read_toolset(agent, found.node, found.scope)

    def _read_toolset(self, agent: AgentDraft, call: ast.Call, scope: Scope) -> None:
        name = self.call_name(call, scope).rpartition(".")[2]
        if name == "FunctionToolset":
            self.add_tools(agent, argument(call, "tools", 0), scope)
            for function, at in self._decorated(call, ("tool", "tool_plain")):
                self.add_tool(agent, self.tool_of_function(function, at))
        elif name.startswith("MCP"):
            agent.use("I3", scope.module.place(call), "tools of an MCP server")
            self.miss(agent, scope.module.place(call), "the tools of an MCP server are not in the code")
        else:
            self.miss(agent, scope.module.place(call), "the tools of this toolset are not followed")

    def _decorated(self, owner: ast.Call, names: tuple[str, ...]) -> list[tuple[FunctionNode, Scope]]:
        """The functions that have a method of an object as their decorator."""
        found: list[tuple[FunctionNode, Scope]] = []
        for module in self.project.modules.values():
            for function, scope in module.functions:
                for decorator in function.decorator_list:
                    method = decorator.func if isinstance(decorator, ast.Call) else decorator
                    if isinstance(method, ast.Attribute) and method.attr in names:
                        target = self.project.resolve(method.value, scope)
                        if isinstance(target, Defined) and target.node is owner:
                            found.append((function, scope))
        return found

    def _read_decorators(self) -> None:
        """`@agent.tool`, `@agent.tool_plain` and `@agent.output_validator`, and the same as plain calls."""
        for module in self.project.modules.values():
            for function, scope in module.functions:
                for decorator in function.decorator_list:
                    method = decorator.func if isinstance(decorator, ast.Call) else decorator
                    self._read_method(method, function, scope)
        for call, scope in self.project.calls():
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("tool", "tool_plain") and call.args:
                agent = self.agent_of(call.func.value, scope)
                if agent is not None:
                    self.add_tool(agent, self.find_tool(agent, call.args[0], scope))

    def _read_method(self, method: ast.expr, function: FunctionNode, scope: Scope) -> None:
        if not isinstance(method, ast.Attribute):
            return
        agent = self.agent_of(method.value, scope)
        if agent is None:
            return
        place = scope.module.place(function)
        if method.attr in ("tool", "tool_plain"):
            self.add_tool(agent, self._delegating_tool(function, scope))
        elif method.attr in ("output_validator", "result_validator"):
            agent.use("V20", place, "a function of the program checks the output")

    def _delegating_tool(self, function: FunctionNode, scope: Scope) -> FoundTool:
        """A tool, and the agent that it runs in its body."""
        tool = self.tool_of_function(function, scope)
        for call, inner in self._calls_below(function, scope):
            if isinstance(call.func, ast.Attribute) and call.func.attr in _RUNS:
                other = self.agent_of(call.func.value, inner)
                if other is not None:
                    return replace(tool, delegates_to=other)
        return tool

    def _read_runs(self) -> None:
        runs: list[tuple[ast.Call, Scope, AgentDraft]] = []
        for call, scope in self.project.calls():
            name = self.call_name(call, scope)
            place = scope.module.place(call)
            if name.endswith((".instrument_pydantic_ai", "Agent.instrument_all")):
                for agent in self.agents.values():
                    agent.use("V14", place, "runs are traced")
            elif name.rpartition(".")[2] in ("DBOSAgent", "TemporalAgent", "PrefectAgent") and call.args:
                agent = self.agent_of(call.args[0], scope)
                if agent is not None:
                    agent.use("V10", place, "runs are saved step by step, and go on after a crash")
                    agent.use("V12", place, "the framework keeps the state of a run", certain=False)
            elif isinstance(call.func, ast.Attribute) and call.func.attr in _RUNS:
                runs += ((call, scope, agent) for agent in self.agents_of(call.func.value, scope))
        for call, scope, agent in runs:
            if self.call_name(*self.made[agent.name]) not in _GRAPHS:
                self._read_limits(agent, call, scope)
            self.describe_repeats(agent, call, scope)
        self.describe_parallel(runs)
        for agent in self.agents.values():
            if all(agent is not each for _, _, each in runs):
                self.draft.miss(
                    agent.place, f"no run of the agent {agent.name!r} is found, so its limits are not known"
                )

    def _read_limits(self, agent: AgentDraft, call: ast.Call, scope: Scope) -> None:
        """The limits of one run; where several runs differ, the last one that lacks something counts."""
        if not self.loops_over_tools(agent):
            # Its model is called once, and again only where the output does not fit, which pydantic-ai limits.
            return
        place = scope.module.place(call)
        given = argument(call, "usage_limits")
        seconds = self.time_limit(call, scope)
        exit = "the model answers without calling a tool"
        if given is None:
            what = f"no usage_limits: the default of {_DEFAULT_REQUESTS} requests holds"
            agent.add_loop("run", place, what, certain=False, steps=_DEFAULT_REQUESTS, seconds=seconds, exit=exit)
            agent.use("V9", place, what, certain=False)
            return
        found = self.project.resolve(given, scope)
        if not isinstance(found, Defined) or not isinstance(found.node, ast.Call):
            self.miss(agent, place, "the limits of this run are only known when the program runs")
            return
        limits = found.node
        agent.visible.add("V9")
        steps = argument(limits, "request_limit")
        value: Any = self.project.literal(steps, found.scope) if steps is not None else _DEFAULT_REQUESTS
        most = self.number(steps, found.scope) if steps is not None else _DEFAULT_REQUESTS
        names = ("total_tokens_limit", "output_tokens_limit", "input_tokens_limit", "response_tokens_limit")
        tokens = next((cap for name in names if (cap := self.number(argument(limits, name), found.scope))), None)
        if value is None:
            agent.add_loop("run", place, "request_limit is None", tokens=tokens, seconds=seconds, exit=exit)
        elif most is not None:
            agent.add_loop(
                "run", place, "usage_limits are given", steps=most, tokens=tokens, seconds=seconds, exit=exit
            )
            agent.use("V9", place, "usage_limits are given")
        else:
            what = "usage_limits are given"
            agent.add_loop("run", place, what, certain=False, tokens=tokens, seconds=seconds, exit=exit)
            agent.use("V9", place, what)
            self.miss(agent, found.place, "the request limit is only known when the program runs")
