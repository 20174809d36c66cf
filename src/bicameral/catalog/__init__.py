"""The catalogue: 94 patterns for agents as data, with a linter, an advisor and a cost model over them.

In comes an id, a query, or the description of an architecture; out go facts, findings, advice and costs. It knows
nothing of models, tools or runs, and a data file is read when it is first needed.

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
    # The names of `facts`, which is imported when one of them is first used: `import bicameral.catalog` stays cheap.
    if not name.startswith("_"):
        facts = import_module(f"{__name__}.facts")
        if name in facts.__all__:
            return getattr(facts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module(f"{__name__}.facts").__all__})
