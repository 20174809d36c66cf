"""Evaluation: what a gate must not pass, and what a baseline must not take."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

GATE = "evaluation/_gate.py"
BASELINE = "evaluation/_baseline.py"
CASES = "evaluation/_cases.py"
EVALUATION = "evaluation/_evaluation.py"
OFFLINE = "patterns/reliability/offline_eval.py"
TESTS = "tests/evaluation/test_evaluation_gate.py"
RUNS = "tests/evaluation/test_evaluation_run.py"
PATTERN = "tests/patterns/test_patterns_offline_eval.py"

MUTANTS = (
    Mutant(
        "evaluation.tolerated-critical",
        GATE,
        "_incomplete",
        "elif facts.critical and not all(each.correct for each in run):",
        "elif False:",
        "a critical case could be wrong",
        (f"{TESTS}::test_a_critical_case_has_no_tolerance",),
    ),
    Mutant(
        "evaluation.critical-once",
        GATE,
        "_incomplete",
        "not all(each.correct for each in run)",
        "not any(each.correct for each in run)",
        "a critical case could be wrong in all repeats but one",
        (f"{TESTS}::test_a_critical_case_that_is_wrong_once_in_several_repeats_fails",),
    ),
    Mutant(
        "evaluation.left-out",
        GATE,
        "_incomplete",
        "if len(run) < len(results):",
        "if False:",
        "results that were left out would count as passed",
        (f"{TESTS}::test_results_that_are_left_out_do_not_pass",),
    ),
    Mutant(
        "evaluation.swapped-suite",
        GATE,
        "_incomparable",
        "if now.hash != accepted.suite_hash:",
        "if False:",
        "an easier suite would pass in the place of the accepted one",
        (f"{TESTS}::test_a_swapped_case_fails_even_if_everything_is_right",),
    ),
    Mutant(
        "evaluation.any-tolerance",
        GATE,
        "gate",
        "if not 0 <= tolerance <= MAX_TOLERANCE:",
        "if tolerance < 0:",
        "a tolerance of 1 would pass everything",
        (f"{TESTS}::test_a_tolerance_beyond_the_largest_is_refused",),
    ),
    Mutant(
        "evaluation.unsealed",
        BASELINE,
        "Baseline.__post_init__",
        " or each.seal != each.expected_seal",
        "",
        "an edited baseline would be used",
        (f"{TESTS}::test_a_baseline_that_was_edited_by_hand_is_refused",),
    ),
    Mutant(
        "evaluation.unchained",
        BASELINE,
        "Baseline.__post_init__",
        " or each.before != before",
        "",
        "a promotion of another baseline could stand in this one",
        (f"{TESTS}::test_a_promotion_of_another_baseline_does_not_follow_this_one",),
    ),
    Mutant(
        "evaluation.unknown-seal",
        BASELINE,
        "Baseline.read",
        "if known is not None and found.seal != known:",
        "if False:",
        "a baseline that was written anew would be used",
        (f"{TESTS}::test_a_baseline_that_was_sealed_again_is_found_by_the_known_seal",),
    ),
    Mutant(
        "evaluation.promoted-failure",
        BASELINE,
        "Baseline.promote",
        "if each.critical and not each.correct",
        "if False",
        "a wrong critical case would become the accepted result",
        (f"{TESTS}::test_a_partial_report_and_one_with_a_wrong_critical_case_are_not_promoted",),
    ),
    Mutant(
        "evaluation.tolerable-hostile",
        CASES,
        "Case.__post_init__",
        "if self.category in CRITICAL_CATEGORIES:",
        "if False:",
        "a suite could say that hostile cases are not critical",
        ("tests/evaluation/test_evaluation_cases.py::test_hostile_and_safety_cases_are_critical_whatever_is_said",),
    ),
    Mutant(
        "evaluation.laundered-input",
        CASES,
        "Case.__post_init__",
        "vouched_value(self.input)",
        "pass",
        "untrusted text would go to a privileged model as a case of the user's own",
        (
            "tests/evaluation/test_evaluation_cases.py::test_an_input_keeps_its_label_and_released_text_is_not_the_users_own",
        ),
    ),
    Mutant(
        "evaluation.failed-check-passes",
        EVALUATION,
        "score_value",
        "score = math.nan",
        "score = 1.0",
        "a check that fails would count as right",
        (f"{RUNS}::test_a_check_that_gives_no_score_is_an_error_and_never_right",),
    ),
    Mutant(
        "evaluation.changed-meanwhile",
        EVALUATION,
        "Evaluation.run",
        "if self.suite.hash != self._facts.hash:",
        "if False:",
        "a subject could change the cases that it is measured on",
        (f"{RUNS}::test_a_suite_that_is_changed_while_it_runs_is_refused",),
    ),
    Mutant(
        "evaluation.leaked-case",
        OFFLINE,
        "OfflineEval.__post_init__",
        "if leaks := find_leaks(self.suite, {**texts, **self.corpora}):",
        "if leaks := find_leaks(self.suite, {**self.corpora}):",
        "a case could stand in the prompt of the system",
        (f"{PATTERN}::test_no_case_occurs_in_prompts_or_corpora",),
    ),
)
