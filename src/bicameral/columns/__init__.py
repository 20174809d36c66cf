"""Kinds of table columns, found from their cells: yes/no, dates, numbers, money, text; and people in tables.

The cells of a column come in; out comes a `Column` that says what kind they are and reads each of them. A notation is
decided by the column as a whole: `3/4/2026` alone is the third of April or the fourth of March, and a `25/3/2026` in
the same column decides it. A column that fits two readings is `ambiguous`, and nothing is guessed: it can be searched
for a text as it is written, and is neither ordered nor added up. Numbers such as `1.234`, which programs write too, are
read as programs write them where nothing else decides, and the column says that this is a guess (`Column.guess`).

Columns of native numbers, of truth values and of ISO dates are `plain`: their cells are read as they are.
"""

from __future__ import annotations

from bicameral.columns._amounts import (
    Amount as Amount,
    DecimalMark as DecimalMark,
    add_amounts as add_amounts,
    parse_amount as parse_amount,
    parse_amounts as parse_amounts,
    parse_number as parse_number,
)
from bicameral.columns._dates import DateOrder as DateOrder, is_iso_date as is_iso_date, parse_date as parse_date
from bicameral.columns._kinds import (
    Column as Column,
    find_column_kind as find_column_kind,
    find_counted_kind as find_counted_kind,
    is_twofold_number as is_twofold_number,
)
from bicameral.columns._notations import (
    CellReader as CellReader,
    ColumnKind as ColumnKind,
    describe_guess as describe_guess,
    describe_kind as describe_kind,
    kind_of_notation as kind_of_notation,
    notation_reader as notation_reader,
)
from bicameral.columns._people import (
    Contact as Contact,
    find_contacts as find_contacts,
    looks_like_name as looks_like_name,
    parse_addresses as parse_addresses,
)
from bicameral.columns._words import (
    LONGEST_CELL as LONGEST_CELL,
    is_blank as is_blank,
    is_missing as is_missing,
    parse_yes_no as parse_yes_no,
)
