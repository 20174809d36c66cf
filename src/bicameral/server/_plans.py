"""Plan only, check only: what would be done, and what is wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter

from bicameral.errors import BicameralError, IntentError, Place, PlanError
from bicameral.labels import received

from ._errors import Json
from ._routes import AtDesk, Caller, errors
from ._shapes import CheckWanted, PlanTold, PlanWanted

if TYPE_CHECKING:
    from bicameral.agent import Agent
    from bicameral.plans import Plan

plans = APIRouter(tags=["plans"])


@plans.post("/v1/plans", response_model=PlanTold, responses=errors(502, body=True), operation_id="plan")
async def plan(wanted: PlanWanted, desk: AtDesk, _: Caller) -> Json:
    """Write the plan for a request and check it. Nothing is run and nothing is kept.

    A request for which there is no plan is an answer too: `ok` is false and `error` says why.
    """
    with desk.plans.one():
        try:
            planned = await desk.agent.plan(
                received(wanted.request), deterministic=wanted.deterministic, fresh=wanted.fresh
            )
        except (IntentError, PlanError) as error:
            return Json({"ok": False, "error": error.to_json()})
    return Json(
        {
            "ok": planned.report.ok,
            "intent": planned.intent.model_dump(mode="json"),
            "plan": planned.plan.model_dump(mode="json"),
            "source": planned.source,
            "report": planned.report.to_json(),
            "proof": planned.proof and planned.proof.to_json(),
        }
    )


@plans.post("/v1/checks", response_model=PlanTold, responses=errors(body=True), operation_id="check")
async def check(wanted: CheckWanted, desk: AtDesk, _: Caller) -> Json:
    """Check a plan: types, references, effects, cost at worst, and the verdict of policy on each call.

    A text that is no plan is an answer too: `ok` is false and `error` says why.
    """
    with desk.plans.one():
        return Json(await asyncio.to_thread(_checked, desk.agent, wanted.plan))


def _checked(agent: Agent, text: str) -> dict[str, Any]:
    from bicameral.plans import print_plan

    try:
        found, places = _read(agent, text)
    except BicameralError as error:
        return {"ok": False, "error": error.to_json()}
    checked = agent.check(found, places=places)
    return {
        "ok": checked.ok,
        "plan": found.model_dump(mode="json"),
        "source": print_plan(found, agent.registry),
        "report": checked.report.to_json(),
        "proof": checked.proof and checked.proof.to_json(),
    }


def _read(agent: Agent, text: str) -> tuple[Plan, Mapping[str, Place]]:
    """The plan that a text holds, in the Python syntax or as JSON, and where its steps stand."""
    from bicameral.plans import load_plan, parse

    if text.lstrip().startswith("{"):
        return load_plan(text, file="plan"), {}
    parsed = parse(text, agent.registry, file="plan")
    return parsed.plan, parsed.places


def checked_plan(agent: Agent, text: str) -> Plan:
    """The plan that a text holds, if it passes the check; the first thing that is wrong with it otherwise."""
    found, places = _read(agent, text)
    checked = agent.check(found, places=places)
    if not checked.ok:
        first = checked.report.errors[0]
        raise PlanError(
            first.code, first.message, place=first.place, expected=first.expected, nearest=first.nearest, fix=first.fix
        )
    return found
