"""The choice among several plans: what the world may not decide, and which doubts stay."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

CHOICE = "agent/_plan_choice.py"
FACTS = "planning/_text_facts.py"
TESTS = "tests/agent/test_agent_plan_effects.py"

MUTANTS = (
    Mutant(
        "plan-choice.world-chooses-target",
        CHOICE,
        "PlanChooser._choose_effects",
        "if len({each.written.targets for each in found}) > 1:",
        "if len({each.written.targets for each in found}) > 9:",
        "a file that is called as a plan names it would choose the file that is written",
        (f"{TESTS}::test_a_planted_name_does_not_choose_the_file_that_is_written",),
    ),
    Mutant(
        "plan-choice.no-effect-is-the-same-effect",
        CHOICE,
        "PlanChooser._choose_effects",
        "not in (None, NO_CALLS)",
        "is not None",
        "an empty folder would hide that plans have two targets",
        (f"{TESTS}::test_an_empty_folder_does_not_hide_that_the_targets_differ",),
    ),
    Mutant(
        "plan-choice.world-chooses-what-is-sent",
        CHOICE,
        "PlanChooser._drop_failing",
        "if sends and",
        "if not sends and",
        "a planted mail would choose which of two searches is sent",
        (f"{TESTS}::test_a_planted_mail_does_not_choose_what_is_sent_or_to_whom",),
    ),
    Mutant(
        "plan-choice.majority-without-doubt",
        CHOICE,
        "PlanChooser._choose_fitting",
        "doubtful = len(groups) > 1 or",
        "doubtful =",
        "a plan that only most plans agree with would look sure",
        (f"{TESTS}::test_most_plans_with_the_first_are_taken_and_the_doubt_stays",),
    ),
    Mutant(
        "plan-choice.denial-is-wording",
        FACTS,
        "text_facts",
        "if _NEGATION.search(text):",
        "if not text:",
        "a mail that says the opposite would count as another wording",
        (f"{TESTS}::test_facts_of_a_mail_are_the_persons_choice",),
    ),
    Mutant(
        "plan-choice.misread-plan-without-its-label",
        "agent/_planning.py",
        "AgentPlanning._bind_choice",
        "start = replace(choice.start, read=join(choice.start.read, other.label))",
        "start = choice.start",
        "the run would not carry the label of what decided which tools the planner had",
        ("tests/agent/test_agent_other_readings.py::test_a_table_is_not_counted_by_its_lines",),
    ),
    Mutant(
        "plan-choice.looked-elsewhere-without-saying-so",
        "agent/_planning.py",
        "AgentPlanning._bind_choice",
        'doubts = () if other.reason == "misread" else',
        "doubts = () if other.reason else",
        "an answer from somewhere else than the request says would look sure",
        ("tests/agent/test_agent_other_readings.py::test_what_is_not_there_is_looked_for_elsewhere",),
    ),
)
