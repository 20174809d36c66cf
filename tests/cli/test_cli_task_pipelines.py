"""Lists of tasks at the command line: real programs in a row, fed from standard input, each within its time."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from cli_world import World
from jsonschema import Draft202012Validator
from task_programs import OCR, task_list, write_config, write_program, write_tasks

MAIL = b"Invoice 7\nInvoice 7\nhello\ninvoice 9\n"
LOWER, LAST_LINE = "exec tr A-Z a-z", 'last=; while read -r line; do last="$line"; done; printf "%s\\n" "$last"'
SHOW_WORDS = 'printf "%s words:" "$#"; printf "[%s]" "$@"; echo; exec cat'
_START = "import sys\nfrom bicameral.cli import main\nmain(sys.argv[1:])\n"


def start(*words: str, stdin: Any = subprocess.PIPE) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join([str(Path(__file__).parent), *(path for path in sys.path if path)])
    return subprocess.Popen(
        [sys.executable, "-c", _START, *words],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    )


def piped(*words: str, stdin: bytes = MAIL) -> tuple[int, str, str]:
    process = start(*words)
    out, err = process.communicate(stdin, timeout=120)
    return process.returncode, out.decode(), err.decode()


def test_the_list_of_the_source_document_runs_as_it_stands(world: World) -> None:
    document: dict[str, Any] = {
        "plan_id": "uuid-5678",
        "plan_description": "Filter text: deduplicate and find invoices",
        "tasks": [
            {"task_number": 1, "command": "uniq", "args": [], "timeout_secs": 30},
            {"task_number": 2, "command": "grep", "args": ["invoice"], "input_from_task": 1, "timeout_secs": 30},
        ],
    }
    world.write("plan.json", json.dumps(document))
    code, out, err = piped("run", "--plan", "plan.json", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["answer"] == ["Invoice 7", "invoice 9"]
    assert told["plan"]["plan_id"] == "uuid-5678"
    # What was piped is anybody's, and so is what came of it.
    assert ["third_party", "input", "", ""] in told["shade"]["labels"][0]["sources"]
    assert world.json("explain", "plan.json")["plan_id"] == "uuid-5678"
    exported = world.call("plan", "--from", "plan.json", "--format", "tasks")
    assert json.loads(exported.stdout) == document


def test_the_record_of_a_run_has_the_id_of_its_plan(world: World) -> None:
    world.write("notes", "a\nb\n")
    run = world.json("run", "--plan", write_tasks(world.folder, "uniq", plan_id="p-77"), "--input", "notes")["run"]
    shown = world.json("runs", "show", run, "--full")
    assert shown["events"][0]["body"]["plan_id"] == "p-77"
    assert "(plan p-77)" in world.call("runs", "show", run).stdout


def test_text_goes_through_a_long_row_of_programs(world: World) -> None:
    write_program(world.folder, "agx-lower", LOWER)
    write_program(world.folder, "agx-plus", "cat; echo plus")
    write_program(world.folder, "agx-last", LAST_LINE)
    config = write_config(world.folder, {"agx-lower": "read", "agx-plus": "read", "agx-last": "read"})
    tasks = ["agx-lower", "uniq", *["agx-plus"] * 8, "sort", "agx-last"]
    code, out, err = piped("run", "--config", config, "--plan", write_tasks(world.folder, *tasks), "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["answer"] == "plus"
    # The label of the answer has the input and every program that the text went through.
    sources = {tuple(source[:2]) for source in told["shade"]["labels"][0]["sources"]}
    assert {("third_party", "input"), ("third_party", "agx_lower"), ("third_party", "agx_last")} <= sources


def test_a_described_program_reads_a_file_and_its_text_feeds_the_next_task(world: World) -> None:
    write_program(world.folder, "agx-ocr", 'tail -n +2 -- "$1"', **OCR)
    world.write("scan.png", "PNG\nINVOICE 7\nINVOICE 7\nhello\n")
    config = write_config(world.folder, {"agx-ocr": "read"})
    plan = write_tasks(
        world.folder, {"command": "agx-ocr", "args": ["scan.png"]}, "uniq", {"command": "wc", "args": ["-l"]}
    )
    told = world.json("run", "--config", config, "--plan", plan)
    assert told["answer"] == 2


def test_output_that_looks_like_an_option_stays_data(world: World) -> None:
    write_program(world.folder, "agx-evil", "cat > /dev/null; printf -- '--describe\\n-rf /\\n$(id)\\n'")
    write_program(world.folder, "agx-words", SHOW_WORDS)
    config = write_config(world.folder, {"agx-evil": "read", "agx-words": "read"})
    plan = write_tasks(world.folder, "agx-evil", "agx-words")
    code, out, err = piped("run", "--config", config, "--plan", plan)
    assert (code, out) == (0, "0 words:[]\n--describe\n-rf /\n$(id)\n"), err


def test_a_word_of_a_task_cannot_be_an_option_that_a_program_did_not_declare(world: World) -> None:
    write_program(world.folder, "agx-words", SHOW_WORDS)
    config = write_config(world.folder, {"agx-words": "read"})
    plan = write_tasks(world.folder, {"command": "agx-words", "args": ["--force"]})
    code, _, err = piped("run", "--config", config, "--plan", plan)
    assert code == 3
    assert "plan.unknown-argument" in err


def test_a_program_cannot_take_the_name_of_a_usual_command(world: World) -> None:
    write_program(world.folder, "helper", "cat > /dev/null; echo taken", name="uniq")
    config = write_config(world.folder, {"helper": "read"})
    world.write("notes", "a\na\n")
    told = world.json("run", "--config", config, "--plan", write_tasks(world.folder, "uniq"), "--input", "notes")
    assert told["answer"] == ["a"]


SAY = "cat > /dev/null; exit 0"


def test_piped_text_is_not_sent_without_a_person(world: World) -> None:
    """The attack: a mail is piped through a program that tells somebody outside."""
    write_program(world.folder, "agx-lower", LOWER)
    write_program(world.folder, "agx-send", "tr a-z A-Z")
    config = write_config(world.folder, {"agx-lower": "read", "agx-send": "send"})
    plan = write_tasks(world.folder, "agx-lower", "agx-send")
    code, out, err = piped("run", "--config", config, "--plan", plan, "--yes", "--json")
    told = json.loads(out)
    assert code != 0, err
    assert not told["ok"]
    assert told["effects"] == [], "the call must not have been made"


def test_the_same_row_runs_where_it_changes_nothing(world: World) -> None:
    """The benign twin of the attack above."""
    write_program(world.folder, "agx-lower", LOWER)
    write_program(world.folder, "agx-send", "tr a-z A-Z")
    config = write_config(world.folder, {"agx-lower": "read", "agx-send": "read"})
    code, out, err = piped("run", "--config", config, "--plan", write_tasks(world.folder, "agx-lower", "agx-send"))
    assert (code, out.splitlines()[0]) == (0, "INVOICE 7"), err


def test_piped_text_names_no_tool_and_no_file(world: World) -> None:
    """A text that is itself a list of tasks changes nothing: the plan was read before, and from its own file."""
    orders = json.dumps(task_list({"command": "delete_file", "args": ["mail.txt"]})).encode()
    code, out, err = piped("run", "--plan", write_tasks(world.folder, "uniq"), stdin=orders + b"\n")
    assert (code, out.strip()) == (0, orders.decode()), err
    assert (world.folder / "mail.txt").exists()


def _processes_with(marker: str) -> list[str]:
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                command = (folder / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if marker in command:
                found.append(command)
    return found


def test_a_task_that_takes_too_long_is_killed_with_its_children(world: World) -> None:
    marker = f"31{uuid.uuid4().int % 10**9:09d}"
    write_program(world.folder, "agx-sleep", f"sleep {marker} & sleep {marker}; echo never")
    config = write_config(world.folder, {"agx-sleep": "read"})
    plan = write_tasks(world.folder, {"command": "agx-sleep", "timeout_secs": 1.5}, "uniq")
    world.write("notes", "a\n")
    began = time.monotonic()
    told = world.json("run", "--config", config, "--plan", plan, "--input", "notes", code=1)
    assert time.monotonic() - began < 20, "it is not tried again and again"
    assert told["error"]["code"] == "run.step-timeout"
    assert told["error"]["place"]["step"] == "0"
    assert "1.5 s" in told["error"]["message"]
    assert _processes_with(marker) == []


def test_a_task_within_its_time_is_not_disturbed(world: World) -> None:
    write_program(world.folder, "agx-nap", "sleep 0.3; exec cat")
    config = write_config(world.folder, {"agx-nap": "read"})
    plan = write_tasks(world.folder, {"command": "agx-nap", "timeout_secs": 20})
    world.write("notes", "a\n")
    assert world.json("run", "--config", config, "--plan", plan, "--input", "notes")["answer"] == "a"


def test_the_user_can_give_a_described_program_more_time(world: World) -> None:
    write_program(world.folder, "agx-lower", LOWER)
    config = write_config(world.folder, {"agx-lower": "read"})
    plan = write_tasks(world.folder, {"command": "agx-lower", "timeout_secs": 90})
    world.write("notes", "A\n")
    words = ("run", "--config", config, "--plan", plan, "--input", "notes")
    assert world.json(*words)["notes"] == ["task 1 may take 90 s; 'agx_lower' is ended after its own 30 s"]
    with (world.folder / config).open("a") as file:
        file.write("timeout = 120\n")
    assert world.json(*words)["notes"] == []


@pytest.mark.parametrize(
    ("stdin", "code"),
    [
        (b"", "plan.no-input"),
        (b"  \n", "plan.no-input"),
        (b"\x89PNG\r\n\x1a\n\0\0", "intent.input-not-text"),
        (b"%PDF-1.7", "intent.input-not-text"),
        (b"caf\xe9", "intent.input-not-text"),
        (b"a line\n" * 3_000_000, "intent.input-too-long"),
    ],
    ids=["empty", "blank", "binary", "pdf", "latin1", "huge"],
)
def test_what_cannot_be_read_from_standard_input_is_said(world: World, stdin: bytes, code: str) -> None:
    process = start("run", "--plan", write_tasks(world.folder, "uniq"))
    try:
        _, err = process.communicate(stdin, timeout=120)
    except BrokenPipeError:
        err = process.stderr.read() if process.stderr else b""
    assert process.wait(60) in (2, 3)
    assert f"[{code}]" in err.decode()


def test_a_terminal_is_no_standard_input(world: World) -> None:
    leader, follower = pty.openpty()
    try:
        process = start("run", "--plan", write_tasks(world.folder, "uniq"), "--json", stdin=follower)
        out, _ = process.communicate(timeout=120)
    finally:
        os.close(leader)
        os.close(follower)
    assert json.loads(out)["error"]["code"] == "plan.no-input"
    assert "< mail.txt" in json.loads(out)["error"]["fix"]


def test_a_plan_in_python_reads_what_is_piped_by_name(world: World) -> None:
    world.write("plan.py", 'answer(f"{len(input_lines)} lines, {len(input_text)} characters")\n')
    code, out, err = piped("run", "--plan", "plan.py")
    assert (code, out.strip()) == (0, "4 lines, 36 characters"), err


def test_a_plan_that_reads_nothing_leaves_standard_input_alone(world: World) -> None:
    world.write("plan.py", "answer(1)\n")
    reading, writing = os.pipe()
    try:
        out, err = start("run", "--plan", "plan.py", stdin=reading).communicate(timeout=120)
    finally:
        os.close(reading)
        os.close(writing)
    assert out.strip() == b"1", err


def test_an_input_for_a_plan_that_reads_none_is_refused(world: World) -> None:
    world.write("plan.py", "answer(1)\n")
    assert world.json("run", "--plan", "plan.py", "--input", "mail.txt", code=3)["error"]["code"] == "plan.input-unused"


def test_standard_input_is_not_both_plan_and_text(world: World) -> None:
    assert world.call("run", "--plan", "-", "--input", "-").exit_code == 2
    plan = json.dumps(task_list("uniq")).encode()
    code, out, err = piped("run", "--plan", "-", "--input", "mail.txt", stdin=plan)
    assert code == 0, err
    assert out
    code, _, err = piped("run", "--plan", "-", stdin=plan)
    assert code == 3
    assert "plan.no-input" in err


def test_a_check_knows_that_the_input_is_anybodys(world: World) -> None:
    write_program(world.folder, "agx-send", SAY)
    config = write_config(world.folder, {"agx-send": "send"})
    told = world.json("check", "--config", config, write_tasks(world.folder, "agx-send"))
    assert told["proof"]["calls"][0]["verdict"] != "proved"


GAPS = """
for line in input_lines:
    a = [line]
