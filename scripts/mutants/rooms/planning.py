"""Planning: claims of effects, values that direct effects, and the words that order effects."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

CLAIMS = "planning/_claims.py"
DIRECTIVES = "planning/_directives.py"
WORDS = "planning/_effect_words.py"
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
        DIRECTIVES,
        "_Grounds.ungrounded",
        "if recipient:",
        "if False:",
        "an address could be assembled of a tool's result and an invented domain",
        (f"{TESTS}::test_an_invented_recipient_is_found_however_it_is_assembled",),
    ),
    Mutant(
        "planning.prohibitions",
        WORDS,
        "_without_non_orders",
        "(*_PROHIBITIONS[language], *_REPORTS[language])",
        "_REPORTS[language]",
        "a request not to send would allow a plan to send",
        (f"{REQUESTS}::test_drafts_prohibitions_and_reports_order_nothing",),
    ),
)
