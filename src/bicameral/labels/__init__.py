"""Labels: where a value came from, and who may see it.

A `Label` holds the sources of a value and its readers. Joining two labels takes the union of the sources and the
intersection of the readers, so a derived value never has a weaker label than its inputs. A `LabelTree` holds the labels
of a structured value, part by part. Both are made only by the runtime and by tool declarations, are immutable, and
convert to JSON and back without loss. A `Labelled` is an opaque value with its label tree; it carries data from one run
or pattern into the next. This package imports nothing of Bicameral but `errors`.
"""

from bicameral.errors import LabelError as LabelError
from bicameral.labels._json import (
    label_tree_from_json as label_tree_from_json,
    label_tree_to_json as label_tree_to_json,
)
from bicameral.labels._label import (
    NOTHING as NOTHING,
    PUBLIC as PUBLIC,
    TRUSTED_USER as TRUSTED_USER,
    TRUSTS as TRUSTS,
    UNKNOWN as UNKNOWN,
    USER as USER,
    Label as Label,
    Public as Public,
    Readers as Readers,
    Source as Source,
    Trust as Trust,
    join as join,
    join_all as join_all,
)
from bicameral.labels._label_tree import (
    EitherLabels as EitherLabels,
    LabelTree as LabelTree,
    ListLabels as ListLabels,
    RecordLabels as RecordLabels,
    as_list as as_list,
    as_record as as_record,
    covers as covers,
    join_trees as join_trees,
    rename_steps as rename_steps,
    taint as taint,
)
from bicameral.labels._labelled import (
    Labelled as Labelled,
    forget_released as forget_released,
    from_user as from_user,
    laundered_label as laundered_label,
    listen_for_escapes as listen_for_escapes,
    make_labelled as make_labelled,
    note_own_words as note_own_words,
    open_labelled as open_labelled,
    program_text as program_text,
    remember_released as remember_released,
    untrusted_value as untrusted_value,
    user_input as user_input,
    vouched_value as vouched_value,
)
