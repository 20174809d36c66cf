"""Labels: where a value came from, and who may see it.

A `Label` holds the sources of a value and its readers. Joining two labels takes the union of the sources and the
intersection of the readers, so a derived value never has a weaker label than its inputs. A `LabelTree` holds the labels
of a structured value, part by part. Both are made only by the runtime and by tool declarations, are immutable, and
convert to JSON and back without loss. A `Labelled` is an opaque value with its label tree; it carries data from one run
or pattern into the next. This package imports nothing of Bicameral but `errors`.
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
    forget_released,
    from_user,
    laundered_label,
    listen_for_escapes,
    make_labelled,
    note_own_words,
    open_labelled,
    program_text,
    remember_released,
    untrusted_value,
    user_input,
    vouched_value,
)

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
