"""The laws of labels and shades: joining loses no source and gains no reader, whatever is joined, in any order."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import time
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st
from label_strategies import SOURCES, labels, readers, shades

from bicameral.labels import (
    NOTHING,
    PUBLIC,
    TRUSTED_USER,
    UNKNOWN,
    EitherLabels,
    Label,
    LabelError,
    LabelTree,
    ListLabels,
    Readers,
    RecordLabels,
    Source,
    as_list,
    as_record,
    covers,
    join,
    join_all,
    join_trees,
    taint,
)
from bicameral.labels._label import (
    MAX_LEVELS,
    MAX_PARTS,
    _interned_labels,  # pyright: ignore[reportPrivateUsage]
)
from bicameral.labels._label_tree import iter_labels

STRANGER = Label({Source("third_party", "read_mail", "[].body", "1")}, {"ada"})


def may_read(readers: Readers, name: str) -> bool:
    return readers is PUBLIC or name in readers


# Labels -------------------------------------------------------------------------------------------------------------


@given(labels(), labels())
def test_a_join_has_every_source_of_both_and_no_other(left: Label, right: Label) -> None:
    assert join(left, right).sources == left.sources | right.sources


@given(labels(), labels(), st.sampled_from(["user", "ada", "bob", "eve@example.com", "4711", "nobody"]))
def test_a_join_is_read_by_those_who_may_read_both_and_nobody_else(left: Label, right: Label, name: str) -> None:
    assert may_read(join(left, right).readers, name) == (may_read(left.readers, name) and may_read(right.readers, name))


@given(labels(), labels(), labels())
def test_labels_are_a_lattice(a: Label, b: Label, c: Label) -> None:
    assert join(a, b) is join(b, a)
    assert join(a, join(b, c)) is join(join(a, b), c)
    assert join(a, a) is a
    assert join(a, NOTHING) is a
    assert covers(join(a, b), a)
    assert covers(join(a, b), b)
    if covers(c, a) and covers(c, b):
        assert covers(c, join(a, b))


@given(labels(), labels())
def test_what_a_stranger_had_a_hand_in_stays_untrusted(left: Label, right: Label) -> None:
    assert join(left, right).trusted == (left.trusted and right.trusted)
    assert left.trusted == all(source.trust != "third_party" for source in left.sources)


@given(st.frozensets(SOURCES, max_size=3), readers())
def test_equal_labels_are_one_object(sources: frozenset[Source], readers: Readers) -> None:
    label = Label(sources, readers)
    assert Label(list(sources), readers if readers is PUBLIC else list(readers)) is label
    assert copy.copy(label) is copy.deepcopy(label) is label
    assert pickle.loads(pickle.dumps(label)) is label


@given(labels())
def test_the_user_may_read_everything(label: Label) -> None:
    assert may_read(label.readers, "user")
    assert may_read(UNKNOWN.readers, "user")
    assert not may_read(UNKNOWN.readers, "ada")


def test_a_join_of_many_is_the_join_of_each() -> None:
    many = [Label({Source("system", "clock", str(number))}, {"ada", str(number)}) for number in range(50)]
    assert join_all(many) is Label({source for each in many for source in each.sources}, {"ada"})
    assert join_all([]) is NOTHING


def test_a_secret_joined_with_public_text_stays_a_secret() -> None:
    public, secret = Label({Source("system", "web")}), Label({Source("system", "mail")}, {"ada"})
    assert join(public, secret).readers == join(secret, public).readers == {"user", "ada"}


def test_one_word_of_the_users_does_not_make_a_strangers_text_trusted() -> None:
    assert not join(TRUSTED_USER, UNKNOWN).trusted
    assert not join(UNKNOWN, TRUSTED_USER).trusted


def test_a_taint_reaches_the_fields_that_are_not_named() -> None:
    tainted = taint(RecordLabels(NOTHING, {"subject": NOTHING}, NOTHING), UNKNOWN)
    assert tainted.own is tainted.field("subject") is tainted.field("other") is UNKNOWN


def test_which_keys_there_are_counts_for_the_whole() -> None:
    assert RecordLabels(UNKNOWN, {"subject": NOTHING}, NOTHING).flat is UNKNOWN
    assert ListLabels(UNKNOWN, NOTHING).flat is UNKNOWN


def test_threads_that_make_the_same_label_get_the_same_object() -> None:
    found: list[list[Label]] = [[] for _ in range(8)]
    barrier = threading.Barrier(8)

    def make(into: list[Label]) -> None:
        barrier.wait()
        into += [Label({Source("system", "clock", str(number))}, {str(number)}) for number in range(500)]

    threads = [threading.Thread(target=make, args=(each,)) for each in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(first is other for each in found for first, other in zip(found[0], each, strict=True))


def test_labels_that_nobody_holds_are_forgotten() -> None:
    gc.collect()
    before = len(_interned_labels)
    for number in range(20_000):
        assert Label({Source("system", "clock", "", str(number))}).trusted
    gc.collect()
    assert len(_interned_labels) < before + 1_000


# What cannot be made or changed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shade", [STRANGER, ListLabels(STRANGER, NOTHING), RecordLabels(STRANGER, {"a": NOTHING})])
def test_a_label_cannot_be_changed(shade: LabelTree) -> None:
    for name in ("sources", "readers", "trusted", "own", "flat", "item", "fields", "anything"):
        with pytest.raises(AttributeError):
            setattr(shade, name, TRUSTED_USER)
        with pytest.raises(AttributeError):
            delattr(shade, name)
    with pytest.raises(TypeError):
        cast("Any", RecordLabels(STRANGER, {"a": STRANGER})).fields["a"] = TRUSTED_USER


def test_what_a_quarantined_model_wrote_is_a_strangers_word() -> None:
    for trust in ("user", "system"):
        with pytest.raises(LabelError) as error:
            Source(trust, "extract", "", "3")
        assert error.value.code == "labels.forged"
    assert Source("third_party", "extract", "", "3").trust == "third_party"


class _Text(str):
    """A text that says it equals everything."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True


