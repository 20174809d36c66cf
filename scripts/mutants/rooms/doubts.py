"""Doubts and selections: what is said of an empty or partial selection, to whom, and how safely."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

DOUBTS = "runs/_doubts.py"
SELECTIONS = "tools/_selections.py"
RUN = "tests/runs/test_runs_doubts.py"
CALLS = "tests/tools/test_tools_selections.py"

MUTANTS = (
    Mutant(
        "doubts.told-to-anybody",
        DOUBTS,
        "Doubt.text_for",
        "return self.text if allowed else self.summary",
        "return self.text",
        "a doubt would tell a reader of data that is not for them",
        (f"{RUN}::test_a_doubt_tells_nothing_to_a_reader_who_may_not_see_the_data",),
    ),
    Mutant(
        "doubts.told-to-the-planner",
        DOUBTS,
        "Doubt.privileged_text",
        "return self.text if self.label.trusted else self.summary",
        "return self.text",
        "untrusted text in a doubt would reach a privileged prompt",
        (f"{RUN}::test_hostile_text_in_a_doubt_is_shown_safely_and_is_short",),
    ),
    Mutant(
        "doubts.raw-text",
        DOUBTS,
        "Doubt.__post_init__",
        "shown_text(self.text, _MAX_TEXT)",
        "self.text",
        "a doubt of planning could write control characters to a terminal",
        (f"{RUN}::test_the_text_of_a_doubt_is_made_safe_where_it_is_made",),
    ),
    Mutant(
        "doubts.last-label",
        DOUBTS,
        "SelectionLog.add_up",
        "note.label = join(note.label, label)",
        "note.label = label",
        "the last turn of a loop would decide who may read about all of them",
        (f"{RUN}::test_turns_of_a_loop_are_added_up_under_the_labels_of_all",),
    ),
    Mutant(
        "doubts.unread-unsaid",
        DOUBTS,
        "SelectionLog.find_doubts",
        "if chosen.unread:",
        "if chosen.unread and not chosen.given:",
        "rows that were dropped because a cell could not be read would not be mentioned",
        (f"{RUN}::test_cells_that_could_not_be_read_are_counted",),
    ),
    Mutant(
        "doubts.effects-rest-on-nothing",
        DOUBTS,
        "_is_end",
        "return tool is None or tool.changes",
        "return tool is None",
        "an effect that rests on an empty selection would not say so",
        (f"{RUN}::test_what_the_answer_rests_on_is_its_data_flow",),
    ),
    Mutant(
        "doubts.conditions-unread",
        DOUBTS,
        "_reads",
        "return free_names(step.condition)",
        "return frozenset()",
        "what decides a branch would not count",
        (f"{RUN}::test_what_the_answer_rests_on_is_its_data_flow",),
    ),
    Mutant(
        "doubts.planning-of-other-steps",
        DOUBTS,
        "merge_doubts",
        "if not doubt.step or doubt.step in resting",
        "if doubt",
        "doubts on which nothing rests would hide the others",
        (f"{RUN}::test_doubts_of_planning_are_kept_where_something_rests_on_their_step",),
    ),
    Mutant(
        "doubts.raw-condition",
        SELECTIONS,
        "Selection.__post_init__",
        "shown_text(self.condition, MAX_CONDITION)",
        "self.condition",
        "a cell could write control characters to a terminal",
        (f"{CALLS}::test_a_selection_is_short_on_one_line_and_comes_back_from_json",),
    ),
    Mutant(
        "doubts.selections-of-others",
        SELECTIONS,
        "collect_selections",
        "_NOTES.reset(token)",
        "pass",
        "a call would be said to have selected what another did",
        (f"{CALLS}::test_what_is_noted_belongs_to_the_innermost_call_and_to_nothing_after_it",),
    ),
    Mutant(
        "doubts.selections-unbounded",
        SELECTIONS,
        "note_selection",
        "if notes is not None and len(notes) < MAX_SELECTIONS:",
        "if notes is not None:",
        "one call could fill the journal",
        (f"{CALLS}::test_a_call_that_selects_without_end_is_bounded",),
    ),
)
