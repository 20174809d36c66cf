"""`bicameral records`: a person sees what is kept, decides about what waits, and has it erased."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_terminal import Terminal
from cli_world import World

from bicameral.config import Config
from bicameral.config._resources import protected_paths
from bicameral.labels import from_user, untrusted_value
from bicameral.records import Records
from bicameral.types import ANY


@pytest.fixture
def place(world: World) -> Path:
    """The configured store, with a fact of Ada's own and one that a page proposes."""
    path = Path(Config.load(base=world.folder).records_database)
    with Records[Any](path, ANY, owner="ada", collection="facts") as records:
        records.add(from_user({"city": "Ghent", "people": 270473}), author="Ada", id="ghent", source="a form")
        records.add(untrusted_value({"city": "Bruges\u202e"}, "page"), author="Reader", id="bruges", run="r1")
    return path


def test_whoever_only_looks_makes_no_file(world: World) -> None:
    assert world.json("records") == {"ok": True, "records": [], "erased": []}
    assert "nothing is kept" in world.call("records", "list").stdout
    assert not Path(Config.load(base=world.folder).records_database).exists()


def test_the_list_has_what_is_current_and_what_waits(world: World, place: Path) -> None:
    found = world.json("records", "list")["records"]
    assert [(each["id"], each["state"], each["sources"]) for each in found] == [
        ("ghent", "accepted", []),
        ("bruges", "proposed", ["page"]),
    ]
    assert "value" not in found[0]
    shown = world.call("records").stdout
    assert "ghent" in shown
    assert "proposed" in shown
    assert world.json("records", "list", "--owner", "eve")["records"] == []
    assert len(world.json("records", "list", "--collection", "facts")["records"]) == 2


def test_a_record_is_shown_with_its_origin_and_nothing_hidden(world: World, place: Path) -> None:
    shown = world.call("records", "show", "bruges").stdout
    assert "made from untrusted text: page" in shown
    assert "run r1" in shown
    # A character that changes the direction of writing is made visible.
    assert "\u202e" not in shown
    assert "<202e>" in shown
    (version,) = world.json("records", "show", "ghent")["versions"]
    assert (version["value"]["people"], version["source"]) == (270473, "a form")
    error = world.json("records", "show", "gent", code=1)["error"]
    assert (error["code"], error["nearest"]) == ("records.not-found", "ghent")


def test_a_proposal_is_accepted_or_refused_by_a_named_person(world: World, place: Path) -> None:
    assert world.json("records", "accept", "bruges", code=4)["error"]["code"] == "run.needs-answer"
    assert world.json("records", "accept", "ghent", "--yes", code=1)["error"]["code"] == "records.not-found"
    accepted = world.json("records", "accept", "bruges", "--yes", "--reason", "I looked")["record"]
    assert (accepted["state"], accepted["review"]["reason"]) == ("accepted", "I looked")
    assert accepted["review"]["by"]
    with Records[Any](place, ANY, owner="ada", collection="facts") as records:
        records.add(untrusted_value({"city": "Mons"}, "page"), author="Reader", id="mons")
    refused = world.json("records", "refuse", "mons")["record"]
    assert refused["state"] == "refused"
    assert [each["id"] for each in world.json("records")["records"]] == ["ghent", "bruges"]
    everything = world.json("records", "list", "--all")["records"]
    assert [each["id"] for each in everything] == ["ghent", "bruges", "mons"]


def test_which_of_several_is_meant_must_be_said(world: World, place: Path) -> None:
    with Records[Any](place, ANY, owner="ada", collection="facts") as records:
        records.add(untrusted_value({"city": "Brugge"}, "mail"), author="Reader", id="bruges")
    with Records[Any](place, ANY, owner="ben", collection="facts") as records:
        records.add(from_user({"city": "Ghent"}), author="Ben", id="ghent")
    assert world.json("records", "accept", "bruges", "--yes", code=1)["error"]["code"] == "records.ambiguous"
    assert world.json("records", "accept", "bruges", "--version", "2", "--yes")["record"]["version"] == 2
    assert world.json("records", "erase", "ghent", "--yes", code=1)["error"]["code"] == "records.ambiguous"
    assert world.json("records", "show", "ghent", "--owner", "ben")["versions"][0]["owner"] == "ben"


