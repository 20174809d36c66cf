"""Label trees: the labels of structured values, part by part, with their join, their taint and their order.

All items of a list share one tree, so the size of a tree depends on the type of the value and not on the amount of
data; a short list may keep one tree for each place. Every function here is monotone, part by part: a tree that covers
another gives a result that covers the other's result. The soundness of the proof before a run rests on this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, reduce
from types import MappingProxyType
from typing import Any, cast, final

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
    """The labels of a list: `own` for its length and the choice of its items, `item` for every item.

    With `places` (a literal list, a pair) each place has its own tree, and `item` is their join.
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
        place_trees = None if places is None else tuple(_check_tree(place) for place in places)
        item_tree = _check_tree(item) if place_trees is None else _join_trees(place_trees)
        return make_list_labels(_check_label(own), item_tree, place_trees)

    def place(self, number: int) -> LabelTree:
        """The tree of one place; `item` where places are not kept apart."""
        if self.places is not None and -len(self.places) <= number < len(self.places):
            return self.places[number]
        return self.item

    def field(self, name: str) -> Label:
        """A list has no fields: the join of all parts covers the result of any access."""
        return self.flat

    @property
    def values(self) -> Label:
        return self.flat

    def __reduce__(self) -> tuple[Any, ...]:
        return ListLabels, (self.own, self.item, self.places)

    def __repr__(self) -> str:
        items = self.item if self.places is None else list(self.places)
        return f"ListLabels({self.own!r}, {items!r})"


