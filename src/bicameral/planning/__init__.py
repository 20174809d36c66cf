"""Planning: a request becomes an intent (Echo), and an intent becomes a checked plan (Delta).

A request and a registry come in; out comes a versioned `Intent` and a plan that passes the check (`CompiledPlan`), or
an error that says why there is none. Echo asks a model only when the request is not explicit. Where the provider
supports grammars, Delta decodes each statement under one made from the tools and the variables in scope, so that a tool
or argument that does not exist cannot be written. Plans that do not pass the check are repaired with its findings.
`PlanCascade` lets a small model write first, and a larger one only if the plan is doubtful; `draw_plans` draws several
plans where one is doubtful.
"""

from bicameral.planning._absent_tools import (
    absent_tool_doubt as absent_tool_doubt,
    absent_tool_error as absent_tool_error,
    asked_stores as asked_stores,
    called_absent_tool as called_absent_tool,
    called_toolboxes as called_toolboxes,
    doubtful_absent_tools as doubtful_absent_tools,
    ordered_absent_tool as ordered_absent_tool,
    refused_absent_tool as refused_absent_tool,
    unready_reader as unready_reader,
)
from bicameral.planning._alternatives import (
    DrawnPlans as DrawnPlans,
    DrawSettings as DrawSettings,
    PlanFit as PlanFit,
    best_fitting as best_fitting,
    canonical_plan as canonical_plan,
    differing_lines as differing_lines,
    draw_plans as draw_plans,
    find_plan_doubts as find_plan_doubts,
    fit_of as fit_of,
    unserved_constraints as unserved_constraints,
    unused_mentions as unused_mentions,
)
from bicameral.planning._asked_forms import unserved_forms as unserved_forms
from bicameral.planning._cascade import (
    MIN_CONFIDENCE as MIN_CONFIDENCE,
    DoubtCriteria as DoubtCriteria,
    PlanCascade as PlanCascade,
    PlanDoubt as PlanDoubt,
    Planner as Planner,
    deciding_tokens as deciding_tokens,
    weakest_token as weakest_token,
)
from bicameral.planning._claim_support import (
    UnsupportedClaim as UnsupportedClaim,
    false_claims as false_claims,
    unsupported_claims as unsupported_claims,
)
from bicameral.planning._claims import Claim as Claim, claims_of as claims_of
from bicameral.planning._compiled_plan import CompiledPlan as CompiledPlan, PlanCheck as PlanCheck
from bicameral.planning._decode import Sampling as Sampling, type_lines as type_lines
from bicameral.planning._delta import Delta as Delta
from bicameral.planning._directives import (
    ChosenDirective as ChosenDirective,
    UngroundedDirective as UngroundedDirective,
    chosen_directives as chosen_directives,
    ungrounded_directives as ungrounded_directives,
    variable_origins as variable_origins,
)
from bicameral.planning._echo import Echo as Echo
from bicameral.planning._effect_sentences import describe_effects as describe_effects
from bicameral.planning._effect_signature import (
    EffectCall as EffectCall,
    EffectSignature as EffectSignature,
    effects_of as effects_of,
)
from bicameral.planning._effect_words import effects_in_words as effects_in_words
from bicameral.planning._failed_plans import (
    FailedPlan as FailedPlan,
    NoPlanError as NoPlanError,
    PlanFault as PlanFault,
    RefusedPlanError as RefusedPlanError,
)
from bicameral.planning._first_looks import (
    look_after_refusal as look_after_refusal,
    look_before_plan as look_before_plan,
    says_look_first as says_look_first,
)
from bicameral.planning._follow_ups import (
    FollowUp as FollowUp,
    NewRequest as NewRequest,
    ResultReference as ResultReference,
    Rewritten as Rewritten,
    Unclear as Unclear,
    resolve_follow_up as resolve_follow_up,
)
from bicameral.planning._intent import (
    MAX_REQUEST as MAX_REQUEST,
    asked_effects as asked_effects,
    named_dates as named_dates,
    required_effects as required_effects,
    trusted_request_text as trusted_request_text,
)
from bicameral.planning._intent_check import (
    Mismatch as Mismatch,
    UnaskedEffectError as UnaskedEffectError,
    check_against_intent as check_against_intent,
    serves_intent as serves_intent,
)
from bicameral.planning._intent_document import (
    INTENT_VERSION as INTENT_VERSION,
    GivenAnswer as GivenAnswer,
    Intent as Intent,
    IntentOutput as IntentOutput,
    IntentStep as IntentStep,
    Mention as Mention,
    MentionKind as MentionKind,
    NamedDate as NamedDate,
    OpenQuestion as OpenQuestion,
    OutputKind as OutputKind,
    QuestionTopic as QuestionTopic,
    intent_schema as intent_schema,
    migrate_intent as migrate_intent,
    parse_intent as parse_intent,
    read_intent as read_intent,
    request_text as request_text,
)
from bicameral.planning._language import guess_language as guess_language
from bicameral.planning._matching import (
    nearest_tools as nearest_tools,
    ranked_tools as ranked_tools,
    relevant_tools as relevant_tools,
)
from bicameral.planning._mentions import find_mentions as find_mentions
from bicameral.planning._neutral_names import NeutralNames as NeutralNames
from bicameral.planning._omissions import plan_literals as plan_literals
from bicameral.planning._origins import ValueOrigin as ValueOrigin
from bicameral.planning._questions import (
    MAX_TURNS as MAX_TURNS,
    complete_intent as complete_intent,
    continue_intent as continue_intent,
    is_explicit as is_explicit,
    is_stop as is_stop,
    open_questions as open_questions,
    questions_error as questions_error,
    remaining_questions as remaining_questions,
    step_questions as step_questions,
    understand as understand,
)
from bicameral.planning._refusals import OverriddenRefusal as OverriddenRefusal, refute_refusal as refute_refusal
from bicameral.planning._replacing import ReplaceScope as ReplaceScope, replace_scope as replace_scope
from bicameral.planning._rounds import LOOK as LOOK, EarlierRounds as EarlierRounds, round_source as round_source
from bicameral.planning._selecting_constants import (
    InventedConstant as InventedConstant,
    invented_constants as invented_constants,
)
from bicameral.planning._smaller_requests import SmallerRequest as SmallerRequest, smaller_request as smaller_request
from bicameral.planning._statement_grammar import Opening as Opening, statement_grammar as statement_grammar
from bicameral.planning._text_facts import text_facts as text_facts
