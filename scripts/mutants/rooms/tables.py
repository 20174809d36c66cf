"""Tables: the kinds of columns, by which cells are compared, ordered and added up."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

KINDS = "columns.py"
COLUMNS = "tests/toolboxes/test_toolboxes_column_kinds.py"

MUTANTS = (
    Mutant(
        "tables.guessed-notation",
        KINDS,
        "_decide",
        "return None if only_first == only_second else",
        "return 0 if only_first == only_second else",
        "the third of April would be taken for the fourth of March",
        (f"{COLUMNS}::test_the_kind_of_a_column_is_found_from_all_its_cells",),
    ),
    Mutant(
        "tables.any-share-of-misfits",
        KINDS,
        "_fits",
        "if misfits > allowed:",
        "if misfits > len(cells):",
        "a column of texts with one date would be one of dates",
        (f"{COLUMNS}::test_a_column_is_of_a_kind_only_if_nearly_all_its_cells_are",),
    ),
    Mutant(
        "tables.numbers-read-twice",
        KINDS,
        "_amount_column",
        'if fitting[0] == "," and any(isinstance(cell, float) for cell in cells):',
        "if not cells:",
        "1.200 would count as 1.2 in a column of thousands",
        (f"{COLUMNS}::test_the_kind_of_a_column_is_found_from_all_its_cells",),
    ),
    Mutant(
        "tables.codes-as-numbers",
        KINDS,
        "parse_amount",
        "_LEADING_ZERO.match(digits) or ",
        "",
        "the code 007 would be the number 7",
        (f"{COLUMNS}::test_numbers_and_dates_are_read_in_one_way_or_not_at_all",),
    ),
    Mutant(
        "tables.unread-uncounted",
        KINDS,
        "_made",
        "unread = sum(reads(cell) is None for cell in cells)",
        "unread = 0",
        "cells that could not be read would be dropped silently",
        (f"{COLUMNS}::test_the_kind_of_a_column_is_found_from_all_its_cells",),
    ),
    Mutant(
        "tables.currencies-added",
        KINDS,
        "add_amounts",
        "if len(units) > 1:",
        "if not amounts:",
        "euros and dollars would be added up",
        (f"{COLUMNS}::test_amounts_of_two_currencies_have_no_sum",),
    ),
)
