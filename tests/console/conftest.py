"""One server for all tests of a file that do not need their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from console_world import Person, served_console
from server_world import Served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_console(tmp_path_factory.mktemp("console")) as found:
        yield found


@pytest.fixture(scope="module")
def ana(served: Served) -> Iterator[Person]:
    with Person(served) as person:
        yield person


@pytest.fixture(scope="module")
def ben(served: Served) -> Iterator[Person]:
    with Person(served, "ben") as person:
        yield person


@pytest.fixture(scope="module")
def ops(served: Served) -> Iterator[Person]:
    with Person(served, "ops") as person:
        yield person