class _Trusting:
    """Looks like a label, and trusts everything."""

    trusted, sources, readers = True, frozenset[Source](), PUBLIC
    own = flat = item = property(lambda self: self)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Source(cast("Any", "nobody"), "t"),
        lambda: Source(cast("Any", _Text("user")), "t"),
        lambda: Source(cast("Any", None), "t"),
        lambda: Source("user", cast("Any", 7)),
        lambda: Source("user", "t", cast("Any", _Text(""))),
        lambda: Label(cast("Any", ["user"])),
        lambda: Label((), cast("Any", "ada")),
        lambda: Label((), cast("Any", [1])),
        lambda: Label((), cast("Any", [_Text("ada")])),
        lambda: ListLabels(cast("Any", _Trusting()), NOTHING),
        lambda: ListLabels(NOTHING, cast("Any", _Trusting())),
        lambda: ListLabels(NOTHING),
        lambda: ListLabels(NOTHING, places=cast("Any", [None])),
        lambda: ListLabels(cast("Any", ListLabels(NOTHING, NOTHING)), NOTHING),
        lambda: RecordLabels(NOTHING, cast("Any", {"a": "b"})),
        lambda: RecordLabels(NOTHING, cast("Any", {1: NOTHING})),
        lambda: RecordLabels(NOTHING, {}, cast("Any", None)),
        lambda: EitherLabels(cast("Any", NOTHING), RecordLabels(NOTHING, {})),
    ],
)
def test_what_is_no_label_is_refused(make: Any) -> None:
    with pytest.raises(LabelError) as error:
        make()
    assert error.value.code == "labels.malformed"


# Shades -------------------------------------------------------------------------------------------------------------


@given(shades(), shades())
def test_joined_shades_lose_no_source_and_gain_no_reader(left: LabelTree, right: LabelTree) -> None:
    both = join_trees(left, right)
    assert both.flat is join(left.flat, right.flat)
    assert covers(both, left)
    assert covers(both, right)


@given(shades(), shades(), shades())
def test_shades_are_a_lattice(a: LabelTree, b: LabelTree, c: LabelTree) -> None:
    assert join_trees(a, b) is join_trees(b, a)
    left, right = join_trees(a, join_trees(b, c)), join_trees(join_trees(a, b), c)
    assert covers(left, right)
    assert covers(right, left)
    assert join_trees(a, a) is a
    assert join_trees(a, NOTHING) is a


@given(shades(), shades(), shades())
def test_a_shade_that_covers_more_still_does_so_after_a_join(a: LabelTree, b: LabelTree, c: LabelTree) -> None:
    assert covers(join_trees(join_trees(a, b), c), join_trees(a, c))


@given(shades(), labels())
def test_tainting_reaches_every_part_and_nothing_else(shade: LabelTree, label: Label) -> None:
    found = taint(shade, label)
    assert all(covers(each, label) for each in iter_labels(found))
    assert covers(found, shade)
    assert found.flat is join(shade.flat, label)
    assert type(found) is type(shade)


@given(shades(), labels(), labels())
def test_tainting_twice_is_tainting_with_both(shade: LabelTree, one: Label, other: Label) -> None:
    assert taint(taint(shade, one), other) is taint(shade, join(one, other))


@given(shades())
def test_a_label_for_everything_covers_every_part(shade: LabelTree) -> None:
    assert covers(shade.flat, shade)
    assert all(covers(shade.flat, label) for label in iter_labels(shade))
    for part in (shade.own, shade.item, shade.values, shade.place(0), shade.field("a"), shade.field("zzz")):
        assert covers(shade.flat, part)


