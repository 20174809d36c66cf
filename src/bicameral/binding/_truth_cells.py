"""Truth values that are cells: `row[column("returned")] == True` where a column `status` says *returned*.

A plan that asks whether something is so means the rows whose cell says it, if exactly one column with few different
texts has such a cell. The comparison is rewritten; the words of the request stay in it, with the label of the tables
whose cells decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bicameral.binding._candidates import Candidate
from bicameral.binding._fits import fit_text, parse_mention
from bicameral.binding._matching import Unbound, match_words
from bicameral.binding._plan_rows import ReadTable, read_table, reading_steps
from bicameral.binding._questions import Binding
from bicameral.binding._row_selection import RowSelection
from bicameral.binding._screening import name_suspicions
from bicameral.binding._words import words_of
from bicameral.labels import Label, join_all, label_tree_to_json
from bicameral.plans import (
    BoundTo,
    Call,
    Choose,
    Clause,
    Compare,
    Comprehension,
    Const,
    Each,
    Index,
    Logic,
    Not,
    Plan,
    Reference,
    ReferenceSite,
    When,
    children,
    map_children,
    replace_step,
    walk,
)
from bicameral.tools import Registry

MOST_CHOICES = 12
"""Different texts of a column that says what state a row is in."""
_WITHOUT = frozenset({"sans"})
"""Words without a meaning of their own that turn around what follows."""
_OPERATORS = {("==", True): "==", ("==", False): "!=", ("!=", True): "!=", ("!=", False): "=="}


@dataclass(frozen=True, slots=True)
class TruthCell:
    """A column whose cells say what a plan asks of a row as yes or no.

    Args:
        column: The column.
        text: The cell that says yes.
        label: The label of the tables whose cells were looked at.
    """

    column: str
    text: str
    label: Label

    def binding(self, words: str) -> Binding:
        """What is shown under the plan."""
        rows = RowSelection(self.column, (self.text,))
        return Binding("column", words, self.column, self.label, "cells", 0.5, rows=rows)


async def find_truth_cell(plan: Plan, site: ReferenceSite, registry: Registry) -> TruthCell | None:
    """The cell that says what a reference to a column asks for; None if there is no such cell, or several.

    Args:
        plan: The plan, with its tables bound.
        site: The reference, and what is known of the columns.
        registry: The tools.
    """
    terms = parse_mention(site.words).required
    offered = [Candidate("column", name, (name,)) for name in site.names or ()]
    if not terms or not isinstance(match_words(site.words, offered, "column"), Unbound):
        return None
    if not _WITHOUT.isdisjoint(words_of(site.words)) or rewrite_truth(plan, site, TruthCell("", "", _NOBODY)) is None:
        return None
    tables = [await read_table(registry, step) for step in reading_steps(plan, registry)]
    found = [(name, text) for name in site.texts for text in _saying(terms, name, tables)]
    if len(found) != 1 or any(name_suspicions(each) for each in found[0]):
        return None
    return TruthCell(*found[0], join_all(each.label for each in tables))


_NOBODY = join_all(())


def _saying(terms: Sequence[str], column: str, tables: Sequence[ReadTable]) -> list[str]:
    """The cells of a column with few different texts that are just these words, or forms of them."""
    cells = [
        cell for table in tables for row in table.rows if isinstance(cell := row.get(column), str) and cell.strip()
    ]
    texts = dict.fromkeys(cells)
    if len(texts) > MOST_CHOICES or len(texts) == len(cells):
        # Texts that are all different name the rows, and say nothing that could be asked of each of them.
        return []
    fits = [(text, fit_text(terms, text)) for text in texts]
    return [text for text, fit in fits if fit is not None and fit.whole and not fit.by_synonym]


def rewrite_truth(plan: Plan, site: ReferenceSite, cell: TruthCell) -> Plan | None:
    """The plan with a comparison with a cell where a step asks whether a column is true or false.

    None if the column stands anywhere else in the step: what is shown or added up there is not known.
    """
    step = dict(walk(plan.steps)).get(site.path)
    rewriter = _Rewriter(site.words, cell)
    changed = None if step is None else rewriter.rewrite_step(step)
    if not rewriter.count or _count_references(changed, site.words):
        return None
    return replace_step(plan, site.path, changed)


class _Rewriter:
    def __init__(self, words: str, cell: TruthCell) -> None:
        self._words = words
        self._column = Const(value=cell.column)
        bound = BoundTo(value=cell.text, label=label_tree_to_json(cell.label))
        self._value = Reference(refers="value", words=words, bound=bound)
        self.count = 0

    def rewrite_step(self, step: Any) -> Any:
        match step:
            case Call(
                args={"column": column, "op": Const(value=str() as op), "value": Const(value=bool() as said)} as args
            ) if self._is_asked(column) and (op, said) in _OPERATORS:
                self.count += 1
                compared = {"column": self._column, "op": Const(value=_OPERATORS[op, said]), "value": self._value}
                return step.model_copy(update={"args": args | compared})
            case Each():
                return step.model_copy(update={"over": self._visit(step.over)})
            case When():
                return step.model_copy(update={"condition": self._visit(step.condition, truth=True)})
            case _:
                return map_children(step, self._visit)

    def _is_asked(self, expr: Any) -> bool:
        return isinstance(expr, Reference) and expr.refers == "column" and expr.words == self._words and not expr.bound

    def _visit(self, expr: Any, truth: bool = False) -> Any:
        match expr:
            case Compare(first=Index(value=row, at=at), rest=((op, Const(value=bool() as said)),)) if (
                self._is_asked(at) and (op, said) in _OPERATORS
            ):
                return self._compare(row, _OPERATORS[op, said])
            case Index(value=row, at=at) if truth and self._is_asked(at):
                return self._compare(row, "==")
            case Not(value=value):
                return expr.model_copy(update={"value": self._visit(value, truth=True)})
            case Logic(items=items):
                return expr.model_copy(update={"items": tuple(self._visit(each, truth) for each in items)})
            case Choose(condition=condition, then=then, otherwise=otherwise):
                branches = {"then": self._visit(then), "otherwise": self._visit(otherwise)}
                return expr.model_copy(update={"condition": self._visit(condition, truth=True), **branches})
            case Comprehension(element=element, key=key, clauses=clauses):
                changed = {
                    "element": self._visit(element),
                    "key": None if key is None else self._visit(key),
                    "clauses": tuple(map(self._clause, clauses)),
                }
                return expr.model_copy(update=changed)
            case _:
                return map_children(expr, self._visit)

    def _clause(self, clause: Clause) -> Clause:
        conditions = tuple(self._visit(each, truth=True) for each in clause.conditions)
        return clause.model_copy(update={"over": self._visit(clause.over), "conditions": conditions})

    def _compare(self, row: Any, op: Any) -> Compare:
        self.count += 1
        return Compare(first=Index(value=self._visit(row), at=self._column), rest=((op, self._value),))


def _count_references(node: Any, words: str) -> int:
    """How often a step still refers to a column by these words, the steps inside it left out."""
    match node:
        case Reference(refers="column"):
            return int(node.words == words and node.bound is None)
        case Each():
            inner: tuple[Any, ...] = (node.over,)
        case When():
            inner = (node.condition,)
        case _:
            inner = children(node)
    return sum(_count_references(child, words) for child in inner)
