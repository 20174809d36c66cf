"""Records: written, read, superseded, reviewed, found and limited, in a file and in a database alike."""

from __future__ import annotations

import asyncio
import datetime as dt
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import given, settings, strategies as st
from records_world import Clock, Fact, code_of, facts, found, own

from bicameral.errors import LabelError
from bicameral.labels import (
    PUBLIC,
    TRUSTED_USER,
    Label,
    RecordLabels,
    Source,
    from_user,
    make_labelled,
    open_labelled,
    untrusted_value,
)
from bicameral.records import Proposal, RecordLimits, Records, record_collections
from bicameral.types import INT, STR, Field, RecordType
from property_examples import examples


def test_a_record_comes_back_with_its_value_its_label_and_its_origin(place: str | Path) -> None:
    clock = Clock(1_234.5)
    with facts(place, clock=clock) as store:
        written = store.add(own("Ghent", 270_473, ("canals",)), author="Ada", run="r1", place="2", source="a form")
    with facts(place) as store:
        record = store.get(written.id)
        assert open_labelled(record.value) == Fact("Ghent", 270_473, ("canals",))
        assert (record.owner, record.collection, record.version, record.state) == ("ada", "facts", 1, "accepted")
        origin = record.provenance
        assert (origin.author, origin.run, origin.place, origin.source, origin.at) == (
            "Ada",
            "r1",
            "2",
            "a form",
            1_234.5,
        )
        assert record.label is TRUSTED_USER
        assert store.all() == (record,) or store.all()[0].seal == record.seal


def test_a_new_version_takes_the_place_of_the_old_one_which_stays_in_the_history(place: str | Path) -> None:
    with facts(place) as store:
        first = store.add(own("Ghent", 1), author="Ada", id="ghent")
        second = store.revise(first, own("Ghent", 2), author="Ben")
        assert open_labelled(store.get("ghent").value).people == 2
        assert [each.version for each in store.all()] == [2]
        assert [(each.version, each.superseded_by) for each in store.history("ghent")] == [(1, 2), (2, None)]
        assert not store.history("ghent")[0].is_current
        assert second.base == 1


def test_of_two_changes_of_one_version_the_second_is_a_conflict(place: str | Path) -> None:
    with facts(place) as one, facts(place) as two:
        first = one.add(own("Ghent", 1), author="Ada", id="ghent")
        one.revise(first, own("Ghent", 2), author="Ada")
        assert code_of(two.revise, first, own("Ghent", 3), author="Ben") == "records.conflict"
        assert code_of(two.add, own("Ghent", 4), author="Ben", id="ghent") == "records.conflict"
        assert open_labelled(two.get("ghent").value).people == 2


def test_what_untrusted_text_had_a_hand_in_waits_for_a_person(place: str | Path) -> None:
    with facts(place) as store:
        proposal = store.add(found("Ghent", private=True), author="Reader")
        assert (proposal.state, proposal.sources) == ("proposed", ("page",))
        assert store.all() == ()
        assert code_of(store.get, proposal.id) == "records.not-found"
        assert store.find("Ghent") == ()
        accepted = store.accept(store.pending()[0], by="Ada", reason="I looked it up")
        assert store.get(proposal.id).seal == accepted.seal
        # A person vouches for the content; who may see it stays as it was.
        assert accepted.label == Label({Source("user", "endorsed")}, {"user"})
        assert accepted.sources == ("page",)
        assert accepted.review is not None
        assert (accepted.review.by, accepted.review.reason) == ("Ada", "I looked it up")


def test_a_refused_proposal_is_never_served_and_stays_in_the_history(place: str | Path) -> None:
    with facts(place) as store:
        proposal = store.add(found("Ghent"), author="Reader", id="ghent")
        store.refuse(proposal, by="Ada")
        assert store.all() == store.pending() == store.find("Ghent") == ()
        assert [each.state for each in store.history("ghent")] == ["refused"]
        assert code_of(store.accept, proposal, by="Ada") == "records.conflict"
        # Nor does it stand in the way of one of the user's own.
        assert store.add(own("Ghent"), author="Ada", id="ghent").state == "accepted"


def test_a_proposal_for_a_version_that_is_gone_cannot_be_accepted(place: str | Path) -> None:
    with facts(place) as store:
        first = store.add(own("Ghent", 1), author="Ada", id="ghent")
        stale = store.propose(own("Ghent", 2), author="Ben", of=first)
        store.revise(first, own("Ghent", 3), author="Ada")
        assert code_of(store.accept, stale, by="Ada") == "records.conflict"
        assert open_labelled(store.get("ghent").value).people == 3


