"""Real models for every test that asks for one, loaded once; and a watch over the privileged prompts of all tests."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest

from bicameral.models import LocalProvider
from canaries import Watch, watching

# A test run that was started in the background inherits that Ctrl-C is ignored, and so would every program it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def privileged_prompts() -> Iterator[Watch]:
    """No test may show the privileged model what a stranger wrote."""
    with watching() as watch:
        yield watch
    watch.verify()


@pytest.fixture(scope="session")
def small_model() -> Iterator[LocalProvider]:
    """The 0.5B weights; mark the test with `@pytest.mark.model`."""
    yield from _local("0.5b")


@pytest.fixture(scope="session")
def large_model() -> Iterator[LocalProvider]:
    """The 1.5B weights; mark the test with `@pytest.mark.model`."""
    yield from _local("1.5b")


def _local(alias: str) -> Iterator[LocalProvider]:
    from bicameral.models import ModelStore, find_weights

    weights = find_weights(alias)
    provider = LocalProvider(ModelStore().ensure(weights), name=f"local:{weights.id}@{weights.sha256[:8]}")
    yield provider
    asyncio.run(provider.aclose())