def test_what_waits_is_gone_through_at_a_terminal(world: World, place: Path, terminals: list[Terminal]) -> None:
    with Records[Any](place, ANY, owner="ada", collection="facts") as records:
        for city in ("mons", "namur"):
            records.add(untrusted_value({"city": city}, "page"), author="Reader", id=city)
    terminal = Terminal("records", "review")
    terminals.append(terminal)
    for reply in ("yes", "no", ""):
        terminal.wait_for("Accept it?")
        terminal.shown = ""
        terminal.type(f"{reply}\n")
    terminal.wait_for("1 accepted, 1 refused, 1 left")
    assert terminal.end() == 0
    with Records[Any](place, ANY, owner="ada", collection="facts") as records:
        assert [each.id for each in records.all()] == ["ghent", "bruges"]
        assert [each.id for each in records.pending()] == ["namur"]


def test_without_a_person_nothing_is_reviewed(world: World, place: Path) -> None:
    assert world.json("records", "review", code=4)["error"]["code"] == "run.needs-answer"
    assert world.json("records")["records"][1]["state"] == "proposed"


def test_what_is_erased_is_gone_from_the_file(world: World, place: Path) -> None:
    assert world.json("records", "erase", "ghent", code=4)["error"]["code"] == "run.needs-answer"
    assert world.json("records", "erase", "ghent", "nobody", "--yes", code=1)["error"]["code"] == "records.not-found"
    assert len(world.json("records")["records"]) == 2
    assert world.json("records", "erase", "ghent", "--yes") == {"ok": True, "records": ["ghent"], "scrubbed": True}
    assert b"270473" not in place.read_bytes()
    facts = world.json("records", "list", "--all")
    assert [each["id"] for each in facts["erased"]] == ["ghent"]
    assert "erased" in world.call("records", "list", "--all").stdout


def test_everything_of_an_owner_is_erased(world: World, place: Path) -> None:
    with Records[Any](place, ANY, owner="ben", collection="facts") as records:
        records.add(from_user({"city": "Ghent"}), author="Ben", id="kept")
    assert world.call("records", "erase", "--all", "--yes").exit_code == 2
    assert world.call("records", "erase", "ghent", "--all", "--owner", "ada", "--yes").exit_code == 2
    assert world.json("records", "erase", "--all", "--owner", "ada", "--yes")["records"] == ["ghent", "bruges"]
    assert [each["id"] for each in world.json("records")["records"]] == ["kept"]


def test_everything_can_be_taken_along(world: World, place: Path) -> None:
    world.json("records", "erase", "bruges", "--yes")
    lines = [json.loads(line) for line in world.call("records", "export").stdout.splitlines()]
    assert lines[0]["value"] == {"city": "Ghent", "people": 270473}
    assert lines[0]["label"]["labels"]
    assert lines[1]["erased"]["id"] == "bruges"
    assert world.json("records", "export")["records"] == [lines[0]]


def test_another_store_can_be_named(world: World, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with Records[Any](other, ANY, owner="ada", collection="facts") as records:
        records.add(from_user("x"), author="Ada", id="one")
    assert [each["id"] for each in world.json("records", "--database", str(other))["records"]] == ["one"]
    world.write("bicameral.toml", "[records]\ndatabase = 'kept.db'\n")
    config = Config.load(base=world.folder)
    if not config.withheld:
        assert config.records_database == str(world.folder / "kept.db")


def test_no_tool_may_write_the_records(world: World) -> None:
    config = Config.load(base=world.folder)
    assert Path(config.records_database) in {each.path for each in protected_paths(config)}


def test_ids_are_completed(world: World, place: Path) -> None:
    from bicameral.cli._options import complete_records

    found = complete_records(None, None, "g")  # type: ignore[arg-type]
    assert [(item.value, item.help) for item in found] == [("ghent", "facts of ada")]
