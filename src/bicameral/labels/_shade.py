"""Shades: the labels of structured values, part by part.

All items of a list share one shade, so the shade of a value is as small as its type, however much data it holds; a list
of few places may keep one for each. Every function here is monotone part by part: what is computed from a shade that
covers another covers what is computed from the other. On that rests that the proof before a run holds during the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeGuard, final

from bicameral.errors import LabelError

from ._interned import MAX_LEVELS, MAX_PARTS, MEMORY, interned, kept, levels_left, size_of
from ._label import NOTHING, Frozen, Label, join, join_all


@final
class ListShade(Frozen):
    """The labels of a list: `own` for how many and which, `item` for every item.

    With `places` (a literal list, a pair) each place has its own, and `item` is their join.
    """

    __slots__ = ("flat", "item", "levels", "own", "parts", "places")

    own: Label
    item: Shade
    places: tuple[Shade, ...] | None
    flat: Label
    levels: int
    parts: int

    def __new__(cls, own: Label, item: Shade | None = None, places: Iterable[Shade] | None = None) -> ListShade:
        by_place = None if places is None else tuple(_shade(place) for place in places)
        inside = _shade(item) if by_place is None else _together(by_place)
        return made_list(_label(own), inside, by_place)

    def place(self, number: int) -> Shade:
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
        return ListShade, (self.own, self.item, self.places)

    def __repr__(self) -> str:
        inside = self.item if self.places is None else list(self.places)
        return f"ListShade({self.own!r}, {inside!r})"


@final
class RecordShade(Frozen):
    """The labels of a record or dict: `own` for which keys there are, one for each known field, `rest` for others."""

    __slots__ = ("fields", "flat", "levels", "own", "parts", "rest")

    own: Label
    fields: Mapping[str, Shade]
    rest: Shade
    flat: Label
    levels: int
    parts: int

    def __new__(cls, own: Label, fields: Mapping[str, Shade], rest: Shade = NOTHING) -> RecordShade:
        for name in fields:
            if type(name) is not str:
                raise LabelError("labels.malformed", "the fields of a record are named by texts")
        known = {name: _shade(fields[name]) for name in sorted(fields)}
        return made_record(_label(own), known, _shade(rest))

    @property
    def item(self) -> Label:
        """Going over a dict gives its keys."""
        return self.own

    def place(self, number: int) -> Label:
        return self.flat

    def field(self, name: str) -> Shade:
        return self.fields.get(name, self.rest)

    @property
    def values(self) -> Shade:
        """The join of all fields and the rest: what stands under a key that is not known."""
        return _values(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordShade, (self.own, dict(self.fields), self.rest)

    def __repr__(self) -> str:
        return f"RecordShade({self.own!r}, {dict(self.fields)!r}, {self.rest!r})"


@final
class EitherShade(Frozen):
    """The labels of what may be a list or a record: values of different kinds, or of unknown kind, came together."""

    __slots__ = ("as_list", "as_record", "flat", "item", "levels", "own", "parts")

    as_list: ListShade
    as_record: RecordShade
    own: Label
    item: Shade
    flat: Label
    levels: int
    parts: int

    def __new__(cls, as_list: ListShade, as_record: RecordShade) -> EitherShade:
        if type(as_list) is not ListShade or type(as_record) is not RecordShade:
            raise LabelError("labels.malformed", "an EitherShade is made of a ListShade and a RecordShade")
        return made_either(as_list, as_record)

    def place(self, number: int) -> Shade:
        return self.as_list.place(number)

    def field(self, name: str) -> Shade:
        return self.as_record.field(name)

    @property
    def values(self) -> Shade:
        return self.as_record.values

    def __reduce__(self) -> tuple[Any, ...]:
        return EitherShade, (self.as_list, self.as_record)

    def __repr__(self) -> str:
        return f"EitherShade({self.as_list!r}, {self.as_record!r})"


Shade = Label | ListShade | RecordShade | EitherShade
"""The labels of a value: one `Label` for all of it, or one for each part."""

_KINDS = frozenset({Label, ListShade, RecordShade, EitherShade})


def _shade(value: object) -> Shade:
    if not _is_shade(value):
        raise LabelError("labels.malformed", f"a {type(value).__name__} is not a shade")
    return value


def _is_shade(value: object) -> TypeGuard[Shade]:
    # The very classes: a class of somebody's own could say anything of itself.
    return type(value) in _KINDS


def _label(value: object) -> Label:
    if type(value) is not Label:
        raise LabelError("labels.malformed", f"a {type(value).__name__} is not a Label")
    return value


# Making, and cutting what would be too deep or too large -------------------------------------------------------------


def made_list(own: Label, item: Shade, places: tuple[Shade, ...] | None) -> ListShade:
    levels, parts = size_of(places or (item,))
    if levels > MAX_LEVELS or parts > MAX_PARTS:
        fewer = levels_left(levels)
        places = None if places is None or parts > MAX_PARTS else tuple(_cut(place, fewer) for place in places)
        return made_list(own, _cut(item, fewer), places)
    found = kept((own, item, places))
    if found is not None:
        return found
    flat = join(own, item.flat)
    facts = zip(
        ("own", "item", "places", "flat", "levels", "parts"), (own, item, places, flat, levels, parts), strict=True
    )
    return interned(ListShade, (own, item, places), facts)


def made_record(own: Label, fields: dict[str, Shade], rest: Shade) -> RecordShade:
    """A record of fields in the order of their names."""
    key = (own, tuple(fields.items()), rest)
    found = kept(key)
    if found is not None:
        return found
    inside = (*fields.values(), rest)
    levels, parts = size_of(inside)
    if levels > MAX_LEVELS or parts > MAX_PARTS:
        if levels == 1:
            # So many fields are not told apart.
            return made_record(own, {}, join_all(each.flat for each in inside))
        fewer = levels_left(levels)
        return made_record(own, {name: _cut(each, fewer) for name, each in fields.items()}, _cut(rest, fewer))
    names = ("own", "fields", "rest", "flat", "levels", "parts")
    flat = join_all((own, *(each.flat for each in inside)))
    facts = (own, MappingProxyType(fields), rest, flat, levels, parts)
    return interned(RecordShade, key, zip(names, facts, strict=True))


@lru_cache(maxsize=MEMORY)
def _values(shade: RecordShade) -> Shade:
    return _together((*shade.fields.values(), shade.rest))


def made_either(as_list: ListShade, as_record: RecordShade) -> EitherShade:
    if as_list.parts + as_record.parts > MAX_PARTS:
        fewer = levels_left(max(as_list.levels, as_record.levels))
        as_list = made_list(as_list.own, _cut(as_list.item, fewer), None)
        fields = {name: _cut(each, fewer) for name, each in as_record.fields.items()} if fewer else {}
        rest = _cut(as_record.rest if fewer else as_record.values, fewer)
        return made_either(as_list, made_record(as_record.own, fields, rest))
    own = join(as_list.own, as_record.own)
    names = ("as_list", "as_record", "own", "item", "flat", "levels", "parts")
    facts = (
        as_list,
        as_record,
        own,
        join_shades(as_list.item, as_record.item),
        join(as_list.flat, as_record.flat),
        max(as_list.levels, as_record.levels),
        as_list.parts + as_record.parts,
    )
    return interned(EitherShade, (as_list, as_record), zip(names, facts, strict=True))


@lru_cache(maxsize=MEMORY)
def _cut(shade: Shade, levels: int) -> Shade:
    """The same with at most so many levels; what is below is joined."""
    if shade.levels <= levels:
        return shade
    if levels <= 0:
        return shade.flat
    match shade:
        case ListShade():
            return _cut_list(shade, levels)
        case RecordShade():
            return _cut_record(shade, levels)
        case EitherShade():
            return made_either(_cut_list(shade.as_list, levels), _cut_record(shade.as_record, levels))
        case Label():
            return shade


def _cut_list(shade: ListShade, levels: int) -> ListShade:
    places = None if shade.places is None else tuple(_cut(place, levels - 1) for place in shade.places)
    return made_list(shade.own, _cut(shade.item, levels - 1), places)


def _cut_record(shade: RecordShade, levels: int) -> RecordShade:
    fields = {name: _cut(each, levels - 1) for name, each in shade.fields.items()}
    return made_record(shade.own, fields, _cut(shade.rest, levels - 1))


# Joining ------------------------------------------------------------------------------------------------------------


def _together(shades: Iterable[Shade]) -> Shade:
    found: Shade = NOTHING
    for each in shades:
        found = join_shades(found, each)
    return found


@lru_cache(maxsize=MEMORY)
def join_shades(left: Shade, right: Shade) -> Shade:
    """The labels of a value that is one or the other, or made of both: joined part by part."""
    if left is right:
        return left
    match left, right:
        case (Label() as label, shade) | (shade, Label() as label):
            return _join_label(label, shade)
        case ListShade(), ListShade():
            return _join_lists(left, right)
        case RecordShade(), RecordShade():
            return _join_records(left, right)
        case _:
            lists = [part for shade in (left, right) if (part := as_list(shade)) is not None]
            records = [part for shade in (left, right) if (part := as_record(shade)) is not None]
            first, first_record = lists[0], records[0]
            whole = first if len(lists) == 1 else _join_lists(first, lists[1])
            record = first_record if len(records) == 1 else _join_records(first_record, records[1])
            return made_either(whole, record)


def _join_label(label: Label, shade: Shade) -> Shade:
    # What one label is known of may be of any kind, and so may be what is in it: to say that it is a list, or a record,
    # would be to guess.
    if label is NOTHING:
        return shade
    match shade:
        case Label():
            return join(shade, label)
        case ListShade():
            return made_either(_join_lists(shade, any_list(label)), any_record(label))
        case RecordShade():
            return made_either(any_list(label), _join_records(shade, any_record(label)))
        case EitherShade():
            as_list, as_record = shade.as_list, shade.as_record
            return made_either(_join_lists(as_list, any_list(label)), _join_records(as_record, any_record(label)))


def any_list(label: Label) -> ListShade:
    """A list of which one label is known."""
    return made_list(label, label, None)


def any_record(label: Label) -> RecordShade:
    """A record of which one label is known."""
    return made_record(label, {}, label)


def as_list(shade: Shade) -> ListShade | None:
    """What is known of it as a list, part by part."""
    match shade:
        case ListShade():
            return shade
        case EitherShade():
            return shade.as_list
        case _:
            return None


def as_record(shade: Shade) -> RecordShade | None:
    """What is known of it as a record, part by part."""
    match shade:
        case RecordShade():
            return shade
        case EitherShade():
            return shade.as_record
        case _:
            return None


def _join_lists(left: ListShade, right: ListShade) -> ListShade:
    places = None
    if left.places is not None and right.places is not None and len(left.places) == len(right.places):
        places = tuple(join_shades(*pair) for pair in zip(left.places, right.places, strict=True))
    return made_list(join(left.own, right.own), join_shades(left.item, right.item), places)


def _join_records(left: RecordShade, right: RecordShade) -> RecordShade:
    names = sorted({*left.fields, *right.fields})
    fields = {name: join_shades(left.field(name), right.field(name)) for name in names}
    return made_record(join(left.own, right.own), fields, join_shades(left.rest, right.rest))
