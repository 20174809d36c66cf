"""Display of untrusted text to a person: one table of hidden characters, and one way to make them visible.

Untrusted text is shown in many places (answers, plans, questions, journals, alerts). In each of them a character that
leaves no trace, changes the direction of writing or is obeyed by a terminal could make what is shown differ from what
is used. All places use the table here. `hidden_places` finds such characters in a text, `make_visible` writes them as
`<200b>`, and `fold_lines` shortens a long text and names its size and hash, so that its end cannot be pushed off a
screen unnoticed. `break_line` and its neighbours break lines without leaving anything out, and `value_lines` shows a
value that a person decides on so that no text in it can pass for our own.
"""

from bicameral.display._hidden import (
    BLANKS as BLANKS,
    CONTROLS as CONTROLS,
    DIRECTIONS as DIRECTIONS,
    INVISIBLE as INVISIBLE,
    JOINERS as JOINERS,
    MOST_MARKS as MOST_MARKS,
    NO_CHARACTERS as NO_CHARACTERS,
    PRIVATE as PRIVATE,
    SELECTORS as SELECTORS,
    HiddenKind as HiddenKind,
    byte_size as byte_size,
    escape_json as escape_json,
    fold_lines as fold_lines,
    has_hidden as has_hidden,
    hidden_kind as hidden_kind,
    hidden_places as hidden_places,
    make_visible as make_visible,
)
from bicameral.display._lines import (
    break_line as break_line,
    column_width as column_width,
    line_spans as line_spans,
    shorten as shorten,
    terminal_width as terminal_width,
    wrap_line as wrap_line,
    wrap_text as wrap_text,
)
from bicameral.display._values import (
    MAX_VALUE_LINES as MAX_VALUE_LINES,
    cell_text as cell_text,
    letters_in_words as letters_in_words,
    question_text as question_text,
    to_plain_json as to_plain_json,
    value_lines as value_lines,
    value_preview as value_preview,
    visible_line as visible_line,
    visible_name as visible_name,
)
