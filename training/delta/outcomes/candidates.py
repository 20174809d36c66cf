"""Blocks from which cases are made. A module of its own, since the processes of a pool import what they run."""

from __future__ import annotations

import random
from collections.abc import Iterator

from bicameral.errors import BicameralError
from bicameral.planning._decode import refusal_reason

from ..blocks import Block
from ..build import all_blocks, fresh_sample, is_held_back
from .oracle import Case, Dropped, make_case_now

_ABSENT = ("fetch_page", "fetch_json")
"""Tools for which no world is made."""
REFUSALS = 0.08
"""The share of requests that cannot be served; composed blocks have twice as many, and they are soon learned."""


def candidates(composed: int, seed: int) -> Iterator[Block]:
    """Blocks over the standard tools that training may see, in any order, with fewer refusals."""
    picks = random.Random(f"outcomes/{seed}")
    blocks = [
        block
        for block in all_blocks(composed, seed)
        if block.toolbox is None
        and not block.searched
        and not is_held_back(block)
        and not any(f"{name}(" in block.plan for name in _ABSENT)
    ]
    refused = [block for block in blocks if refusal_reason(block.plan) is not None]
    served = [block for block in blocks if refusal_reason(block.plan) is None]
    kept = picks.sample(refused, min(len(refused), round(len(served) * REFUSALS)))
    yield from picks.sample([*served, *kept], len(served) + len(kept))


def try_block(block: Block, filling: int) -> Case | Dropped:
    """A case of one phrasing of a block."""
    phrasing = random.Random(f"outcomes/{block.place}/{filling}").choice(block.phrasings)
    try:
        sample = fresh_sample(block, phrasing, 1000 + filling)
        if sample is None:
            return Dropped("no filling", block.place, phrasing)
        return make_case_now(block, sample)
    except BicameralError as error:
        return Dropped(f"reference: {error.code}", block.place, str(error))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OSError, OverflowError) as error:
        return Dropped(f"world: {type(error).__name__}", block.place, f"{error}\n{block.plan}")
