"""The words of a column: those that the request says, and those that name its table.

*invoice number* is the `number` of the invoices.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from bicameral.binding._candidates import Candidate
from bicameral.binding._fits import fit_text, parse_mention
from bicameral.binding._matching import Bound, match_words
from bicameral.binding._plan_rows import reading_steps
from bicameral.binding._words import words_of
from bicameral.plans import Call, Plan, literal_arguments
from bicameral.tools import Registry

_BY_NAME = ("exact", "normalised", "stem")


def match_within_table(words: str, plan: Plan, offered: Sequence[Candidate], registry: Registry) -> Bound | None:
    """The column that has the words without those that name its table, where no column has all of them.

    Args:
        words: The words of the column.
        plan: The plan, with its tables bound.
        offered: The columns.
        registry: The tools.
    """
    tables = table_names(plan, registry)
    terms = words_of(words)
    rest = [term for term in terms if not any(is_same_word(term, table) for table in tables)]
    if not rest or len(rest) == len(terms):
        return None
    match = match_words(" ".join(rest), offered, "column")
    return match if isinstance(match, Bound) and match.how in _BY_NAME else None


def said_terms(words: str, request: str) -> list[str]:
    """The words of a mention that a request says, in some form or as a synonym. Empty words do not count."""
    said = request.split()
    return [term for term in parse_mention(words).required if any(is_same_word(term, each) for each in said)]


def table_names(plan: Plan, registry: Registry) -> list[str]:
    """The names of the tables that a plan reads, without folders and endings."""
    return [_table_name(step) for step in reading_steps(plan, registry)]


def is_same_word(term: str, text: str) -> bool:
    """Whether a text has a word, a form of it, a synonym or a translation."""
    return fit_text([term], text) is not None


def _table_name(step: Call) -> str:
    paths = (each for each in literal_arguments(step.args).values() if isinstance(each, str))
    return PurePosixPath(next(paths, "")).stem
