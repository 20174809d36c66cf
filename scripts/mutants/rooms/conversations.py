"""Conversations: what a later request gets of an earlier result, and who says so."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

CONTINUATION = "agent/_continuation.py"
HISTORY = "agent/_chat_history.py"
AGENT = "agent/_running.py"
PLANNED = "tests/agent/test_agent_continuation.py"
CHAT = "tests/cli/test_cli_conversation.py"

MUTANTS = (
    Mutant(
        "conversations.start-of-the-caller",
        AGENT,
        "AgentRunning._recheck",
        "start = replace(earlier, read=join(earlier.read, start.read))",
        "start = what.start",
        "a caller could give a run a value with any label",
        (f"{PLANNED}::test_a_forged_value_or_label_is_not_used",),
    ),
    Mutant(
        "conversations.bound-draft",
        CONTINUATION,
        "_readable_draft",
        "if any(each.bound is not None for each in plan_references(draft)):",
        "if False:",
        "a name of the world could reach a planner through an earlier plan",
        (f"{PLANNED}::test_a_draft_with_a_bound_name_is_shown_to_no_planner",),
    ),
    Mutant(
        "conversations.effects-of-earlier-requests",
        CONTINUATION,
        "AgentContinuation._intent_of_now",
        'return intent.model_copy(update={"effects": now.effects, "required": now.required, "output": now.output})',
        "return intent",
        "an effect that an earlier request asked for could be planned again",
        (f"{PLANNED}::test_an_effect_that_only_the_earlier_request_asked_for_is_not_planned_again",),
    ),
    Mutant(
        "conversations.label-of-the-record",
        CONTINUATION,
        "_load",
        'tree = label_tree_from_json(end.body["shade"]) if "shade" in end.body else UNKNOWN',
        "tree = NOTHING",
        "an untrusted result could direct an effect in the next run",
        (f"{CHAT}::test_labels_survive_a_sitting",),
    ),
    Mutant(
        "conversations.damaged-history",
        HISTORY,
        "ChatHistory.load",
        "except JournalError:\n            self._id = None\n            raise",
        "except JournalError:\n            kept, turns = [], []",
        "a conversation that somebody changed would be continued without a word",
        (f"{CHAT}::test_a_changed_history_is_refused_and_a_new_one_begins",),
    ),
)
