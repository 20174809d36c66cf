"""`bicameral serve` with the scripted models of the server's own tests, and the plans of this benchmark.

python program.py serve --port 0 --json …
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

HERE = Path(__file__).parent
# Python's own folder of scripts would hide packages with the names of the modules here.
sys.path[:] = [str(HERE.parents[1] / "tests" / "served"), *(path for path in sys.path if Path(path) != HERE)]

import served  # noqa: E402
from bicameral.agent import Agent  # noqa: E402
from bicameral.cli import main  # noqa: E402
from bicameral.config import Config  # noqa: E402
from bicameral.models import ModelRequest, ReplyChunk, ScriptedProvider, TextChunk  # noqa: E402

PLANS = {
    "look at all five": "".join(f"seen{number} = look({number})\n" for number in range(5)) + 'answer("looked")\n',
    "Read the walrus file": 'answer(read_text(file("walrus")))\n',
    "change notes.txt": 'write_text("notes.txt", "new words\\n")\nanswer("changed")\n',
}
"""Plans by what a request says."""
REPLIES = Path("replies.json")
"""What the quarantined model replies to a text, by words of it: the world may write whatever a text makes it say."""


LOOKS = [
    {"tool": "look_after", "arguments": [{"name": "text", "value": given}]} for given in ("the first", "#E1", "#E2")
]
"""What the planner of ReWOO writes for a request that says so: calls that take a while, one after the other."""


def privileged(request: ModelRequest) -> str:
    """What the privileged model writes."""
    asked = request.messages[-1].text
    if asked.startswith("Question: ") and "look three times" in asked:
        return json.dumps({"calls": LOOKS})
    return served.privileged(request)


class Writer(ScriptedProvider):
    """The scripted model, which writes line by line with pauses if a request says so."""

    async def chunks(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        slow = any("very slowly" in message.text for message in request.messages)
        async for chunk in super().chunks(request):
            yield chunk
            await asyncio.sleep(0.3 if slow else 0)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        async for chunk in self.chunks(request):
            if isinstance(chunk, TextChunk):
                yield chunk.text


def quarantined(request: ModelRequest) -> str:
    """What a text makes the model that reads it say."""
    words = "\n".join(message.text for message in request.messages)
    replies: dict[str, str] = json.loads(REPLIES.read_text("utf-8")) if REPLIES.exists() else {}
    value: str | int = next((reply for said, reply in replies.items() if said in words), 12)
    return json.dumps({"value": value})


def make(config: Config) -> Agent:
    """The agent of the server."""
    return Agent.from_config(
        config,
        privileged=Writer(privileged, grammars=False),
        quarantined=ScriptedProvider(quarantined, grammars=False),
    )


if __name__ == "__main__":
    served.PLANS.update(PLANS)
    main(obj=make)
