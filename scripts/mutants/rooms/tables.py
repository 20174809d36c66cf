"""Tables: the kinds of columns, by which cells are compared, ordered and added up."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

KINDS = "columns/_kinds.py"
AMOUNTS = "columns/_amounts.py"
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
        "_FilledCells.__init__",
        "self.allowed = self.count // MISFIT_SHARE",
        "self.allowed = self.count",
        "a column of texts with one date would be one of dates",
        (f"{COLUMNS}::test_a_column_is_of_a_kind_only_if_nearly_all_its_cells_are",),
    ),
    Mutant(
        "tables.numbers-read-twice",
        KINDS,
        "_amount_column",
        "if number == 1 and any(isinstance(cell, float) for cell in cells.others):",
        "if not cells.count:",
        "1.200 would count as 1.2 in a column of thousands",
        (f"{COLUMNS}::test_the_kind_of_a_column_is_found_from_all_its_cells",),
    ),
    Mutant(
        "tables.codes-as-numbers",
        AMOUNTS,
        "parse_amount",
        "_LEADING_ZERO.match(digits) or ",
        "",
        "the code 007 would be the number 7",
        (f"{COLUMNS}::test_numbers_and_dates_are_read_in_one_way_or_not_at_all",),
    ),
    Mutant(
        "tables.unread-uncounted",
        KINDS,
        "_FilledCells.make_column",
        "unread = sum(times for text, times in self.texts.items() if values.texts[text] is None)",
        "unread = 0",
        "cells that could not be read would be dropped silently",
        (f"{COLUMNS}::test_the_kind_of_a_column_is_found_from_all_its_cells",),
    ),
    Mutant(
        "tables.currencies-added",
        AMOUNTS,
        "add_amounts",
        "if len(units) > 1:",
        "if not amounts:",
        "euros and dollars would be added up",
        (f"{COLUMNS}::test_amounts_of_two_currencies_have_no_sum",),
    ),
    Mutant(
        "tables.silent-guess",
        KINDS,
        "_plain_number_column",
        'if not twofold or decided or decimals == ".":',
        "if numbers:",
        "1.234 would be a fraction without a word about it",
        ("tests/columns/test_columns_guesses.py::test_what_nothing_decides_is_the_first_doubt_of_the_answer",),
    ),
    Mutant(
        "tables.settings-before-cells",
        KINDS,
        "_amount_column",
        "if number is None and decimals is not None and not _contradict(both.pairs()):",
        "if decimals is not None:",
        "the settings would overrule a cell that can only be read in one way",
        ("tests/columns/test_columns_guesses.py::test_the_settings_decide_what_no_cell_does",),
    ),
)
