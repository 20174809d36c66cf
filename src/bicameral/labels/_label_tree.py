"""Label trees: the labels of structured values, part by part, with their join, their taint and their order.

All items of a list share one tree, so the tree of a value is as small as its type, however much data it holds; a list
of few places may keep one for each. Every function here is monotone part by part: what is computed from a tree that
covers another covers what is computed from the other. The soundness of the proof before a run rests on this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeGuard, final

from bicameral.errors import LabelError
from bicameral.labels._label import (
    MAX_LEVELS,
    MAX_PARTS,
    NOTHING,
    PUBLIC,
    TREE_MEMORY,
    FrozenAttributes,
    Label,
    Readers,
    Source,
    find_tree,
    intern_tree,
    join,
    join_all,
    levels_left,
    tree_size,
)


@final
class ListLabels(FrozenAttributes):
    """The labels of a list: `own` for how many and which, `item` for every item.

    With `places` (a literal list, a pair) each place has its own, and `item` is their join.
    """

    __slots__ = ("flat", "item", "levels", "own", "parts", "places")

    own: Label
    item: LabelTree
    places: tuple[LabelTree, ...] | None
    flat: Label
    levels: int
    parts: int

    def __new__(
        cls, own: Label, item: LabelTree | None = None, places: Iterable[LabelTree] | None = None
    ) -> ListLabels:
        by_place = None if places is None else tuple(_check_tree(place) for place in places)
        inside = _check_tree(item) if by_place is None else _join_trees(by_place)
        return make_list_labels(_check_label(own), inside, by_place)

    def place(self, number: int) -> LabelTree:
        """The shade of one place; of any item where places are not told apart."""
        if self.places is not None and -len(self.places) <= number < len(self.places):
            return self.places[number]
        return self.item

    def field(self, name: str) -> Label:
        """A list has no fields: whatever one gets so is covered by everything in it."""
        return self.flat

    @property
    def values(self) -> Label:
        return self.flat

    def __reduce__(self) -> tuple[Any, ...]:
        return ListLabels, (self.own, self.item, self.places)

    def __repr__(self) -> str:
        inside = self.item if self.places is None else list(self.places)
        return f"ListShade({self.own!r}, {inside!r})"


@final
class RecordLabels(FrozenAttributes):
    """The labels of a record or dict: `own` for which keys there are, one for each known field, `rest` for others."""

    __slots__ = ("fields", "flat", "levels", "own", "parts", "rest")

    own: Label
    fields: Mapping[str, LabelTree]
    rest: LabelTree
    flat: Label
    levels: int
    parts: int

    def __new__(cls, own: Label, fields: Mapping[str, LabelTree], rest: LabelTree = NOTHING) -> RecordLabels:
        for name in fields:
            if type(name) is not str:
                raise LabelError("labels.malformed", "the fields of a record are named by texts")
        known = {name: _check_tree(fields[name]) for name in sorted(fields)}
        return make_record_labels(_check_label(own), known, _check_tree(rest))

    @property
    def item(self) -> Label:
        """Going over a dict gives its keys."""
        return self.own

    def place(self, number: int) -> Label:
        return self.flat

    def field(self, name: str) -> LabelTree:
        return self.fields.get(name, self.rest)

    @property
    def values(self) -> LabelTree:
        """The join of all fields and the rest: what stands under a key that is not known."""
        return _joined_values(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordLabels, (self.own, dict(self.fields), self.rest)

    def __repr__(self) -> str:
        return f"RecordShade({self.own!r}, {dict(self.fields)!r}, {self.rest!r})"


@final
class EitherLabels(FrozenAttributes):
    """The labels of what may be a list or a record: values of different kinds, or of unknown kind, came together."""

    __slots__ = ("as_list", "as_record", "flat", "item", "levels", "own", "parts")

    as_list: ListLabels
    as_record: RecordLabels
    own: Label
    item: LabelTree
    flat: Label
    levels: int
    parts: int

    def __new__(cls, as_list: ListLabels, as_record: RecordLabels) -> EitherLabels:
        if type(as_list) is not ListLabels or type(as_record) is not RecordLabels:
            raise LabelError("labels.malformed", "an EitherShade is made of a ListShade and a RecordShade")
        return make_either_labels(as_list, as_record)

    def place(self, number: int) -> LabelTree:
        return self.as_list.place(number)

    def field(self, name: str) -> LabelTree:
        return self.as_record.field(name)

    @property
    def values(self) -> LabelTree:
        return self.as_record.values

    def __reduce__(self) -> tuple[Any, ...]:
        return EitherLabels, (self.as_list, self.as_record)

    def __repr__(self) -> str:
        return f"EitherShade({self.as_list!r}, {self.as_record!r})"


LabelTree = Label | ListLabels | RecordLabels | EitherLabels
"""The labels of a value: one `Label` for all of it, or one for each part."""

_TREE_CLASSES = frozenset({Label, ListLabels, RecordLabels, EitherLabels})


def _check_tree(value: object) -> LabelTree:
    if not _is_tree(value):
        raise LabelError("labels.malformed", f"a {type(value).__name__} is not a shade")
    return value


def _is_tree(value: object) -> TypeGuard[LabelTree]:
    # The very classes: a class of somebody's own could say anything of itself.
    return type(value) in _TREE_CLASSES


def _check_label(value: object) -> Label:
    if type(value) is not Label:
        raise LabelError("labels.malformed", f"a {type(value).__name__} is not a Label")
    return value


# Making, and cutting what would be too deep or too large -------------------------------------------------------------


def make_list_labels(own: Label, item: LabelTree, places: tuple[LabelTree, ...] | None) -> ListLabels:
    levels, parts = tree_size(places or (item,))
    if levels > MAX_LEVELS or parts > MAX_PARTS:
        fewer = levels_left(levels)
        places = None if places is None or parts > MAX_PARTS else tuple(_cut_levels(place, fewer) for place in places)
        return make_list_labels(own, _cut_levels(item, fewer), places)
    found = find_tree((own, item, places))
    if found is not None:
        return found
    flat = join(own, item.flat)
    facts = zip(
        ("own", "item", "places", "flat", "levels", "parts"), (own, item, places, flat, levels, parts), strict=True
    )
    return intern_tree(ListLabels, (own, item, places), facts)


def make_record_labels(own: Label, fields: dict[str, LabelTree], rest: LabelTree) -> RecordLabels:
    """A record of fields in the order of their names."""
    key = (own, tuple(fields.items()), rest)
    found = find_tree(key)
    if found is not None:
        return found
    inside = (*fields.values(), rest)
    levels, parts = tree_size(inside)
    if levels > MAX_LEVELS or parts > MAX_PARTS:
        if levels == 1:
            # So many fields are not told apart.
            return make_record_labels(own, {}, join_all(each.flat for each in inside))
        fewer = levels_left(levels)
        return make_record_labels(
            own, {name: _cut_levels(each, fewer) for name, each in fields.items()}, _cut_levels(rest, fewer)
        )
    names = ("own", "fields", "rest", "flat", "levels", "parts")
    flat = join_all((own, *(each.flat for each in inside)))
    facts = (own, MappingProxyType(fields), rest, flat, levels, parts)
    return intern_tree(RecordLabels, key, zip(names, facts, strict=True))


@lru_cache(maxsize=TREE_MEMORY)
def _joined_values(shade: RecordLabels) -> LabelTree:
    return _join_trees((*shade.fields.values(), shade.rest))


def make_either_labels(as_list: ListLabels, as_record: RecordLabels) -> EitherLabels:
    if as_list.parts + as_record.parts > MAX_PARTS:
        fewer = levels_left(max(as_list.levels, as_record.levels))
        as_list = make_list_labels(as_list.own, _cut_levels(as_list.item, fewer), None)
        fields = {name: _cut_levels(each, fewer) for name, each in as_record.fields.items()} if fewer else {}
        rest = _cut_levels(as_record.rest if fewer else as_record.values, fewer)
        return make_either_labels(as_list, make_record_labels(as_record.own, fields, rest))
    own = join(as_list.own, as_record.own)
    names = ("as_list", "as_record", "own", "item", "flat", "levels", "parts")
    facts = (
        as_list,
        as_record,
        own,
        join_trees(as_list.item, as_record.item),
        join(as_list.flat, as_record.flat),
        max(as_list.levels, as_record.levels),
        as_list.parts + as_record.parts,
    )
    return intern_tree(EitherLabels, (as_list, as_record), zip(names, facts, strict=True))


@lru_cache(maxsize=TREE_MEMORY)
def _cut_levels(shade: LabelTree, levels: int) -> LabelTree:
    """The same with at most so many levels; what is below is joined."""
    if shade.levels <= levels:
        return shade
    if levels <= 0:
        return shade.flat
    match shade:
        case ListLabels():
            return _cut_list(shade, levels)
        case RecordLabels():
            return _cut_record(shade, levels)
        case EitherLabels():
            return make_either_labels(_cut_list(shade.as_list, levels), _cut_record(shade.as_record, levels))
        case Label():
            return shade


def _cut_list(shade: ListLabels, levels: int) -> ListLabels:
    places = None if shade.places is None else tuple(_cut_levels(place, levels - 1) for place in shade.places)
    return make_list_labels(shade.own, _cut_levels(shade.item, levels - 1), places)


def _cut_record(shade: RecordLabels, levels: int) -> RecordLabels:
    fields = {name: _cut_levels(each, levels - 1) for name, each in shade.fields.items()}
    return make_record_labels(shade.own, fields, _cut_levels(shade.rest, levels - 1))


# Joining ------------------------------------------------------------------------------------------------------------


def _join_trees(shades: Iterable[LabelTree]) -> LabelTree:
    found: LabelTree = NOTHING
    for each in shades:
        found = join_trees(found, each)
    return found


@lru_cache(maxsize=TREE_MEMORY)
def join_trees(left: LabelTree, right: LabelTree) -> LabelTree:
    """The labels of a value that is one or the other, or made of both: joined part by part."""
    if left is right:
        return left
    match left, right:
        case (Label() as label, shade) | (shade, Label() as label):
            return _join_label(label, shade)
        case ListLabels(), ListLabels():
            return _join_lists(left, right)
        case RecordLabels(), RecordLabels():
            return _join_records(left, right)
        case _:
            lists = [part for shade in (left, right) if (part := as_list(shade)) is not None]
            records = [part for shade in (left, right) if (part := as_record(shade)) is not None]
            first, first_record = lists[0], records[0]
            whole = first if len(lists) == 1 else _join_lists(first, lists[1])
            record = first_record if len(records) == 1 else _join_records(first_record, records[1])
            return make_either_labels(whole, record)


def _join_label(label: Label, shade: LabelTree) -> LabelTree:
    # What one label is known of may be of any kind, and so may be what is in it: to say that it is a list, or a record,
    # would be to guess.
    if label is NOTHING:
        return shade
    match shade:
        case Label():
            return join(shade, label)
        case ListLabels():
            return make_either_labels(_join_lists(shade, uniform_list(label)), uniform_record(label))
        case RecordLabels():
            return make_either_labels(uniform_list(label), _join_records(shade, uniform_record(label)))
        case EitherLabels():
            as_list, as_record = shade.as_list, shade.as_record
            return make_either_labels(
                _join_lists(as_list, uniform_list(label)), _join_records(as_record, uniform_record(label))
            )


def uniform_list(label: Label) -> ListLabels:
    """A list of which one label is known."""
    return make_list_labels(label, label, None)


def uniform_record(label: Label) -> RecordLabels:
    """A record of which one label is known."""
    return make_record_labels(label, {}, label)


def as_list(shade: LabelTree) -> ListLabels | None:
    """What is known of it as a list, part by part."""
    match shade:
        case ListLabels():
            return shade
        case EitherLabels():
            return shade.as_list
        case _:
            return None


def as_record(shade: LabelTree) -> RecordLabels | None:
    """What is known of it as a record, part by part."""
    match shade:
        case RecordLabels():
            return shade
        case EitherLabels():
            return shade.as_record
        case _:
            return None


def _join_lists(left: ListLabels, right: ListLabels) -> ListLabels:
    places = None
    if left.places is not None and right.places is not None and len(left.places) == len(right.places):
        places = tuple(join_trees(*pair) for pair in zip(left.places, right.places, strict=True))
    return make_list_labels(join(left.own, right.own), join_trees(left.item, right.item), places)


def _join_records(left: RecordLabels, right: RecordLabels) -> RecordLabels:
    names = sorted({*left.fields, *right.fields})
    fields = {name: join_trees(left.field(name), right.field(name)) for name in names}
    return make_record_labels(join(left.own, right.own), fields, join_trees(left.rest, right.rest))


@lru_cache(maxsize=TREE_MEMORY)
def taint(shade: LabelTree, label: Label) -> LabelTree:
    """The same with a label joined into every part."""
    if label is NOTHING:
        return shade
    match shade:
        case Label():
            return join(shade, label)
        case ListLabels():
            return _taint_list(shade, label)
        case RecordLabels():
            return _taint_record(shade, label)
        case EitherLabels():
            return make_either_labels(_taint_list(shade.as_list, label), _taint_record(shade.as_record, label))


def _taint_list(shade: ListLabels, label: Label) -> ListLabels:
    places = None if shade.places is None else tuple(taint(place, label) for place in shade.places)
    return make_list_labels(join(shade.own, label), taint(shade.item, label), places)


def _taint_record(shade: RecordLabels, label: Label) -> RecordLabels:
    fields = {name: taint(each, label) for name, each in shade.fields.items()}
    return make_record_labels(join(shade.own, label), fields, taint(shade.rest, label))


_COVERS_MEMORY = 1 << 12


def covers(upper: LabelTree, lower: LabelTree) -> bool:
    """Whether, part by part, every source and every restriction of `lower` is in `upper` too.

    A third party covers whoever else may have written the same part: it is the worst that can be said of it.
    """
    match lower:
        case Label():
            return all(_label_covers(label, lower) for label in iter_labels(upper))
        case ListLabels():
            whole = _as_list_labels(upper)
            places = max(len(lower.places or ()), len(whole.places or ()))
            return (
                _label_covers(whole.own, lower.own)
                and covers(whole.item, lower.item)
                and all(covers(whole.place(at), lower.place(at)) for at in range(places))
            )
        case RecordLabels():
            record = _as_record_labels(upper)
            return (
                _label_covers(record.own, lower.own)
                and covers(record.rest, lower.rest)
                and all(covers(record.field(name), lower.field(name)) for name in {*lower.fields, *record.fields})
            )
        case EitherLabels():
            return covers(upper, lower.as_list) and covers(upper, lower.as_record)


def iter_labels(shade: LabelTree) -> Iterable[Label]:
    """The label of every part."""
    match shade:
        case Label():
            yield shade
        case ListLabels():
            yield shade.own
            yield from iter_labels(shade.item)
            for place in shade.places or ():
                yield from iter_labels(place)
        case RecordLabels():
            yield shade.own
            for each in (*shade.fields.values(), shade.rest):
                yield from iter_labels(each)
        case EitherLabels():
            yield from iter_labels(shade.as_list)
            yield from iter_labels(shade.as_record)


@lru_cache(maxsize=_COVERS_MEMORY)
def _label_covers(upper: Label, lower: Label) -> bool:
    if not _readers_cover(upper.readers, lower.readers):
        return False
    return all(
        source in upper.sources or Source("third_party", source.tool, source.part, source.step) in upper.sources
        for source in lower.sources
    )


def _readers_cover(upper: Readers, lower: Readers) -> bool:
    return lower is PUBLIC or (upper is not PUBLIC and upper <= lower)


# What a shade says of a value that is a list, or a record: NOTHING where it says that there is none.


def _as_list_labels(shade: LabelTree) -> ListLabels:
    return as_list(shade) or uniform_list(_label_or_nothing(shade))


def _as_record_labels(shade: LabelTree) -> RecordLabels:
    return as_record(shade) or uniform_record(_label_or_nothing(shade))


def _label_or_nothing(shade: LabelTree) -> Label:
    return shade if isinstance(shade, Label) else NOTHING
