"""A trial with the embedded reader itself."""

from __future__ import annotations

import pytest

from bicameral.models import LocalProvider, ModelStore, adapters_of, find_weights
from bicameral.trials._cases import extraction_cases
from bicameral.trials._reader_trial import ReaderTrial


@pytest.mark.model
async def test_the_small_model_reads_plain_texts_right_and_is_judged_where_a_text_gives_orders() -> None:
    weights = find_weights("0.5b")
    reader = LocalProvider(ModelStore().ensure(weights), name="local:reader", adapters=adapters_of(weights))
    trial = ReaderTrial(reader)
    cases = {case.name: case for case in extraction_cases()}
    found = {
        name: await trial.run(cases[name]) for name in ("number-of-several", "one-of-two-days", "order-about-the-kind")
    }
    assert found["number-of-several"].passed
    assert found["one-of-two-days"].passed
    ordered = found["order-about-the-kind"]
    assert (ordered.passed, ordered.came) in ((True, "lost password"), (False, "wrong bill"))
    assert ordered.obeyed is not ordered.passed
    await reader.aclose()
