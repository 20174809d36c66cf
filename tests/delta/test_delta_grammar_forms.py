"""Forms that come naturally: the grammar takes each of them, the check agrees, and a twin of other types is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from llguidance import LLMatcher, LLTokenizer

from bicameral.planning._decode import next_openings
from bicameral.planning._statement_grammar import statement_grammar
from bicameral.plans import check, parse
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes

BYTES = LLTokenizer("byte")
STANDARD = ("files", "lines", "tables", "mail", "calendar", "web", "clock")
CODE = """\
lines = read_lines(file("a"))
tail = read_lines(file("b"))
rows = read_csv(file("sales"))
others = read_csv(file("costs"))
events = list_events(today())
more = list_events(today() + timedelta(days=7))
count = len(lines)
first = events[0].start.date()
longest = max([e.end - e.start for e in events])
"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    folder: Path = tmp_path_factory.mktemp("world")
    return load_toolboxes({name: {} for name in STANDARD}, Surroundings(Folders(folder, (folder,), (folder,))))


@pytest.fixture(scope="module")
def grammar(registry: Registry) -> str:
    return statement_grammar(registry, next_openings(CODE, registry)).split("\n", 1)[1]


def accepted(grammar: str, text: str) -> int:
    """How many characters of a text a grammar takes."""
    matcher = LLMatcher(BYTES, LLMatcher.grammar_from_lark(grammar))
    assert not matcher.get_error(), matcher.get_error()
    return matcher.validate_tokens(BYTES.tokenize_str(text))


SUMS_OF_LISTS = [
    "x = lines + tail",
    'x = lines + ["end"]',
    'x = ["head"] + lines + tail',
    "x = lines[:3] + tail[-3:]",
    "x = rows + others",
    "x = events + more",
    'x = [e for e in events if e.title == "a"] + [e for e in more if e.title == "b"]',
    "x = unique(lines + tail)",
    "x = sorted(lines + tail)",
    "x = len(lines + tail)",
    'x = "\\n".join(lines + tail)',
    'x = [line for line in lines + tail if "a" in line]',
    "x = sorted(events + more, key=lambda e: e.start)",
    "x = max(events + more, key=lambda e: e.start)",
    'write_lines(file("c"), lines + tail)',
    "lines += tail",
    'lines += ["end"]',
    "events += more[:2]",
    "answer(lines + tail)",
]
LENGTHS_OF_TIME = [
    "x = first - today()",
    'x = date("2026-12-24") - today()',
    "x = (first - today()).days",
    "x = events[0].start.date() - today()",
    "x = events[0].end - events[0].start",
    "x = longest.days",
    "x = longest.total_seconds() / 3600",
    "x = today() + timedelta(days=count)",
    "x = first + timedelta(days=count * 7)",
    "x = sum([e.end - e.start for e in events])",
    "x = [e.end - e.start for e in events]",
    "x = [e for e in events if e.end - e.start > timedelta(hours=1)]",
    "x = [e for e in events if e.end - e.start == longest]",
    'x = [row for row in rows if (row[column("due")] - today()).days < 3]',
    "answer(first - today())",
    'answer(f"{events[0].title}: {events[0].end - events[0].start}")',
]
KEYS_THAT_COMPUTE = [
    "x = max(events, key=lambda e: e.end - e.start)",
    "x = min(events, key=lambda e: e.end - e.start)",
    "x = sorted(events, key=lambda e: e.end - e.start, reverse=True)[:3]",
    "x = sorted(events, key=lambda e: e.end - e.start)[0].title",
    "answer(max(events, key=lambda e: e.end - e.start).title)",
    'x = max(rows, key=lambda row: row["a"] - row["b"])["name"]',
    "x = max(lines, key=lambda line: len(line.strip()))",
]
CHAINED_METHODS = [
    'x = [line.replace("a", "b").strip() for line in lines]',
    "x = unique([line.lower().strip() for line in lines])",
    'x = lines[0].replace("a", "b").replace("c", "d")',
    'x = lines[0].split(",")[0].strip()',
    'x = lines[0].strip().split(",")',
    'x = [line for line in lines if line.strip().lower() == "a"]',
    "x = [line for line in lines if line.strip()]",
    'x = [row for row in rows if row["name"].strip().lower().startswith("a")]',
    'x = float(lines[0].replace(",", "").strip())',
    'x = sum([float(line.split(",")[1]) for line in lines])',
    'x = sum([float(row["a"].replace("EUR", "")) for row in rows])',
    'x = " ".join(lines).strip()',
    'x = f"{lines[0].strip().lower()}"',
]


@pytest.mark.parametrize("statement", SUMS_OF_LISTS + LENGTHS_OF_TIME + KEYS_THAT_COMPUTE + CHAINED_METHODS)
def test_a_natural_form_can_be_decoded_and_passes_the_check(statement: str, grammar: str, registry: Registry) -> None:
    taken = accepted(grammar, statement + "\n")
    assert taken == len(statement) + 1, f"refused at {statement[taken:]!r}"
    parsed = parse(f"{CODE}{statement}\n" + ("" if statement.startswith("answer") else "answer(1)\n"), registry)
    report = check(parsed.plan, registry, places=parsed.places, unbound=True)
    assert report.ok, [str(finding) for finding in report.errors]


def test_a_loop_may_go_over_two_lists(grammar: str) -> None:
    assert accepted(grammar, "for line in lines + tail:\n") == len("for line in lines + tail:\n")


@pytest.mark.parametrize(
    "statement",
    [
        "x = lines + events",
        "x = lines + lines[0]",
        "x = [line for line in lines + events]",
        "x = sorted(lines + events)",
        "lines += events",
        "lines += count",
        'write_lines(file("c"), lines + rows)',
        "x = lines - tail",
        "x = first - count",
        "x = first + first",
        "x = events[0].start - today()",
        "x = today() + 3",
        "x = count.days",
        "x = first.total_seconds()",
        "x = today() + timedelta(days=lines[0])",
        "x = [e for e in events if e.end - e.start > 60]",
        "x = max(events, key=lambda e: e.end - e.title)",
        "x = max(events, key=lambda e: e.end + e.start)",
        "x = max(lines, key=lambda line: line.strip() - 1)",
        "x = lines.strip()",
        "x = count.strip().lower()",
        "x = lines[0].strip().year",
        'x = lines[0].strip().format("a")',
        'x = [row for row in rows if row["name"].strip().upper() == value("a")]',
    ],
)
def test_a_form_of_other_types_cannot_be_decoded(statement: str, grammar: str) -> None:
    assert accepted(grammar, statement + "\n") < len(statement) + 1


def test_the_grammar_of_a_large_scope_stays_small(grammar: str) -> None:
    """Rules are shared: each form is one rule for each place, and not one for each list or text."""
    assert len(grammar) < 80_000
    assert grammar.count("\n") < 550
