"""Grammar rules for calls of tools: every argument by its type, columns by the table that they belong to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bicameral.planning._grammar_paths import GrammarPath, grammar_literal, is_usable_as
from bicameral.tools import Argument, Tool
from bicameral.types import ANY, AnyType, ListType, RecordType, Type

if TYPE_CHECKING:
    from bicameral.planning._expression_grammar import ExpressionGrammar


def is_pure(tool: Tool) -> bool:
    """Whether a call may stand inside another expression: it depends on its arguments alone."""
    return tool.effect == "pure" and bool(tool.arguments)


def can_call(tool: Tool, grammar: ExpressionGrammar) -> bool:
    """Whether every required argument can be written, and a table is in reach if the tool works on one."""
    if not all(grammar.can_write(argument) for argument in tool.arguments if argument.required):
        return False
    rows = _table_argument(tool)
    return rows is None or bool(_tables(rows, grammar))


def _table_argument(tool: Tool) -> Argument | None:
    """The argument whose rows other arguments name columns of."""
    table = next((argument.field_of for argument in tool.arguments if argument.field_of), None)
    return tool.argument(table) if table else None


def _tables(rows: Argument, grammar: ExpressionGrammar) -> list[GrammarPath]:
    paths = grammar.paths()
    return [path for path in paths if is_usable_as(path.type, rows.type) and not isinstance(path.type, AnyType)]


def call_rules(tool: Tool, grammar: ExpressionGrammar) -> list[str]:
    """The ways to call a tool: one, or one for each table in scope if its arguments name columns of a table."""
    if not can_call(tool, grammar):
        return []
    rows = _table_argument(tool)
    if rows is None:
        return [_call_rule(tool, {a.name: grammar.argument(a) for a in tool.arguments})]
    found: list[str] = []
    for path in _tables(rows, grammar):
        columns = _column_names(path.type)
        written = {rows.name: path.rule}
        for argument in tool.arguments:
            if argument.field_of == rows.name:
                is_list = isinstance(argument.type, ListType)
                written[argument.name] = f'"[" {columns} (", " {columns})* "]"' if is_list else columns
        expressions = {a.name: written.get(a.name) or _compared_value(a, grammar) for a in tool.arguments}
        found.append(_call_rule(tool, expressions))
    return found


def _compared_value(argument: Argument, grammar: ExpressionGrammar) -> str:
    """What is compared with a column: a value by words, or any expression."""
    rule = grammar.argument(argument)
    return f"({rule} | VALUE)" if isinstance(argument.type, AnyType) else rule


def _column_names(rows: Type) -> str:
    item = _item_type(rows)
    if not isinstance(item, RecordType):
        return "(KEY | COLUMN)"
    return "(" + " | ".join(grammar_literal(json.dumps(name)) for name in item.names) + ")"


def _call_rule(tool: Tool, expressions: Mapping[str, str]) -> str:
    """Required arguments by position (or the first, if none is required), the others by name."""
    if not tool.arguments:
        # One terminal, as in expressions: the lexer takes the longest, and must not meet two that overlap.
        return grammar_literal(f"{tool.name}()")
    required = [expressions[argument.name] for argument in tool.arguments if argument.required]
    if len(required) > 1:
        # The last may be given by name: `join_rows(left, right, on=column("name"))`.
        last = [argument.name for argument in tool.arguments if argument.required][-1]
        required[-1] = f"({grammar_literal(last + '=')})? {required[-1]}"
    parts = [' ", " '.join(required)] if required else []
    named = [f"{grammar_literal(a.name + '=')} {expressions[a.name]}" for a in tool.arguments if not a.required]
    if named:
        one = f"({' | '.join(named)})"
        first = f"({one} | {expressions[tool.arguments[0].name]})"
        parts.append(f'(", " {one})*' if parts else f'({first} (", " {one})*)?')
    return f'{grammar_literal(tool.name + "(")} {" ".join(parts)} ")"'


def _item_type(type_: Type) -> Type:
    return type_.item if isinstance(type_, ListType) else ANY
