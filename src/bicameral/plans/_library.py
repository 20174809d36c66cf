"""The closed library: every function a plan may use in an expression. There is no way to add one from a plan.

Text made of texts and values is a `Format` expression, so `concat` and `format` are surface syntax, not functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ._function import Function
from ._library_dates import DATE_FUNCTIONS
from ._library_lists import DICT_FUNCTIONS, LIST_FUNCTIONS
from ._library_numbers import NUMBER_FUNCTIONS
from ._library_order import ORDER_FUNCTIONS
from ._library_text import TEXT_FUNCTIONS

_ALL: tuple[Function, ...] = (
    *TEXT_FUNCTIONS,
    *NUMBER_FUNCTIONS,
    *LIST_FUNCTIONS,
    *ORDER_FUNCTIONS,
    *DICT_FUNCTIONS,
    *DATE_FUNCTIONS,
)

FUNCTIONS: Mapping[str, Function] = MappingProxyType({function.name: function for function in _ALL})
"""Every library function by its name."""

METHODS: Mapping[str, str] = MappingProxyType(
    {name: name for name, function in FUNCTIONS.items() if function.method}
    | {"casefold": "lower", "date": "date", "time": "time"}
)
"""The function that a Python method of this name stands for; the receiver is its first argument."""
