"""Rows of a plan's tables that words mean: a selection behind the reading of a table that was bound by its cells.

The tables are read with the tools of the plan, so that folders, limits and labels are those of its run. The selection
is a step of the plan like any other: it is shown, checked, labelled and reported. Its value keeps the words of the
request, and has the label of the table whose cells decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast

from bicameral.binding._candidates import BIND_STEP, Candidate
from bicameral.binding._fits import fit_text, terms_outside_names
from bicameral.binding._row_selection import RowSelection
from bicameral.errors import BicameralError
from bicameral.labels import UNKNOWN, Label, label_tree_to_json
from bicameral.plans import (
    Apply,
    BoundTo,
    Call,
    Clause,
    Compare,
    Comprehension,
    Compute,
    Const,
    Each,
    Extract,
    Index,
    Lambda,
    Logic,
    Plan,
    Ref,
    Reference,
    Step,
    Update,
    When,
    children,
    literal_arguments,
    walk,
)
from bicameral.tools import CellLookup, Registry
from bicameral.types import ListType, RecordType, StrType

_SELECTING_TOOL = "filter_rows"
_COMPARING_FUNCTIONS = frozenset("startswith endswith find count index contains get cell_matches".split())


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A table that a step of a plan reads.

    Args:
        rows: Its rows.
        columns: The names of all its columns.
        texts: The columns of texts of no other kind.
        label: The label of what is read.
    """

    rows: Sequence[Mapping[str, Any]] = ()
    columns: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    label: Label = UNKNOWN


def reading_steps(plan: Plan, registry: Registry) -> list[Call]:
    """The steps of a plan that read tables."""
    steps = [step for _, step in walk(plan.steps) if isinstance(step, Call)]
    tools = [registry.get(step.tool) for step in steps]
    return [
        step
        for step, tool in zip(steps, tools, strict=True)
        if tool is not None and isinstance(tool.refine, CellLookup)
    ]


def table_names(plan: Plan, registry: Registry) -> list[str]:
    """The names of the tables that a plan reads, without folders and endings."""
    return [_table_name(step) for step in reading_steps(plan, registry)]


def _table_name(step: Call) -> str:
    paths = (each for each in literal_arguments(step.args).values() if isinstance(each, str))
    return PurePosixPath(next(paths, "")).stem


async def read_table(registry: Registry, step: Call) -> ReadTable:
    """The table that a call reads, as it would read it in the run; without rows if it reads none."""
    tool, literals = registry.get(step.tool), literal_arguments(step.args)
    if tool is None or tool.effect not in ("read", "pure"):
        return ReadTable()
    try:
        shape = tool.refined_result({}, literals)
        given = tool.bind(literals)
        content = await tool.call(given)
    except (BicameralError, OSError, ValueError):
        # The call itself will report the reason when the plan runs.
        return ReadTable()
    label = tool.result_labels(content, BIND_STEP, arguments=given).flat
    if not isinstance(content, list) or not isinstance(shape, ListType) or not isinstance(shape.item, RecordType):
        return ReadTable(label=label)
    rows = [cast("dict[str, Any]", row) for row in cast("list[object]", content) if isinstance(row, dict)]
    texts = tuple(field.name for field in shape.item.fields if isinstance(field.type, StrType))
    return ReadTable(rows, shape.item.names, texts, label)


def terms_of_cells(words: str, path: str, table: ReadTable) -> tuple[str, ...]:
    """The words that name neither a table nor its folders nor its columns, and so may be cells of it."""
    file = PurePosixPath(path)
    folders = tuple(part for part in file.parent.parts if part not in (".", "/"))
    return terms_outside_names(words, Candidate("table", path, (file.name,), folders, contents=table.columns))


