"""Routing: who may choose a model, and what the names of roles mean."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

LOOPS = "patterns/_strategy_loops.py"
ROUTER = "routing/_router.py"
SELECTION = "routing/_selection.py"
ECHO = "planning/_echo.py"
STEPS = "tests/strategies/test_strategies_hints.py"
HINTS = "tests/routing/test_routing_hints.py"
TEMPERATURE = "tests/intent/test_intent_echo_temperature.py"

MUTANTS = (
    Mutant(
        "router.hints-of-untrusted-plans",
        LOOPS,
        "write_plan",
        "return steps if talk.turns[-1].read.trusted else remove_hints(steps, params.hints)",
        "return steps",
        "untrusted text could choose the model that does a step",
        (f"{STEPS}::test_a_plan_that_untrusted_text_had_a_hand_in_chooses_no_model",),
    ),
    Mutant(
        "router.step-hint-is-an-alias",
        ROUTER,
        "Router.choose",
        "hint = request.model\n",
        "hint = request.model or here.hint\n",
        "a plan could name any model instead of the kinds of work that the person configured",
        (f"{HINTS}::test_the_hint_of_a_step_never_names_an_alias",),
    ),
    Mutant(
        "router.slips-are-roles",
        SELECTION,
        "_custom_role_error",
        "next((known for known in ROLES if _is_slip(role, known)), None)",
        "None",
        "a misspelt role would be one of the user's own, and the calls that were meant would get another model",
        (f"{HINTS}::test_a_role_that_is_nearly_one_of_ours_is_a_slip",),
    ),
    Mutant(
        "router.temperatures-are-mixed",
        ECHO,
        "Echo._cache_key",
        "if self._temperature is not None:",
        "if False:",
        "an account that was written at one temperature would be taken for one of another",
        (f"{TEMPERATURE}::test_replies_at_different_temperatures_are_not_mixed",),
    ),
)
