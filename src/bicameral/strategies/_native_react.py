"""Native ReAct: the model calls tools until it has an answer."""

from __future__ import annotations

from ._conversation import Conversation
from ._phases import Params


async def native_react(talk: Conversation, params: Params) -> str:
    """One loop. A reply that asks for tools is a round; one that asks for none is the answer.

    There is one phase, `act`, in the role `reasoning`.
    """
    while True:
        reply = await talk.ask("act", role="reasoning", tools=True)
        if not reply.calls:
            return reply.text
        await talk.serve(reply)
