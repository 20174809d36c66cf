"""Tainting: one label joined into every part of a shade."""

from __future__ import annotations

from functools import lru_cache

from ._interned import MEMORY
from ._label import NOTHING, Label, join
from ._shade import EitherShade, ListShade, RecordShade, Shade, made_either, made_list, made_record


@lru_cache(maxsize=MEMORY)
def tainted(shade: Shade, label: Label) -> Shade:
    """The same with a label joined into every part."""
    if label is NOTHING:
        return shade
    match shade:
        case Label():
            return join(shade, label)
        case ListShade():
            return _tainted_list(shade, label)
        case RecordShade():
            return _tainted_record(shade, label)
        case EitherShade():
            return made_either(_tainted_list(shade.as_list, label), _tainted_record(shade.as_record, label))


def _tainted_list(shade: ListShade, label: Label) -> ListShade:
    places = None if shade.places is None else tuple(tainted(place, label) for place in shade.places)
    return made_list(join(shade.own, label), tainted(shade.item, label), places)


def _tainted_record(shade: RecordShade, label: Label) -> RecordShade:
    fields = {name: tainted(each, label) for name, each in shade.fields.items()}
    return made_record(join(shade.own, label), fields, tainted(shade.rest, label))