@final
class RecordLabels(FrozenAttributes):
    """The labels of a record or dict: `own` for its set of keys, one for each known field, `rest` for other fields."""

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
        """Iterating over a dict gives its keys."""
        return self.own

    def place(self, number: int) -> Label:
        return self.flat

    def field(self, name: str) -> LabelTree:
        return self.fields.get(name, self.rest)

    @property
    def values(self) -> LabelTree:
        """The join of all fields and the rest: the labels under an unknown key."""
        return _joined_values(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordLabels, (self.own, dict(self.fields), self.rest)

    def __repr__(self) -> str:
        return f"RecordLabels({self.own!r}, {dict(self.fields)!r}, {self.rest!r})"


@final
class EitherLabels(FrozenAttributes):
    """The labels of a value that may be a list or a record: values of different or unknown kinds were joined."""

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
            raise LabelError("labels.malformed", "an EitherLabels is made of a ListLabels and a RecordLabels")
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
        return f"EitherLabels({self.as_list!r}, {self.as_record!r})"


LabelTree = Label | ListLabels | RecordLabels | EitherLabels
"""The labels of a value: one `Label` for the whole value, or one for each part."""

_TREE_CLASSES = frozenset({Label, ListLabels, RecordLabels, EitherLabels})


def _check_tree(value: object) -> LabelTree:
    # Exact classes: a subclass could override any property and so misreport its labels.
    if type(value) not in _TREE_CLASSES:
        raise LabelError("labels.malformed", f"a {type(value).__name__} is not a label tree")
    return cast("LabelTree", value)


def _check_label(value: object) -> Label:
    if type(value) is not Label:
        raise LabelError("labels.malformed", f"a {type(value).__name__} is not a Label")
    return value


# Constructors: they intern, and cut trees that are too deep or too large


def make_list_labels(own: Label, item: LabelTree, places: tuple[LabelTree, ...] | None) -> ListLabels:
    levels, parts = tree_size(places or (item,))
    # A cut joins labels and so covers the uncut tree: precision is lost, soundness is not.
    if levels > MAX_LEVELS or parts > MAX_PARTS:
        fewer = levels_left(levels)
        places = None if places is None or parts > MAX_PARTS else tuple(_cut_levels(place, fewer) for place in places)
        return make_list_labels(own, _cut_levels(item, fewer), places)
    key = (own, item, places)
    if (known := find_tree(key)) is not None:
        return known
    flat = join(own, item.flat)
    return intern_tree(ListLabels, key, own=own, item=item, places=places, flat=flat, levels=levels, parts=parts)


def make_record_labels(own: Label, fields: dict[str, LabelTree], rest: LabelTree) -> RecordLabels:
    """The interned record; `fields` must be sorted by name, since their order is part of the key."""
    key = (own, tuple(fields.items()), rest)
    if (known := find_tree(key)) is not None:
        return known
    children = (*fields.values(), rest)
    levels, parts = tree_size(children)
    if levels > MAX_LEVELS or parts > MAX_PARTS:
        if levels == 1:
            # There is no level left to cut, so all fields share one label.
            return make_record_labels(own, {}, join_all(child.flat for child in children))
        fewer = levels_left(levels)
        return make_record_labels(
            own, {name: _cut_levels(child, fewer) for name, child in fields.items()}, _cut_levels(rest, fewer)
        )
    flat, view = join_all((own, *(child.flat for child in children))), MappingProxyType(fields)
    return intern_tree(RecordLabels, key, own=own, fields=view, rest=rest, flat=flat, levels=levels, parts=parts)


@lru_cache(maxsize=TREE_MEMORY)
def _joined_values(tree: RecordLabels) -> LabelTree:
    return _join_trees((*tree.fields.values(), tree.rest))


def make_either_labels(as_list: ListLabels, as_record: RecordLabels) -> EitherLabels:
    if as_list.parts + as_record.parts > MAX_PARTS:
        fewer = levels_left(max(as_list.levels, as_record.levels))
        as_list = make_list_labels(as_list.own, _cut_levels(as_list.item, fewer), None)
        fields = {name: _cut_levels(child, fewer) for name, child in as_record.fields.items()} if fewer else {}
        rest = _cut_levels(as_record.rest if fewer else as_record.values, fewer)
        return make_either_labels(as_list, make_record_labels(as_record.own, fields, rest))
    return intern_tree(
        EitherLabels,
        (as_list, as_record),
        as_list=as_list,
        as_record=as_record,
        own=join(as_list.own, as_record.own),
        item=join_trees(as_list.item, as_record.item),
        flat=join(as_list.flat, as_record.flat),
        levels=max(as_list.levels, as_record.levels),
        parts=as_list.parts + as_record.parts,
    )


@lru_cache(maxsize=TREE_MEMORY)
def _cut_levels(tree: LabelTree, levels: int) -> LabelTree:
    """The tree with at most this many levels; deeper labels are joined."""
    if tree.levels <= levels:
        return tree
    if levels <= 0:
        return tree.flat
    return _map_parts(tree, lambda own: own, lambda part: _cut_levels(part, levels - 1))


def _map_parts(
    tree: LabelTree, change_own: Callable[[Label], Label], change_part: Callable[[LabelTree], LabelTree]
) -> LabelTree:
    """The tree with its own label and each of its parts changed; a single label is its own."""
    match tree:
        case Label():
            return change_own(tree)
        case ListLabels():
            return _map_list(tree, change_own(tree.own), change_part)
        case RecordLabels():
            return _map_record(tree, change_own(tree.own), change_part)
        case EitherLabels(as_list=items, as_record=record):
            return make_either_labels(
                _map_list(items, change_own(items.own), change_part),
                _map_record(record, change_own(record.own), change_part),
            )


def _map_list(tree: ListLabels, own: Label, change: Callable[[LabelTree], LabelTree]) -> ListLabels:
    places = None if tree.places is None else tuple(map(change, tree.places))
    return make_list_labels(own, change(tree.item), places)


def _map_record(tree: RecordLabels, own: Label, change: Callable[[LabelTree], LabelTree]) -> RecordLabels:
    return make_record_labels(own, {name: change(child) for name, child in tree.fields.items()}, change(tree.rest))


# Join


def _join_trees(trees: Iterable[LabelTree]) -> LabelTree:
    joined: LabelTree = NOTHING
    for tree in trees:
        joined = join_trees(joined, tree)
    return joined


# Trees are interned, so a cache by identity is exact and its keys are cheap to hash.
@lru_cache(maxsize=TREE_MEMORY)
def join_trees(left: LabelTree, right: LabelTree) -> LabelTree:
    """The labels of a value that is one or the other, or made of both, part by part.

    Example:
        >>> join_trees(ListLabels(NOTHING, TRUSTED_USER), ListLabels(NOTHING, UNKNOWN)).item.trusted
        False
    """
    if left is right:
        return left
    match left, right:
        case (Label() as label, tree) | (tree, Label() as label):
            return _join_label(label, tree)
        case ListLabels(), ListLabels():
            return _join_lists(left, right)
        case RecordLabels(), RecordLabels():
            return _join_records(left, right)
        case _:
            # At least one side is an EitherLabels or the kinds differ, so there is a list view and a record view.
            lists = [part for tree in (left, right) if (part := as_list(tree)) is not None]
            records = [part for tree in (left, right) if (part := as_record(tree)) is not None]
            return make_either_labels(reduce(_join_lists, lists), reduce(_join_records, records))


def _join_label(label: Label, tree: LabelTree) -> LabelTree:
    # A value with a single label may be a list or a record, so the result covers both kinds.
    if label is NOTHING:
        return tree
    match tree:
        case Label():
            return join(tree, label)
        case ListLabels():
            return make_either_labels(_join_lists(tree, uniform_list(label)), uniform_record(label))
        case RecordLabels():
            return make_either_labels(uniform_list(label), _join_records(tree, uniform_record(label)))
        case EitherLabels():
            as_list, as_record = tree.as_list, tree.as_record
            return make_either_labels(
                _join_lists(as_list, uniform_list(label)), _join_records(as_record, uniform_record(label))
            )


def uniform_list(label: Label) -> ListLabels:
    """A list with the same label everywhere."""
    return make_list_labels(label, label, None)


def uniform_record(label: Label) -> RecordLabels:
    """A record with the same label everywhere."""
    return make_record_labels(label, {}, label)


def as_list(tree: LabelTree) -> ListLabels | None:
    """The tree's view of the value as a list, or None."""
    match tree:
        case ListLabels():
            return tree
        case EitherLabels():
            return tree.as_list
        case _:
            return None


def as_record(tree: LabelTree) -> RecordLabels | None:
    """The tree's view of the value as a record, or None."""
    match tree:
        case RecordLabels():
            return tree
        case EitherLabels():
            return tree.as_record
        case _:
            return None


def _join_lists(left: ListLabels, right: ListLabels) -> ListLabels:
    # Lists of different length lose their places: `item` covers every one.
    places = None
    if left.places is not None and right.places is not None and len(left.places) == len(right.places):
        places = tuple(join_trees(*pair) for pair in zip(left.places, right.places, strict=True))
    return make_list_labels(join(left.own, right.own), join_trees(left.item, right.item), places)


def _join_records(left: RecordLabels, right: RecordLabels) -> RecordLabels:
    names = sorted({*left.fields, *right.fields})
    fields = {name: join_trees(left.field(name), right.field(name)) for name in names}
    return make_record_labels(join(left.own, right.own), fields, join_trees(left.rest, right.rest))


@lru_cache(maxsize=TREE_MEMORY)
def taint(tree: LabelTree, label: Label) -> LabelTree:
    """The tree with a label joined into every part."""
    if label is NOTHING:
        return tree
    return _map_parts(tree, lambda own: join(own, label), lambda part: taint(part, label))


_COVERS_MEMORY = 1 << 12


def rename_steps(tree: LabelTree, change: Callable[[str], str]) -> LabelTree:
    """The same labels with other names for the steps of their sources. Nothing else of a label changes.

    Every plan numbers its steps from zero: a value that goes from one run into another keeps apart where it came from.
    """
    match tree:
        case Label():
            sources = (replace(each, step=change(each.step)) if each.step else each for each in tree.sources)
            return Label(sources, tree.readers)
        case ListLabels(places=None):
            return ListLabels(rename_steps(tree.own, change).flat, rename_steps(tree.item, change))
        case ListLabels():
            places = [rename_steps(place, change) for place in tree.places or ()]
            return ListLabels(rename_steps(tree.own, change).flat, places=places)
        case RecordLabels():
            fields = {name: rename_steps(each, change) for name, each in tree.fields.items()}
            return RecordLabels(rename_steps(tree.own, change).flat, fields, rename_steps(tree.rest, change))
        case EitherLabels(as_list=as_list, as_record=as_record):
            both = rename_steps(as_list, change), rename_steps(as_record, change)
            return EitherLabels(cast("ListLabels", both[0]), cast("RecordLabels", both[1]))


def covers(upper: LabelTree, lower: LabelTree) -> bool:
    """Whether every source and every reader restriction of `lower` is also in `upper`, part by part.

    A third-party source covers a source of any trust at the same tool, part and step: it is the worst case.
    """
    # A tree without a view of the value as a list or a record: its label if it is one, else NOTHING.
    alone = upper if isinstance(upper, Label) else NOTHING
    match lower:
        case Label():
            # The value may be of any kind, so every part of `upper` must cover the label.
            return all(_label_covers(label, lower) for label in iter_labels(upper))
        case ListLabels():
            whole = as_list(upper) or uniform_list(alone)
            places = max(len(lower.places or ()), len(whole.places or ()))
            return (
                _label_covers(whole.own, lower.own)
                and covers(whole.item, lower.item)
                and all(covers(whole.place(at), lower.place(at)) for at in range(places))
            )
        case RecordLabels():
            record = as_record(upper) or uniform_record(alone)
            return (
                _label_covers(record.own, lower.own)
                and covers(record.rest, lower.rest)
                and all(covers(record.field(name), lower.field(name)) for name in {*lower.fields, *record.fields})
            )
        case EitherLabels():
            return covers(upper, lower.as_list) and covers(upper, lower.as_record)


def iter_labels(tree: LabelTree) -> Iterable[Label]:
    """The label of every part."""
    match tree:
        case Label():
            yield tree
        case ListLabels():
            yield tree.own
            yield from iter_labels(tree.item)
            for place in tree.places or ():
                yield from iter_labels(place)
        case RecordLabels():
            yield tree.own
            for child in (*tree.fields.values(), tree.rest):
                yield from iter_labels(child)
        case EitherLabels():
            yield from iter_labels(tree.as_list)
            yield from iter_labels(tree.as_record)


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