if input_lines:
    a = [1]
b = extract(input_text, "the name", str)
c = ask("which?")
d = len(input_lines)
e = head(input_lines, d)
answer(d)
"""


def test_export_names_every_step_that_a_list_cannot_say_and_writes_nothing(world: World) -> None:
    world.write("plan.py", GAPS)
    result = world.call("plan", "--from", "plan.py", "--format", "tasks", "--out", "out.json")
    assert result.exit_code == 3
    assert not (world.folder / "out.json").exists()
    told = world.json("plan", "--from", "plan.py", "--format", "tasks", code=3)["error"]
    assert told["code"] == "plan.cannot-export"
    assert [(gap["step"], gap["kind"]) for gap in told["gaps"]] == [
        ("0", "loop"),
        ("1", "condition"),
        ("2", "model"),
        ("3", "question"),
        ("4", "computation"),
        ("5", "argument"),
        ("6", "answer"),
    ]
    # The plan itself is not lost.
    assert "for line in input_lines:" in result.stderr


def test_what_is_exported_is_valid_by_the_published_schema(world: World) -> None:
    schema = json.loads((Path(__file__).parents[2] / "schemas" / "tasks.v1.json").read_text())
    write_program(world.folder, "agx-lower", LOWER)
    config = write_config(world.folder, {"agx-lower": "read"})
    plan = write_tasks(world.folder, {"command": "agx-lower", "timeout_secs": 2}, "uniq", "agx-lower")
    exported = json.loads(world.call("plan", "--config", config, "--from", plan, "--format", "tasks").stdout)
    validator: Any = Draft202012Validator(schema)
    assert list(validator.iter_errors(exported)) == []
    assert [task["command"] for task in exported["tasks"]] == ["agx_lower", "uniq", "agx_lower"]
