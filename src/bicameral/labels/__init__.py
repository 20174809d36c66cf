"""Labels: where a value came from, and who may see it.

A `Label` holds the sources of a value and its readers; joining two takes all sources of both and only the readers of
both, so nothing that is made of a value can shed what the value carries. A `Shade` is the labels of a structured value,
part by part. Both are made by the runtime and by tool declarations alone, are frozen, and cross into JSON and back
without loss. A `Labelled` is a value with its shade, closed, and the way from one run or pattern into the next. This
room knows nothing else of the house.
"""

from bicameral.errors import LabelError

from ._json import shade_from_json, shade_to_json
from ._label import (
    NOTHING,
    PUBLIC,
    TRUSTED_USER,
    TRUSTS,
    UNKNOWN,
    USER,
    Label,
    Public,
    Readers,
    Source,
    Trust,
    join,
    join_all,
)
from ._labelled import (
    Labelled,
    escapes_to,
    from_user,
    labelled,
    opened,
    own_value,
    received,
    said,
    strangers,
)
from ._order import covers
from ._released import forget_released, laundered_label, note_own_words, release
from ._shade import EitherShade, ListShade, RecordShade, Shade, as_list, as_record, join_shades
from ._taint import tainted

__all__ = [
    "NOTHING",
    "PUBLIC",
    "TRUSTED_USER",
    "TRUSTS",
    "UNKNOWN",
    "USER",
    "EitherShade",
    "Label",
    "LabelError",
    "Labelled",
    "ListShade",
    "Public",
    "Readers",
    "RecordShade",
    "Shade",
    "Source",
    "Trust",
    "as_list",
    "as_record",
    "covers",
    "escapes_to",
    "forget_released",
    "from_user",
    "join",
    "join_all",
    "join_shades",
    "labelled",
    "laundered_label",
    "note_own_words",
    "opened",
    "own_value",
    "received",
    "release",
    "said",
    "shade_from_json",
    "shade_to_json",
    "strangers",
    "tainted",
]
