"""Plan and execute: a list of steps first, then each step with tools, then the answer."""

from __future__ import annotations

import json
from typing import Any, cast

from bicameral.errors import ModelError

from ._conversation import Conversation
from ._phases import Params
from ._tools import listed
from ._words import FINAL, OPEN, PLAN, STEP, plan_schema


async def plan_and_execute(talk: Conversation, params: Params) -> str:
    """The phases `plan`, `act` for each step, and `final_answer`.

    The plan is written before anything has been read but the request. A step that is not done within
    `max_step_iterations` rounds is left open, and the outcome says so.
    """
    steps = await written_plan(talk, params)
    for number, step in enumerate(steps, 1):
        await do_step(talk, params, number, len(steps), step)
    return await final_answer(talk)


async def written_plan(talk: Conversation, params: Params) -> tuple[str, ...]:
    """The steps; a reply that is no plan is asked for once more."""
    asked = PLAN.format(tools=listed(talk.registry), most=params.max_steps)
    talk.tell(asked)
    for last in (False, True):
        reply = await talk.ask("plan", schema=plan_schema(params.max_steps))
        steps = _steps(reply.text, params.max_steps)
        if steps is not None:
            return steps
        if not last:
            talk.tell(f"That is not the JSON that was asked for. {asked}")
    raise ModelError("models.bad-reply", "the model wrote no plan: its reply is not the JSON that was asked for")


async def do_step(talk: Conversation, params: Params, number: int, count: int, step: str) -> bool:
    """Whether a step came to an end of its own."""
    talk.tell(STEP.format(number=number, count=count, step=step))
    for _ in range(params.max_step_iterations):
        reply = await talk.ask("act", tools=True)
        if not reply.calls:
            return True
        await talk.serve(reply)
    talk.left_open.append(step)
    talk.tell(OPEN)
    return False


async def final_answer(talk: Conversation) -> str:
    talk.tell(FINAL)
    return (await talk.ask("final_answer")).text


def _steps(text: str, most: int) -> tuple[str, ...] | None:
    found = read_object(text).get("steps")
    if not isinstance(found, list):
        return None
    steps = cast("list[Any]", found)
    if not 0 < len(steps) <= most or not all(isinstance(each, str) and each.strip() for each in steps):
        return None
    return tuple(str(each).strip() for each in steps)


def read_object(text: str) -> dict[str, Any]:
    """The JSON object that a reply is; an empty one for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
