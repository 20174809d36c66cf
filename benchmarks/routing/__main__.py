"""Run it with `python -m benchmarks.routing`. `make routing` installs what it compares with.

Everything is measured in one process and one run, around one fake model; the last line is one JSON object.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from typing import Any

from benchmarks.routing.faults import survive
from benchmarks.routing.others import HOW_TO_INSTALL, litellm_overhead, pydantic_ai_overhead
from benchmarks.routing.ours import decision, whole_stack
from benchmarks.routing.streams import first_token


async def measure() -> dict[str, Any]:
    """Everything; ours both before and after the others, and the slower of both counts."""
    before = await decision()
    stack = await whole_stack()
    pydantic_ai = await pydantic_ai_overhead()
    litellm = await litellm_overhead()
    gc.collect()
    ours = max(before, await decision())
    return {
        "decision_us": _us(ours),
        "stack_us": _us(stack),
        "pydantic_ai_us": _us(pydantic_ai),
        "litellm_us": _us(litellm and litellm.router),
        "litellm_ratio": _ratio(litellm and litellm.router, ours),
        "litellm_alone_us": _us(litellm and litellm.alone),
        "litellm_router_only_ratio": _ratio(litellm and litellm.router - litellm.alone, ours),
        "litellm_stack_ratio": _ratio(litellm and litellm.router, stack),
        "litellm_version": litellm and litellm.version,
        **await _streaming(),
        **await _surviving(),
    }


async def _streaming() -> dict[str, Any]:
    first = await first_token()
    return {
        "first_token_overhead_ms": round((first.ours - first.bare) * 1e3, 3),
        "first_token_bare_ms": round(first.bare * 1e3, 3),
    }


async def _surviving() -> dict[str, Any]:
    survived = await survive()
    for why in survived.why_lost:
        print(f"lost: {why}", file=sys.stderr)
    return {
        "calls": survived.calls,
        "lost": survived.lost,
        "duplicated": survived.duplicated,
        "seconds": round(survived.seconds, 2),
        "requests": survived.requests,
        "degraded": survived.degraded,
        "at_once": survived.at_once,
        "faults": dict(sorted(survived.faults.items())),
    }


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e6, 2)


def _ratio(theirs: float | None, ours: float) -> float | None:
    return None if theirs is None else round(theirs / ours, 1)


ROWS: tuple[tuple[str, str, str], ...] = (
    ("decision_us", "our router, per call, µs", "≤ 20"),
    ("stack_us", "our router with retry, fallback, breaker and costs, µs", ""),
    ("pydantic_ai_us", "pydantic-ai's FallbackModel, µs", ""),
    ("litellm_us", "LiteLLM's Router, µs", ""),
    ("litellm_ratio", "LiteLLM's Router over our router", "≥ 20"),
    ("litellm_alone_us", "LiteLLM without its router, µs", ""),
    ("litellm_router_only_ratio", "what its router adds to LiteLLM without it, over our router", ""),
    ("litellm_stack_ratio", "LiteLLM's Router over our whole stack", ""),
    ("first_token_overhead_ms", "first piece of a stream, ours less the HTTP client alone, ms", ""),
    ("first_token_bare_ms", "the HTTP client alone, ms", ""),
    ("calls", "calls at once through a server that fails", "200"),
    ("lost", "of them without their answer", "0"),
    ("duplicated", "answers given more than once", "0"),
    ("seconds", "until the last was answered, s", ""),
    ("requests", "HTTP requests that it took", ""),
    ("degraded", "answered by the spare model, and said so", ""),
)


def main() -> None:
    found = asyncio.run(measure())
    for name, what, wanted in ROWS:
        shown = "-" if found[name] is None else found[name]
        print(f"{name:26} {shown:>10}  {wanted:6} {what}")
    if found["litellm_us"] is None:
        print(HOW_TO_INSTALL)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
