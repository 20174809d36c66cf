"""Lists of tasks: inputs stay data, time limits hold, and what is exported means the same."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

WORDS = "plans/syntax/_task_words.py"
EXPORT = "plans/syntax/_task_export.py"
MATERIAL = "agent/_material.py"
EXECUTION = "runs/_effect_execution.py"
PROGRAMS = "tests/plans/test_plans_task_programs.py"
PIPED = "tests/agent/test_agent_piped_plans.py"
PIPELINES = "tests/cli/test_cli_task_pipelines.py"
TIME = "tests/runs/test_runs_step_time.py"

MUTANTS = (
    Mutant(
        "tasks.input-becomes-a-word",
        WORDS,
        "_parse_program_words",
        "input=stdin,",
        "input=tool.arguments[0].name,",
        "what one program prints could be a file or an option of the next",
        (f"{PROGRAMS}::test_what_a_program_cannot_take_is_refused",),
    ),
    Mutant(
        "tasks.input-directs-a-change",
        WORDS,
        "input_argument",
        "if tool.changes and content:",
        "if not content:",
        "what another task gives would choose the recipient",
        (f"{PIPED}::test_piped_text_is_the_content_of_what_a_task_sends",),
    ),
    Mutant(
        "tasks.standard-input-directs",
        WORDS,
        "_reads_stdin",
        '(sink.purpose == "carries" or tool.effect == "pure") and',
        'sink.purpose != "" and',
        "a piped text would be filled in as the recipient",
        (f"{PIPED}::test_standard_input_never_fills_what_directs_a_tool",),
    ),
    Mutant(
        "tasks.program-takes-a-name",
        WORDS,
        "resolve_command",
        "ours is not None and tool.self_described",
        "ours is not None and tool is ours",
        "a program that describes itself as `cat` would read every file of a list",
        (f"{PIPELINES}::test_a_program_cannot_take_the_name_of_a_usual_command",),
    ),
    Mutant(
        "tasks.piped-text-is-trusted",
        MATERIAL,
        "assumed_start",
        "_TYPES[name], _UNTRUSTED)",
        "_TYPES[name], Label((), {USER}))",
        "a check would prove what a run asks about",
        (f"{PIPED}::test_a_check_without_the_text_assumes_the_worst",),
    ),
    Mutant(
        "tasks.export-is-not-read-again",
        EXPORT,
        "_check_same_plan",
        "if found == wanted:",
        "if found is not wanted:",
        "a list would be written that does something else",
        (f"{PROGRAMS}::test_a_list_that_would_do_something_else_is_not_written",),
    ),
    Mutant(
        "tasks.no-time-limit",
        EXECUTION,
        "finish_within",
        "asyncio.timeout(seconds)",
        "asyncio.timeout(None)",
        "a task could take as long as it wants",
        (f"{TIME}::test_a_step_ends_in_its_time_and_is_not_tried_again",),
    ),
)
