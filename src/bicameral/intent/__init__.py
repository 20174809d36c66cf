"""Intent: what a person wants, understood before anything is planned.

A request in anyone's words comes in; out comes a versioned `Intent` (steps, constraints, effects asked for, dates
resolved, open questions). Echo asks a model only when the request is not already explicit.
"""

from ._dates import named_dates
from ._echo import Echo
from ._intent import Intent, IntentStep, NamedDate, intent_schema
from ._mentions import mentions, mentions_path
from ._rules import (
    MAX_REQUEST,
    asked_effects,
    checked_request,
    gaps,
    is_explicit,
    required_effects,
    tool_stems,
    vocabulary,
)
from ._words import is_stop_word, says, stem, stems

__all__ = [
    "MAX_REQUEST",
    "Echo",
    "Intent",
    "IntentStep",
    "NamedDate",
    "asked_effects",
    "checked_request",
    "gaps",
    "intent_schema",
    "is_explicit",
    "is_stop_word",
    "mentions",
    "mentions_path",
    "named_dates",
    "required_effects",
    "says",
    "stem",
    "stems",
    "tool_stems",
    "vocabulary",
]
