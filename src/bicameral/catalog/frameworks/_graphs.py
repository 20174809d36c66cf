"""Graphs of nodes, and the patterns that follow from their shape: loops, chains, branches, workers side by side."""

from __future__ import annotations

from dataclasses import dataclass, field

from bicameral.catalog.frameworks._recovery import AgentDraft, is_judge_name
from bicameral.errors import Place

START, END = "__start__", "__end__"


@dataclass(slots=True)
class AgentGraph:
    """The nodes and edges of a graph, and the agent that it is."""

    agent: AgentDraft
    nodes: dict[str, Place] = field(default_factory=dict[str, Place])
    edges: dict[str, dict[str, Place]] = field(default_factory=dict[str, dict[str, Place]])
    branches: dict[str, Place] = field(default_factory=dict[str, Place])
    """Nodes after which a function chooses the next one."""
    models: dict[str, Place] = field(default_factory=dict[str, Place])
    tool_nodes: dict[str, Place] = field(default_factory=dict[str, Place])
    subagents: dict[str, tuple[AgentDraft, Place]] = field(default_factory=dict[str, tuple[AgentDraft, Place]])

    def connect(self, source: str, target: str, place: Place) -> None:
        self.edges.setdefault(source, {}).setdefault(target, place)

    def reachable(self, start: str) -> set[str]:
        """The nodes that come after a node, itself included if it comes again."""
        seen: set[str] = set()
        waiting = [*self.edges.get(start, ())]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting.extend(self.edges.get(node, ()))
        return seen

    def describe(self) -> None:
        """Describe the agent by the shape of its graph."""
        agent = self.agent
        cyclic = {name for name in self.nodes if name in self.reachable(name)}
        callers = {**self.models, **{name: place for name, (_, place) in self.subagents.items()}}
        tools = set(self.tool_nodes) & cyclic
        if tools and set(callers) & cyclic:
            agent.use("R4", self.tool_nodes[min(tools)], "an edge leads from the tools back to the model")
        elif cyclic:
            self._describe_cycle(cyclic, set(callers) & cyclic)
        workers = {name for name in self.subagents if name in cyclic}
        if len(workers) > 1 and any(workers <= set(self.edges.get(name, ())) for name in self.branches):
            agent.use("O6", self.subagents[min(workers)][1], "a node chooses which agent works next, and hears back")
        for source, place in self.branches.items():
            ahead = {name for name in self.edges.get(source, ()) if name != END and name not in cyclic}
            if len(ahead) > 1:
                agent.use("O3", place, f"a branch leads to {len(ahead)} nodes", certain=False)
        for source, targets in self.edges.items():
            if source not in self.branches and len(set(targets) - {END}) > 1:
                agent.use("O4", min(targets.values(), key=str), "several edges leave one node, and run side by side")
        sequence = [name for name in callers if set(callers) & self.reachable(name) - {name}]
        if sequence and not cyclic:
            agent.use("O2", callers[sequence[0]], "models are called one after another along the edges")

    def _describe_cycle(self, cyclic: set[str], callers: set[str]) -> None:
        judges = [name for name in cyclic if is_judge_name(name)]
        place = self.nodes[min(judges or cyclic)]
        if judges and len(cyclic) > 1:
            what = "a node that is named like a judge leads back to a writer"
            self.agent.use("O5", place, what, certain=False)
        elif len(callers) > 2:
            what = "three nodes or more that call a model run round after round"
            self.agent.use("O8", place, what, certain=False)
        if "run" not in self.agent.describe().get("loops", {}):
            what = "edges lead back to an earlier node"
            # Where no run is seen, its limits are not, either.
            seen = "V9" in self.agent.visible
            self.agent.add_loop("graph", place, what, certain=seen, exit="a branch leaves the cycle")
