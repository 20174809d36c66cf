"""`bicameral run` and `bicameral plan`."""

from __future__ import annotations

import json

import pytest
from cli_world import PLAN, REQUEST, World

from bicameral.labels import TRUSTED_USER, label_tree_to_json
from bicameral.plans import BoundTo, bind_references, parse

FOUND = ["invoice 7 is open", "invoice 9 is paid"]
DELETE = 'delete_file("mail.txt")\nanswer("gone")\n'


def test_a_request_becomes_an_answer_on_standard_output_alone(world: World) -> None:
    result = world.call("run", REQUEST, script=[PLAN])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == FOUND
    for shown in ("Plan", 'grep(kept, "invoice")', "Check", "ok", "done in"):
        assert shown in result.stderr


def test_json_is_one_object_with_everything_in_it(world: World) -> None:
    told = world.json("run", REQUEST, script=[PLAN])
    assert told["ok"] is True
    assert told["answer"] == FOUND
    assert told["intent"]["request"] == REQUEST
    assert told["plan"]["version"] == "plan/1"
    assert told["report"]["ok"] is True
    assert told["source"].endswith("answer(found)\n")


def test_a_dry_run_changes_nothing(world: World) -> None:
    result = world.call("run", "Delete mail.txt", "--dry-run", script=[DELETE])
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "nothing was run" in result.stderr
    assert (world.folder / "mail.txt").exists()
    assert world.json("run", "Delete mail.txt", "--dry-run", script=[DELETE])["dry_run"] is True


def test_without_a_terminal_nobody_is_asked_and_the_request_is_the_authority(world: World) -> None:
    assert world.call("run", "Delete mail.txt", script=[DELETE]).exit_code == 0
    assert not (world.folder / "mail.txt").exists()


def test_a_failing_step_exits_1_and_tells_what_was_done_before(world: World) -> None:
    plan = 'write_text("a.txt", "x")\ntext = read_text("gone.txt")\nanswer(text)\n'
    world.write("p.py", plan)
    result = world.call("run", "--plan", "p.py")
    assert result.exit_code == 1
    assert "error: " in result.stderr
    assert "done before that: write_text" in result.stderr
    told = world.json("run", "--plan", "p.py", code=1)
    assert told["ok"] is False
    assert told["error"]["code"].startswith("files.")
    assert told["effects"] == [{"step": "0", "tool": "write_text", "effect": "write"}]


def test_a_request_that_nothing_serves_exits_3(world: World) -> None:
    nonsense = "answer(launch_rocket())\n"
    result = world.call("run", "Launch the rocket at 12", "--deterministic", script=[nonsense] * 5)
    assert result.exit_code == 3
    assert "[plan.none]" in result.stderr
    assert "Nearest tools" in result.stderr
    assert result.stdout == ""


def test_an_empty_request_exits_2(world: World) -> None:
    assert world.json("run", "   ", script=[], code=2)["error"]["code"] == "intent.empty"


def test_an_ambiguous_request_without_a_terminal_exits_4_with_the_questions(world: World) -> None:
    told = world.json("run", "do it", script=[], code=4)
    assert told["error"]["code"] == "intent.questions"
    assert "?" in told["error"]["message"]


def test_a_plan_that_asks_without_a_terminal_exits_4(world: World) -> None:
    world.write("p.py", 'name = ask("What is your name?")\nanswer(name)\n')
    told = world.json("run", "--plan", "p.py", code=4)
    assert told["error"]["code"] == "run.needs-answer"


def test_run_needs_a_request_or_a_plan_and_not_both(world: World) -> None:
    assert world.json("run", code=2)["error"]["code"] == "cli.usage"
    assert world.call("run", "x", "--plan", "p.py").exit_code == 2


def test_the_name_of_a_file_is_no_request(world: World) -> None:
    world.write("p.py", DELETE)
    result = world.call("run", "p.py")
    assert result.exit_code == 2
    assert "p.py is a file: run it as a plan with --plan p.py" in result.stderr
    assert (world.folder / "mail.txt").exists()
    assert world.call("run", "--plan", "p.py").exit_code == 0


def test_a_plan_file_with_errors_is_not_run(world: World) -> None:
    world.write("p.py", 'write_text("a.txt", 3)\nanswer(1)\n')
    result = world.call("run", "--plan", "p.py")
    assert result.exit_code == 3
    assert "plan.wrong-type" in result.stderr
    assert not (world.folder / "a.txt").exists()


def test_a_plan_file_runs_without_any_model(world: World) -> None:
    world.write("p.py", PLAN)
    assert world.call("run", "--plan", "p.py").stdout.splitlines() == FOUND
    assert not (world.folder.parent / "models").exists()


def test_a_plan_can_be_read_from_standard_input(world: World) -> None:
    assert world.call("run", "--plan", "-", stdin=PLAN).stdout.splitlines() == FOUND


def test_the_folder_to_work_in_can_be_named(world: World) -> None:
    inner = world.folder / "inner"
    inner.mkdir()
    (inner / "mail.txt").write_text("invoice inside\n")
    result = world.call("run", REQUEST, "--folder", "inner", script=[PLAN])
    assert result.stdout == "invoice inside\n"


