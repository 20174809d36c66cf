"""Folders that may not be read: they are skipped, and whatever rests on the others says so."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bicameral.binding import Binder, Binding, WorldSource, binding_doubts
from bicameral.config import Config, open_registry, surroundings_of
from bicameral.errors import ToolError
from bicameral.plans import parse
from bicameral.runs import Finished, run_plan
from bicameral.tools import Registry

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with one inside that may not be read; not of pytest's, which only root may enter."""
    top = Path(tempfile.mkdtemp(prefix="unreadable-"))
    top.chmod(0o755)
    (top / "open").mkdir()
    (top / "open/bills.csv").write_text("name,amount\nA,1\n")
    (top / "closed").mkdir()
    (top / "closed/bills_secret.csv").write_text("name,amount\nB,2\n")
    (top / "closed").chmod(0)
    yield top
    (top / "closed").chmod(0o755)
    shutil.rmtree(top)


@contextmanager
def unprivileged() -> Generator[None]:
    """Without the rights of root, who may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def config_of(folder: Path) -> Config:
    return Config.defaults(base=folder)


async def test_a_listing_goes_on_without_what_may_not_be_read_and_the_run_says_so(folder: Path) -> None:
    registry = open_registry(config_of(folder))
    plan = parse('found = list_files(".", recursive=True)\nanswer([each.path for each in found])\n', registry).plan
    with unprivileged():
        outcome = await run_plan(plan, registry)
    assert isinstance(outcome, Finished), outcome
    assert outcome.answer == ["open/bills.csv"]
    [doubt] = outcome.doubts
    assert doubt.code == "skipped-file"
    assert "closed" in doubt.text


async def test_words_are_bound_among_what_can_be_read_and_the_plan_says_what_was_skipped(folder: Path) -> None:
    config = config_of(folder)
    registry = open_registry(config)
    binder = Binder(WorldSource(registry, folders=surroundings_of(config).folders))
    with unprivileged():
        bound = await binder.bind("table", "bills")
    assert isinstance(bound, Binding)
    assert bound.value == "open/bills.csv"
    [doubt] = binding_doubts([bound])
    assert doubt.code == "skipped-file"
    assert "closed" in doubt.text
    # The name of a folder is the world's: it must not reach a privileged prompt, whatever the words were bound to.
    assert not doubt.label.trusted
    assert "closed" not in doubt.privileged_text


async def test_where_everything_can_be_read_nothing_is_said(folder: Path) -> None:
    (folder / "closed").chmod(0o755)
    shutil.rmtree(folder / "closed")
    (folder / "closed").mkdir()
    config = config_of(folder)
    with unprivileged():
        bound = await Binder(WorldSource(open_registry(config), folders=surroundings_of(config).folders)).bind(
            "table", "bills"
        )
    assert isinstance(bound, Binding)
    assert binding_doubts([bound]) == ()


async def test_a_folder_that_is_named_and_may_not_be_read_is_an_error(folder: Path) -> None:
    registry: Registry = open_registry(config_of(folder))
    listing = registry.get("list_files")
    assert listing is not None
    with unprivileged(), pytest.raises(ToolError):
        await listing.call(listing.bind({"folder": "closed"}))