def selection_step(step: Call, words: str, selection: RowSelection, label: Label, registry: Registry) -> Step:
    """The step that keeps the selected rows of the table that a step reads, under the same name."""
    name = step.name or ""
    values = [
        Reference(refers="value", words=words, bound=BoundTo(value=text, label=label_tree_to_json(label)))
        for text in selection.texts
    ]
    if len(values) == 1 and registry.get(_SELECTING_TOOL) is not None:
        column, op = Const(value=selection.column), Const(value="==")
        return Call(
            name=name,
            tool=_SELECTING_TOOL,
            args={"rows": Ref(name=name), "column": column, "op": op, "value": values[0]},
        )
    cell = Index(value=Ref(name="row"), at=Const(value=selection.column))
    tests = tuple(Compare(first=cell, rest=(("==", value),)) for value in values)
    condition = tests[0] if len(tests) == 1 else Logic(op="or", items=tests)
    clause = Clause(names=("row",), over=Ref(name=name), conditions=(condition,))
    return Compute(name=name, value=Comprehension(element=Ref(name="row"), clauses=(clause,)))


def changes_file(plan: Plan, registry: Registry, path: str) -> bool:
    """Whether a step of a plan changes the file at a path: rows that are left out of it would be lost."""
    calls = [step for _, step in walk(plan.steps) if isinstance(step, Call)]
    named = [call for call in calls if path in literal_arguments(call.args).values()]
    tools = [registry.get(call.tool) for call in named]
    return any(tool is None or tool.effect not in ("read", "pure") for tool in tools)


def compares_words(plan: Plan, name: str, terms: Sequence[str], registry: Registry) -> bool:
    """Whether a plan itself compares something of a variable with these words.

    Args:
        plan: The plan.
        name: The variable with the rows of a table.
        terms: The folded words.
        registry: The tools.
    """
    derived = _derived_names(plan, name)
    return any(_compares(step, derived, terms, registry) for _, step in walk(plan.steps))


def _derived_names(plan: Plan, name: str) -> frozenset[str]:
    """The variables whose values were made from those of one, in whatever order the steps stand."""
    derived: frozenset[str] = frozenset({name})
    while True:
        found = derived
        for _, step in walk(plan.steps):
            match step:
                case Each(names=names, over=over) if _mentions(over, derived):
                    found |= {*names}
                case Call(name=str() as made) | Compute(name=made) | Update(name=made) | Extract(name=made) if any(
                    _mentions(child, derived) for child in children(step)
                ):
                    found |= {made}
                case _:
                    pass
        if found == derived:
            return derived
        derived = found


def _mentions(expr: Any, names: frozenset[str]) -> bool:
    if isinstance(expr, Ref):
        return expr.name in names
    return any(_mentions(child, names) for child in children(expr))


def _compares(node: Any, derived: frozenset[str], terms: Sequence[str], registry: Registry) -> bool:
    match node:
        case Comprehension(clauses=clauses):
            for clause in clauses:
                if _mentions(clause.over, derived):
                    derived |= {*clause.names}
        case Compare() | Apply() | Index() | Call() if _may_compare(node, registry):
            operands = tuple(children(node))
            for operand in operands:
                if isinstance(operand, Lambda) and any(_mentions(each, derived) for each in operands):
                    derived |= {*operand.names}
            if any(_has_words(each, terms) for each in operands) and any(_mentions(each, derived) for each in operands):
                return True
        case _:
            pass
    match node:
        case Each(over=over):
            inner: tuple[Any, ...] = (over,)
        case When(condition=condition):
            inner = (condition,)
        case _:
            inner = children(node)
    return any(_compares(child, derived, terms, registry) for child in inner)


def _may_compare(node: Any, registry: Registry) -> bool:
    """Whether a node compares its operands: a file that is called like the words is not compared with them."""
    match node:
        case Call(tool=name):
            tool = registry.get(name)
            return tool is not None and tool.effect == "pure"
        case Apply(function=function):
            return function in _COMPARING_FUNCTIONS
        case _:
            return True


def _has_words(expr: Any, terms: Sequence[str]) -> bool:
    """Whether an operand is a text, or a list of texts, with one of the words."""
    return any(fit_text([term], text) is not None for text in _texts(expr) for term in terms)


def _texts(expr: Any) -> Iterator[str]:
    match expr:
        case Const(value=str() as text) | Reference(refers="value", words=text):
            yield text
        case Apply(args=args) if args:
            # `"Petrol".lower()`, and lists of texts.
            yield from (text for each in args if isinstance(each, Const) for text in _texts(each))
        case _:
            yield from (text for each in getattr(expr, "items", ()) for text in _texts(each))
