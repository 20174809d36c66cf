"""The mark of a test that holds invariants of the catalogue; `scripts.invariants` collects these marks."""

from __future__ import annotations

import pytest


def holds(*invariants: str) -> pytest.MarkDecorator:
    """Says that the test fails if one of these invariants breaks: `R4.3` is the third of R4 in the catalogue."""
    return pytest.mark.holds(*invariants)
