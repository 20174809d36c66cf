"""What retrieval needs beyond Bicameral itself."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from bicameral.errors import RetrievalError

NEEDED = ("numpy", "threadpoolctl", "tokenizers")


@cache
def installed() -> None:
    """Say at once, and clearly, if a package is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise RetrievalError(
            "retrieval.not-installed",
            f"retrieval needs {', '.join(missing)}, which is not installed",
            fix='Install it with `pip install "bicameral[retrieval]"`.',
        )
