"""The boundary: what the quarantined model may read, what may come back, and what the privileged side may see of it.

A text from the world, one instruction and one type come in; out comes a value of that type (`Filled`), the news that
the text does not hold it (`NotFound`), or a typed refusal (`Rejected`). The model never sees the goal, the tools or
anything else, and nothing it writes is coerced. `Extractor` is the small model beside the large one; `ReadOnlyExecutor` and
`ValidatedExecutor` are variants around it. Towards the privileged side bounded scalars cross by value, all else as a `Handle`.
"""

from bicameral.boundary._extract import (
    MAX_SOURCE,
    Executor,
    Extractor,
    ModelValidator,
    ReadOnlyExecutor,
    RuleValidator,
    ValidatedExecutor,
    Validator,
    ValidatorDoubt,
)
from bicameral.boundary._form import MAX_OUTPUT_TOKENS
from bicameral.boundary._privileged_view import (
    BoundaryError,
    Handle,
    HandleContent,
    HandleTable,
    ViewLevel,
    privileged_view,
)
from bicameral.boundary._reply import (
    Absence,
    Alert,
    AlertKind,
    ExtractionOutcome,
    Filled,
    NotFound,
    Rejected,
    RejectionKind,
    parse_reply,
    parse_typed,
)
from bicameral.boundary._verbatim_check import COPIED_TYPES

from .shield import Mark, Screening, screen

__all__ = [
    "COPIED_TYPES",
    "MAX_OUTPUT_TOKENS",
    "MAX_SOURCE",
    "Absence",
    "Alert",
    "AlertKind",
    "BoundaryError",
    "Executor",
    "ExtractionOutcome",
    "Extractor",
    "Filled",
    "Handle",
    "HandleContent",
    "HandleTable",
    "Mark",
    "ModelValidator",
    "NotFound",
    "ReadOnlyExecutor",
    "Rejected",
    "RejectionKind",
    "RuleValidator",
    "Screening",
    "ValidatedExecutor",
    "Validator",
    "ValidatorDoubt",
    "ViewLevel",
    "parse_reply",
    "parse_typed",
    "privileged_view",
    "screen",
]
