"""Two hundred calls at once through a server that fails in every way it can: is each answered, and each only once?"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass

from benchmarks.faulty import Fault, Server, seeded
from benchmarks.routing.ours import router_over
from bicameral.errors import BicameralError
from bicameral.models import Message, ModelReply, ModelRequest, ScriptedProvider
from bicameral.models.remote import RemoteProvider
from bicameral.routing import BreakerSettings, Fallback, Retry, RetrySettings, Router

FAULTS = (
    Fault("rate-limited", 0.05),
    Fault("error"),
    Fault("unavailable", 0.05),
    Fault("silent"),
    Fault("slow", 0.2),
    Fault("truncated"),
    Fault("malformed"),
    Fault("wrong-shape"),
    Fault("wrong-schema"),
    Fault("reset"),
)
RATE = 0.5
MOST = 4
"""So many attempts of a call may fail; the spare model is asked up to once more than that."""

SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Survived:
    """What became of the calls. `lost` got no answer or not their own; `duplicated` answers were given again."""

    calls: int
    lost: int
    duplicated: int
    seconds: float
    requests: int
    degraded: int
    at_once: int
    faults: Counter[str]
    why_lost: tuple[str, ...]


async def survive(calls: int = 200, seed: int = 4, attempt_seconds: float = 8.0) -> Survived:
    """Make all calls at once and compare what the callers got with what the server gave.

    An attempt may take long: on a slow machine one that is given up while its answer is under way would count twice.
    """
    async with Server(ScriptedProvider(_answer), seeded(seed, RATE, FAULTS, most=MOST), hold=60.0) as server:
        router = _stack(server.url, attempt_seconds)
        await _warm(router)
        before = len(server.exchanges)
        started = time.perf_counter()
        got = await asyncio.gather(*(router.generate(_call(number)) for number in range(calls)), return_exceptions=True)
        seconds = time.perf_counter() - started
        await server.settled()
        await router.aclose()
    why = tuple(_wrong(number, reply) for number, reply in enumerate(got))
    exchanges = server.exchanges[before:]
    return Survived(
        calls=calls,
        lost=sum(1 for each in why if each),
        duplicated=server.duplicated,
        seconds=seconds,
        requests=len(exchanges),
        degraded=sum(1 for reply in got if isinstance(reply, ModelReply) and reply.degraded),
        at_once=server.most_in_flight,
        faults=Counter(each.fault for each in exchanges if each.fault),
        why_lost=tuple(each for each in why if each),
    )


def _stack(url: str, attempt_seconds: float) -> Router:
    patient = RetrySettings(attempts=3, first=0.05, most=0.5, each=attempt_seconds)
    more_patient = RetrySettings(attempts=MOST + 1, first=0.05, most=0.5, each=attempt_seconds)
    breaker = BreakerSettings(failures=10, rest=0.5)
    main = Retry(RemoteProvider("openai", "main", base_url=url, chamber="privileged"), patient)
    spare = Retry(RemoteProvider("openai", "spare", base_url=url, chamber="privileged"), more_patient)
    chain = Fallback([main, spare], breaker=breaker)
    return router_over(dict.fromkeys(("main", "fast", "powerful", "local"), chain))


async def _warm(router: Router) -> None:
    """What is imported at the first request is not what is measured."""
    try:
        await router.generate(ModelRequest((Message("user", "call 0 of nobody"),)))
    except BicameralError:
        return


def _call(number: int) -> ModelRequest:
    """Every fourth call asks for JSON, so that a reply of the wrong schema is one."""
    text = f"call {number}"
    return ModelRequest((Message("user", text),), json_schema=None if number % 4 else SCHEMA)


def _answer(request: ModelRequest) -> str:
    number = int(request.messages[-1].text.split()[1])
    return json.dumps({"number": number}) if request.json_schema else f"answer {number}"


def _wrong(number: int, reply: ModelReply | BaseException) -> str:
    if isinstance(reply, BaseException):
        return f"call {number}: {reply}"
    wanted = _answer(_call(number))
    return "" if reply.text == wanted else f"call {number}: {reply.text!r} instead of {wanted!r}"
