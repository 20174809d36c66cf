"""How much later the first piece of a stream comes through everything of ours than from the server itself."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.faulty import Server
from benchmarks.routing.ours import PROMPT, REQUEST, router_over
from bicameral.models import ScriptedProvider
from bicameral.models.remote import RemoteProvider
from bicameral.routing import Fallback, Retry, Router

TIMES = 120
_BODY: dict[str, Any] = {
    "model": "main",
    "stream": True,
    "stream_options": {"include_usage": True},
    "messages": [{"role": "system", "content": PROMPT[0]}, {"role": "user", "content": PROMPT[1]}],
}


@dataclass(frozen=True, slots=True)
class FirstToken:
    """Seconds from asking to the first piece of text."""

    ours: float
    bare: float


async def first_token() -> FirstToken:
    """Router, retry, fallback and remote provider against the same HTTP client alone, in turns."""
    long_reply = ScriptedProvider(lambda request: "".join(f"line {number} of the reply\n" for number in range(20)))
    async with Server(long_reply) as server, _client() as client:
        models = [
            RemoteProvider("openai", name, base_url=server.url, chamber="privileged") for name in ("main", "spare")
        ]
        router = router_over(
            {name: Fallback([Retry(each) for each in models]) for name in ("main", "fast", "powerful", "local")}
        )
        times: tuple[list[float], list[float]] = ([], [])
        for turn in range(TIMES + 3):
            taken = await _ours(router), await _bare(client, server.url)
            if turn >= 3:  # the first few import, connect and fill caches
                for each, seconds in zip(times, taken, strict=True):
                    each.append(seconds)
        await router.aclose()
    return FirstToken(median(times[0]), median(times[1]))


def _client() -> Any:
    return importlib.import_module("httpx2").AsyncClient()


async def _ours(router: Router) -> float:
    seconds, started = 0.0, time.perf_counter()
    async for _ in router.stream(REQUEST):
        seconds = seconds or time.perf_counter() - started
    return seconds


async def _bare(client: Any, url: str) -> float:
    seconds, started = 0.0, time.perf_counter()
    async with client.stream("POST", f"{url}/chat/completions", json=_BODY) as response:
        async for line in response.aiter_lines():
            if not seconds and '"content": "line' in line:
                seconds = time.perf_counter() - started
    return seconds
