"""The grammar of the next statement: every tool, argument and variable that can stand there, by type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bicameral.planning._calculation_grammar import text_questions
from bicameral.planning._call_grammar import call_rules, is_pure
from bicameral.planning._expression_grammar import ExpressionGrammar
from bicameral.planning._grammar_paths import NamedObjects, grammar_literal, grammar_terminals
from bicameral.tools import Registry
from bicameral.types import FLOAT, INT, STR, DictType, FloatType, IntType, ListType, NullType, Type

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


def statement_grammar(
    registry: Registry,
    openings: Sequence[Opening],
    named: NamedObjects | None = None,
    given: frozenset[str] = frozenset(),
) -> str:
    """An LLGuidance grammar for one statement at one of the openings.

    Args:
        named: The objects of the request.
        given: Variables that it may not assign.
    """
    rules: list[str] = []
    starts: list[str] = []
    for opening in openings:
        found, names = _statement_rules(registry, opening, named)
        rules += found
        starts += [f"{grammar_literal('    ' * opening.level)} {name}" if opening.level else name for name in names]
    start = "start: " + " | ".join(starts)
    terminals = grammar_terminals(frozenset(tool.name for tool in registry), given)
    return "\n".join(["%llguidance {}", start, *rules, _TYPE_RULES, terminals, ""])


def _statement_rules(registry: Registry, opening: Opening, named: NamedObjects | None) -> tuple[list[str], list[str]]:
    """The rules for statements at one level; rule names carry the level, since scopes differ."""
    grammar = ExpressionGrammar(registry, opening.scope, prefix=f"v{opening.level}_", named=named)
    at = f"s{opening.level}_"
    rules: dict[str, str] = {}
    pure = [calls for lists in (True, False) if (calls := grammar.pure_calls(lists=lists))]
    answer = f'"answer(" ({" | ".join([grammar.any_expression(), *pure])}) ")\\n"'
    if opening.ending:
        return [f"{at}answer: {answer}", *grammar.rules()], [f"{at}answer"]
    reading = [tool for tool in registry if not is_pure(tool) and not isinstance(tool.result, NullType)]
    valued = [*pure, *(call for tool in reading for call in call_rules(tool, grammar))]
    if valued:
        rules[f"{at}assign"] = f'NAME " = " ({" | ".join(valued)}) "\\n"'
    void = [call for tool in registry if tool.changes for call in call_rules(tool, grammar)]
    if void:
        rules[f"{at}call"] = f'({" | ".join(void)}) "\\n"'
    rules[f"{at}compute"] = f'NAME " = " ({grammar.any_expression()} | "{{}}") "\\n"'
    if sources := [path.rule for path in grammar.paths() if not isinstance(path.type, IntType | FloatType | NullType)]:
        source = " | ".join(sources)
        rules[f"{at}extract"] = f'NAME " = " "extract(" ({source}) ", " STRING ", " type ")\\n"'
    if updates := list(_update_rules(grammar, opening.scope)):
        rules[f"{at}update"] = f'({" | ".join(updates)}) "\\n"'
    if opening.deeper:
        rules[f"{at}each"] = f'"for " {_loop_header(grammar)} ":\\n"'
    if opening.deeper and (opening.scope or text_questions(grammar)):
        rules[f"{at}when"] = f'"if " {grammar.condition()} ":\\n"'
    if opening.may_ask:
        rules[f"{at}ask"] = 'NAME " = " "ask(" STRING (", " simple)? ")\\n"'
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


def _loop_header(grammar: ExpressionGrammar) -> str:
    """`line in lines`: a list in reach, one that is made or written out, or a range. Any name, since it is bound."""
    paths = " | ".join(path.rule for path in grammar.list_paths())
    known = [rule for rule in (paths, grammar.added_lists()) if rule]
    over = [*known, grammar.expression(ListType(STR)), f'"range(" {grammar.expression(INT)} ")"']
    header = f'NAME " in " ({" | ".join(over)})'
    return f'({header} | NAME ", " NAME " in enumerate(" ({paths}) (", " COUNT)? ")")' if paths else header


def _update_rules(grammar: ExpressionGrammar, scope: Mapping[str, Type]) -> list[str]:
    found: list[str] = []
    for name, type_ in scope.items():
        match type_:
            case ListType(item=item):
                found.append(f'{grammar_literal(name)} ".append(" {grammar.expression(item)} ")"')
                found.append(f'{grammar_literal(name)} " += " {grammar.list_part(item)}')
            case IntType() | FloatType():
                found.append(f'{grammar_literal(name)} " += " {grammar.expression(FLOAT)}')
            case DictType(value=value):
                change = f'"]" (" = " | " += ") {grammar.expression(value)}'
                found.append(f'{grammar_literal(name)} "[" {grammar.expression(STR)} {change}')
            case _:
                pass
    return found