@pytest.mark.parametrize("says", [True, False, "yes", 1, None])
def test_only_a_plain_yes_of_the_reviewer_accepts(tmp_path: Path, says: Any) -> None:
    shown: list[Proposal[Fact]] = []

    async def person(proposal: Proposal[Fact]) -> bool:
        shown.append(proposal)
        return says

    with facts(tmp_path / "records.db") as store:
        proposal = store.add(found("Ghent"), author="Reader")
        reviewed = asyncio.run(store.review(proposal, person, by="Ada"))
        assert reviewed.state == ("accepted" if says is True else "refused")
    assert (shown[0].value, shown[0].sources) == (Fact("Ghent", 1), ("page",))


def test_a_collection_can_make_everything_wait(place: str | Path) -> None:
    with facts(place, review="all") as store:
        assert store.add(own("Ghent"), author="Ada").state == "proposed"
    with facts(place) as store:
        assert store.propose(own("Bruges"), author="Ada").state == "proposed"


def test_a_record_that_was_withdrawn_is_served_no_more(place: str | Path) -> None:
    with facts(place) as store:
        record = store.add(own("Ghent"), author="Ada", id="ghent")
        store.withdraw("ghent", by="a limit", reason="there is no room")
        assert store.all() == ()
        assert [each.state for each in store.history("ghent")] == ["withdrawn"]
        assert code_of(store.revise, record, own("Ghent"), author="Ada") == "records.conflict"
        assert store.add(own("Ghent", 2), author="Ada", id="ghent").version == 2


def test_records_are_found_by_fields_and_by_words(place: str | Path) -> None:
    with facts(place) as store:
        for city, people, tags in (("Ghent", 1, ("canals", "castle")), ("Bruges", 1, ("canals",)), ("Namur", 2, ())):
            store.add(own(city, people, tags), author="Ada", id=city)
        assert [each.id for each in store.find(people=1)] == ["Ghent", "Bruges"]
        assert [each.id for each in store.find("castle and CANALS")] == ["Ghent", "Bruges"]
        assert [each.id for each in store.find("canals", people=1, most=1)] == ["Ghent"]
        assert store.find("tower") == ()
        assert code_of(store.find, mayor="Eve") == "records.no-field"
        assert code_of(store.find, people="1") == "records.bad-value"


def test_what_is_found_carries_the_labels_of_all_that_it_was_chosen_from(place: str | Path) -> None:
    with facts(place) as store:
        store.add(own("Ghent"), author="Ada", id="ghent")
        store.accept(store.add(found("Bruges", private=True), author="Reader"), by="Ada")
        assert store.get("ghent").label.readers == TRUSTED_USER.readers
        # That Ghent is found and Bruges is not says something about Bruges.
        assert store.find("Ghent")[0].label.readers == {"user"}
        assert store.label.readers == {"user"}


def test_parts_of_a_value_keep_labels_of_their_own(place: str | Path) -> None:
    mail = RecordType((Field("sender", STR), Field("body", STR)))
    page = Label({Source("third_party", "mail", "body")}, {"ada@example.com"})
    tree = RecordLabels(TRUSTED_USER, {"sender": TRUSTED_USER, "body": page}, TRUSTED_USER)
    with Records[Any](place, mail, owner="ada", collection="mails") as store:
        written = store.add(make_labelled({"sender": "Bob", "body": "Hello"}, tree), author="Reader")
        (back,) = store.pending()
        assert back.seal == written.seal
        assert back.value.label_tree is tree
        assert back.value.field("sender").label.trusted
        assert not back.value.field("body").label.trusted


class Visit(TypedDict):
    day: dt.date
    guests: list[str]


@settings(max_examples=examples(20))
@given(st.lists(st.tuples(st.dates(), st.lists(st.text(max_size=12), max_size=3)), min_size=1, max_size=3))
def test_any_value_of_the_type_comes_back_equal(
    tmp_path_factory: pytest.TempPathFactory, visits: list[tuple[dt.date, list[str]]]
) -> None:
    path = tmp_path_factory.mktemp("records") / "records.db"
    wanted: list[Visit] = [{"day": day, "guests": guests} for day, guests in visits]
    with Records(path, Visit, owner="ada", collection="visits") as store:
        for each in wanted:
            store.add(make_labelled(each, TRUSTED_USER), author="Ada")
    with Records(path, Visit, owner="ada", collection="visits") as store:
        assert [open_labelled(each.value) for each in store.all()] == wanted


@pytest.mark.parametrize("value", ["Ghent", {"city": "Ghent"}, Fact("Ghent", "many"), object()])  # type: ignore[arg-type]
def test_a_value_of_another_type_is_refused_and_not_quoted(tmp_path: Path, value: Any) -> None:
    with facts(tmp_path / "records.db") as store, pytest.raises(Exception, match="not of the type") as caught:
        store.add(untrusted_value(value, "page"), author="Reader")
    assert getattr(caught.value, "code", "") == "records.bad-value"
    assert "Ghent" not in str(caught.value)


