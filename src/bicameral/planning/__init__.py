"""Planning: a request becomes an intent (Echo), and an intent becomes a checked plan (Delta).

A request and a registry come in; out comes a versioned `Intent` and a plan that passes the check (`CompiledPlan`), or
an error that says why there is none. Echo asks a model only when the request is not explicit. Where the provider
supports grammars, Delta decodes each statement under one made from the tools and the variables in scope, so that a tool
or argument that does not exist cannot be written. Plans that do not pass the check are repaired with its findings.
`PlanCascade` lets a small model write first, and a larger one only if the plan is doubtful.
"""

from bicameral.planning._cascade import (
    MIN_CONFIDENCE as MIN_CONFIDENCE,
    DoubtCriteria as DoubtCriteria,
    PlanCascade as PlanCascade,
    PlanDoubt as PlanDoubt,
    Planner as Planner,
    deciding_tokens as deciding_tokens,
    weakest_token as weakest_token,
)
from bicameral.planning._delta import CompiledPlan as CompiledPlan, Delta as Delta, PlanCheck as PlanCheck
from bicameral.planning._intent import (
    MAX_REQUEST as MAX_REQUEST,
    Echo as Echo,
    Intent as Intent,
    IntentStep as IntentStep,
    NamedDate as NamedDate,
    asked_effects as asked_effects,
    intent_schema as intent_schema,
    is_explicit as is_explicit,
    named_dates as named_dates,
    open_questions as open_questions,
    required_effects as required_effects,
    trusted_request_text as trusted_request_text,
)
from bicameral.planning._intent_check import (
    Mismatch as Mismatch,
    check_against_intent as check_against_intent,
    plan_literals as plan_literals,
)
from bicameral.planning._matching import nearest_tools as nearest_tools, relevant_tools as relevant_tools
from bicameral.planning._neutral_names import NeutralNames as NeutralNames
from bicameral.planning._rounds import LOOK as LOOK, EarlierRounds as EarlierRounds, round_source as round_source
from bicameral.planning._statement_grammar import Opening as Opening, statement_grammar as statement_grammar
