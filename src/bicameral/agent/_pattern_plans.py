"""Plans for patterns: an agent as the planner of the patterns that run with its runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bicameral.agent._absent_tools import require_ready
from bicameral.binding import binding_doubts
from bicameral.labels import Labelled
from bicameral.patterns.strategies import PlannedRequest
from bicameral.runs import check_plan
from bicameral.tools import Registry
from bicameral.types import type_to_json

if TYPE_CHECKING:
    from bicameral.agent._agent import Agent
    from bicameral.planning import EarlierRounds, Intent, Planner
    from bicameral.plans import PlanLimits
    from bicameral.runs import StartState
    from bicameral.types import Type


@dataclass(frozen=True, slots=True)
class PatternPlanner:
    """Writes the plan of a request as the agent does: understood, compiled, bound and checked; nothing is run."""

    agent: Agent
    compiler: Planner
    limits: PlanLimits

    async def plan_request(self, request: Labelled[str], registry: Registry, start: StartState) -> PlannedRequest:
        # A request about given values is not explained to Echo, which does not know them and would ask what they are.
        intent = await self.agent.intent(request, deterministic=bool(start.variables))
        planned, cached = await self._compile(intent, registry, start, fresh=False)
        if cached and not planned.checked.ok:
            # A cached plan is checked by the current policies, like one that is written now.
            planned, _ = await self._compile(intent, registry, start, fresh=True)
        return planned

    async def _compile(
        self, intent: Intent, registry: Registry, start: StartState, *, fresh: bool
    ) -> tuple[PlannedRequest, bool]:
        agent = self.agent
        compiled = await self.compiler.compile(intent, registry, fresh=fresh, earlier=_given_values(start))
        require_ready(agent, compiled.plan)
        bound = await agent.bind(compiled.plan, scope=start.types)
        bound.require()
        checked = check_plan(
            bound.plan,
            registry,
            agent.policy,
            limits=self.limits,
            intent=intent,
            against_intent=True,
            known=compiled.check,
            start=start,
        )
        return PlannedRequest(checked, tuple(binding_doubts(bound.bindings))), compiled.cached


def _given_values(start: StartState) -> EarlierRounds | None:
    """The names and types of the values that a plan begins with, as the planner reads them; None if there are none.

    A model that is asked for single statements goes on after statements that read the values, as it would have written
    them; any other is told of them.
    """
    from bicameral.planning import EarlierRounds, type_lines

    if not start.variables:
        return None
    lines = [f"- {name}: {each}" for name, each in start.types.items()]
    records = type_lines(start.types.values())
    told = ("These variables have values already, which you use and do not see:", *lines)
    # The planner cannot use the fields of a record that no tool returns unless it is told which there are.
    summary = "\n".join((*told, *(("Records:", records) if records else ())))
    return EarlierRounds(
        summary,
        start.types,
        may_look=False,
        shown_types=start.types,
        read_label=start.read,
        opening=_reading_statements(start.types),
        given=True,
    )


def _reading_statements(types: Mapping[str, Type]) -> str:
    """Statements that would read values of these types, one from each text."""
    from bicameral.plans import Const, Extract, Plan, Ref, print_plan

    steps = [
        Extract(
            name=name,
            source=Ref(name=f"text_{number}"),
            instruction=Const(value="what it says"),
            type=type_to_json(each),
        )
        for number, (name, each) in enumerate(types.items(), 1)
    ]
    return print_plan(Plan(steps=tuple(steps)), Registry())