@given(shades())
def test_equal_shades_are_one_object(shade: LabelTree) -> None:
    assert copy.copy(shade) is copy.deepcopy(shade) is shade
    assert pickle.loads(pickle.dumps(shade)) is shade


@given(shades(), shades())
def test_the_order_of_shades_is_that_of_their_parts(a: LabelTree, b: LabelTree) -> None:
    if covers(a, b):
        assert covers(a.flat, b.flat)
        assert covers(a.own, b.own) or not isinstance(a, Label)
    assert covers(a, a)
    assert covers(a, NOTHING)


def test_a_stranger_covers_whoever_else_may_have_written_the_same_part() -> None:
    stranger, user = (Label({Source(trust, "t", "p", "1")}) for trust in ("third_party", "user"))
    assert covers(stranger, user)
    assert not covers(user, stranger)
    assert not covers(Label({Source("third_party", "t", "p", "2")}), user)


def test_fewer_readers_and_more_sources_cover() -> None:
    assert covers(Label((), {"ada"}), Label((), {"ada", "bob"}))
    assert covers(Label((), {"ada"}), NOTHING)
    assert not covers(Label((), {"ada", "bob"}), Label((), {"ada"}))
    assert not covers(NOTHING, Label((), {"ada"}))
    assert not covers(ListLabels(TRUSTED_USER, NOTHING), ListLabels(NOTHING, TRUSTED_USER))
    assert not covers(ListLabels(STRANGER, places=(NOTHING, STRANGER)), ListLabels(STRANGER, STRANGER))
    assert not covers(ListLabels(STRANGER, STRANGER), RecordLabels(STRANGER, {}, STRANGER))


def test_what_one_label_is_known_of_may_be_of_any_kind() -> None:
    record = RecordLabels(TRUSTED_USER, {"ids": ListLabels(TRUSTED_USER, TRUSTED_USER)}, TRUSTED_USER)
    both = join_trees(STRANGER, record)
    assert as_list(both) is ListLabels(STRANGER, STRANGER)
    found = as_record(both)
    assert found is not None
    assert found.own is found.rest is join(TRUSTED_USER, STRANGER)
    assert as_list(found.field("ids")) is taint(ListLabels(TRUSTED_USER, TRUSTED_USER), STRANGER)
    assert as_record(found.field("ids")) is RecordLabels(STRANGER, {}, STRANGER)


def test_a_list_joined_with_a_record_keeps_the_parts_of_both() -> None:
    items, record = ListLabels(NOTHING, TRUSTED_USER), RecordLabels(NOTHING, {"body": STRANGER}, NOTHING)
    both = join_trees(items, record)
    assert isinstance(both, EitherLabels)
    assert both.field("body") is STRANGER
    assert both.place(0) is TRUSTED_USER
    assert both.flat is join(TRUSTED_USER, STRANGER)


# Hostile sizes ------------------------------------------------------------------------------------------------------


def test_a_shade_is_never_deeper_than_its_bound_and_forgets_nothing() -> None:
    shade: LabelTree = STRANGER
    for number in range(500):
        shade = ListLabels(TRUSTED_USER, shade) if number % 2 else RecordLabels(TRUSTED_USER, {"x": shade})
        assert shade.levels <= MAX_LEVELS
        assert shade.flat.sources == STRANGER.sources | TRUSTED_USER.sources


def test_a_shade_that_doubles_at_every_level_stays_small() -> None:
    started = time.thread_time()
    shade: LabelTree = STRANGER
    for number in range(200):
        inner = {str(key): taint(shade, Label({Source("system", "clock", str(key))})) for key in range(8)}
        shade = RecordLabels(TRUSTED_USER, inner, shade)
        shade = ListLabels(shade.own, places=(shade, shade)) if number % 3 == 0 else shade
        assert shade.parts <= MAX_PARTS
    assert STRANGER.sources < shade.flat.sources
    assert time.thread_time() - started < 20


@pytest.mark.parametrize("count", [MAX_PARTS - 1, MAX_PARTS, 50_000])
def test_so_many_fields_or_places_are_not_told_apart(count: int) -> None:
    record = RecordLabels(NOTHING, {f"f{number}": TRUSTED_USER for number in range(count)} | {"body": STRANGER})
    assert record.parts <= MAX_PARTS
    assert covers(record.field("body"), STRANGER)
    places = ListLabels(NOTHING, places=[TRUSTED_USER] * count + [STRANGER])
    assert places.parts <= MAX_PARTS
    assert covers(places.place(count), STRANGER)


def test_giant_sets_are_joined_exactly() -> None:
    some = Label((), frozenset(f"p{number}" for number in range(200_000)))
    more = Label((), frozenset(f"p{number}" for number in range(100_000, 300_000)))
    assert len(cast("frozenset[str]", join(some, more).readers)) == 100_001
    sources = Label(frozenset(Source("system", "t", str(number)) for number in range(50_000)))
    assert len(join(sources, STRANGER).sources) == 50_001
