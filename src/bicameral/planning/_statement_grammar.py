"""The grammar of the next statement: every tool, argument and variable that can stand there, by type."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bicameral.planning._expression_grammar import (
    TERMINALS,
    ExpressionGrammar,
    NamedObjects,
    grammar_literal,
    is_usable_as,
    item_name,
)
from bicameral.tools import Argument, Registry, Tool
from bicameral.types import ANY, FLOAT, STR, AnyType, DictType, FloatType, IntType, ListType, NullType, RecordType, Type

FENCE = "```"

_TYPE_RULES = """
type: simple | "list[" simple "]" | "list[" fields "]" | fields | "Literal[" KEY (", " KEY)+ "]"
simple: "str" | "int" | "float" | "bool" | "date" | "datetime" | "time"
fields: "{" KEY ": " inner (", " KEY ": " inner)* "}"
inner: simple | "list[" simple "]" | "Literal[" KEY (", " KEY)+ "]"
""".strip()


@dataclass(frozen=True, slots=True)
class Opening:
    """A place for the next statement: its indentation, the variables in scope, and whether `else` may follow.

    At an `ending` only the answer is left to write; directly inside a loop there is none, since it would be a loop of
    one turn. `looks` are the variables that the plan may ask to be shown instead of answering. As the `first` statement
    the planner may say that it cannot serve the request.
    """

    level: int
    scope: Mapping[str, Type]
    may_else: bool = False
    deeper: bool = True
    may_answer: bool = True
    ending: bool = False
    looks: tuple[str, ...] = ()
    first: bool = False
    may_ask: bool = True


# The lexer behind a grammar takes the longest terminal and never goes back, so no terminal may be the beginning of
# another one and what can follow it: `" = "` and `"extract("`, not `" = extract("`.


def statement_grammar(registry: Registry, openings: Sequence[Opening], named: NamedObjects | None = None) -> str:
    """An LLGuidance grammar for one statement at one of the openings; `named` are the objects of the request."""
    rules: list[str] = []
    starts: list[str] = []
    for opening in openings:
        found, names = _statement_rules(registry, opening, named)
        rules += found
        starts += [f"{grammar_literal('    ' * opening.level)} {name}" if opening.level else name for name in names]
    start = "start: " + " | ".join(starts)
    return "\n".join(["%llguidance {}", start, *rules, _TYPE_RULES, TERMINALS, ""])


def _statement_rules(registry: Registry, opening: Opening, named: NamedObjects | None) -> tuple[list[str], list[str]]:
    """The rules for statements at one level; rule names carry the level, since scopes differ."""
    grammar = ExpressionGrammar(registry, opening.scope, prefix=f"v{opening.level}_", named=named)
    at = f"s{opening.level}_"
    rules: dict[str, str] = {}
    answer = f'"answer(" {grammar.any_expression()} ")\\n"'
    if opening.ending:
        return [f"{at}answer: {answer}", *grammar.rules()], [f"{at}answer"]
    valued = [call for tool in registry if not isinstance(tool.result, NullType) for call in _call_rules(tool, grammar)]
    if valued:
        rules[f"{at}assign"] = f'NAME " = " ({" | ".join(valued)}) "\\n"'
    void = [call for tool in registry if tool.changes for call in _call_rules(tool, grammar)]
    if void:
        rules[f"{at}call"] = f'({" | ".join(void)}) "\\n"'
    rules[f"{at}compute"] = f'NAME " = " ({grammar.any_expression()} | "{{}}") "\\n"'
    if sources := [path.rule for path in grammar.paths() if not isinstance(path.type, IntType | FloatType | NullType)]:
        source = " | ".join(sources)
        rules[f"{at}extract"] = f'NAME " = " "extract(" ({source}) ", " STRING ", " type ")\\n"'
    if updates := list(_update_rules(grammar, opening.scope)):
        rules[f"{at}update"] = f'({" | ".join(updates)}) "\\n"'
    if opening.deeper and (lists := grammar.list_paths()):
        over = " | ".join(
            f"{grammar_literal(f'for {item_name(_item_type(path.type))} in ')} {path.rule}" for path in lists
        )
        rules[f"{at}each"] = f'({over}) ":\\n"'
    if opening.deeper and opening.scope:
        rules[f"{at}when"] = f'"if " {grammar.condition()} ":\\n"'
    if opening.may_ask:
        rules[f"{at}ask"] = 'NAME " = " "ask(" STRING ")\\n"'
    if opening.first:
        rules[f"{at}cannot"] = '"cannot(" STRING ")\\n"'
    if opening.may_else:
        rules[f"{at}else"] = '"else:\\n"'
    if opening.may_answer:
        rules[f"{at}answer"] = answer
    if opening.looks:
        names = " | ".join(grammar_literal(name) for name in opening.looks)
        rules[f"{at}look"] = f'"look(" ({names}) (", " ({names}))* ")\\n"'
    return [*(f"{name}: {body}" for name, body in rules.items()), *grammar.rules()], list(rules)


def _call_rules(tool: Tool, grammar: ExpressionGrammar) -> list[str]:
    """The ways to call a tool: one, or one for each table in scope if its arguments name columns of a table."""
    if not all(grammar.can_write(argument) for argument in tool.arguments if argument.required):
        return []
    table = next((argument.field_of for argument in tool.arguments if argument.field_of), None)
    rows = tool.argument(table) if table else None
    if rows is None:
        return [_call_rule(tool, {a.name: grammar.argument(a) for a in tool.arguments})]
    found: list[str] = []
    for path in grammar.paths():
        if is_usable_as(path.type, rows.type) and not isinstance(path.type, AnyType):
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
    parts = [' ", " '.join(required)] if required else []
    named = [f"{grammar_literal(a.name + '=')} {expressions[a.name]}" for a in tool.arguments if not a.required]
    if named:
        one = f"({' | '.join(named)})"
        first = f"({one} | {expressions[tool.arguments[0].name]})"
        parts.append(f'(", " {one})*' if parts else f'({first} (", " {one})*)?')
    return f'{grammar_literal(tool.name + "(")} {" ".join(parts)} ")"'


def _update_rules(grammar: ExpressionGrammar, scope: Mapping[str, Type]) -> list[str]:
    found: list[str] = []
    for name, type_ in scope.items():
        match type_:
            case ListType(item=item):
                found.append(f'{grammar_literal(name)} ".append(" {grammar.expression(item)} ")"')
            case IntType() | FloatType():
                found.append(f'{grammar_literal(name)} " += " {grammar.expression(FLOAT)}')
            case DictType(value=value):
                change = f'"]" (" = " | " += ") {grammar.expression(value)}'
                found.append(f'{grammar_literal(name)} "[" {grammar.expression(STR)} {change}')
            case _:
                pass
    return found


def _item_type(type_: Type) -> Type:
    return type_.item if isinstance(type_, ListType) else ANY
