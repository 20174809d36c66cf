"""SPAR: sense, plan, act, reflect, and the final answer."""

from __future__ import annotations

from bicameral.errors import ModelError

from ._conversation import Conversation
from ._phases import Params
from ._plan_and_execute import do_step, final_answer, read_object, written_plan
from ._words import REFLECT, SENSE, VERDICT_SCHEMA, VERDICTS


async def spar(talk: Conversation, params: Params) -> str:
    """Five phases: `sense` and `plan` from the request alone, `act` step by step, `reflect`, and `final_answer`.

    With `reflect_every_step` it looks back after each step, and may do the step once more or see that all is done;
    without, it looks back once before the answer, and may do the last step once more.
    """
    talk.tell(SENSE)
    await talk.ask("sense")
    steps = await written_plan(talk, params)
    for number, step in enumerate(steps, 1):
        await do_step(talk, params, number, len(steps), step)
        last = number == len(steps)
        if not (params.reflect_every_step or last):
            continue
        verdict = await reflected(talk, "the last step" if params.reflect_every_step else "everything that was done")
        if verdict == "again":
            if talk.left_open and talk.left_open[-1] == step:
                talk.left_open.pop()
            await do_step(talk, params, number, len(steps), step)
        elif verdict == "done":
            break
    return await final_answer(talk)


async def reflected(talk: Conversation, what: str) -> str:
    """The verdict; a reply that is none is asked for once more."""
    talk.tell(REFLECT.format(what=what))
    for last in (False, True):
        reply = await talk.ask("reflect", schema=VERDICT_SCHEMA)
        verdict = read_object(reply.text).get("verdict")
        if verdict in VERDICTS:
            return str(verdict)
        if not last:
            talk.tell("That is not the JSON that was asked for. " + REFLECT.format(what=what))
    raise ModelError("models.bad-reply", "the model wrote no verdict: its reply is not the JSON that was asked for")
