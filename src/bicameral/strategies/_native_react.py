"""Native ReAct: the model calls tools until it has an answer."""

from __future__ import annotations

from ._conversation import Conversation
from ._phases import Params
from ._plan_and_execute import final_answer
from ._repeats import Repeats

STALLED = 3


async def native_react(talk: Conversation, params: Params) -> str:
    """One loop. A reply that asks for tools is a round; one that asks for none is the answer.

    There is one phase, `act`, in the role `reasoning`. A model that asks for the same call for the third time, with
    nothing changed in between, is told so and has to answer with what it has: that is the phase `final_answer`.
    """
    repeats = Repeats(talk.registry)
    while True:
        reply = await talk.ask("act", role="reasoning", tools=True)
        if not reply.calls:
            return reply.text
        if max(repeats.count(call) for call in reply.calls) >= STALLED:
            for call in reply.calls:
                talk.leave(call, "the same as before.")
            return await final_answer(talk)
        await talk.serve(reply)