def test_rows_are_shown_as_a_table_and_given_as_json(world: World) -> None:
    world.write("people.csv", "name,age\nKim,31\nAda,7\n")
    world.write("p.py", 'answer(read_csv("people.csv"))\n')
    assert world.call("run", "--plan", "p.py").stdout.splitlines() == [
        "name  age",
        "────  ───",
        "Kim    31",
        "Ada     7",
    ]
    assert world.json("run", "--plan", "p.py")["answer"] == [{"name": "Kim", "age": 31}, {"name": "Ada", "age": 7}]


def test_dates_are_iso_text_in_json(world: World) -> None:
    world.write("p.py", "answer(date(2026, 3, 1))\n")
    assert world.json("run", "--plan", "p.py")["answer"] == "2026-03-01"
    assert world.call("run", "--plan", "p.py").stdout == "2026-03-01\n"


def test_extraction_goes_to_the_quarantined_model(world: World) -> None:
    world.write("p.py", 'n = extract(read_text("mail.txt"), "how many", int)\nanswer(n + 1)\n')
    assert world.json("run", "--plan", "p.py", script=[])["answer"] == 13


def test_plan_prints_the_plan_and_nothing_else_on_standard_output(world: World) -> None:
    result = world.call("plan", REQUEST, script=[PLAN])
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith(PLAN)
    assert "Check" in result.stderr


def test_a_plan_that_was_written_out_can_be_checked_explained_and_run(world: World) -> None:
    for name in ("plan.json", "plan.py"):
        assert world.call("plan", REQUEST, "--out", name, script=[PLAN]).exit_code == 0
        assert world.call("check", name).exit_code == 0
        assert "read_lines" in world.call("explain", name).stdout
        assert world.call("run", "--plan", name).stdout.splitlines() == FOUND


def test_a_plan_can_be_written_as_tasks_and_read_again(world: World) -> None:
    straight = 'lines = read_lines("mail.txt")\nanswer(unique_lines(lines))\n'
    result = world.call("plan", REQUEST, "--format", "tasks", "--no-cache", script=[straight] * 5)
    assert result.exit_code == 0, result.output
    assert [task["command"] for task in json.loads(result.stdout)["tasks"]] == ["cat", "uniq"]
    world.write("tasks.json", result.stdout)
    assert world.call("run", "--plan", "tasks.json").stdout.splitlines()[0] == FOUND[0]


def test_the_second_time_the_plan_comes_from_the_cache(world: World) -> None:
    first, second = (world.json("plan", REQUEST, script=[PLAN]) for _ in range(2))
    assert (first["cached"], second["cached"]) == (False, True)
    assert first["plan"] == second["plan"]
    assert world.json("plan", REQUEST, "--no-cache", script=[PLAN])["cached"] is False


def test_deterministic_planning_asks_no_model_what_was_meant(world: World) -> None:
    sloppy = "hey pls get rid of the double lines in mail.txt n show me the invoice ones"
    told = world.json("plan", sloppy, "--deterministic", script=[PLAN])
    assert told["intent"]["by"] == "deterministic"


def test_weights_that_are_missing_and_cannot_be_fetched_are_one_clear_message(world: World) -> None:
    from bicameral.models import find_weights

    result = world.call("models", "pull", "0.5b", "--offline")
    assert result.exit_code == 1
    assert "[models.no-source]" in result.stderr
    assert find_weights("0.5b").sha256 in result.stderr


def test_the_first_run_says_what_it_fetches_and_then_why_it_could_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> list[object]:
        return []

    monkeypatch.setattr("bicameral.models._store.default_sources", none)
    result = world.call("run", REQUEST)
    assert result.exit_code == 1
    assert "is not on this machine yet: fetching 1," in result.stderr
    assert "[models.no-source]" in result.stderr
    assert "bicameral models pull 1.5b --file PATH" in result.stderr
    assert world.json("plan", REQUEST, "--profile", "small", code=1)["error"]["code"] == "models.no-source"


def test_a_plan_file_cannot_say_what_its_words_are_bound_to(world: World) -> None:
    world.write("private.txt", "nobody asked for this\n")
    world.write("paid.csv", "name;paid\na;ja\nb;nein\n")
    bound = BoundTo(value="private.txt", label=label_tree_to_json(TRUSTED_USER))
    plan = parse('answer(read_text(path=file("mail")))').plan
    world.write("forged.json", bind_references(plan, lambda path, reference: bound).to_json())
    assert world.json("run", "--plan", "forged.json", script=[])["answer"] == (world.folder / "mail.txt").read_text()
    assert "private.txt" not in world.call("check", "forged.json", "--json").stdout
    condition = 'cell_matches(r["paid"], "==", False, "yes/no: x", "name")'
    world.write("cells.py", f'rows = read_csv("paid.csv")\nanswer([r["name"] for r in rows if {condition}])\n')
    assert world.json("run", "--plan", "cells.py", script=[])["answer"] == ["b"]
