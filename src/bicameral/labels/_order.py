"""The order of shades: which says at least as much as another."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from ._label import NOTHING, PUBLIC, Label, Readers, Source
from ._shade import EitherShade, ListShade, RecordShade, Shade, as_list, as_record

_MEMORY = 1 << 12


def covers(upper: Shade, lower: Shade) -> bool:
    """Whether, part by part, every source and every restriction of `lower` is in `upper` too.

    A third party covers whoever else may have written the same part: it is the worst that can be said of it.
    """
    match lower:
        case Label():
            return all(_covers(label, lower) for label in labels_in(upper))
        case ListShade():
            found = as_list(upper)
            places = max(len(lower.places or ()), len(found.places or ()) if found else 0)
            return (
                _covers(_list_own(upper), lower.own)
                and covers(_list_item(upper), lower.item)
                and all(covers(_list_place(upper, at), lower.place(at)) for at in range(places))
            )
        case RecordShade():
            names = {*lower.fields, *_field_names(upper)}
            return (
                _covers(_record_own(upper), lower.own)
                and covers(_record_rest(upper), lower.rest)
                and all(covers(_record_field(upper, name), lower.field(name)) for name in names)
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


def _list_own(shade: Shade) -> Label:
    found = as_list(shade)
    return found.own if found else _if_label(shade)


def _list_item(shade: Shade) -> Shade:
    found = as_list(shade)
    return found.item if found else _if_label(shade)


def _list_place(shade: Shade, number: int) -> Shade:
    found = as_list(shade)
    return found.place(number) if found else _if_label(shade)


def _record_own(shade: Shade) -> Label:
    found = as_record(shade)
    return found.own if found else _if_label(shade)


def _record_rest(shade: Shade) -> Shade:
    found = as_record(shade)
    return found.rest if found else _if_label(shade)


def _record_field(shade: Shade, name: str) -> Shade:
    found = as_record(shade)
    return found.field(name) if found else _if_label(shade)


def _field_names(shade: Shade) -> Iterable[str]:
    found = as_record(shade)
    return found.fields if found else ()


def _if_label(shade: Shade) -> Label:
    return shade if isinstance(shade, Label) else NOTHING
