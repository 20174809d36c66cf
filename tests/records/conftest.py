"""A place for records in each kind of store."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """An empty store: a file, or a database of a real server."""
    if request.param == "sqlite":
        return tmp_path / "records.db"
    return request.getfixturevalue("postgres_url")
