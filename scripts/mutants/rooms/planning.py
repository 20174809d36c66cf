"""Planning: claims of effects, values that direct effects, and the words that order effects."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

CLAIMS = "planning/_claim_support.py"
GROUNDS = "planning/_grounds.py"
ORIGINS = "planning/_origins.py"
WORDS = "planning/_non_orders.py"
TESTS = "tests/delta/test_delta_claims.py"
DIRECTIVES = "tests/delta/test_delta_directives.py"
REQUESTS = "tests/intent/test_intent_effect_words.py"
REFUSALS = "tests/delta/test_delta_refusals.py"

MUTANTS = (
    Mutant(
        "planning.refusals-of-foreign-tools",
        "planning/_capabilities.py",
        "serving_tools",
        "[tool for tool in registry if not tool.self_described]",
        "list(registry)",
        "a foreign tool's description could override a refusal",
        (f"{REFUSALS}::test_what_a_tool_says_of_itself_is_no_evidence",),
    ),
    Mutant(
        "planning.half-served-refusals",
        "planning/_refusals.py",
        "refute_refusal",
        "if next(unserved_orders(intent.request, registry), None) is not None:",
        "if False:",
        "a request of which a part has no tool would be half served",
        (f"{REFUSALS}::test_a_request_that_is_half_served_stays_refused",),
    ),
    Mutant(
        "planning.plans-after-refusals",
        "planning/_delta.py",
        "Delta._plan_instead",
        "return None if called.isdisjoint(overridden.tools) else replace(compiled, overridden=overridden)",
        "return replace(compiled, overridden=overridden)",
        "a plan that avoids what was asked for would take the place of a refusal",
        (f"{REFUSALS}::test_a_second_plan_must_call_the_tool_that_was_said_to_be_missing",),
    ),
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
        "*_PROHIBITIONS[language], *_REPORTS[language]",
        "*_REPORTS[language]",
        "a request not to send would allow a plan to send",
        (f"{REQUESTS}::test_drafts_prohibitions_and_reports_order_nothing",),
    ),
    Mutant(
        "planning.reported-orders",
        "planning/_contents.py",
        "without_contents",
        "(*_REPORTS, *_REMINDERS)",
        "_REMINDERS",
        "what somebody is quoted to have written would allow its effects",
        ("tests/intent/test_intent_contents.py::test_what_somebody_is_reported_to_have_said_orders_nothing",),
    ),
    Mutant(
        "planning.orders-in-reminders",
        "planning/_contents.py",
        "without_contents",
        "(*_REPORTS, *_REMINDERS)",
        "_REPORTS",
        "a reminder to mail somebody would allow the mail",
        ("tests/intent/test_intent_contents.py::test_a_reminder_orders_an_event_and_nothing_that_it_is_about",),
    ),
    Mutant(
        "planning.choices-of-extractions",
        "planning/_directives.py",
        "_DirectiveWalker.walk",
        "either(extracted(step.result_type), read)",
        "read",
        "an extraction could choose among addresses that the planner invented",
        (f"{DIRECTIVES}::test_a_value_that_nobody_gave_is_found",),
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
        "return ValueOrigin(_distinct(tuple(made)))",
        "return FROM_TOOL",
        "an address that is assembled of constants would count as the result of a tool",
        (f"{TESTS}::test_an_invented_recipient_is_found_however_it_is_assembled",),
    ),
    Mutant(
        "planning.operands-once",
        GROUNDS,
        "Grounds._are_operands_given",
        "times <= self._times_usable(value)",
        "times <= 99",
        "a number of the request could be multiplied by itself to any amount",
        (f"{DIRECTIVES}::test_a_value_that_nobody_gave_is_found",),
    ),
    Mutant(
        "planning.operands-of-nobody",
        GROUNDS,
        "Grounds._is_unit_or_share",
        "return divisor == 2 or (divisor <= _MOST_SHARING and divisor - 1 in self._numbers)",
        "return True",
        "an invented divisor could make what is to be subtracted vanish",
        (f"{DIRECTIVES}::test_a_value_that_nobody_gave_is_found",),
    ),
    Mutant(
        "planning.keys-as-values",
        ORIGINS,
        "item_of",
        "return ValueOrigin(whole=frozenset(_names(over)))",
        "return FROM_TOOL",
        "the name of a field could become a recipient",
        (f"{DIRECTIVES}::test_a_value_that_nobody_gave_is_found",),
    ),
    Mutant(
        "planning.default-of-nothing",
        ORIGINS,
        "_applied_origin",
        'if name == "default"',
        "if False",
        "an invented address could be the default of an empty list",
        (f"{DIRECTIVES}::test_a_value_that_nobody_gave_is_found",),
    ),
    Mutant(
        "planning.constants-of-earlier-rounds",
        "planning/_directives.py",
        "ungrounded_directives",
        "dict(start or {})",
        "{}",
        "what one round puts together could direct the next",
        (f"{DIRECTIVES}::test_what_an_earlier_round_put_together_directs_nothing_in_the_next",),
    ),
    Mutant(
        "planning.fields-of-foreign-tools",
        "planning/_directives.py",
        "_field_names",
        "if tool.declared and not tool.self_described",
        "if True",
        "whoever describes a foreign tool could choose what directs it",
        (f"{DIRECTIVES}::test_a_foreign_tool_cannot_offer_names_of_fields",),
    ),
)