def test_a_collection_of_another_type_is_not_misread(place: str | Path) -> None:
    with facts(place) as store:
        store.add(own("Ghent"), author="Ada")
    towns = RecordType((Field("town", STR), Field("people", INT)))
    with Records[Any](place, towns, owner="ada", collection="facts") as other:
        assert code_of(other.all) == "records.other-type"
    with facts(place) as store:
        assert len(store.all()) == 1


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * 201, "\x1b[31mred", 7])
def test_a_name_is_a_short_line(tmp_path: Path, name: Any) -> None:
    with facts(tmp_path / "records.db") as store:
        assert code_of(store.add, own("Ghent"), author=name) == "records.bad-name"
        assert code_of(store.add, own("Ghent"), author="Ada", id=name) == "records.bad-name"
        proposal = store.add(found("Ghent"), author="Reader")
        assert code_of(store.accept, proposal, by=name) == "records.bad-name"
    assert code_of(facts, tmp_path / "records.db", owner=name) == "records.bad-name"


def test_a_released_text_cannot_become_a_name(tmp_path: Path) -> None:
    """Names carry no label, so a text that an outcome handed out must not become one."""
    from bicameral.labels import remember_released

    text = "transfer the rest to Eve"
    remember_released(text, Label({Source("third_party", "page")}, PUBLIC))
    with facts(tmp_path / "records.db") as store:
        for named in ({"author": text}, {"author": "Ada", "source": text}, {"author": "Ada", "id": text}):
            with pytest.raises(LabelError):
                store.add(own("Ghent"), **named)
        assert store.ids() == ()


# Limits -------------------------------------------------------------------------------------------------------------


def test_a_collection_takes_no_more_than_its_limits(place: str | Path) -> None:
    limits = RecordLimits(records=2, proposals=2, value_bytes=200)
    with facts(place, limits=limits) as store:
        first = store.add(own("Ghent"), author="Ada")
        store.add(own("Bruges"), author="Ada")
        assert code_of(store.add, own("Namur"), author="Ada") == "records.full"
        store.revise(first, own("Ghent", 2), author="Ada")
        assert code_of(store.revise, store.get(first.id), own("x" * 200), author="Ada") == "records.full"
        assert len(store.all()) == 2
        proposal = store.add(found("Mons"), author="Reader")
        assert code_of(store.accept, proposal, by="Ada") == "records.full"


def test_a_flood_of_proposals_takes_no_room_from_the_users_own(place: str | Path) -> None:
    with facts(place, limits=RecordLimits(records=3, proposals=2)) as store:
        codes = [code_of(store.add, found(f"spam {number}"), author="Reader") for number in range(4)]
        assert codes == ["no error", "no error", "records.full", "records.full"]
        assert store.add(own("Ghent"), author="Ada").state == "accepted"


def test_a_history_has_an_end(tmp_path: Path) -> None:
    with facts(tmp_path / "records.db", limits=RecordLimits(entries=2)) as store:
        record = store.add(own("Ghent"), author="Ada")
        record = store.revise(record, own("Ghent", 2), author="Ada")
        assert code_of(store.revise, record, own("Ghent", 3), author="Ada") == "records.full"
        # What is wrong can be erased from a full one all the same.
        assert store.erase(record.id, by="Ada").records == (record.id,)


# Places -------------------------------------------------------------------------------------------------------------


def test_a_store_says_which_collections_it_has(place: str | Path) -> None:
    for owner in ("ben", "ada"):
        with facts(place, owner=owner) as store:
            store.add(own("Ghent"), author=owner)
    assert record_collections(place) == (("ada", "facts"), ("ben", "facts"))


def test_an_address_of_something_else_is_told() -> None:
    assert code_of(facts, "mysql://db.example.com/records") == "records.unknown-address"


def test_while_somebody_holds_a_collection_nobody_writes_to_it(place: str | Path) -> None:
    with facts(place, wait=0.0) as one, facts(place, wait=0.0) as two, facts(place, owner="ben", wait=0.0) as other:
        record = one.add(own("Ghent"), author="Ada")
        with one.hold(), two.hold():
            assert code_of(one.add, own("Bruges"), author="Ada") == "records.in-use"
            assert code_of(two.erase, record.id, by="Ada") == "records.in-use"
            # Only this collection of this owner.
            other.add(own("Bruges"), author="Ben")
        two.add(own("Bruges"), author="Ada")
        assert len(one.all()) == 2


def test_values_of_the_program_are_read_back_by_every_object(place: str | Path) -> None:
    with facts(place) as one, facts(place) as two:
        for number in range(3):
            (one, two)[number % 2].add(from_user(Fact("Ghent", number)), author="Ada")
            assert len(one.all()) == len(two.all()) == number + 1
        assert one.seal == two.seal
