"""Columns that only the answer shows: where nothing is called as the plan says, the one that names the rows is shown.

A plan for "which bills are open?" may list `row[column("vendor")]`, a word of the planner and not of the request.
Nothing rests on it but what is shown, so the first column whose texts tell the rows apart will do, with a doubt. A
column that selects, sorts, adds up or is written somewhere stays a question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bicameral.binding._column_kinds import describes_rows
from bicameral.binding._fits import said_terms
from bicameral.binding._plan_rows import ReadTable, read_table, reading_steps
from bicameral.binding._questions import Binding
from bicameral.binding._screening import name_suspicions
from bicameral.labels import join_all
from bicameral.plans import (
    Answer,
    Apply,
    Arithmetic,
    Choose,
    Comprehension,
    Compute,
    Const,
    DictOf,
    Each,
    Format,
    Get,
    Index,
    ListOf,
    Plan,
    Ref,
    Reference,
    ReferenceSite,
    Shown,
    Slice,
    TupleOf,
    Update,
    When,
    children,
    walk,
)
from bicameral.tools import Registry

_DISTINCT_SHARE = 0.9
_FEWEST_CELLS = 2
_SHOWING_FUNCTIONS = frozenset("join str strip lower upper title capitalize list first last".split())


async def find_naming_column(plan: Plan, site: ReferenceSite, registry: Registry) -> Binding | None:
    """The column that names the rows, for words that only the answer shows and that the request does not say.

    Args:
        plan: The plan, with its tables bound. Its goal is the request; without one, nothing is known of that.
        site: The reference to a column that no column is like.
        registry: The tools.
    """
    if not plan.goal or said_terms(site.words, plan.goal) or not is_only_shown(plan, site.words):
        return None
    tables = [await read_table(registry, step) for step in reading_steps(plan, registry)]
    for name in site.texts:
        if not describes_rows(name) or name_suspicions(name) or not _tells_rows_apart(name, tables):
            continue
        # Its text is shown as a cell of the table is, and the heading with the doubt.
        label = join_all(each.label for each in tables)
        return Binding("column", site.words, name, label, "naming", 0.4)
    return None


def _tells_rows_apart(column: str, tables: Sequence[ReadTable]) -> bool:
    """Whether nearly all texts of a column are different, and most of them are words and no signs for rows."""
    found = [row.get(column) for table in tables for row in table.rows]
    cells = [cell for cell in found if isinstance(cell, str) and cell.strip()]
    if len(cells) < max(_FEWEST_CELLS, len(found) * _DISTINCT_SHARE):
        return False
    signs = [cell for cell in cells if any(each.isdecimal() for each in cell) and len(cell.split()) == 1]
    return len(set(cells)) >= _DISTINCT_SHARE * len(cells) and len(signs) <= len(cells) // 2


def is_only_shown(plan: Plan, words: str) -> bool:
    """Whether nothing but the answer rests on the column with these words, through whatever variables."""
    names: frozenset[str] = frozenset()
    while True:
        uses = _Uses(words, names)
        for _, step in walk(plan.steps):
            uses.visit_step(step)
        if not uses.only_shown:
            return False
        if uses.names == names:
            return uses.found
        names = uses.names


class _Uses:
    """How a plan uses a column: `names` are the variables that hold cells of it."""

    def __init__(self, words: str, names: frozenset[str]) -> None:
        self._words = words
        self.names = names
        self.only_shown = True
        self.found = False

    def visit_step(self, step: Any) -> None:
        match step:
            case Answer(value=value):
                self._visit(value, shows=True)
            case Compute(name=name, value=value):
                self._hold((name,), value)
            case Update(name=name, op=op, key=key, value=value):
                if key is not None:
                    self._visit(key)
                if op == "add" and not isinstance(value, Format | ListOf):
                    self._visit(value)
                else:
                    self._hold((name,), value)
            case Each(names=names, over=over):
                self._hold(names, over)
            case When(condition=condition):
                self._visit(condition)
            case _:
                for child in children(step):
                    self._visit(child)

    def _hold(self, names: tuple[str, ...], value: Any) -> None:
        if self._visit(value, shows=True):
            self.names |= {*names}

    def _visit(self, expr: Any, shows: bool = False) -> bool:
        """Note the uses in an expression, whose value is shown or not; whether there are any."""
        match expr:
            case Reference(refers="column", words=words, bound=None):
                return self._note(words == self._words, shows=False)
            case Ref(name=name):
                return self._note(name in self.names, shows)
            case Index(value=value, at=Reference(refers="column", words=words, bound=None)) if words == self._words:
                self._visit(value)
                self.found = True
                return self._note(True, shows)
            case Index(value=value, at=at):
                return self._any((value,), shows) | self._any((at,))
            case Get(value=value):
                return self._visit(value, shows)
            case Slice(value=value, start=start, stop=stop, step=step):
                bounds = [each for each in (start, stop, step) if each is not None]
                return self._visit(value, shows) | self._any(bounds)
            case ListOf(items=items) | TupleOf(items=items):
                return self._any(items, shows)
            case DictOf(entries=entries):
                return self._any([key for key, _ in entries]) | self._any([value for _, value in entries], shows)
            case Format(parts=parts):
                held = [part for part in parts if isinstance(part, Shown)]
                return sum(self._visit(part.value, shows and not part.spec) for part in held) > 0
            case Comprehension():
                return self._visit_comprehension(expr, shows)
            case Choose(condition=condition, then=then, otherwise=otherwise):
                return self._visit(condition) | self._any((then, otherwise), shows)
            case Arithmetic(op="+", left=left, right=right):
                joins = isinstance(left, Format) or any(
                    isinstance(each, Const) and isinstance(each.value, str) for each in (left, right)
                )
                return self._any((left, right), shows and joins)
            case Apply(function=function):
                return self._any(children(expr), shows and function in _SHOWING_FUNCTIONS)
            case _:
                return self._any(children(expr))

    def _visit_comprehension(self, expr: Comprehension, shows: bool) -> bool:
        for clause in expr.clauses:
            self._hold(clause.names, clause.over)
            self._any(clause.conditions)
        if expr.key is not None:
            self._visit(expr.key)
        return self._visit(expr.element, shows)

    def _any(self, exprs: Sequence[Any], shows: bool = False) -> bool:
        # All of them are visited, and not only up to the first use, as `any` would do.
        return sum(self._visit(each, shows) for each in exprs) > 0

    def _note(self, is_use: bool, shows: bool) -> bool:
        if is_use and not shows:
            self.only_shown = False
        return is_use
