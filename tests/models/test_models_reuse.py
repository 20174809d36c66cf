"""Real weights: a reply is the same to the last bit, whether its prompt was fresh, cached or restored.

Blocks are small here, so that short prompts have several; `python -m benchmarks.reuse` tries more, with the product's.
"""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.reuse import VARIANTS, asking, cases, sweep

PROMPTS = 40

pytestmark = [pytest.mark.model, pytest.mark.only_live]


def test_prompts_get_the_same_replies_fresh_cached_and_restored() -> None:
    chosen = cases(PROMPTS, tokens=3)
    assert {(case.adapted, case.request.temperature > 0) for case in chosen} == {
        (adapted, sampled) for adapted in (False, True) for sampled in (False, True)
    }
    with asking(block=4) as asker:
        outcomes = list(sweep(asker, chosen, variants=1))
    assert [outcome for outcome in outcomes if not outcome.same] == []
    # Something was reused in all circumstances, or they would not have been tried.
    assert Counter(outcome.variant for outcome in outcomes if outcome.reused) == Counter(
        {variant.__name__: PROMPTS // len(VARIANTS) for variant in VARIANTS}
    )
