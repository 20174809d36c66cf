"""Agents of the OpenAI Agents SDK, read from code: tools, handoffs, guardrails, turns, approvals, tracing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bicameral.catalog.frameworks._code_reader import CodeReader, FoundTool, either
from bicameral.catalog.frameworks._modules import Defined, FunctionNode, Module, Scope, argument
from bicameral.catalog.frameworks._recovery import AgentDraft
from bicameral.catalog.frameworks._tool_effects import ToolEffects
from bicameral.errors import Place

_RUNNERS = frozenset(
    f"agents.{prefix}Runner.{name}" for prefix in ("", "run.") for name in ("run", "run_sync", "run_streamed")
)
_DEFAULT_TURNS = 10
"""`max_turns` where nobody sets it."""
_SANDBOX_AGENTS = frozenset(f"agents.{module}SandboxAgent" for module in ("", "sandbox.", "sandbox.sandbox_agent."))
"""Agents with tools of their own (a shell, files, patches) that work in a sandbox."""
_SANDBOX_SHELL = ((ToolEffects(runs_commands=True, certain=True), "the SDK gives it a shell in a sandbox"),)
_GUARDS = (("input_guardrails", "input"), ("output_guardrails", "output"))
_TOOL_GUARDS = (("tool_input_guardrails", "call"), ("tool_output_guardrails", "result"))


class OpenAIAgentsReader(CodeReader):
    """Reads agents of the OpenAI Agents SDK."""

    framework = "the OpenAI Agents SDK"
    packages = frozenset({"agents"})
    agent_calls = frozenset({"agents.Agent", "agents.agent.Agent", *_SANDBOX_AGENTS})

    def read(self) -> None:
        self.find_agents()
        if not self.agents:
            return
        handoffs: dict[str, set[str]] = {}
        for agent in [*self.agents.values()]:
            call, scope = self.made[agent.name]
            self._read_arguments(agent, call, scope)
            for other in self._read_handoffs(agent, argument(call, "handoffs"), scope):
                handoffs.setdefault(agent.name, set()).add(other.name)
        self._read_later_handoffs(handoffs)
        self._describe_handoffs(handoffs)
        self._read_settings(self._read_runs(handoffs))
        for agent in self.agents.values():
            self.describe_tools(agent)
            call, scope = self.made[agent.name]
            behavior = argument(call, "tool_use_behavior")
            stops = behavior is not None and self.project.literal(behavior, scope) == "stop_on_first_tool"
            if agent.uses("I2") and not stops:
                agent.use("R4", agent.place, "the runner calls the model again after each tool")
        known = self.draft.agents
        # With a handoff the whole conversation goes to the other agent.
        pairs = [(name, other) for name, others in handoffs.items() for other in sorted(others)]
        self.spread_untrusted((known[name], known[other], known[name].place) for name, other in pairs)

    def _read_arguments(self, agent: AgentDraft, call: ast.Call, scope: Scope) -> None:
        self.set_model(agent, argument(call, "model"), scope)
        self.add_tools(agent, argument(call, "tools"), scope)
        if self.call_name(call, scope) in _SANDBOX_AGENTS:
            self.add_tool(agent, FoundTool("shell", agent.place, _SANDBOX_SHELL, sandboxed=True))
            self.draft.miss(agent.place, "which sandbox the shell of this agent works in is chosen for each run")
        for name, point in _GUARDS:
            if (given := argument(call, name)) is not None and self.project.literal(given, scope) != []:
                agent.add_guard(point, scope.module.place(given), f"{name} are given")
        if (output := argument(call, "output_type")) is not None:
            agent.use("S6", scope.module.place(output), "the output has a type")
            agent.use("V20", scope.module.place(output), "the output is checked against its type")
        servers = argument(call, "mcp_servers")
        if servers is not None and self.project.literal(servers, scope) != []:
            agent.use("I3", scope.module.place(servers), "tools of an MCP server")
            self.miss(agent, scope.module.place(servers), "the tools of an MCP server are not in the code")

    def tool_of_call(self, agent: AgentDraft, call: ast.Call, scope: Scope) -> FoundTool | None:
        place = scope.module.place(call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "as_tool":
            other = self.agent_of(call.func.value, scope)
            if other is not None:
                given = argument(call, "tool_name", 0)
                name: Any = self.project.literal(given, scope) if given is not None else other.name
                gated = self.asks_first(call, scope)
                name = name if isinstance(name, str) else other.name
                return FoundTool(name, place, gated=gated, delegates_to=other)
        name = self.call_name(call, scope)
        if name in ("agents.FunctionTool", "agents.CustomTool"):
            return self._tool_of_handler(agent, call, scope)
        if name == "agents.ShellTool" and (kind := self._container(call, scope)) is not None:
            tool = self.tool_by_name("ShellTool", place)
            if kind == "container_auto":
                return replace(tool, sandboxed=True)
            # Another program made that container, and may have let it reach the network.
            why = "in a container whose network is not known"
            return replace(tool, claims=tuple((replace(effects, certain=False), why) for effects, _ in tool.claims))
        if name.endswith(".HostedMCPTool"):
            agent.use("I3", place, "tools of an MCP server that the provider calls")
            self.miss(agent, place, "the tools of an MCP server are not in the code")
            return None
        return super().tool_of_call(agent, call, scope)

    def _tool_of_handler(self, agent: AgentDraft, call: ast.Call, scope: Scope) -> FoundTool | None:
        """A tool that is made of a name and of the function that is called for it."""
        place = scope.module.place(call)
        given, handler = argument(call, "name", 0), argument(call, "on_invoke_tool")
        name: Any = self.project.literal(given, scope) if given is not None else None
        tool = self.find_tool(agent, handler, scope) if handler is not None else None
        if not isinstance(name, str):
            return tool
        # It is known to the model by this name, and not by that of its handler.
        claims = [each for each in (tool.claims if tool else ()) if each[0].certain]
        claims += self.tool_by_name(name, place).claims
        gated = either(self.asks_first(call, scope), tool.gated if tool is not None else False)
        return FoundTool(name, place, tuple(claims), gated, shell_line=tool is not None and tool.shell_line)

    def _container(self, call: ast.Call, scope: Scope) -> str | None:
        """The kind of the provider's container in which the commands of a `ShellTool` run without a known network."""
        environment = argument(call, "environment")
        found = self.project.resolve(environment, scope) if environment is not None else None
        if not isinstance(found, Defined) or not isinstance(found.node, ast.Dict) or None in found.node.keys:
            return None
        kind, network = _setting(found.node, "type"), _setting(found.node, "network_policy")
        allowed: Any = self.project.literal(network, found.scope) if network is not None else None
        hosted: Any = self.project.literal(kind, found.scope) if kind is not None else None
        known = hosted in ("container_auto", "container_reference") and allowed in (None, {"type": "disabled"})
        return hosted if known else None

    def _read_handoffs(self, agent: AgentDraft, node: ast.expr | None, scope: Scope) -> list[AgentDraft]:
        found: list[AgentDraft] = []
        for item in self.project.items(node, scope) if node is not None else ():
            if isinstance(item, Place):
                self.miss(agent, item, "which agents these handoffs go to is only known when the program runs")
                continue
            other = self._handoff_target(*item)
            if other is None:
                self.miss(agent, item[1].module.place(item[0]), "which agent this handoff goes to cannot be followed")
            else:
                found.append(other)
        return found

    def _handoff_target(self, node: ast.expr, scope: Scope) -> AgentDraft | None:
        found = self.project.resolve(node, scope)
        if isinstance(found, Defined) and isinstance(found.node, ast.Call):
            call = found.node
            if self.call_name(call, found.scope) in ("agents.handoff", "agents.handoffs.handoff"):
                inner = argument(call, "agent", 0)
                return self.agent_of(inner, found.scope) if inner is not None else None
        return self.agent_of(node, scope)

    def _read_later_handoffs(self, handoffs: dict[str, set[str]]) -> None:
        """`agent.handoffs.append(other)` and `agent.handoffs = [other]`."""
        for call, scope in self.project.calls():
            match call.func:
                case ast.Attribute(attr="append", value=ast.Attribute(attr="handoffs", value=owner)) if call.args:
                    agent, other = self.agent_of(owner, scope), self._handoff_target(call.args[0], scope)
                    if agent is not None and other is not None:
                        handoffs.setdefault(agent.name, set()).add(other.name)
                case _:
                    pass
        for module in self.project.modules.values():
            for node in ast.walk(module.tree):
                match node:
                    case ast.Assign(targets=[ast.Attribute(attr="handoffs", value=owner)], value=given):
                        agent = self.agent_of(owner, module.scope)
                        for other in self._read_handoffs(agent, given, module.scope) if agent is not None else ():
                            assert agent is not None
                            handoffs.setdefault(agent.name, set()).add(other.name)
                    case _:
                        pass

    def _describe_handoffs(self, handoffs: dict[str, set[str]]) -> None:
        agents = self.draft.agents
        for name, others in handoffs.items():
            agent = agents[name]
            agent.use("O15", agent.place, f"it hands over to {', '.join(sorted(others)[:5])}")
            if len(others) > 1 and not self.tools.get(name):
                agent.use("O3", agent.place, "it has several handoffs and no tools of its own", certain=False)
            if any(name in handoffs.get(other, ()) for other in others):
                agent.use("O10", agent.place, "agents hand over to each other in both directions")

    def _read_runs(self, handoffs: Mapping[str, set[str]]) -> Sequence[tuple[ast.Call, Scope, AgentDraft]]:
        """Read the limits of each run; the runs."""
        runs: list[tuple[ast.Call, Scope, AgentDraft]] = []
        for call, scope in self.project.calls():
            if self.call_name(call, scope) not in _RUNNERS:
                continue
            start = argument(call, "starting_agent", 0)
            agents = self.agents_of(start, scope) if start is not None else []
            if not agents:
                self.draft.miss(scope.module.place(call), "which agent is run here cannot be followed")
            runs += ((call, scope, agent) for agent in agents)
        for call, scope, agent in runs:
            if self.loops_over_tools(agent) or agent.name in handoffs:
                self._read_turns(agent, call, scope)
            self.describe_repeats(agent, call, scope)
        self.describe_parallel(runs)
        started = [agent.name for _, _, agent in runs]
        reached = self._reached(started, handoffs)
        limited = self._reached((name for name in started if self.draft.agents[name].uses("V9")), handoffs)
        for agent in self.agents.values():
            if agent.name not in reached:
                what = f"no run of the agent {agent.name!r} is found, so its limits are not known"
                self.draft.miss(agent.place, what)
            elif agent.name not in started:
                if agent.name in limited:
                    agent.use("V9", agent.place, "it runs within the turns of the agent that calls it", certain=False)
                else:
                    agent.visible.add("V9")
        return runs

    def _reached(self, started: Iterable[str], handoffs: Mapping[str, set[str]]) -> set[str]:
        """The agents that these can reach, by handoffs and as tools."""
        reached: set[str] = set()
        waiting = [*started]
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting.extend(handoffs.get(name, ()))
                tools = self.tools.get(name, {}).values()
                waiting.extend(tool.delegates_to.name for tool in tools if tool.delegates_to is not None)
        return reached

    def _read_turns(self, agent: AgentDraft, call: ast.Call, scope: Scope) -> None:
        place = scope.module.place(call)
        seconds = self.time_limit(call, scope)
        exit = "the model answers without a tool call or a handoff"
        given = argument(call, "max_turns")
        value: Any = self.project.literal(given, scope) if given is not None else _DEFAULT_TURNS
        if given is None:
            what = f"no max_turns: the default of {_DEFAULT_TURNS} holds"
            agent.add_loop("run", place, what, certain=False, steps=_DEFAULT_TURNS, seconds=seconds, exit=exit)
            agent.use("V9", place, what, certain=False)
        elif (turns := self.number(given, scope)) is not None:
            agent.visible.add("V9")
            agent.add_loop("run", place, "max_turns is given", steps=turns, seconds=seconds, exit=exit)
            agent.use("V9", place, "max_turns is given")
        elif value is None:
            agent.visible.add("V9")
            agent.add_loop("run", place, "max_turns is None", seconds=seconds, exit=exit)
        else:
            self.miss(agent, place, "max_turns is only known when the program runs")

    def _read_settings(self, runs: Sequence[tuple[ast.Call, Scope, AgentDraft]]) -> None:
        """Guards and tracing of a `RunConfig`, which holds for one run. The SDK traces every run otherwise."""
        untraced = {name for module in self.project.modules.values() for name in self._untraced_in(module, runs)}
        for call, scope, agent in runs:
            given = argument(call, "run_config")
            found = self.project.resolve(given, scope) if given is not None else None
            if not isinstance(found, Defined):
                continue
            place = found.place
            for guard, point in (*_GUARDS, *_TOOL_GUARDS):
                if _setting(found.node, guard) is not None:
                    agent.add_guard(point, place, f"{guard} are given to the run")
            switch = _setting(found.node, "tracing_disabled")
            if switch is not None and self.project.literal(switch, found.scope) is True:
                untraced.add(agent.name)
        for agent in self.agents.values():
            if agent.name in untraced:
                agent.visible.add("V14")
            else:
                agent.use("V14", agent.place, "the SDK traces every run", certain=False)

    def _untraced_in(self, module: Module, runs: Sequence[tuple[ast.Call, Scope, AgentDraft]]) -> set[str]:
        """The agents of a program that switches tracing off: those that are made or run in the same file."""
        for call, scope in module.calls:
            name = self.call_name(call, scope)
            switch = argument(call, "disabled", 0)
            if not name.startswith("agents.") or not name.endswith("set_tracing_disabled") or switch is None:
                continue
            if self.project.literal(switch, scope) is True:
                made = {name for name, (_, at) in self.made.items() if at.module is module}
                return made | {agent.name for _, at, agent in runs if at.module is module}
        return set()

    def tool_names(self, function: FunctionNode, scope: Scope) -> Sequence[str]:
        for decorator in function.decorator_list:
            given = argument(decorator, "name_override") if isinstance(decorator, ast.Call) else None
            name: Any = self.project.literal(given, scope) if given is not None else None
            if isinstance(name, str) and name:
                return name, function.name
        return super().tool_names(function, scope)


def _setting(node: ast.AST, name: str) -> ast.expr | None:
    """A setting of a `RunConfig(…)`, or of the mapping that stands for one."""
    if isinstance(node, ast.Call):
        return argument(node, name)
    if not isinstance(node, ast.Dict):
        return None
    pairs = zip(node.keys, node.values, strict=True)
    return next((value for key, value in pairs if isinstance(key, ast.Constant) and key.value == name), None)
