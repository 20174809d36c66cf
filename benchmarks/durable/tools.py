"""Tools that do nothing, so that what is measured is everything around them."""

from __future__ import annotations

import time

from bicameral.plans import Plan, parse
from bicameral.tools import Origin, Registry, tool

OWN = Origin("system")

MOMENTS: list[float] = []
"""When the tools of this process were called."""


@tool(effect="read", origins=OWN, outbound=False)
async def look(number: int) -> int:
    """Look at nothing."""
    MOMENTS.append(time.perf_counter())
    return number + 1


@tool(effect="write", keyed=True, purpose={"number": "directs"}, origins=OWN, outbound=False)
async def change(number: int) -> int:
    """Change nothing, once for one key."""
    MOMENTS.append(time.perf_counter())
    return number + 1


@tool(effect="read", origins=Origin("third_party"), outbound=False)
async def hear(number: int) -> int:
    """A number that a stranger wrote."""
    return number


@tool(effect="send", keyed=True, purpose={"to": "directs", "amount": "directs"}, receivers=("to",), origins=OWN)
async def pay(to: str, amount: int) -> int:
    """Pay nothing to nobody."""
    return amount


REGISTRY = Registry([look, change, hear, pay])


def steps_plan(tool_name: str, many: int) -> Plan:
    """So many calls of a tool, each with the result of the one before."""
    lines = ["n0 = 0", *(f"n{number + 1} = {tool_name}(n{number})" for number in range(many)), f"answer(n{many})"]
    return parse("\n".join(lines), REGISTRY).plan


def small_plan() -> Plan:
    """What a small run does: it looks, changes something, looks again."""
    return parse("a = look(1)\nb = change(a)\nc = look(b)\nanswer(c)", REGISTRY).plan


def waiting_plan(number: int) -> Plan:
    """A payment of an amount that a stranger wrote: a person is asked."""
    return parse(f"heard = hear({number})\npaid = pay('ann@example.com', heard)\nanswer(paid)", REGISTRY).plan
