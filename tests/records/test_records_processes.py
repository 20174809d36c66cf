"""Several processes with one store, and the death of one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from records_world import facts, own

from bicameral.labels import open_labelled
from postgres import kill_connections

WRITER = Path(__file__).with_name("records_writer.py")


def writer(*args: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(WRITER), *map(str, args)], stdout=subprocess.PIPE, text=True)


def test_no_update_of_two_processes_is_lost(place: str | Path) -> None:
    with facts(place) as store:
        store.add(own("Ghent", 0), author="Ada", id="counter")
        others = [writer("count", place, 15) for _ in range(2)]
        for other in others:
            other.communicate(timeout=60)
        assert [other.returncode for other in others] == [0, 0]
        assert open_labelled(store.get("counter").value).people == 30
        assert len(store.history("counter")) == 31


def test_what_was_said_to_be_written_survives_the_death_of_the_process(place: str | Path) -> None:
    for _ in range(3):
        other = writer("add", place)
        assert other.stdout is not None
        said = [other.stdout.readline().strip() for _ in range(5)]
        # In the middle of whatever it is writing now.
        other.kill()
        said += [line.strip() for line in other.communicate(timeout=60)[0].splitlines() if len(line.strip()) == 32]
        with facts(place) as store:
            assert set(said) <= set(store.ids())
            # At most the one that was written and not yet said.
            store.add(own("Ghent"), author="Ada")
    with facts(place) as store:
        assert all(each.is_current for each in store.all())


def test_a_database_that_ends_all_connections_loses_and_doubles_nothing(postgres_url: str) -> None:
    with facts(postgres_url) as store:
        for number in range(5):
            store.add(own("Ghent", number), author="Ada")
            kill_connections(postgres_url)
        assert [open_labelled(each.value).people for each in store.all()] == [0, 1, 2, 3, 4]
