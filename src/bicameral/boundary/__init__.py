"""Boundary: typed extraction from untrusted text, and the privileged view of results.

Input is a text, an instruction and a type. Output is a value of that type (`Filled`), a report that the text does not
contain it (`NotFound`), or a typed refusal (`Rejected`). The quarantined model sees neither the goal nor the tools, and
its reply is parsed strictly: nothing is coerced. `Extractor` asks the model; `ReadOnlyExecutor` and `ValidatedExecutor`
wrap another executor. `privileged_view` passes bounded scalars by value and everything else as a `Handle`.
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

from .shield import Mark, screen

__all__ = [
    "COPIED_TYPES",
    "MAX_OUTPUT_TOKENS",
    "MAX_SOURCE",
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
    "ValidatedExecutor",
    "Validator",
    "ValidatorDoubt",
    "ViewLevel",
    "parse_reply",
    "parse_typed",
    "privileged_view",
    "screen",
]
