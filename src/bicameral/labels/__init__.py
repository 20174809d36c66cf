"""Labels: where a value came from, and who may see it.

A `Label` holds the sources of a value and its readers; joining two takes all sources of both and only the readers of
both, so nothing that is made of a value can shed what the value carries. A `LabelTree` is the labels of a structured value,
part by part. Both are made by the runtime and by tool declarations alone, are frozen, and cross into JSON and back
without loss. A `Labelled` is a value with its shade, closed, and the way from one run or pattern into the next. This
room knows nothing else of the house.
"""

from bicameral.errors import LabelError
from bicameral.labels._json import label_tree_from_json, label_tree_to_json
from bicameral.labels._label import (
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
from bicameral.labels._label_tree import (
    EitherLabels,
    LabelTree,
    ListLabels,
    RecordLabels,
    as_list,
    as_record,
    covers,
    join_trees,
    taint,
)
from bicameral.labels._labelled import (
    Labelled,
    from_user,
    listen_for_escapes,
    make_labelled,
    open_labelled,
    program_text,
    untrusted_value,
    user_input,
    vouched_value,
)
from bicameral.labels._released import forget_released, laundered_label, note_own_words, remember_released

__all__ = [
    "NOTHING",
    "PUBLIC",
    "TRUSTED_USER",
    "TRUSTS",
    "UNKNOWN",
    "USER",
    "EitherLabels",
    "Label",
    "LabelError",
    "LabelTree",
    "Labelled",
    "ListLabels",
    "Public",
    "Readers",
    "RecordLabels",
    "Source",
    "Trust",
    "as_list",
    "as_record",
    "covers",
    "forget_released",
    "from_user",
    "join",
    "join_all",
    "join_trees",
    "label_tree_from_json",
    "label_tree_to_json",
    "laundered_label",
    "listen_for_escapes",
    "make_labelled",
    "note_own_words",
    "open_labelled",
    "program_text",
    "remember_released",
    "taint",
    "untrusted_value",
    "user_input",
    "vouched_value",
]
