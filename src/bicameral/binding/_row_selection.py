"""Rows that words mean: of a table that is known by its cells, only the rows with these cells are meant.

"petrol" may be a cell of `car_costs.csv`: then a sum over the table is no sum of petrol. Code finds the column and the
texts of its cells that the words name; where several columns have them, a person is asked which one is meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bicameral.binding._fits import TextFit, fit_text
from bicameral.binding._screening import display_name, name_suspicions

MOST_TEXTS = 20
"""Different cells that one selection compares with; more are no choice of a column."""


@dataclass(frozen=True, slots=True)
class RowSelection:
    """The rows of a table whose column has one of these texts.

    Args:
        column: The column.
        texts: The texts of its cells, in the order of the table.
    """

    column: str
    texts: tuple[str, ...]

    def __str__(self) -> str:
        shown = " or ".join(map(display_name, self.texts[:3]))
        more = f" or {len(self.texts) - 3} more" if len(self.texts) > 3 else ""
        return f"rows whose {display_name(self.column)} is {shown}{more}"

    def to_json(self) -> dict[str, Any]:
        """For the journal."""
        return {"column": self.column, "is": list(self.texts)}


@dataclass(frozen=True, slots=True)
class RowChoices:
    """The selections of rows that words may mean.

    Args:
        selections: One for each column.
        sure: Whether the only one is meant; otherwise it has to be asked about, too.
    """

    selections: tuple[RowSelection, ...] = ()
    sure: bool = True

    @property
    def only(self) -> RowSelection | None:
        """The one that is meant, if that is clear."""
        if not self.sure or len(self.selections) != 1 or len(self.selections[0].texts) > MOST_TEXTS:
            return None
        # A heading that is suspicious is taken by nobody but a person.
        return None if name_suspicions(self.selections[0].column) else self.selections[0]


@dataclass(frozen=True, slots=True)
class _ColumnMatch:
    selection: RowSelection
    whole: bool
    rows: int


def select_by_words(
    terms: Sequence[str], rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, whole: bool = False
) -> RowChoices:
    """The selections of rows that words may mean: one, several to ask about, or none.

    A column in which a cell is just these words is meant before one whose cells have others beside them, unless those
    are more rows: one row that somebody adds does not take over the selection.

    Args:
        terms: The folded words.
        rows: The rows of the table.
        columns: The columns of texts.
        whole: Whether only cells count that are just these words.

    Example:
        >>> select_by_words(["petrol"], [{"kind": "Petrol"}, {"kind": "repair"}], ["kind"]).only
        RowSelection(column='kind', texts=('Petrol',))
    """
    fits = _fits_by_column(terms, rows, columns)
    if not any(each for each in fits.values()) and not whole:
        return _scattered(terms, rows, columns)
    if any(not fit.by_synonym for texts in fits.values() for fit in texts.values()):
        fits = {name: {text: fit for text, fit in texts.items() if not fit.by_synonym} for name, texts in fits.items()}
    matches: list[_ColumnMatch] = []
    for name, texts in fits.items():
        just = [text for text, fit in texts.items() if fit.whole]
        taken = just or ([] if whole else list(texts))
        if taken:
            count = sum(row.get(name) in taken for row in rows)
            matches.append(_ColumnMatch(RowSelection(name, tuple(taken)), bool(just), count))
    exact = [each for each in matches if each.whole]
    if len(exact) == 1 and all(each.rows <= exact[0].rows for each in matches):
        matches = exact
    return RowChoices(tuple(each.selection for each in matches))


def _fits_by_column(
    terms: Sequence[str], rows: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> dict[str, dict[str, TextFit]]:
    """The texts of each column that have all words. A suspicious one is taken by nobody but a person."""
    fits: dict[str, dict[str, TextFit]] = {}
    for name in columns:
        texts = dict.fromkeys(cell for row in rows if isinstance(cell := row.get(name), str))
        found = {text: fit for text in texts if (fit := fit_text(terms, text)) is not None}
        fits[name] = {text: fit for text, fit in found.items() if not name_suspicions(text, prose=True)}
    return fits


def _scattered(terms: Sequence[str], rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> RowChoices:
    """Of words that no cell has together, the cells with one of them, by column; it is asked which are meant."""
    found: Counter[tuple[str, str]] = Counter()
    for term in terms:
        for name, texts in _fits_by_column([term], rows, columns).items():
            found.update((name, text) for text, fit in texts.items() if not fit.by_synonym)
    names = dict.fromkeys(name for name, _ in found)
    by_column = (RowSelection(name, tuple(text for column, text in found if column == name)) for name in names)
    return RowChoices(tuple(by_column), sure=False)
