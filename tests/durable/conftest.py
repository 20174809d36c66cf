"""Databases for durable runs: a SQLite file and a real PostgreSQL, and a house with a worker in each."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from durable_world import config, worker

from bicameral.durable import Runs
from postgres import new_database

BOTH = ["sqlite", "postgres"]


@dataclass(frozen=True)
class House:
    """A database and a folder in which tools leave their traces."""

    address: str
    folder: Path


def _house(kind: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[House]:
    if kind == "sqlite":
        yield House(str(folder / "durable.db"), folder)
        return
    server = request.getfixturevalue("postgres_server")
    with new_database(server) as url:
        yield House(url, folder)


@pytest.fixture(params=BOTH)
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """A database of this test's own, with nobody working."""
    yield from _house(request.param, tmp_path, request)


@pytest.fixture(scope="module", params=BOTH)
def staffed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A database of this module's, with a worker in a process of its own."""
    for house in _house(request.param, tmp_path_factory.mktemp("house"), request):
        with worker(house.address, house.folder, limits={"tools": {"put": {"concurrency": 1}}}):
            yield house


@asynccontextmanager
async def _opened(house: House) -> AsyncGenerator[Runs]:
    with warnings.catch_warnings():
        # DBOS and its helpers say at import what will change in later versions of theirs.
        warnings.simplefilter("ignore")
        importlib.import_module("dbos")
    async with await Runs.open(house.address, config=config({})) as found:
        yield found


@pytest.fixture
async def runs(house: House) -> AsyncIterator[Runs]:
    """The runs of a house in which nobody works."""
    async with _opened(house) as found:
        yield found


@pytest.fixture
async def worked(staffed: House) -> AsyncIterator[Runs]:
    """The runs of a house with a worker."""
    async with _opened(staffed) as found:
        yield found
