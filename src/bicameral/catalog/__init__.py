"""The catalogue as code: 94 patterns for agents as facts, and what checks, advises and reckons with them.

In comes an id, a few words, or a description of an architecture; out go facts, findings, advice and costs. It knows
nothing of models, tools or runs, and nothing is read before it is asked for.

    from bicameral.catalog import catalog

    catalog().pattern("O6").what
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.errors import CatalogError as CatalogError

if TYPE_CHECKING:
    from .facts import *  # noqa: F403


def __getattr__(name: str) -> Any:
    # The names of `facts`, which are imported with it when one of them is first asked for.
    if not name.startswith("_"):
        facts = import_module(f"{__name__}.facts")
        if name in facts.__all__:
            return getattr(facts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module(f"{__name__}.facts").__all__})
