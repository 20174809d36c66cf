"""Columns that a plan names indirectly, where none has the words: with the name of the table, or as what is added up.

*invoice number* is the `number` of the invoices.

*the value of the orders* shares a word with `order_id` and `order_date`, and neither can be meant: what is added up is
a column of numbers that count or measure something. The only one of a table is taken, with a doubt, unless the request
itself names something that the table may not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bicameral.binding._candidates import Candidate
from bicameral.binding._column_kinds import measure_columns, names_amount
from bicameral.binding._fits import is_same_word, said_terms
from bicameral.binding._matching import Bound, Match, Unbound, match_words
from bicameral.binding._plan_rows import table_names
from bicameral.binding._screening import name_suspicions
from bicameral.binding._words import words_of
from bicameral.plans import (
    Apply,
    Call,
    Clause,
    Compare,
    Const,
    Plan,
    Reference,
    ReferenceSite,
    children,
    step_expressions,
    walk,
)
from bicameral.tools import Registry, Tool
from bicameral.types import LiteralType

ADDING = frozenset({"sum", "mean"})
"""Functions, and ways of grouping rows, that add up."""
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


def match_added(
    plan: Plan, site: ReferenceSite, match: Match, offered: Sequence[Candidate], registry: Registry
) -> Bound | tuple[Candidate, ...] | None:
    """The column that is added up, or those that may be; None if the plan does not add up, or the match stands.

    Args:
        plan: The plan, with its tables bound. Its goal is the request.
        site: The words of the column, and what is known of the columns.
        match: What the words mean by the names of the columns.
        offered: The columns.
        registry: The tools.
    """
    columns = measure_columns(site)
    measures = tuple(each for each in offered if each.value in columns)
    if not measures or not _is_added_up(plan, site, registry):
        return None
    others = {*site.days, *site.texts, *site.numbers} - {each.value for each in measures}
    if isinstance(match, Bound) and match.candidate.value not in others:
        return None
    named = match_words(site.words, measures, "column")
    if isinstance(named, Bound):
        return named
    # A name that is suspicious is bound by a person alone.
    sure = len(measures) == 1 and not name_suspicions(str(measures[0].value))
    if sure and not _names_other(plan, site.words, registry):
        return Bound(measures[0], "measure", 0.5)
    # Where no column has the words, a question shows the others, too.
    return None if isinstance(match, Unbound) else measures


def _names_other(plan: Plan, words: str, registry: Registry) -> bool:
    """Whether the request itself says one of the words, and it names neither an amount nor the table: *the tips*."""
    tables = table_names(plan, registry)
    return not plan.goal or any(
        not names_amount(term) and not any(is_same_word(term, table) for table in tables)
        for term in said_terms(words, plan.goal)
    )


def _is_added_up(plan: Plan, site: ReferenceSite, registry: Registry) -> bool:
    """Whether the plan adds up this column, and none of another name: one column is not two things."""
    added = [(path, words) for path, step in walk(plan.steps) for words in _added_words(step, registry)]
    return {words for _, words in added} == {site.words} and (site.path, site.words) in added


def _added_words(step: Any, registry: Registry) -> Iterator[str]:
    """The words of the columns whose cells a step adds up."""
    tool = registry.get(step.tool) if isinstance(step, Call) else None
    if tool is not None and _adds_up(step, tool):
        given = (step.args.get(name) for name in totalled_arguments(tool))
        yield from (expr.words for expr in given if isinstance(expr, Reference))
    for expr in step_expressions(step):
        yield from _words_in_sums(expr)


def _words_in_sums(node: Any, *, added: bool = False) -> Iterator[str]:
    if isinstance(node, Reference) and node.refers == "column" and added:
        yield node.words
    # What chooses the rows of a list is not added up itself.
    added = not isinstance(node, Clause | Compare) and (added or (isinstance(node, Apply) and node.function in ADDING))
    for child in children(node):
        yield from _words_in_sums(child, added=added)


def totalled_arguments(tool: Tool) -> Sequence[str]:
    """The arguments that name the column which a tool adds up: the last one, where it can be told to add up."""
    adds = any(isinstance(each.type, LiteralType) and "sum" in each.type.values for each in tool.arguments)
    return [each.name for each in tool.arguments if each.field_of][-1:] if adds else []


def _adds_up(call: Call, tool: Tool) -> bool:
    """Whether a call tells a tool to add up, or leaves it to that."""
    ways = [each for each in tool.arguments if isinstance(each.type, LiteralType) and "sum" in each.type.values]
    given = [call.args.get(each.name, Const(value=each.default)) for each in ways]
    return any(isinstance(way, Const) and way.value in ADDING for way in given)
