"""The order of shades: which says at least as much as another."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from ._label import NOTHING, PUBLIC, Label, Readers, Source
from ._shade import EitherShade, ListShade, RecordShade, Shade, any_list, any_record, as_list, as_record

_MEMORY = 1 << 12


def covers(upper: Shade, lower: Shade) -> bool:
    """Whether, part by part, every source and every restriction of `lower` is in `upper` too.

    A third party covers whoever else may have written the same part: it is the worst that can be said of it.
    """
    match lower:
        case Label():
            return all(_covers(label, lower) for label in labels_in(upper))
        case ListShade():
            whole = _list_in(upper)
            places = max(len(lower.places or ()), len(whole.places or ()))
            return (
                _covers(whole.own, lower.own)
                and covers(whole.item, lower.item)
                and all(covers(whole.place(at), lower.place(at)) for at in range(places))
            )
        case RecordShade():
            record = _record_in(upper)
            return (
                _covers(record.own, lower.own)
                and covers(record.rest, lower.rest)
                and all(covers(record.field(name), lower.field(name)) for name in {*lower.fields, *record.fields})
            )
        case EitherShade():
            return covers(upper, lower.as_list) and covers(upper, lower.as_record)


def labels_in(shade: Shade) -> Iterable[Label]:
    """The label of every part."""
    match shade:
        case Label():
            yield shade
        case ListShade():
            yield shade.own
            yield from labels_in(shade.item)
            for place in shade.places or ():
                yield from labels_in(place)
        case RecordShade():
            yield shade.own
            for each in (*shade.fields.values(), shade.rest):
                yield from labels_in(each)
        case EitherShade():
            yield from labels_in(shade.as_list)
            yield from labels_in(shade.as_record)


@lru_cache(maxsize=_MEMORY)
def _covers(upper: Label, lower: Label) -> bool:
    if not _readable(upper.readers, lower.readers):
        return False
    return all(
        source in upper.sources or Source("third_party", source.tool, source.part, source.step) in upper.sources
        for source in lower.sources
    )


def _readable(upper: Readers, lower: Readers) -> bool:
    return lower is PUBLIC or (upper is not PUBLIC and upper <= lower)


# What a shade says of a value that is a list, or a record: NOTHING where it says that there is none.


def _list_in(shade: Shade) -> ListShade:
    return as_list(shade) or any_list(_if_label(shade))


def _record_in(shade: Shade) -> RecordShade:
    return as_record(shade) or any_record(_if_label(shade))


def _if_label(shade: Shade) -> Label:
    return shade if isinstance(shade, Label) else NOTHING
