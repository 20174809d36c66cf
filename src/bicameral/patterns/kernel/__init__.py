"""The kernel of patterns: models, tools, bounds and labels as a pattern gets them, and nothing beside them.

A pattern is given a `Context`; values come and go as `Labelled`, which only the stage opens, and what it has opened is
the label of everything it does from then on. So no pattern can step outside the law, whatever it does.
"""

from bicameral.labels import Labelled, from_user, make_labelled, program_text, untrusted_value, vouched_value
from bicameral.patterns._outcome import (
    Answered,
    Exhausted,
    GaveUp,
    ModelCallEvent,
    NoteEvent,
    Outcome,
    ToolCallEvent,
    Trace,
    TraceEvent,
)
from bicameral.patterns.kernel._context import CallGuard, Context, guard_failed_error
from bicameral.patterns.kernel._conversation import (
    UNKNOWN_TOOL,
    PromptText,
    Role,
    RoleConversation,
    RoleTier,
    approximate_tokens,
    cut_to_tokens,
    format_text,
    join_labelled,
    map_labelled,
)
from bicameral.patterns.kernel._pattern import (
    Pattern,
    PatternExample,
    run_pattern,
)

__all__ = [
    "UNKNOWN_TOOL",
    "Answered",
    "CallGuard",
    "Context",
    "Exhausted",
    "GaveUp",
    "Labelled",
    "ModelCallEvent",
    "NoteEvent",
    "Outcome",
    "Pattern",
    "PatternExample",
    "PromptText",
    "Role",
    "RoleConversation",
    "RoleTier",
    "ToolCallEvent",
    "Trace",
    "TraceEvent",
    "approximate_tokens",
    "cut_to_tokens",
    "format_text",
    "from_user",
    "guard_failed_error",
    "join_labelled",
    "make_labelled",
    "map_labelled",
    "program_text",
    "run_pattern",
    "untrusted_value",
    "vouched_value",
]
