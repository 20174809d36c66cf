"""Columns that a request names in words which no column has, found by what their cells are compared with.

In `row[column("Abteilung")] == value("Engineering")` the column is meant that has such a cell, whatever it is called.
Whoever writes the table writes the cells, too: only one column may have it, and the binding has the label of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bicameral.binding._candidates import BIND_STEP
from bicameral.binding._words import words_of
from bicameral.labels import Label
from bicameral.plans import (
    Apply,
    Call,
    Compare,
    Const,
    Index,
    ListOf,
    Plan,
    Reference,
    ReferenceSite,
    children,
    literal_arguments,
    walk,
)
from bicameral.tools import Registry

MOST_TEXTS = 5_000
"""A table with as many different texts is not known whole, so that no column is known to be the only one."""

_EQUALITIES = frozenset({"==", "!=", "in", "not in"})
_UNCHANGED_WORDS = frozenset({"lower", "strip", "casefold", "upper"})


@dataclass(frozen=True, slots=True)
class ColumnsOfCells:
    """The columns that have all texts with which a column is compared.

    Args:
        names: The columns.
        label: Of the cells. Who wrote them decided.
        certain: Whether the cells are of one table, or of tables with one label.
    """

    names: tuple[str, ...]
    label: Label
    certain: bool = True


def columns_by_cells(plan: Plan, site: ReferenceSite, registry: Registry) -> ColumnsOfCells | None:
    """The columns of texts that have what the words' cells are compared with; None if nothing says so.

    Args:
        plan: The plan.
        site: The words, and the columns of the rows that they are looked for in.
        registry: The tools, which know the cells of the tables that the plan reads.
    """
    texts = compared_texts(plan, site, registry)
    if not texts or not site.texts:
        return None
    found: dict[str, None] = {}
    labels: dict[Label, None] = {}
    for cells, label in _tables(plan, registry):
        known = {name: cells[name] for name in site.texts if name in cells}
        if not known:
            continue
        if sum(map(len, cells.values())) >= MOST_TEXTS:
            return None
        labels[label] = None
        for name, own in known.items():
            if texts <= {words_of(each) for each in own}:
                found[name] = None
    if not found:
        return None
    # The name of a column has no label in a plan. So cells of one table must not choose a column of another one that
    # is labelled otherwise.
    return ColumnsOfCells(tuple(found), next(iter(labels)), certain=len(labels) == 1)


def is_compared_with_truth(plan: Plan, site: ReferenceSite, registry: Registry) -> bool:
    """Whether a column is compared with true or false at its step, so that its cells have to say yes or no."""
    steps = [step for path, step in walk(plan.steps) if path == site.path]
    found = [each for step in steps for each in _compared(step, step, site.words, registry)]
    return any(isinstance(each, Const) and isinstance(each.value, bool) for each in found)


def _tables(plan: Plan, registry: Registry) -> Iterator[tuple[Mapping[str, frozenset[str]], Label]]:
    """The texts in the columns of each table that the plan reads, with the label of the table."""
    for _, step in walk(plan.steps):
        tool = registry.get(step.tool) if isinstance(step, Call) else None
        if tool is not None and isinstance(step, Call):
            literals = literal_arguments(step.args)
            if cells := tool.column_texts(literals):
                yield cells, tool.result_labels(None, BIND_STEP, arguments=literals).flat


def compared_texts(plan: Plan, site: ReferenceSite, registry: Registry) -> frozenset[tuple[str, ...]]:
    """The words of the texts with which the column is compared at its step."""
    steps = [step for path, step in walk(plan.steps) if path == site.path]
    found = [text for step in steps for each in _compared(step, step, site.words, registry) for text in _texts_of(each)]
    split = [words_of(text) for text in found]
    # A number, or a text without letters, is in too many columns to say anything.
    return frozenset(words for words in split if any(not word.isdecimal() for word in words))


def _compared(node: Any, step: Any, words: str, registry: Registry) -> Iterator[Any]:
    """What stands on the other side of comparisons with a cell of the column."""
    match node:
        case Call():
            yield from _compared_by_tool(node, words, registry)
        case Compare():
            operands = (node.first, *(operand for _, operand in node.rest))
            for (op, right), left in zip(node.rest, operands, strict=False):
                if op in _EQUALITIES and _is_cell(left, words):
                    yield right
                if op in ("==", "!=") and _is_cell(right, words):
                    yield left
        case _:
            pass
    # Steps inside this one have a path, and sites, of their own.
    nested = {id(inner) for name in ("steps", "otherwise") for inner in getattr(step, name, ())}
    for child in children(node):
        if id(child) not in nested:
            yield from _compared(child, step, words, registry)


def _compared_by_tool(call: Call, words: str, registry: Registry) -> Iterator[Any]:
    """The cell that a tool compares its only column with: `filter_rows(rows, column("x"), "==", value("y"))`."""
    tool = registry.get(call.tool)
    columns = [each.name for each in tool.arguments if each.field_of] if tool is not None else []
    if len(columns) != 1 or not _is_column(call.args.get(columns[0]), words):
        return
    operators = [each.value for each in call.args.values() if isinstance(each, Const)]
    if not any(each in ("==", "!=") for each in operators):
        return
    for name, value in call.args.items():
        if name not in columns and (isinstance(value, Reference) or name == "value"):
            yield value


def _is_column(expr: Any, words: str) -> bool:
    return isinstance(expr, Reference) and (expr.refers, expr.words, expr.bound) == ("column", words, None)


def _is_cell(expr: Any, words: str) -> bool:
    match expr:
        case Index():
            return _is_column(expr.at, words)
        case Apply(function="get", args=(_, key, *_)):
            return _is_column(key, words)
        case Apply(args=(inner, *_)) if expr.function in _UNCHANGED_WORDS:
            return _is_cell(inner, words)
        case _:
            return False


def _texts_of(expr: Any) -> Sequence[str]:
    match expr:
        case Const(value=str() as text):
            return (text,)
        case Reference(refers="value", bound=None):
            return (expr.words,)
        case ListOf():
            return [text for item in expr.items for text in _texts_of(item)]
        case _:
            return ()
