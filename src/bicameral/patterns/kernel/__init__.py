"""The kernel of patterns: the only access that a pattern has to models, tools, limits and labels.

A pattern is given a `Context`. Values are `Labelled`; only the context opens them, and the labels of what it has opened
are joined to everything that it does from then on. So the label rules hold whatever a pattern does.
"""

from bicameral.labels import (
    Labelled as Labelled,
    from_user as from_user,
    make_labelled as make_labelled,
    program_text as program_text,
    untrusted_value as untrusted_value,
    vouched_value as vouched_value,
)
from bicameral.patterns._outcome import (
    PARTIAL_NOTE as PARTIAL_NOTE,
    Answered as Answered,
    Exhausted as Exhausted,
    GaveUp as GaveUp,
    ModelCallEvent as ModelCallEvent,
    NoteEvent as NoteEvent,
    Outcome as Outcome,
    ToolCallEvent as ToolCallEvent,
    Trace as Trace,
    TraceEvent as TraceEvent,
)
from bicameral.patterns.kernel._actions import CallFailed as CallFailed
from bicameral.patterns.kernel._context import Context as Context
from bicameral.patterns.kernel._conversation import (
    CHARACTERS_PER_TOKEN as CHARACTERS_PER_TOKEN,
    UNKNOWN_TOOL as UNKNOWN_TOOL,
    PromptText as PromptText,
    Role as Role,
    RoleConversation as RoleConversation,
    RoleTier as RoleTier,
    approximate_tokens as approximate_tokens,
    cut_to_tokens as cut_to_tokens,
    format_text as format_text,
    indent_lines as indent_lines,
    join_labelled as join_labelled,
    map_labelled as map_labelled,
    render_value as render_value,
    require_tokens as require_tokens,
    select_fields as select_fields,
    shorten_text as shorten_text,
)
from bicameral.patterns.kernel._guards import (
    CallGuard as CallGuard,
    CallInterceptor as CallInterceptor,
    GuardQuestions as GuardQuestions,
    InterceptedCall as InterceptedCall,
    ask_about as ask_about,
    guard_failed_error as guard_failed_error,
)
from bicameral.patterns.kernel._parts import Round as Round, Rounds as Rounds
from bicameral.patterns.kernel._pattern import (
    Pattern as Pattern,
    PatternExample as PatternExample,
    Responder as Responder,
    TextPattern as TextPattern,
    ask_responder as ask_responder,
)
from bicameral.patterns.kernel._plans import PlanInputs as PlanInputs
from bicameral.patterns.kernel._questions import ValueCheck as ValueCheck
from bicameral.patterns.kernel._record import (
    PatternWork as PatternWork,
    extend_pattern as extend_pattern,
    has_pattern as has_pattern,
    is_pattern_run as is_pattern_run,
    replay_pattern as replay_pattern,
    replay_run as replay_run,
    resume_pattern as resume_pattern,
    resume_pattern_work as resume_pattern_work,
    run_pattern as run_pattern,
    run_pattern_work as run_pattern_work,
)
from bicameral.patterns.kernel._subject import (
    labelled_answer as labelled_answer,
    pattern_subject as pattern_subject,
)
from bicameral.patterns.kernel._tools import pattern_tool as pattern_tool
