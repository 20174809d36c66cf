"""Requests and plans of an agent that need a tool which cannot work, and what a person is told where there is no plan.

Both are found by rules from the request, the settings and the plan, before a model is asked where that is possible.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from bicameral.labels import Label
from bicameral.planning import (
    Intent,
    NoPlanError,
    RefusedPlanError,
    absent_tool_doubt,
    absent_tool_error,
    asked_stores,
    called_absent_tool,
    called_toolboxes,
    doubtful_absent_tools,
    ordered_absent_tool,
    refused_absent_tool,
    smaller_request,
    unready_reader,
)
from bicameral.plans import Plan
from bicameral.runs import Doubt
from bicameral.tools import AbsentTool

if TYPE_CHECKING:
    from collections.abc import Collection

    from bicameral.agent._wiring import AgentWiring


def require_tools(agent: AgentWiring, request: str) -> None:
    """Refuse a request that certainly needs a tool which cannot work (`plan.absent-tool`)."""
    found = _needed_absent_tool(agent, request)
    if found is not None:
        raise absent_tool_error(found)


def require_ready(agent: AgentWiring, plan: Plan) -> None:
    """Refuse a plan that calls a tool whose mailbox, calendar or the like is not there.

    The planner does not know what is there: the list of tools in its prompt must not depend on it.
    """
    unready = _unready_tools(agent, called_toolboxes(plan, agent.registry))
    found = called_absent_tool(plan, (*agent.absent_tools, *unready))
    if found is not None:
        raise absent_tool_error(found)


def absent_tool_doubts(agent: AgentWiring, request: str) -> tuple[Doubt, ...]:
    """Doubts of a plan for a request that may have ordered an absent tool. The settings alone decide what they say."""
    found = doubtful_absent_tools(request, agent.registry, agent.absent_tools)
    return tuple(Doubt("absent-tool", absent_tool_doubt(each), Label()) for each in found)


@contextmanager
def explained_failures(agent: AgentWiring, request: str) -> Generator[None]:
    """Where there is no plan, name the setting that is missing, and a smaller request that may be served."""
    try:
        yield
    except RefusedPlanError as error:
        found = refused_absent_tool(error.reason, agent.absent_tools)
        raise _with_smaller(agent, error if found is None else absent_tool_error(found), request) from None
    except NoPlanError as error:
        raise _with_smaller(agent, error, request) from None


def _with_smaller(agent: AgentWiring, error: NoPlanError, request: str) -> NoPlanError:
    found = smaller_request(
        request,
        agent.planning_registry,
        agent.today,
        has_plan=lambda intent: _has_plan(agent, intent),
        is_servable=lambda part: _needed_absent_tool(agent, part) is None,
    )
    error.failure = replace(error.failure, request=request, smaller=found)
    return error


def _has_plan(agent: AgentWiring, intent: Intent) -> bool:
    return agent.planner.has_plan(intent, agent.planning_registry)


def _needed_absent_tool(agent: AgentWiring, request: str) -> AbsentTool | None:
    found = ordered_absent_tool(request, agent.registry, agent.absent_tools) if agent.absent_tools else None
    if found is not None:
        return found
    unready = _unready_tools(agent, asked_stores(request, agent.registry))
    return unready_reader(request, agent.registry, unready) if unready else None


def _unready_tools(agent: AgentWiring, toolboxes: Collection[str]) -> tuple[AbsentTool, ...]:
    """The tools of these toolboxes that cannot work now; none if the caller brought the tools."""
    from bicameral.config import unready_tools

    if agent.surroundings is None or not toolboxes:
        return ()
    return unready_tools(agent.config, agent.registry, agent.surroundings, toolboxes)
