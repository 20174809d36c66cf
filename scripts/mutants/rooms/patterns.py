"""Patterns: labels of what is rejected, cut off and read in rounds; what a part can do after its end."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

QUESTIONS = "patterns/kernel/_questions.py"
PARTS = "patterns/kernel/_parts.py"
STATE = "patterns/kernel/_state.py"
GATE = "runs/_call_gate.py"
RECORD = "runs/_run_record.py"
RESUME = "runs/_resume.py"
ACTIONS = "patterns/kernel/_actions.py"
REACT = "patterns/reasoning/react.py"
REWOO = "patterns/reasoning/rewoo.py"
SKELETON = "patterns/signal/output_template.py"
TESTS = "tests/patterns/test_patterns_context.py"
REACT_TESTS = "tests/patterns/test_patterns_react.py"
REWOO_TESTS = "tests/patterns/test_patterns_rewoo.py"
SHIELD_TESTS = "tests/patterns/test_patterns_injection_shield.py"
SKELETON_TESTS = "tests/patterns/test_patterns_output_template.py"

MUTANTS = (
    Mutant(
        "patterns.reason-in-an-error",
        QUESTIONS,
        "_Rejection.error",
        'if self.reply.label.trusted else ""',
        'if True else ""',
        "an error would quote an untrusted reply",
        (f"{TESTS}::test_the_reason_of_a_check_stays_where_the_untrusted_text_is",),
    ),
    Mutant(
        "patterns.rejection-unread",
        QUESTIONS,
        "Questions.fill",
        "self.read_label = join(self.read_label, reply.label)",
        "pass",
        "untrusted text would decide by a bad reply, and what is done next would not say so",
        (f"{TESTS}::test_the_reason_of_a_check_stays_where_the_untrusted_text_is",),
    ),
    Mutant(
        "patterns.straggler-acts",
        STATE,
        "PartLife.require",
        "if self._ended:",
        "if False:",
        "a part could act after it was cut off",
        (f"{TESTS}::test_a_straggler_that_ignores_its_cancellation_cannot_act",),
    ),
    Mutant(
        "patterns.inner-straggler-acts",
        STATE,
        "PartLife.require",
        "if self._around is not None:",
        "if False:",
        "a part inside one that was cut off could act",
        (f"{TESTS}::test_a_straggler_that_ignores_its_cancellation_cannot_act",),
    ),
    Mutant(
        "patterns.round-unread",
        STATE,
        "",
        "if self.reads_for is not None:",
        "if False:",
        "what a round reads would decide what comes after it, and no label would say so",
        (f"{TESTS}::test_what_a_round_reads_is_read_by_the_pattern",),
    ),
    Mutant(
        "patterns.label-of-a-cut",
        PARTS,
        "Parts.gather",
        "*(run.part.read_label for run in runs if cut)",
        "",
        "which parts were cut off depends on what they read, and no label would say so",
        (f"{TESTS}::test_what_decided_a_cut_is_in_the_label",),
    ),
    Mutant(
        "patterns.withdrawn-call",
        GATE,
        "CallGate._hold",
        "held.withdrawn = True",
        "pass",
        "a person's yes to another part would make the call of one that was cut off",
        (f"{TESTS}::test_a_yes_to_a_part_that_was_cut_off_meanwhile_is_not_used",),
    ),
    Mutant(
        "patterns.call-left-waiting",
        GATE,
        "CallGate._hold",
        "self._waiting.remove(held)",
        "pass",
        "the next question would make the call of a part that was cut off",
        (f"{TESTS}::test_a_call_that_a_straggler_has_asked_about_is_not_made",),
    ),
    Mutant(
        "patterns.cut-goes-further",
        RECORD,
        "RecordedEffectHandler._wait_if_stopped",
        'if self._ended[step].body.get("stopped"):',
        "if False:",
        "a replay would go on where the part had been cut off",
        (f"{TESTS}::test_a_change_that_a_straggler_had_begun_is_finished_and_replayed",),
    ),
    Mutant(
        "patterns.once-repeated",
        RESUME,
        "ResumingEffectHandler.do_once",
        'if self._recorded.step_state(step) == "begun" and not repeatable:',
        "if False:",
        "work that may have been done would be done again without a question",
        (f"{TESTS}::test_work_that_was_killed_in_the_middle_is_not_repeated_unasked",),
    ),
    Mutant(
        "patterns.changed-twice",
        REWOO,
        "_may_plan_again",
        'and not any(context.registry[call["tool"]].changes for call in plan)',
        "and True",
        "another plan would make changes a second time",
        (f"{REWOO_TESTS}::test_what_was_changed_is_not_changed_again_by_another_plan",),
    ),
    Mutant(
        "patterns.results-planned-from",
        REWOO,
        "_failed_plan",
        "'gave a result' if number in found",
        "str(found[number]) if number in found",
        "the Planner would be shown results",
        (f"{REWOO_TESTS}::test_whoever_plans_again_sees_which_calls_failed_and_no_result",),
    ),
    Mutant(
        "patterns.partial-made-up",
        REACT,
        "_Loop.ask",
        'self._settings.at_bound == "partial" and self.gave',
        'self._settings.at_bound == "partial"',
        "without any result a model would be asked for a partial answer",
        (f"{REACT_TESTS}::test_without_anything_found_there_is_no_partial_answer",),
    ),
    Mutant(
        "patterns.partial-unmarked",
        REACT,
        "_Loop.answer",
        "if self._is_partial",
        "if False",
        "a partial answer would look like a whole one",
        (f"{REACT_TESTS}::test_at_the_bound_it_tells_what_it_has_found_and_says_that_this_is_partial",),
    ),
    Mutant(
        "patterns.marks-shortened",
        ACTIONS,
        "Actions.conversation",
        "history=history if self.marker is None else None",
        "history=history",
        "the short form of a marked span would have no end mark",
        (f"{SHIELD_TESTS}::test_a_long_conversation_keeps_the_marks_of_every_span",),
    ),
    Mutant(
        "patterns.skeleton-unvouched",
        SKELETON,
        "OutputTemplate.__post_init__",
        "vouched_value(self.skeleton)",
        "pass",
        "untrusted text would be a trusted part of every prompt",
        (f"{SKELETON_TESTS}::test_what_a_stranger_wrote_is_no_skeleton",),
    ),
)
