"""Planning: a request becomes an intent (Echo), and an intent becomes a checked plan (Delta).

A request and a registry come in; out comes a versioned `Intent` and a plan that passes the check (`CompiledPlan`), or
an error that says why there is none. Echo asks a model only when the request is not explicit. Where the provider
supports grammars, Delta decodes each statement under one made from the tools and the variables in scope, so that a tool
or argument that does not exist cannot be written. Plans that do not pass the check are repaired with its findings.
`PlanCascade` lets a small model write first, and a larger one only if the plan is doubtful.
"""

from bicameral.planning._cascade import (
    MIN_CONFIDENCE,
    DoubtCriteria,
    PlanCascade,
    PlanDoubt,
    Planner,
    deciding_tokens,
    weakest_token,
)
from bicameral.planning._delta import CompiledPlan, Delta, PlanCheck
from bicameral.planning._intent import (
    MAX_REQUEST,
    Echo,
    Intent,
    IntentStep,
    NamedDate,
    asked_effects,
    intent_schema,
    is_explicit,
    named_dates,
    open_questions,
    required_effects,
    tool_stems,
    tool_vocabulary,
    trusted_request_text,
    validate_request,
)
from bicameral.planning._intent_check import Mismatch, check_against_intent, plan_literals
from bicameral.planning._matching import nearest_tools, relevant_tools
from bicameral.planning._neutral_names import NeutralNames
from bicameral.planning._rounds import LOOK, EarlierRounds, round_source
from bicameral.planning._statement_grammar import Opening, statement_grammar

__all__ = [
    "LOOK",
    "MAX_REQUEST",
    "MIN_CONFIDENCE",
    "CompiledPlan",
    "Delta",
    "DoubtCriteria",
    "EarlierRounds",
    "Echo",
    "Intent",
    "IntentStep",
    "Mismatch",
    "NamedDate",
    "NeutralNames",
    "Opening",
    "PlanCascade",
    "PlanCheck",
    "PlanDoubt",
    "Planner",
    "asked_effects",
    "check_against_intent",
    "deciding_tokens",
    "intent_schema",
    "is_explicit",
    "named_dates",
    "nearest_tools",
    "open_questions",
    "plan_literals",
    "relevant_tools",
    "required_effects",
    "round_source",
    "statement_grammar",
    "tool_stems",
    "tool_vocabulary",
    "trusted_request_text",
    "validate_request",
    "weakest_token",
]
