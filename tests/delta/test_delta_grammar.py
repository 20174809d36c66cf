"""The grammar of statements: it takes what examples write, and refuses what the tools and types do not allow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from llguidance import LLMatcher, LLTokenizer

from bicameral.planning._decode import next_openings
from bicameral.planning._matching import PlanExample, load_examples
from bicameral.planning._statement_grammar import Opening, statement_grammar
from bicameral.plans import check, parse, print_plan
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes
from bicameral.types import ANY, DATE, DATETIME, FLOAT, INT, STR, DictType, Field, ListType, RecordType, Type

BYTES = LLTokenizer("byte")
STANDARD = ("files", "lines", "tables", "mail", "calendar", "web", "clock")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    folder: Path = tmp_path_factory.mktemp("world")
    return load_toolboxes({name: {} for name in STANDARD}, Surroundings(Folders(folder, (folder,), (folder,))))


def accepted(grammar: str, text: str) -> int:
    """How many characters of a text a grammar takes."""
    matcher = LLMatcher(BYTES, LLMatcher.grammar_from_lark(grammar.split("\n", 1)[1]))
    assert not matcher.get_error(), matcher.get_error()
    return matcher.validate_tokens(BYTES.tokenize_str(text))


def statements(plan: str) -> Iterator[tuple[str, str]]:
    """Each statement of a plan with the code before it."""
    lines = plan.splitlines(keepends=True)
    for number, line in enumerate(lines):
        yield "".join(lines[:number]), line


@pytest.mark.parametrize(
    "example", [*load_examples().always, *load_examples().bank], ids=lambda example: example.request[:40]
)
def test_every_statement_of_every_example_can_be_decoded(example: PlanExample, registry: Registry) -> None:
    for before, statement in statements(example.plan):
        grammar = statement_grammar(registry, next_openings(before, registry))
        taken = accepted(grammar, statement)
        assert taken == len(statement.encode()), f"{statement!r} is refused at {statement[taken:]!r}"
    assert next_openings(example.plan, registry) == []


@pytest.mark.parametrize(
    "example", [*load_examples().always, *load_examples().bank], ids=lambda example: example.request[:40]
)
def test_every_example_passes_the_check(example: PlanExample, registry: Registry) -> None:
    parsed = parse(example.plan, registry)
    # The planner's own check: references are bound after it.
    report = check(parsed.plan, registry, places=parsed.places, unbound=True)
    assert report.ok, [str(finding) for finding in report.errors]


@pytest.mark.parametrize("name", ["cannot_file", "cannot", "send_mail2222", "read_lines_of_it"])
def test_no_variable_begins_like_a_refusal_or_a_call(name: str, registry: Registry) -> None:
    grammar = statement_grammar(registry, [Opening(0, {})])
    assert accepted(grammar, f'{name} = "x"\n') < len(f'{name} = "x"\n')
    assert accepted(grammar, f'my_{name} = "x"\n') == len(f'my_{name} = "x"\n')


@pytest.mark.parametrize("name", ["document_1", "n"])
def test_a_given_variable_can_be_read_and_not_assigned(name: str, registry: Registry) -> None:
    scope = {name: INT}
    fixed = statement_grammar(registry, [Opening(0, scope)], given=frozenset(scope))
    for good in (f"answer({name})\n", f"total = {name}\n", f"new_{name} = {name} + 1\n", "number = 1\n"):
        assert accepted(fixed, good) == len(good), good
    written = f"{name} = 1\n"
    assert accepted(fixed, written) < len(written)
    assert accepted(statement_grammar(registry, [Opening(0, scope)]), written) == len(written)


def test_a_field_whose_name_has_an_accent_can_be_read(registry: Registry) -> None:
    code = 'text = read_text("a.txt")\ninfo = extract(text, "le préavis", {"loyer": float, "préavis": float})\n'
    grammar = statement_grammar(registry, next_openings(code, registry))
    for good in ('answer(info["préavis"])\n', 'answer(f"{info.loyer:.2f}, {info.préavis:.2f}")\n'):
        assert accepted(grammar, good) == len(good.encode())
        plan = parse(code + good, registry).plan
        assert check(plan, registry, unbound=True).ok
        assert parse(print_plan(plan, registry), registry).plan == plan


ROWS = ListType(RecordType((Field("day", STR), Field("amount", FLOAT))))


@pytest.mark.parametrize(
    "statement",
    [
        'x = copy_files("a", "b")\n',
        'x = read_lines(file="a")\n',
        'x = sum([row["day"] for row in rows])\n',
        "x = unknown\n",
        'x = rows[0]["price"]\n',
        'x = filter_rows(rows, "price", ">", 3)\n',
        "import os\n",
        "for = 3\n",
        'send_mail("a@example.com", "s", "b")\n',
        "if rows:\n    answer(1)\n",
    ],
)
def test_what_does_not_exist_cannot_be_written(statement: str, registry: Registry) -> None:
    grammar = statement_grammar(registry, [Opening(0, {"rows": ROWS})])
    assert accepted(grammar, statement) < len(statement.encode())


def test_what_does_exist_can_be_written(registry: Registry) -> None:
    grammar = statement_grammar(registry, [Opening(0, {"rows": ROWS})])
    for statement in (
        'x = sum([row["amount"] for row in rows])\n',
        'x = filter_rows(rows, "amount", ">", 3)\n',
        'best = max(rows, key=lambda row: row["amount"])\n',
        'write_csv("out.csv", rows)\n',
    ):
        assert accepted(grammar, statement) == len(statement)


def test_a_file_or_address_that_nobody_named_cannot_be_written(registry: Registry) -> None:
    named = {"path": ["notes.txt"], "url": [], "email": ["a@example.com"]}
    grammar = statement_grammar(registry, [Opening(0, {})], named)
    for good in ('x = read_lines("notes.txt")\n', 'send_mail(["a@example.com"], "s", "b")\n'):
        assert accepted(grammar, good) == len(good)
    for bad in (
        'x = read_lines("mails.txt")\n',
        'x = fetch_page("http://evil.example")\n',
        'send_mail(["e@evil.example"], "s", "b")\n',
    ):
        assert accepted(grammar, bad) < len(bad)


def test_there_is_no_answer_directly_inside_a_loop(registry: Registry) -> None:
    code = 'lines = read_lines("a.txt")\nfor line in lines:\n'
    grammar = statement_grammar(registry, next_openings(code, registry))
    assert accepted(grammar, "    answer(line)\n") < len("    answer(line)\n")
    inside = statement_grammar(registry, next_openings(code + '    if "x" in line:\n', registry))
    assert accepted(inside, "        answer(line)\n") == len("        answer(line)\n")


MIXED: dict[str, Type] = {
    "total": FLOAT,
    "limit": FLOAT,
    "name": STR,
    "day": DATE,
    "when": DATETIME,
    "count": INT,
    "rows": ROWS,
    "cells": ListType(DictType(ANY)),
    "lines": ListType(STR),
}


@pytest.mark.parametrize(
    "statement",
    [
        "if total > limit:\n",
        "if total == len(rows):\n",
        "if len(rows) < len(lines):\n",
        "x = round(100 * total / limit, 1)\n",
        "x = total / len(rows)\n",
        "x = (total - limit) / len(rows)\n",
        'x = [row for row in cells if row[column("a")] < total]\n',
        'x = [row for row in cells if row[column("a")].year == day.year and row["b"] > 14 * row["c"]]\n',
        "answer(f\"{round(100 * total / limit, 1)} %, {cells[0][column('a')]}, {(day - today()).days}\")\n",
        'answer(filter_rows(cells, column("a"), ">", 3))\n',
        'x = len(filter_rows(cells, column("a"), ">", 3))\n',
        'x = join_rows(cells, cells, on=column("a"))\n',
        'x = sorted(unique([row["day"] for row in rows]))\n',
        'x = ask("When?", datetime)\n',
        "for number in range(3):\n",
        'for who in ["a", "b"]:\n',
        'x = sorted(cells, key=lambda row: row[column("a")] / row[column("b")])\n',
        'if name.lower() == "x":\n',
    ],
)
def test_calculations_over_what_is_known_can_be_written(statement: str, registry: Registry) -> None:
    grammar = statement_grammar(registry, [Opening(0, MIXED)])
    taken = accepted(grammar, statement)
    assert taken == len(statement.encode()), f"refused at {statement[taken:]!r}"


@pytest.mark.parametrize(
    "statement",
    [
        "if total > name:\n",
        "if name > total:\n",
        'if total > "high":\n',
        "if total > unknown:\n",
        "if day > total:\n",
        "x = round(name, 1)\n",
        "x = total * name\n",
        "x = name.year\n",
        "x = total.year\n",
        "x = len(total)\n",
        "x = (name - day).days\n",
        "x = mean(lines)\n",
        'x = sum([row["day"] * 2 for row in rows])\n',
        'x = [row for row in rows if row["day"] > row["amount"]]\n',
        'answer(f"{name * 2}")\n',
        'answer(f"{unknown}")\n',
        "answer(delete_file(name))\n",
        'x = len(send_mail(["a@example.com"], "s", "b"))\n',
        'x = ask("When?", Mail)\n',
        "for number in range(name):\n",
        "for line in total:\n",
        'x = sorted(rows, key=lambda row: row["day"] / 2)\n',
        "if name.startswith(total):\n",
    ],
)
def test_an_expression_of_another_type_cannot_be_written(statement: str, registry: Registry) -> None:
    grammar = statement_grammar(registry, [Opening(0, MIXED)])
    assert accepted(grammar, statement) < len(statement.encode())


def test_a_comprehension_in_a_loop_binds_another_name(registry: Registry) -> None:
    """`row` again would hide the row of the loop and compare each one with itself."""
    code = 'rows = read_csv("a.csv")\nothers = read_csv("b.csv")\nfor row in rows:\n'
    grammar = statement_grammar(registry, next_openings(code, registry))
    hidden = '    x = [row for row in others if row[column("a")] == row[column("b")]]\n'
    assert accepted(grammar, hidden) < len(hidden)
    twin = hidden.replace("[row for row in others if row[", "[entry for entry in others if entry[")
    assert accepted(grammar, twin) == len(twin)


def test_a_plan_may_begin_with_a_condition_on_a_file(registry: Registry) -> None:
    grammar = statement_grammar(registry, [Opening(0, {})])
    assert accepted(grammar, 'if file_exists("notes.txt"):\n') == len('if file_exists("notes.txt"):\n')
