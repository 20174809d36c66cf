"""The console in a real browser: a few journeys of people, what axe finds, hostile texts, and the pictures of the docs.

`python -m benchmarks.console` has all journeys, all fields and the attacks; here is a short selection of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks.console.browser import Chromium, chromium, missing_part

if missing := missing_part():
    pytest.skip(f"the console is not tried in a browser: {missing}", allow_module_level=True)

from benchmarks.console import attacks_changing, journeys_devices, journeys_people, journeys_runs, journeys_writing
from benchmarks.console.accessibility import LOOKS, check_pages
from benchmarks.console.attack import try_attacks
from benchmarks.console.equipment import Equipment
from benchmarks.console.hostile import hostile_texts, storable
from benchmarks.console.injection import try_fields
from benchmarks.console.journey import JOURNEYS, Play, Stage, try_journey
from benchmarks.console.pages import ShownPage, shown_pages
from benchmarks.console.pictures import MOST_BYTES, PICTURES, take_pictures
from benchmarks.console.world import ConsoleServer, serving_console

DOCS = Path(__file__).parents[2] / "docs" / "console"
SELECTED: tuple[Play, ...] = (
    journeys_people.first_visit,
    journeys_people.two_people_at_once,
    journeys_runs.live_graph,
    journeys_runs.provenance_of_a_value,
    journeys_writing.mistake_in_a_request,
    journeys_devices.keyboard_only,
    journeys_devices.lost_connection_and_back,
)
EVERY = 16
"""Of so many hostile texts one is tried here."""
WORDS = [storable(text)[:900] for text in hostile_texts()[::EVERY]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    with serving_console(tmp_path_factory.mktemp("browsed"), equipment=Equipment()) as found:
        yield found


@pytest.fixture(scope="module")
def pages(server: ConsoleServer) -> Sequence[ShownPage]:
    return shown_pages(server)


@pytest.mark.parametrize("play", SELECTED, ids=lambda play: play.__name__)
def test_a_person_sees_what_they_must(browser: Chromium, server: ConsoleServer, play: Play) -> None:
    result = try_journey(JOURNEYS[play.__name__.replace("_", "-")], Stage(server, browser))
    assert result.ok, result.fault


@pytest.mark.parametrize("number", range(len(LOOKS)), ids=[look.name for look in LOOKS])
def test_every_page_is_accessible(
    browser: Chromium, server: ConsoleServer, pages: Sequence[ShownPage], number: int
) -> None:
    """Each page in one of the looks; the benchmark has all of them in all."""
    violations, wrong = check_pages(browser, server, pages[number :: len(LOOKS)], LOOKS[number : number + 1])
    assert not violations, "\n".join(map(str, violations))
    assert not wrong, "\n".join(wrong)


def test_no_hostile_text_runs_or_becomes_a_part_of_a_page(browser: Chromium, tmp_path: Path) -> None:
    with serving_console(tmp_path / "hostile", equipment=Equipment(WORDS)) as hostile:
        found = try_fields(browser, hostile, ("streams", "descriptions"), WORDS)
    assert found.undefended > len(WORDS) / 3
    assert found.pages >= 4
    assert not found.executed
    assert not found.violations
    assert not found.planted
    assert not found.unseen
    assert not found.broken


def test_a_page_of_a_stranger_frames_nothing(browser: Chromium, server: ConsoleServer) -> None:
    [(attack, twin)] = try_attacks(Stage(server, browser), (attacks_changing.framing.__name__,))
    assert attack.ok, attack.fault
    assert twin.ok, twin.fault


def test_the_pictures_of_the_documentation_can_be_made_and_are_there(
    browser: Chromium, server: ConsoleServer, pages: Sequence[ShownPage], tmp_path: Path
) -> None:
    """`python -m benchmarks.console --screenshots docs/console` makes them anew."""
    made = take_pictures(browser, server, pages, tmp_path)
    assert sum(file.stat().st_size for file in made) <= MOST_BYTES
    assert {file.name for file in DOCS.glob("*.png")} == {each.file for each in PICTURES}
    assert sum(file.stat().st_size for file in DOCS.glob("*.png")) <= MOST_BYTES


def test_pages_asked_no_other_host_and_broke_no_rule(browser: Chromium) -> None:
    """What the pages of all tests above did."""
    assert browser.watch.outside == []
    assert browser.watch.violations == []
    assert browser.watch.errors == []
    assert browser.watch.executed == []
