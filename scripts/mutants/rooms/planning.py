"""Planning: claims of effects, values that direct effects, and the words that order effects."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

CLAIMS = "planning/_claim_support.py"
GROUNDS = "planning/_grounds.py"
ORIGINS = "planning/_origins.py"
WORDS = "planning/_non_orders.py"
TESTS = "tests/delta/test_delta_claims.py"
REQUESTS = "tests/intent/test_intent_effect_words.py"

MUTANTS = (
    Mutant(
        "planning.claims-of-any-tool",
        CLAIMS,
        "supports_claim",
        "if tool.toolbox in _GENERAL_TOOLBOXES:",
        "if needed:\n        return True\n    if tool.toolbox in _GENERAL_TOOLBOXES:",
        "a file that was written would make a payment true",
        (f"{TESTS}::test_a_claim_that_no_call_makes_on_every_path_is_severe",),
    ),
    Mutant(
        "planning.pieces-of-recipients",
        GROUNDS,
        "Grounds.ungrounded",
        "if recipient:",
        "if False:",
        "an address could be assembled of a tool's result and an invented domain",
        (f"{TESTS}::test_an_address_made_of_a_result_and_a_word_of_the_request_is_a_new_address",),
    ),
    Mutant(
        "planning.prohibitions",
        WORDS,
        "without_non_orders",
        "(*_PROHIBITIONS[language], *_REPORTS[language])",
        "_REPORTS[language]",
        "a request not to send would allow a plan to send",
        (f"{REQUESTS}::test_drafts_prohibitions_and_reports_order_nothing",),
    ),
    Mutant(
        "planning.world-in-the-prompt",
        "planning/_neutral_names.py",
        "NeutralNames._planner_tool",
        "replace(tool, refine=None)",
        "tool",
        "the headings of a table would reach the planner",
        ("tests/delta/test_delta_neutral_names.py::test_no_column_reaches_a_planner_not_even_of_a_trusted_folder",),
    ),
    Mutant(
        "planning.claims-on-any-path",
        CLAIMS,
        "_ClaimWalker._check_answer",
        "supported = any(supports_claim(tool, claim.kind, claim.phrase) for tool in made)",
        "supported = True",
        "an answer could claim what no call of the plan does",
        (f"{TESTS}::test_a_claim_that_no_call_makes_on_every_path_is_severe",),
    ),
    Mutant(
        "planning.evaluated-constants",
        ORIGINS,
        "_evaluate",
        "return Origin(_distinct(tuple(made)))",
        "return FROM_TOOL",
        "an address that is assembled of constants would count as the result of a tool",
        (f"{TESTS}::test_an_invented_recipient_is_found_however_it_is_assembled",),
    ),
)
