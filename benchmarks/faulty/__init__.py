"""A real HTTP server on loopback that speaks the OpenAI chat-completions protocol, in front of any `Provider`.

In come `/v1/chat/completions` (streamed or not, with tools, a JSON Schema, usage) and `/v1/models`; out goes what the
provider says, or a fault: chosen beforehand with `in_order`, `by_model` or, for many calls at once, `seeded`. Every
exchange is kept in `Server.exchanges`, so a test can prove that no answer was lost and none was given twice.

Example:
    >>> async with Server(ScriptedProvider(lambda request: "Hi."), in_order(Fault("rate-limited", 0.1))) as server:
    ...     httpx.post(f"{server.url}/chat/completions", json={"model": "m", "messages": [...]}).status_code
    429
"""

from benchmarks.faulty._faults import KINDS, Asked, Fault, Faults, Kind, by_model, in_order, no_faults, seeded
from benchmarks.faulty._server import Exchange, Outcome, Server, serving

__all__ = [
    "KINDS",
    "Asked",
    "Exchange",
    "Fault",
    "Faults",
    "Kind",
    "Outcome",
    "Server",
    "by_model",
    "in_order",
    "no_faults",
    "seeded",
    "serving",
]
