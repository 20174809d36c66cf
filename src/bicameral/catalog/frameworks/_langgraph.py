"""Graphs and agents of LangGraph and LangChain, read from code: nodes, edges, tools, limits, interrupts."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from bicameral.catalog.frameworks._code_reader import CodeReader
from bicameral.catalog.frameworks._graphs import END, START, AgentGraph
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
from bicameral.errors import Place

_GRAPHS = frozenset(
    f"langgraph.graph.{prefix}{name}" for prefix in ("", "state.") for name in ("StateGraph", "MessageGraph")
)
_REACT = frozenset(
    {
        *("langgraph.prebuilt.create_react_agent", "langgraph.prebuilt.chat_agent_executor.create_react_agent"),
        *("langchain.agents.create_agent", "langchain.agents.factory.create_agent"),
    }
)
_TEAMS = frozenset({"langgraph_supervisor.create_supervisor", "langgraph_swarm.create_swarm"})
_TOOL_NODES = frozenset({"langgraph.prebuilt.ToolNode", "langgraph.prebuilt.tool_node.ToolNode"})
_FLUENT = frozenset(
    {
        *("add_node", "add_edge", "add_conditional_edges", "add_sequence", "set_entry_point", "set_finish_point"),
        *("set_conditional_entry_point", "compile", "with_config"),
    }
)
"""Methods of a graph that give the graph."""
_MODEL_METHODS = frozenset(
    {"bind_tools", "with_structured_output", "bind", "with_config", "with_retry", "with_fallbacks"}
)
_RUNS = frozenset({"invoke", "ainvoke", "stream", "astream", "astream_events", "batch", "abatch"})
MAX_NODES = 300
_MAX_CHAIN = 500


class LangGraphReader(CodeReader):
    """Reads graphs and agents of LangGraph and LangChain."""

    framework = "LangGraph"
    packages = frozenset({"langgraph", "langchain", "langgraph_supervisor", "langgraph_swarm"})
    agent_calls = _GRAPHS | _REACT | _TEAMS

    def __init__(self, project: Project, draft: ArchitectureDraft) -> None:
        super().__init__(project, draft)
        self._team_flows: list[tuple[AgentDraft, AgentDraft, Place]] = []

    def read(self) -> None:
        self.find_agents()
        if not self.agents:
            return
        graphs: dict[str, AgentGraph] = {}
        for agent in self.agents.values():
            call, scope = self.made[agent.name]
            name = self.call_name(call, scope)
            if name in _GRAPHS:
                graphs[agent.name] = AgentGraph(agent)
            elif name in _REACT:
                self._read_react(agent, call, scope)
            else:
                self._read_team(agent, name, call, scope)
        self._read_methods(graphs)
        self._read_runs()
        for agent in self.agents.values():
            self.describe_tools(agent)
        for graph in graphs.values():
            graph.describe()
        # The agents of a graph, and of a team, share its messages.
        inner = [(graph.agent, sub, place) for graph in graphs.values() for sub, place in graph.subagents.values()]
        outer = [(sub, agent, place) for agent, sub, place in inner]
        self.spread_untrusted([*outer, *inner, *self._team_flows])

    def target_name(self, call: ast.Call, scope: Scope) -> str:
        name = super().target_name(call, scope)
        if self.call_name(call, scope) not in _GRAPHS:
            return name
        # A graph is known by the name of what it is compiled to.
        for other, at in scope.module.calls:
            if isinstance(other.func, ast.Attribute) and other.func.attr == "compile" and self._root(other, at) is call:
                given = argument(other, "name")
                value: Any = self.project.literal(given, at) if given is not None else None
                return value if isinstance(value, str) and value else super().target_name(other, at)
        return name

    def _root(self, node: ast.AST, scope: Scope, methods: frozenset[str] = _FLUENT) -> ast.Call | None:
        """The call at the beginning of a chain of methods."""
        for _ in range(_MAX_CHAIN):
            found = self.project.resolve(node, scope)
            if not isinstance(found, Defined) or not isinstance(found.node, ast.Call):
                return None
            call = found.node
            if not isinstance(call.func, ast.Attribute) or call.func.attr not in methods:
                return call
            node, scope = call.func.value, found.scope
        return None

    def agent_of(self, node: ast.AST, scope: Scope, hops: int = 8) -> AgentDraft | None:
        root = self._root(node, scope)
        if root is not None and id(root) in self.agents:
            return self.agents[id(root)]
        found = self.project.resolve(node, scope)
        if hops <= 0 or root is None or not isinstance(found, Defined):
            return None
        maker = self.project.resolve(root.func, found.scope)
        if isinstance(maker, Defined) and isinstance(maker.node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = maker.scope.module.scopes[id(maker.node)]
            given = [each.value for each in nodes_in(maker.node) if isinstance(each, ast.Return) and each.value]
            return self.agent_of(given[0], inner, hops - 1) if len(given) == 1 else None
        return None

    def _is_tool_node(self, found: Defined) -> bool:
        return isinstance(found.node, ast.Call) and self.call_name(found.node, found.scope) in _TOOL_NODES

    def _read_react(self, agent: AgentDraft, call: ast.Call, scope: Scope) -> None:
        self.set_model(agent, argument(call, "model", 0), scope)
        tools = argument(call, "tools", 1)
        found = self.project.resolve(tools, scope) if tools is not None else None
        if isinstance(found, Defined) and self._is_tool_node(found):
            assert isinstance(found.node, ast.Call)
            tools, scope = argument(found.node, "tools", 0), found.scope
        self.add_tools(agent, tools, scope)
        self._read_compile(agent, call, scope)
        if (given := argument(call, "response_format")) is not None:
            agent.use("S6", scope.module.place(given), "the output has a type")
            agent.use("V20", scope.module.place(given), "the output is checked against its type")
        middleware = argument(call, "middleware")
        for item in self.project.items(middleware, scope) if middleware is not None else ():
            if isinstance(item, Place):
                self.miss(agent, item, "which middleware this is is only known when the program runs")
            else:
                self._read_middleware(agent, *item)
        if self.tools.get(agent.name):
            agent.use("R4", agent.place, "the agent calls the model again after each tool")

    def _read_middleware(self, agent: AgentDraft, node: ast.expr, scope: Scope) -> None:
        found = self.project.resolve(node, scope)
        if not isinstance(found, Defined) or not isinstance(found.node, ast.Call):
            self.miss(agent, scope.module.place(node), "which middleware this is is only known when the program runs")
            return
        call, scope = found.node, found.scope
        match self.call_name(call, scope).rpartition(".")[2]:
            case "HumanInTheLoopMiddleware":
                given = argument(call, "interrupt_on", 0)
                asked = self.project.resolve(given, scope) if given is not None else None
                if isinstance(asked, Defined) and isinstance(asked.node, ast.Dict):
                    self._gate_tools(agent, _keys_switched_on(asked.node))
                else:
                    self.miss(agent, found.place, "which tools are asked about is only known when the program runs")
            case "ModelCallLimitMiddleware":
                steps = self.number(argument(call, "run_limit") or argument(call, "thread_limit"), scope)
                if steps is not None:
                    agent.visible.add("V9")
                    agent.add_loop("run", found.place, "the calls of the model are limited", steps=steps, exit=_EXIT)
                    agent.use("V9", found.place, "the calls of the model are limited")
            case "ModelFallbackMiddleware":
                agent.use("V19", found.place, "another model answers where the first fails")
            case "SummarizationMiddleware":
                agent.use("K6", found.place, "long conversations are summarised")
            case "PIIMiddleware":
                agent.add_guard("input", found.place, "a guard looks for personal data")
            case "ToolRetryMiddleware" | "ModelRetryMiddleware":
                agent.add_fact("step_retries", True, found.place, "failed calls are repeated")
            case _:
                pass

    def _gate_tools(self, agent: AgentDraft, names: Iterable[str] | None) -> None:
        """Note that a person is asked before these tools, or before all of them."""
        known = self.tools.get(agent.name, {})
        for name in known if names is None else names:
            if name in known:
                known[name] = replace(known[name], gated=True)

    def _read_team(self, agent: AgentDraft, name: str, call: ast.Call, scope: Scope) -> None:
        members = argument(call, "agents", 0)
        for item in self.project.items(members, scope) if members is not None else ():
            member = None if isinstance(item, Place) else self.agent_of(*item)
            if member is None:
                place = item if isinstance(item, Place) else item[1].module.place(item[0])
                self.miss(agent, place, "which agents belong to the team is only known when the program runs")
            else:
                self._team_flows += [(member, agent, agent.place), (agent, member, agent.place)]
        self.set_model(agent, argument(call, "model"), scope)
        self.add_tools(agent, argument(call, "tools"), scope)
        if name.endswith("create_supervisor"):
            agent.use("O6", agent.place, "a supervisor chooses which agent works next")
        else:
            agent.use("O10", agent.place, "agents hand over to each other")
            agent.use("O15", agent.place, "agents hand over to each other")

    def _read_compile(self, agent: AgentDraft, call: ast.Call, scope: Scope) -> None:
        """What `compile`, and functions that compile, say of checkpoints and interrupts."""
        saver = argument(call, "checkpointer")
        if saver is not None and self.project.literal(saver, scope) not in (None, False):
            place = scope.module.place(saver)
            agent.use("V10", place, "a checkpointer saves the state after each step")
            agent.use("V12", place, "nodes take a state and give an update of it", certain=False)
        for name in ("interrupt_before", "interrupt_after"):
            given = argument(call, name)
            nodes: Any = self.project.literal(given, scope) if given is not None else None
            if given is not None and nodes not in (None, []):
                agent.use("V1", scope.module.place(given), "the run stops for a person at a node")
            if name == "interrupt_before" and (nodes == "*" or (isinstance(nodes, list) and "tools" in nodes)):
                self._gate_tools(agent, None)

    def _read_methods(self, graphs: Mapping[str, AgentGraph]) -> None:
        compiled: list[tuple[AgentDraft, ast.Call, Scope]] = []
        for call, scope in self.project.calls():
            if not isinstance(call.func, ast.Attribute) or call.func.attr not in _FLUENT:
                continue
            root = self._root(call.func.value, scope)
            agent = self.agents.get(id(root)) if root is not None else None
            graph = graphs.get(agent.name) if agent is not None else None
            if agent is None:
                continue
            if call.func.attr == "compile":
                compiled.append((agent, call, scope))
            elif call.func.attr == "with_config":
                self._read_limit(agent, argument(call, "config", 0), argument(call, "recursion_limit"), call, scope)
            elif graph is not None and len(graph.nodes) < MAX_NODES:
                self._read_graph_method(graph, call.func.attr, call, scope)
        # Interrupts gate tools, so that all nodes have to be known first.
        for agent, call, scope in compiled:
            self._read_compile(agent, call, scope)

    def _read_graph_method(self, graph: AgentGraph, method: str, call: ast.Call, scope: Scope) -> None:
        place = scope.module.place(call)
        match method:
            case "add_node":
                first, second = argument(call, "node", 0), argument(call, "action", 1)
                if first is not None:
                    self._read_node(graph, first, second, scope)
            case "add_edge":
                start, end = argument(call, "start_key", 0), argument(call, "end_key", 1)
                if start is not None and end is not None:
                    targets = self._node_names(graph, end, scope)
                    for source in self._node_names(graph, start, scope):
                        for target in targets:
                            graph.connect(source, target, place)
            case "add_sequence":
                before: str | None = None
                for item in self.project.items(call.args[0], scope) if call.args else ():
                    name = None if isinstance(item, Place) else self._read_node(graph, item[0], None, item[1])
                    if name is not None and before is not None:
                        graph.connect(before, name, place)
                    before = name
            case "add_conditional_edges" | "set_conditional_entry_point":
                self._read_branch(graph, call, scope, entry=method == "set_conditional_entry_point")
            case "set_entry_point" | "set_finish_point" if call.args:
                for name in self._node_names(graph, call.args[0], scope):
                    ends = (START, name) if method == "set_entry_point" else (name, END)
                    graph.connect(*ends, place)
            case _:
                pass

    def _node_names(self, graph: AgentGraph, node: ast.expr, scope: Scope) -> list[str]:
        found = self.project.resolve(node, scope)
        if isinstance(found, External) and found.name.rpartition(".")[2] in ("START", "END"):
            return [START if found.name.endswith("START") else END]
        value: Any = self.project.literal(node, scope)
        given = cast("list[object]", [*value] if isinstance(value, list | tuple) else [value])
        names = [each for each in given if isinstance(each, str)]
        if len(names) == len(given):
            return names
        self.miss(graph.agent, scope.module.place(node), "which node this is is only known when the program runs")
        return []

    def _read_node(self, graph: AgentGraph, first: ast.expr, second: ast.expr | None, scope: Scope) -> str | None:
        """Add a node: `add_node("name", action)`, or `add_node(function)`, which has the name of the function."""
        action = second if second is not None else first
        found = self.project.resolve(action, scope)
        value: Any = self.project.literal(first, scope) if second is not None else None
        name = value if isinstance(value, str) else None
        if name is None and isinstance(found, Defined):
            name = getattr(found.node, "name", None)
        place = scope.module.place(first)
        if not isinstance(name, str):
            self.miss(graph.agent, place, "the name of this node is only known when the program runs")
            return None
        graph.nodes[name] = place
        sub = self.agent_of(action, scope)
        if sub is not None and sub is not graph.agent:
            graph.subagents[name] = (sub, place)
        elif isinstance(found, Defined) and isinstance(found.node, ast.Call):
            if self.call_name(found.node, found.scope) in _TOOL_NODES:
                graph.tool_nodes[name] = place
                self.add_tools(graph.agent, argument(found.node, "tools", 0), found.scope)
            elif self.call_name(found.node, found.scope) == "functools.partial" and found.node.args:
                self._read_partial(graph, name, found.node, found.scope)
            else:
                self.draft.miss(place, f"what the node {safe_name(name)!r} does cannot be followed")
        elif isinstance(found, Defined) and isinstance(found.node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._read_node_body(graph, name, found.node, found.scope)
        else:
            self.draft.miss(place, f"what the node {safe_name(name)!r} does cannot be followed")
        return name

    def _read_partial(self, graph: AgentGraph, name: str, call: ast.Call, scope: Scope) -> None:
        """A node that is a function with some of its arguments, of which one may be an agent."""
        function = self.project.resolve(call.args[0], scope)
        if isinstance(function, Defined) and isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._read_node_body(graph, name, function.node, function.scope)
        for given in (*call.args[1:], *(each.value for each in call.keywords)):
            sub = self.agent_of(given, scope)
            if sub is not None and sub is not graph.agent:
                graph.subagents[name] = (sub, scope.module.place(given))

    def _read_node_body(self, graph: AgentGraph, name: str, function: FunctionNode, scope: Scope) -> None:
        for target in _literal_names(function.returns):
            graph.connect(name, target, scope.module.place(function))
        for call, inner in self._calls_below(function, scope):
            place = inner.module.place(call)
            called = self.call_name(call, inner)
            if called == "langgraph.types.Command" and (goto := argument(call, "goto")) is not None:
                for target in self._node_names(graph, goto, inner) if not isinstance(goto, ast.Name) else ():
                    graph.connect(name, target, place)
                graph.branches.setdefault(name, place)
            elif called.endswith(".Send") and called.startswith("langgraph."):
                graph.agent.use("O4", place, "a node sends work to several runs of another node")
            elif called == "langgraph.types.interrupt":
                graph.agent.use("V1", place, "a node stops for a person")
            elif isinstance(call.func, ast.Attribute) and call.func.attr in _RUNS:
                self._read_model_call(graph, name, call.func.value, inner, place)

    def _read_model_call(
        self, graph: AgentGraph, name: str, node: ast.expr, scope: Scope, place: Place, *, is_part: bool = False
    ) -> None:
        """A call in a node: of a model, or of another agent."""
        sub = self.agent_of(node, scope)
        if sub is not None:
            graph.subagents[name] = (sub, place)
            return
        chain = self.project.resolve(node, scope)
        if isinstance(chain, Defined) and isinstance(chain.node, ast.BinOp):
            # `prompt | model | parser`: each part may be the model. A part that is a chain itself is not followed,
            # since chains of chains would multiply.
            for part in () if is_part else _chain_parts(chain.node):
                self._read_model_call(graph, name, part, chain.scope, place, is_part=True)
            return
        root = self._root(node, scope, _MODEL_METHODS)
        if root is None:
            return
        made = self.project.resolve(root.func, scope)
        maker = made.name.rpartition(".")[2] if isinstance(made, External) else ""
        if not maker.startswith("Chat") and maker != "init_chat_model":
            return
        graph.models.setdefault(name, place)
        value: Any = self.project.literal(given, scope) if (given := argument(root, "model", 0)) is not None else None
        if isinstance(value, str) and graph.agent.model is None:
            graph.agent.model = safe_name(value)
        self._read_model_methods(graph, node, scope)

    def _read_model_methods(self, graph: AgentGraph, node: ast.AST, scope: Scope) -> None:
        """The tools that are bound to a model, and the type of its output."""
        for _ in range(_MAX_CHAIN):
            found = self.project.resolve(node, scope)
            if not isinstance(found, Defined) or not isinstance(found.node, ast.Call):
                return
            call = found.node
            if not isinstance(call.func, ast.Attribute) or call.func.attr not in _MODEL_METHODS:
                return
            if call.func.attr == "bind_tools":
                self.add_tools(graph.agent, argument(call, "tools", 0), found.scope)
            elif call.func.attr == "with_structured_output":
                graph.agent.use("S6", found.place, "the output has a type")
                graph.agent.use("V20", found.place, "the output is checked against its type")
            elif call.func.attr == "with_fallbacks":
                graph.agent.use("V19", found.place, "another model answers where the first fails")
            node, scope = call.func.value, found.scope

    def _read_branch(self, graph: AgentGraph, call: ast.Call, scope: Scope, *, entry: bool) -> None:
        place = scope.module.place(call)
        shift = 0 if entry else 1
        source = None if entry else argument(call, "source", 0)
        sources = [START] if source is None else self._node_names(graph, source, scope)
        path, mapping = argument(call, "path", shift), argument(call, "path_map", shift + 1)
        targets = self._branch_targets(graph, path, mapping, scope)
        if targets is None:
            self.miss(graph.agent, place, "where this branch leads is only known when the program runs")
            return
        for each in sources:
            graph.branches.setdefault(each, place)
            for target in targets:
                graph.connect(each, target, place)

    def _branch_targets(
        self, graph: AgentGraph, path: ast.expr | None, mapping: ast.expr | None, scope: Scope
    ) -> list[str] | None:
        found = self.project.resolve(mapping, scope) if mapping is not None else None
        if isinstance(found, Defined) and isinstance(found.node, ast.Dict):
            return [name for value in found.node.values for name in self._node_names(graph, value, found.scope)]
        if isinstance(found, Defined) and isinstance(found.node, ast.List):
            return [name for value in found.node.elts for name in self._node_names(graph, value, found.scope)]
        router = self.project.resolve(path, scope) if path is not None else None
        if isinstance(router, External) and router.name.endswith("tools_condition"):
            return ["tools", END]
        if not isinstance(router, Defined) or not isinstance(router.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        if names := _literal_names(router.node.returns):
            return names
        inner = router.scope.module.scopes[id(router.node)]
        given = [each.value for each in nodes_in(router.node) if isinstance(each, ast.Return) and each.value]
        found_names: list[str] = []
        for value in given:
            choices = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            for each in choices:
                resolved = self.project.resolve(each, inner)
                if isinstance(resolved, Defined) and not isinstance(resolved.node, ast.Constant | ast.List):
                    return None
                if resolved is None:
                    return None
                found_names += self._node_names(graph, each, inner)
        return found_names or None

    def _read_runs(self) -> None:
        seen: set[str] = set()
        runs: list[tuple[ast.Call, Scope, AgentDraft]] = []
        for call, scope in self.project.calls():
            if isinstance(call.func, ast.Attribute) and call.func.attr in _RUNS:
                for agent in self.agents_of(call.func.value, scope):
                    seen.add(agent.name)
                    runs.append((call, scope, agent))
                    self._read_limit(agent, argument(call, "config", 1), None, call, scope)
                    self.describe_repeats(agent, call, scope)
            elif self.call_name(call, scope).endswith("LangChainInstrumentor.instrument"):
                for agent in self.agents.values():
                    agent.use("V14", scope.module.place(call), "runs are traced")
        self.describe_parallel(runs)
        for agent in self.agents.values():
            if agent.name not in seen:
                self.draft.miss(agent.place, f"no run of {agent.name!r} is found, so its limits are not known")

    def _read_limit(
        self, agent: AgentDraft, config: ast.expr | None, direct: ast.expr | None, call: ast.Call, scope: Scope
    ) -> None:
        place = scope.module.place(call)
        at = scope
        if config is not None and direct is None:
            found = self.project.resolve(config, scope)
            if isinstance(found, Defined) and isinstance(found.node, ast.Dict):
                direct, at = _dictionary_value(found.node, "recursion_limit"), found.scope
                hidden = None in found.node.keys
            elif isinstance(found, Defined) and isinstance(found.node, ast.Call):
                direct, at = argument(found.node, "recursion_limit"), found.scope
                hidden = hides_arguments(found.node)
            else:
                hidden = True
            if hidden and direct is None:
                self.miss(agent, place, "the configuration of this run is only known when the program runs")
                return
        steps = self.number(direct, at)
        if steps is not None:
            agent.visible.add("V9")
            seconds = self.time_limit(call, scope)
            agent.add_loop("run", place, "recursion_limit is given", steps=steps, seconds=seconds, exit=_EXIT)
            agent.use("V9", place, "recursion_limit is given")
        elif direct is not None:
            agent.use("V9", place, "recursion_limit is given")
            self.miss(agent, place, "the recursion_limit is only known when the program runs")
        elif not agent.uses("V9") and getattr(call.func, "attr", "") in _RUNS:
            agent.visible.add("V9")
            what = "no recursion_limit: the default depends on the release, 25 in 0.x and 10,007 in 1.2"
            agent.add_loop("run", place, what, certain=False, seconds=self.time_limit(call, scope), exit=_EXIT)


_EXIT = "the graph reaches its end"


def _chain_parts(node: ast.BinOp) -> list[ast.expr]:
    """The parts that `|` joins; those of a part that is a chain by another name are left out."""
    parts: list[ast.expr] = []
    waiting: list[ast.expr] = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.BitOr):
            waiting += [each.right, each.left]
        elif not isinstance(each, ast.BinOp):
            parts.append(each)
    return parts[:20]


def _literal_names(annotation: ast.expr | None) -> list[str]:
    """The texts of `Literal[…]` in an annotation, as in `Command[Literal["a", "b"]]`."""
    found: list[str] = []
    for node in ast.walk(annotation) if annotation is not None else ():
        if isinstance(node, ast.Subscript):
            head = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            if head == "Literal":
                held = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                found += [each.value for each in held if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return found


def _dictionary_value(node: ast.Dict, name: str) -> ast.expr | None:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == name:
            return value
    return None


def _keys_switched_on(node: ast.Dict) -> list[str]:
    """The keys of a mapping whose values are not False; what is no constant is not."""
    pairs = zip(node.keys, node.values, strict=True)
    off = [key for key, value in pairs if isinstance(value, ast.Constant) and value.value is False]
    return [
        key.value
        for key in node.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and all(key is not each for each in off)
    ]
