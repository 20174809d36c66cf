"""The kernel of patterns: models, tools, bounds and labels as a pattern gets them, and nothing beside them.

A pattern is given a `Context`; values come and go as `Labelled`, which only the stage opens, and what it has opened is
the label of everything it does from then on. So no pattern can step outside the law, whatever it does.
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
from bicameral.patterns.kernel._context import (
    CallGuard as CallGuard,
    Context as Context,
    guard_failed_error as guard_failed_error,
)
from bicameral.patterns.kernel._conversation import (
    UNKNOWN_TOOL as UNKNOWN_TOOL,
    PromptText as PromptText,
    Role as Role,
    RoleConversation as RoleConversation,
    RoleTier as RoleTier,
    approximate_tokens as approximate_tokens,
    cut_to_tokens as cut_to_tokens,
    format_text as format_text,
    join_labelled as join_labelled,
    map_labelled as map_labelled,
)
from bicameral.patterns.kernel._pattern import (
    Pattern as Pattern,
    PatternExample as PatternExample,
    run_pattern as run_pattern,
)
