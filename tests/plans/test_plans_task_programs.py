"""Lists of tasks that call programs, and the published schema of such lists."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator

from bicameral.errors import PlanError
from bicameral.plans import ExportError, check, export_tasks, import_tasks, parse, print_plan
from bicameral.tools import Folders, Registry, command_tools, parse_manifest, tool
from property_examples import examples

VALIDATOR: Any = Draft202012Validator(json.loads((Path(__file__).parents[2] / "schemas" / "tasks.v1.json").read_text()))
MANIFEST: dict[str, Any] = {
    "manifest": 1,
    "tools": [
        {
            "name": "find_text",
            "argv": [
                "grep",
                {"when": "count", "add": ["-c"]},
                {"when": "most", "add": ["-m", "{most}"]},
                "--",
                "{pattern}",
                "{files}",
            ],
            "arguments": {
                "pattern": {},
                "text": {"optional": True},
                "files": {"type": "list[path]"},
                "count": {"type": "bool", "default": False},
                "most": {"type": "int", "optional": True},
            },
            "stdin": "text",
            "effect": "read",
        },
        {"name": "clean", "argv": ["tr", "A-Z", "a-z"], "arguments": {"text": {}}, "stdin": "text", "effect": "read"},
        {
            "name": "number",
            "argv": ["nl"],
            "arguments": {"lines": {"type": "list[str]"}},
            "stdin": "lines",
            "effect": "read",
        },
        {"name": "page", "argv": ["cat", "--", "{path}"], "arguments": {"path": {"type": "path"}}, "effect": "read"},
    ],
}


@tool(effect="pure")
def unique_lines(lines: list[str]) -> list[str]:
    """Lines without repetitions."""
    return lines


@tool(effect="pure")
def count_lines(lines: list[str]) -> int:
    """How many lines."""
    return len(lines)


@tool(effect="write", purpose={"path": "directs", "text": "carries"})
def write_text(path: str, text: str) -> None:
    """Write."""


@tool(effect="read")
def facts(text: str) -> dict[str, int]:
    """Facts of a text."""
    return {}


REGISTRY = Registry(
    [
        *command_tools(parse_manifest(MANIFEST), Folders.of(Path("/"), read=())),
        unique_lines,
        count_lines,
        write_text,
        facts,
    ]
)


def row(*tasks: tuple[str, list[Any]]) -> dict[str, Any]:
    return {
        "tasks": [
            {"task_number": number, "command": command, "args": args}
            | ({"input_from_task": number - 1} if number > 1 else {})
            for number, (command, args) in enumerate(tasks, 1)
        ]
    }


def imported(document: dict[str, Any]) -> list[str]:
    plan = import_tasks(document, REGISTRY, piped=True).plan
    assert check(plan, REGISTRY, scope={"input_text": _STR, "input_lines": _LINES}).ok
    return print_plan(plan, REGISTRY).splitlines()[:-1]


_TYPES = {
    argument.name: argument.type for argument in (*REGISTRY["clean"].arguments, *REGISTRY["unique_lines"].arguments)
}
_STR, _LINES = _TYPES["text"], _TYPES["lines"]


@pytest.mark.parametrize(
    ("document", "steps"),
    [
        (row(("clean", [])), ["task_1 = clean(input_text)"]),
        (row(("number", [])), ["task_1 = number(input_lines)"]),
        (
            row(("clean", []), ("clean", [])),
            ["task_1 = clean(input_text)", 'task_2 = clean(task_1 + "\\n" if task_1 else "")'],
        ),
        (
            row(("clean", []), ("uniq", []), ("clean", [])),
            [
                "task_1 = clean(input_text)",
                "task_2 = unique_lines(task_1.splitlines())",
                'task_3 = clean("".join([line + "\\n" for line in task_2]))',
            ],
        ),
        (
            row(("uniq", []), ("wc", ["-l"]), ("clean", [])),
            ["task_1 = unique_lines(input_lines)", "task_2 = count_lines(task_1)", "task_3 = clean(str(task_2))"],
        ),
        (
            row(("clean", []), ("write_text", ["out.txt"])),
            ["task_1 = clean(input_text)", 'write_text("out.txt", task_1)'],
        ),
        (
            row(("find-text", ["-c", "-m", "3", "error", "a.log", "b.log"])),
            ['task_1 = find_text("error", files=["a.log", "b.log"], count=True, most=3)'],
        ),
        (row(("find_text", ["--", "-v", "a.log"])), ['task_1 = find_text("-v", files=["a.log"])']),
    ],
)
def test_an_input_is_data_in_the_form_that_the_next_task_reads(document: dict[str, Any], steps: list[str]) -> None:
    assert imported(document) == steps


@pytest.mark.parametrize(
    ("document", "code", "words"),
    [
        (row(("clean", ["-d"])), "plan.unknown-argument", "'-d'"),
        (row(("find_text", ["-v", "x", "a.log"])), "plan.unknown-argument", "'-v'"),
        (row(("clean", []), ("page", [])), "plan.unknown-argument", "reads no input"),
        (row(("clean", []), ("facts", []), ("clean", [])), "plan.wrong-type", "cannot read what"),
    ],
)
def test_what_a_program_cannot_take_is_refused(document: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        import_tasks(document, REGISTRY, piped=True)
    assert caught.value.code == code
    assert words in str(caught.value)


_COMMANDS: st.SearchStrategy[tuple[str, list[str]]] = st.sampled_from(
    [
        ("clean", []),
        ("uniq", []),
        ("number", []),
        ("wc", ["-l"]),
        ("find_text", ["-c", "error", "a.log"]),
        ("find_text", ["-m", "2", "--", "-x", "a.log", "b.log"]),
    ]
)


@settings(max_examples=examples(80))
@given(
    st.lists(_COMMANDS, min_size=1, max_size=6), st.lists(st.sampled_from([None, 1, 2.5, 30]), min_size=6, max_size=6)
)
def test_a_list_that_is_exported_is_read_as_the_same_plan(chain: list[tuple[str, list[str]]], times: list[Any]) -> None:
    document: dict[str, Any] = row(*chain) | {"plan_id": "p-1", "plan_description": "a goal"}
    for task, seconds in zip(document["tasks"], times, strict=False):
        if seconds is not None:
            task["timeout_secs"] = seconds
    try:
        plan = import_tasks(document, REGISTRY, piped=True).plan
    except PlanError:
        return
    exported = json.loads(json.dumps(export_tasks(plan, REGISTRY)))
    assert import_tasks(exported, REGISTRY, piped=True).plan == plan
    assert list(VALIDATOR.iter_errors(exported)) == []


@pytest.mark.parametrize(
    "source",
    [
        'a = clean("x")\nanswer(a)',  # the standard input is not that of a task
        'a = clean(input_text)\nb = clean(a + "!")\nanswer(b)',
        "a = clean(input_text)\nb = clean(a)\nanswer(b)",  # without the line break that tasks have between them
        "a = unique_lines(input_text.split(';'))\nanswer(a)",
        'a = find_text(file("the log"), files=["a.log"])\nanswer(a)',
        'a = find_text("x", text=input_text, files=["a.log"])\nanswer(a)\n',
    ],
)
def test_a_list_that_would_do_something_else_is_not_written(source: str) -> None:
    with pytest.raises(ExportError) as caught:
        export_tasks(parse(source, REGISTRY).plan, REGISTRY)
    assert caught.value.gaps


def test_names_and_defaults_make_no_difference() -> None:
    plan = parse('"""Count"""\nx = unique_lines(input_lines)\nx = count_lines(x)\nanswer(x)', REGISTRY).plan
    assert [task["command"] for task in export_tasks(plan, REGISTRY)["tasks"]] == ["uniq", "wc"]
    given = parse('a = find_text("x", files=["a.log"], count=False)\nanswer(a)', REGISTRY).plan
    assert export_tasks(given, REGISTRY)["tasks"][0]["args"] == ["x", "a.log"]


LISTS: list[dict[str, Any]] = [
    {
        "plan_id": "uuid-5678",
        "plan_description": "Filter text",
        "tasks": [
            {"task_number": 1, "command": "uniq", "args": [], "timeout_secs": 30},
            {"task_number": 2, "command": "grep", "args": ["invoice"], "input_from_task": 1, "timeout_secs": 30},
        ],
    },
    {"tasks": [{"task_number": 1, "command": "clean"}]},
    row(("clean", ["a", True, 1, 0.5])),
]


@pytest.mark.parametrize("document", LISTS)
def test_lists_are_valid_by_the_published_schema(document: dict[str, Any]) -> None:
    assert list(VALIDATOR.iter_errors(document)) == []


WRONG_TASKS: list[dict[str, Any]] = [
    {"task_number": -1},
    {"task_number": "1"},
    {"command": ""},
    {"args": "x"},
    {"args": [["x"]]},
    {"input_from_task": "1"},
    {"timeout_secs": 0},
    {"timeout_secs": -3},
    {"timeout_secs": 86_401},
    {"environment": {}},
]
WRONG_LISTS: list[dict[str, Any]] = [
    {"tasks": []},
    {"plan_id": "two words"},
    {"plan_id": 7},
    {"shell": True},
    {"tasks": [{"command": "uniq"}]},
    {"tasks": [{"task_number": 1}]},
    *({"tasks": [{"task_number": 1, "command": "uniq"} | wrong]} for wrong in WRONG_TASKS),
]


@pytest.mark.parametrize("change", WRONG_LISTS)
def test_what_the_schema_refuses_the_import_refuses_too(change: dict[str, Any]) -> None:
    document = deepcopy(LISTS[0]) | change
    assert list(VALIDATOR.iter_errors(document))
    with pytest.raises(PlanError) as caught:
        import_tasks(document, REGISTRY, piped=True)
    assert caught.value.code == "plan.invalid"


def test_a_row_of_many_tasks_is_one_plan() -> None:
    clean: tuple[str, list[Any]] = ("clean", [])
    document = row(*[clean] * 150)
    plan = import_tasks(document, REGISTRY, piped=True).plan
    assert len(plan.steps) == 151
    assert len(export_tasks(plan, REGISTRY)["tasks"]) == 150
