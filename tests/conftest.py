"""Real models for every test that asks for one, loaded once; and a watch over the privileged prompts of all tests.

Properties are tried on the same examples each time, so that a change is what makes a test fail, and on thousands of
others with `--hypothesis-profile explore` (see `property_examples`). How long one example takes says more about the
machine than about the code.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from bicameral.labels import forget_released
from bicameral.models import LocalProvider
from bicameral.secrets import isolate_secrets
from canaries import Watch, watching
from canaries_plugin import CanaryReport
from postgres import new_database, running_server
from property_examples import EXPLORE, QUICK, THOUSAND
from recordings_plugin import (
    pytest_addoption as pytest_addoption,
    pytest_configure as configure_recordings,
    pytest_deselected as pytest_deselected,
    pytest_runtest_makereport as pytest_runtest_makereport,
    pytest_runtest_setup as pytest_runtest_setup,
    pytest_sessionfinish as pytest_sessionfinish,
    pytest_terminal_summary as pytest_terminal_summary,
    replies_as_recorded as replies_as_recorded,
)

# Whoever runs the tests has a journal and a configuration of their own: no test reads or writes them.
_OWN_FOLDERS = tempfile.mkdtemp(prefix="bicameral-tests-")
atexit.register(shutil.rmtree, _OWN_FOLDERS, ignore_errors=True)
for _kind in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
    os.environ[_kind] = os.path.join(_OWN_FOLDERS, _kind.lower())

# Not the phase that explains a failure: before Python 3.12 it traces every line from then on, for many minutes.
PHASES = [each for each in Phase if each is not Phase.explain]
EITHER = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True, phases=PHASES)
settings.register_profile(EXPLORE, EITHER, max_examples=THOUSAND)
settings.register_profile("same", EITHER, max_examples=QUICK, derandomize=True)
settings.load_profile("same")

# Bytecode is kept even where the surroundings say not to: without it every program that a test starts, and every
# collection, compiles all of Bicameral again, which is half of what they cost.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Collecting makes a million objects that all stay, and looking through them for garbage is a quarter of its time. They
# are set aside when it is done, so that no test pays for them either.
gc.disable()

# A test run that was started in the background inherits that Ctrl-C is ignored, and so would every program it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST = tuple(
    f"test_{name}.py"
    for name in (
        *("benchmarks_redteam", "models_store_wheels", "server_contract", "durable_killed", "server_process"),
        *("cli_submitted", "benchmarks_chaos", "benchmarks_durable"),
    )
)


def pytest_configure(config: pytest.Config) -> None:
    configure_recordings(config)
    config.pluginmanager.register(CanaryReport(), "canary-report")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest come first: begun last, one of them would be waited for by all other processes.

    The others are mixed, always in the same way: neighbours often wait for the same thing, such as a lease that ends,
    and if all processes wait at once nobody computes. xdist keeps to that with `--no-loadscope-reorder`.
    """

    def place(item: pytest.Item) -> tuple[int, str]:
        name = item.path.name
        return (LONGEST.index(name), "") if name in LONGEST else (len(LONGEST), sha256(name.encode()).hexdigest())

    items.sort(key=place)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def privileged_prompts() -> Iterator[Watch]:
    """No test may show the privileged model what a stranger wrote."""
    with watching() as watch:
        yield watch
    watch.verify()


@pytest.fixture(autouse=True)
def no_secrets_of_others() -> Iterator[None]:
    """The keys of one test are ordinary words in the next."""
    with isolate_secrets():
        yield


@pytest.fixture(autouse=True)
def nothing_handed_out() -> None:
    """What an outcome of one test handed out is a stranger's for the whole process, and the next test's own word."""
    forget_released()


@pytest.fixture(autouse=True)
def accepted_configurations(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test is the user who wrote the configurations in its own folders, so these count as accepted.

    It says so as a container would, by BICAMERAL_ACCEPT, which also reaches the processes that it starts. A test of
    acceptance itself is marked `unaccepted` and meets its folder as if somebody else had sent it.
    """
    if "tmp_path" not in request.fixturenames or request.node.get_closest_marker("unaccepted"):
        monkeypatch.delenv("BICAMERAL_ACCEPT", raising=False)
        return
    folder: Path = request.getfixturevalue("tmp_path")
    monkeypatch.setenv("BICAMERAL_ACCEPT", os.pathsep.join((str(folder), str(folder / "work"))))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a PostgreSQL that is started by the first test that asks for it."""
    with running_server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The address of an empty database of this test's own."""
    with new_database(postgres_server) as url:
        yield url


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
