"""What a reply says of how it came about: who was asked before, and in what way it is less than what was wanted."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from bicameral.models import ModelReply, Route

Failed: TypeAlias = list[tuple[str, str]]
"""Those that were asked and did not serve, each with the reason."""


def told(reply: ModelReply, alias: str, by: str, failed: Failed) -> ModelReply:
    """The reply with those on its route that did not serve before it, first things first."""
    if not failed:
        return reply
    inner = reply.route.attempts if reply.route is not None else ()
    why = f"after {', '.join(f'{name}: {reason}' for name, reason in failed)}"
    route = reply.route or Route(alias, by, why)
    return replace(reply, route=replace(route, attempts=(*failed, *inner)))


def less(reply: ModelReply, why: str) -> ModelReply:
    """The reply, which says that it is less than what was wanted; what it said of that before stays."""
    return replace(reply, degraded=f"{why}; {reply.degraded}" if reply.degraded else why)
