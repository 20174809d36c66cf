"""Lists of tasks: they become plans, and plans that are flat become lists of tasks."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

import pytest
from hypothesis import given, settings, strategies as st

from bicameral.errors import PlanError
from bicameral.plans.syntax._parser import parse
from bicameral.plans.syntax._rendering import print_plan
from bicameral.plans.syntax._task_export import export_tasks
from bicameral.plans.syntax._tasks import import_tasks
from bicameral.tools import Registry, tool
from property_examples import examples


@tool(effect="read")
def read_lines(path: str) -> list[str]:
    """The lines of a file."""
    return [path]


@tool(effect="pure")
def unique_lines(lines: list[str]) -> list[str]:
    """Lines without repetitions."""
    return lines


@tool(effect="pure")
def sort_lines(lines: list[str], reverse: bool = False, numeric: bool = False) -> list[str]:
    """Lines in order."""
    return sorted(lines, reverse=reverse and numeric)


@tool(effect="pure")
def grep(
    lines: list[str], pattern: str, invert: bool = False, ignore_case: bool = True, regex: bool = False
) -> list[str]:
    """Lines that have a pattern."""
    return lines if pattern and not (invert or ignore_case or regex) else []


@tool(effect="pure")
def head(lines: list[str], count: int = 10) -> list[str]:
    """The first lines."""
    return lines[:count]


@tool(effect="pure")
def cut(lines: list[str], field: int, delimiter: str = ",") -> list[str]:
    """One field of each line."""
    return [line.split(delimiter)[field - 1] for line in lines]


@tool(effect="pure")
def count_lines(lines: list[str]) -> int:
    """How many lines."""
    return len(lines)


@tool(effect="write", timeout=2.5)
def write_report(
    path: str, day: dt.date, share: float, kind: Literal["long", "short"], tags: list[str], final: bool = False
) -> None:
    """Write a report."""


REGISTRY = Registry([read_lines, unique_lines, sort_lines, grep, head, cut, count_lines, write_report])

SEED: dict[str, Any] = {
    "plan_id": "uuid-5678",
    "plan_description": "Filter text: deduplicate and find invoices",
    "tasks": [
        {"task_number": 1, "command": "uniq", "args": [], "timeout_secs": 30},
        {"task_number": 2, "command": "grep", "args": ["invoice"], "input_from_task": 1, "timeout_secs": 30},
    ],
}


def tasks(*commands: tuple[Any, ...]) -> dict[str, Any]:
    """A document of (command, args) or (command, args, input) tasks."""
    return {
        "plan_description": "",
        "tasks": [
            {"task_number": number, "command": command, "args": args}
            | ({"input_from_task": source[0]} if source else {})
            for number, (command, args, *source) in enumerate(commands, 1)
        ],
    }


def imported(document: object) -> str:
    return print_plan(import_tasks(document, REGISTRY).plan, REGISTRY)


def refusal(document: object) -> PlanError:
    with pytest.raises(PlanError) as caught:
        import_tasks(document, REGISTRY)
    return caught.value


def test_the_list_of_the_design_document_becomes_a_plan_that_asks_for_its_input() -> None:
    found = import_tasks(SEED, REGISTRY)
    assert print_plan(found.plan, REGISTRY) == (
        '"""Filter text: deduplicate and find invoices"""\n'
        'plan_id("uuid-5678")\n'
        'input_file = ask("Which file shall be read?", str["path"])\n'
        "input_1 = read_lines(input_file)\n"
        "task_1 = within(30, unique_lines(input_1))\n"
        'task_2 = within(30, grep(task_1, "invoice"))\n'
        "answer(task_2)\n"
    )
    assert len(found.notes) == 1
    assert "standard input" in found.notes[0]


@pytest.mark.parametrize(
    ("command", "args", "step"),
    [
        ("sort", ["-r", "-n"], "sort_lines(task_1, reverse=True, numeric=True)"),
        ("grep", ["-v", "x"], 'grep(task_1, "x", invert=True)'),
        ("grep", ["-e", "-x"], 'grep(task_1, "-x")'),
        ("grep", ["--", "-x"], 'grep(task_1, "-x")'),
        ("head", ["-n", "5"], "head(task_1, count=5)"),
        ("head", ["-5"], "head(task_1, count=5)"),
        ("head", ["5"], "head(task_1, count=5)"),
        ("cut", ["-d;", "-f2"], 'cut(task_1, 2, delimiter=";")'),
        ("wc", ["-l"], "count_lines(task_1)"),
        ("sort-lines", ["true"], "sort_lines(task_1, reverse=True)"),
        ("unique_lines", [], "unique_lines(task_1)"),
    ],
)
def test_usual_commands_and_their_options_are_known(command: str, args: list[str], step: str) -> None:
    assert imported(tasks(("cat", ["a.txt"]), (command, args, 1))) == (
        f'task_1 = read_lines("a.txt")\ntask_2 = {step}\nanswer(task_2)\n'
    )


def test_a_command_may_name_the_file_it_reads() -> None:
    assert imported(tasks(("grep", ["invoice", "mail.txt"]))) == (
        'input_0 = read_lines("mail.txt")\ntask_1 = grep(input_0, "invoice")\nanswer(task_1)\n'
    )


def test_words_become_values_of_the_type_that_is_wanted() -> None:
    words = ["out.txt", "2026-03-01", "0.5", "short", '["a", "b"]', "true"]
    assert imported(tasks(("write-report", words))) == (
        'write_report("out.txt", date("2026-03-01"), 0.5, "short", ["a", "b"], final=True)\nanswer(None)\n'
    )


REFUSED: list[tuple[Any, str]] = [
    ({}, "plan.invalid"),
    ([], "plan.invalid"),
    ({"tasks": []}, "plan.invalid"),
    ({"tasks": [{"task_number": "1", "command": "cat"}]}, "plan.invalid"),
    ({"tasks": [{"task_number": 1, "command": "cat", "shell": True}]}, "plan.invalid"),
    ({"tasks": [{"task_number": 1, "command": "cat", "args": ["a"]}] * 2}, "plan.duplicate-task"),
    ({"tasks": [{"task_number": -1, "command": "cat", "args": ["a"]}]}, "plan.invalid"),
    ({"tasks": [{"task_number": 1, "command": "", "args": []}]}, "plan.invalid"),
    *(
        ({"tasks": [{"task_number": 1, "command": "cat", "args": ["a"], "timeout_secs": seconds}]}, "plan.invalid")
        for seconds in (0, -1, 86_401, float("inf"), float("nan"), True, "30")
    ),
    *(({"plan_id": plan_id, "tasks": SEED["tasks"]}, "plan.invalid") for plan_id in (7, "a b", "x\n", "é", "x" * 129)),
    (tasks(("cat", ["a"], 2), ("sort", [], 1)), "plan.task-cycle"),
    (tasks(("sort", [], 2), ("cat", ["a"])), "plan.task-order"),
    ({"tasks": [{"task_number": 10**70, "command": "cat", "args": ["a"]}]}, "plan.invalid"),
    (tasks(("cat", ["\ud800"])), "plan.wrong-type"),
    (tasks(("grep", ["x", "\ud800"])), "plan.invalid"),
    (tasks(("rm", ["-rf", "/"])), "plan.unknown-tool"),
    (tasks(("cat", ["a"]), ("sort", [], 3)), "plan.unknown-task"),
    (tasks(("sort", [], 1)), "plan.task-cycle"),
    (tasks(("sort", [], 9)), "plan.unknown-task"),
    (tasks(("cat", ["a"]), ("sort", ["-x"], 1)), "plan.unknown-argument"),
    (tasks(("cat", ["a", "b"])), "plan.unknown-argument"),
    (tasks(("cat", ["a"]), ("head", ["many"], 1)), "plan.wrong-type"),
    (tasks(("cat", ["a"]), ("head", ["-n", "many"], 1)), "plan.wrong-type"),
    (tasks(("write_report", ["a", "2026-03-01", "1", "tiny", "x"])), "plan.wrong-type"),
    (tasks(("write_report", ["a", "2026-03-01", "1", "long", "x"]), ("sort", [], 1)), "plan.wrong-type"),
]


@pytest.mark.parametrize(("document", "code"), REFUSED)
def test_what_cannot_be_imported_is_refused_with_a_code(document: object, code: str) -> None:
    assert refusal(document).code == code


def test_an_unknown_command_names_the_nearest_known_one() -> None:
    assert refusal(tasks(("srt", []))).nearest == "sort"


def test_a_cycle_is_told_whole() -> None:
    document = tasks(("cat", ["a"]), ("sort", [], 4), ("uniq", [], 2), ("head", [], 3))
    assert "2 → 4 → 3 → 2" in refusal(document).message


def test_an_unknown_task_names_the_nearest_earlier_one() -> None:
    error = refusal(tasks(("cat", ["a"]), ("cat", ["b"]), ("sort", [], 7)))
    assert (error.nearest, error.expected) == ("2", "one of 1, 2")


def test_the_time_limit_of_a_task_is_one_of_its_step() -> None:
    document = tasks(("cat", ["a"]))
    document["tasks"][0]["timeout_secs"] = 2.5
    found = import_tasks(document, REGISTRY)
    assert print_plan(found.plan, REGISTRY).startswith('task_1 = within(2.5, read_lines("a"))\n')
    assert found.notes == ()


def test_a_time_limit_beyond_that_of_the_tool_is_noted() -> None:
    document = tasks(("cat", ["a"]))
    document["tasks"][0]["timeout_secs"] = 60
    assert import_tasks(document, REGISTRY).notes == ("task 1 may take 60 s; 'read_lines' is ended after its own 30 s",)


def test_a_flat_plan_is_exported() -> None:
    plan = parse(
        '"""Find."""\nlines = read_lines("a.txt")\nfound = grep(lines, "x", ignore_case=False)\nanswer(found)', REGISTRY
    ).plan
    document = export_tasks(plan, REGISTRY)
    assert document["plan_description"] == "Find."
    assert document["tasks"] == [
        {"task_number": 1, "command": "cat", "args": ["a.txt"]},
        {"task_number": 2, "command": "grep", "args": ["x", "false", "false"], "input_from_task": 1},
    ]
    assert export_tasks(plan, REGISTRY)["plan_id"] == document["plan_id"]


def test_a_default_that_is_a_list_is_exported_as_one() -> None:
    @tool(effect="read")
    def search(text: str, kinds: Sequence[str] = (), count: int = 3) -> str:
        """Search."""
        return text

    registry = Registry([search])
    plan = parse('a = search("x", count=5)\nanswer(a)', registry).plan
    assert export_tasks(plan, registry)["tasks"][0]["args"] == ["x", "[]", "5"]


@pytest.mark.parametrize(
    ("source", "step", "reason"),
    [
        ("", "0", "answer"),
        ("answer(1)", "0", "answer"),
        ('a = read_lines("x")\nanswer(1)', "1", "answer"),
        ('a = read_lines("x")\nb = unique_lines(a)\nanswer(a)', "2", "answer"),
        ("for x in xs:\n  y = 1\nanswer(x)", "0", "no loops"),
        ("if xs:\n  y = 1\nanswer(1)", "0", "no conditions"),
        ('a = extract("x", "y", str)\nanswer(a)', "0", "quarantined"),
        ('a = ask("x")\nanswer(a)', "0", "asks nobody"),
        ('a = read_lines("x")\nb = len(a)\nanswer(b)', "1", "computes nothing"),
        ("a = read_lines(p)\nanswer(a)", "0", "'p'"),
        ('a = read_lines("x")\nb = grep(a, a[0])\nanswer(b)', "1", "'pattern'"),
        ("b = grep(pattern='x')\nanswer(b)", "0", "earlier task"),
        ("b = cut(lines=['x'])\nanswer(b)", "0", "earlier task"),
        ('write_report("x", final=True)\nanswer(None)', "0", "'day'"),
        ('b = read_lines(path="x", more=1)\nanswer(b)', "0", "'more'"),
    ],
)
def test_what_tasks_cannot_say_names_the_step(source: str, step: str, reason: str) -> None:
    with pytest.raises(PlanError) as caught:
        export_tasks(parse(source, REGISTRY).plan, REGISTRY)
    assert caught.value.code == "plan.cannot-export"
    assert caught.value.place is not None
    assert caught.value.place.step == step
    assert reason in caught.value.message


@settings(max_examples=examples(60))
@given(
    st.lists(
        st.sampled_from([("sort", ["true", "false"]), ("uniq", []), ("grep", ["--", "-b", "true"]), ("head", ["3"])]),
        max_size=4,
    ),
    st.text(max_size=10),
)
def test_what_was_exported_means_the_same_plan_when_imported(chain: list[tuple[str, list[str]]], path: str) -> None:
    commands = [("read_lines", [path]), *((name, args, number) for number, (name, args) in enumerate(chain, 1))]
    plan = import_tasks(tasks(*commands), REGISTRY).plan
    document = json.loads(json.dumps(export_tasks(plan, REGISTRY)))
    # A plan without an id gets one that is made from its content.
    assert import_tasks(document, REGISTRY).plan == plan.model_copy(update={"plan_id": document["plan_id"]})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["tasks", "task_number", "command", "args", "input_from_task"]), inner)
        ),
    )
)
@settings(max_examples=examples(100))
def test_any_document_is_imported_or_refused(document: Any) -> None:
    with suppress(PlanError):
        assert import_tasks(document, REGISTRY).plan.steps
