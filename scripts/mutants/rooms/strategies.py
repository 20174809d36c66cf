"""Strategies: what the privileged model reads after untrusted text, what the reader sees, and who chooses."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

NAMES = "patterns/_result_names.py"
TYPED = "patterns/_typed_conversation.py"
CONVERSATION = "patterns/_conversation.py"
CHOICE = "patterns/_strategy_choice.py"
TESTS = "tests/strategies/test_strategies_typed.py"
LAWS = "tests/strategies/test_strategies_laws.py"
REFLECTION = "tests/strategies/test_strategies_reflection.py"
CHOOSING = "tests/strategies/test_strategies_choice.py"

MUTANTS = (
    Mutant(
        "strategies.shown-text",
        TYPED,
        "TypedConversation._report_result",
        "if tree.flat.trusted:",
        "if True:",
        "the privileged model would read untrusted text",
        (f"{TESTS}::test_what_does_not_depend_on_the_text_is_done_without_a_question",),
    ),
    Mutant(
        "strategies.label-of-a-name",
        NAMES,
        "ResultNames.fill_text",
        "labels.append(content.label_tree.flat)",
        "pass",
        "an untrusted text within an argument would count as the user's own",
        (f"{LAWS}::test_an_argument_with_a_text_of_others_carries_its_label_and_nothing_else_does",),
    ),
    Mutant(
        "strategies.label-of-a-whole-name",
        NAMES,
        "ResultNames.fill",
        "taint(content.label_tree, read)",
        "read",
        "an address from a page would direct a call without a question",
        (f"{TESTS}::test_an_address_from_a_page_directs_nothing_without_a_yes",),
    ),
    Mutant(
        "strategies.words-of-a-failure",
        TYPED,
        "TypedConversation._failure_text",
        'f"error: {describe_failure(error.code)}"',
        'f"error: {error}"',
        "the message of a failing tool would bring untrusted text to the privileged model",
        (f"{TESTS}::test_the_words_of_a_failing_tool_are_not_shown_and_its_label_is_kept",),
    ),
    Mutant(
        "strategies.quoted-value",
        TYPED,
        "fill_call",
        "if not named:",
        "if True:",
        "an error about a type would quote the value to the privileged model",
        (f"{TESTS}::test_a_value_of_the_wrong_type_is_not_quoted",),
    ),
    Mutant(
        "strategies.all-tools-in-an-open-step",
        TYPED,
        "TypedConversation._decide_from_text",
        "tools = Registry([self.registry[name] for name in asked.tools])",
        "tools = self.registry",
        "the reader would choose among tools that nobody named for it",
        (f"{TESTS}::test_an_open_step_gets_no_tool_that_was_not_named_for_it",),
    ),
    Mutant(
        "strategies.unmarked-open-step",
        CONVERSATION,
        "ToolConversation._note",
        '"" if privileged else self.open_reason',
        '""',
        "the record would not say where the reader saw tools",
        (f"{TESTS}::test_an_open_step_sees_its_task_and_its_tools_only_and_is_marked",),
    ),
    Mutant(
        "strategies.reflection-that-changes",
        CONVERSATION,
        "ToolConversation._make_call",
        "if looking and tool.effect not in LOOKING_EFFECTS:",
        "if False:",
        "a reflection could change something",
        (f"{REFLECTION}::test_it_changes_nothing_even_with_a_yes",),
    ),
    Mutant(
        "strategies.chosen-by-others",
        CHOICE,
        "StrategyClassifier.choose",
        "if not request.label.trusted:",
        "if False:",
        "untrusted text would choose how it is worked on",
        (f"{CHOOSING}::test_an_untrusted_request_is_not_classified",),
    ),
)
