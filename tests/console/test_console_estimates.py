"""Estimates on the pages of patterns, without a server: whatever is typed, there is an estimate or an error."""

from __future__ import annotations

import pytest

from bicameral.catalog import IDS, catalog
from bicameral.config import Config
from bicameral.console._pattern_pages import KNOB_PREFIX, SIZE_PREFIX, EstimateForm, estimate_form
from bicameral.errors import CatalogError

CONFIG = Config.defaults()
BAD_NUMBERS = ("-1", "1e-320", "1e308", "nan", "inf", "1e999", "9" * 90, "9" * 5_000, "many", "1,5", "0x10")
NUMBERS = ("0", "1e-9", "1e12", "1e15")
"""Numbers that some sizes and knobs may have."""


def form(id: str, **typed: str) -> EstimateForm:
    return estimate_form(catalog().pattern(id), lambda name: typed.get(name, ""), CONFIG)


def fields(id: str) -> list[str]:
    """The sizes and knobs that the page of a pattern asks for."""
    found = form(id)
    return [*(f"{SIZE_PREFIX}{name}" for name in found.sizes), *(f"{KNOB_PREFIX}{name}" for name in found.knobs)]


@pytest.mark.parametrize("id", IDS)
def test_every_size_and_knob_of_a_pattern_is_counted_with_or_refused(id: str) -> None:
    for name in fields(id):
        for text in BAD_NUMBERS:
            refused = form(id, **{name: text})
            assert isinstance(refused.error, CatalogError), (name, text)
            assert (refused.error.code, refused.table) == ("catalog.bad-number", None)
            assert refused.typed[name]
        for text in NUMBERS:
            found = form(id, **{name: text})
            assert (found.table is None) == (found.error is not None), (name, text)
        assert form(id, **{name: " "}).table is not None


@pytest.mark.parametrize("text", NUMBERS)
def test_all_sizes_together_may_be_as_large_or_small_as_each_of_them(text: str) -> None:
    for id in IDS:
        sizes = {name: text for name in fields(id) if name.startswith(SIZE_PREFIX)}
        found = form(id, **sizes)
        assert (found.table is None) == (found.error is not None), id
        if text != "1e15":
            assert found.error is None, (id, found.error)
