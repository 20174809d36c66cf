"""What durable runs need beyond Bicameral itself."""

from __future__ import annotations

from importlib.util import find_spec

from bicameral.errors import DurableError

NEEDED = ("sqlalchemy", "dbos", "psycopg")


def installed() -> None:
    """Say at once, and clearly, if a package is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise DurableError(
            "durable.not-installed",
            f"durable runs need {', '.join(missing)}, which is not installed",
            fix='Install it with `pip install "bicameral[durable]"`.',
        )
