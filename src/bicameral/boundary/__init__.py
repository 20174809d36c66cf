"""The boundary: what the quarantined model may read, what may come back, and what the privileged side may see of it.

A text from the world, one instruction and one type come in; out comes a value of that type (`Filled`), the news that
the text does not hold it (`NotFound`), or a typed refusal (`Rejected`). The model never sees the goal, the tools or
anything else, and nothing it writes is coerced. `Extractor` is the small model beside the large one; `ReadOnly` and
`Triple` are variants around it. Towards the privileged side bounded scalars cross by value, all else as a `Handle`.
"""

from ._copies import COPIED
from ._extract import MAX_SOURCE, Executor, Extractor
from ._handles import BoundaryError, Handle, Handles, Held
from ._outcome import Absence, Alert, AlertKind, Filled, NotFound, Outcome, Rejected, RejectionKind
from ._read_only import ReadOnly
from ._reply import filled, typed
from ._room import MAX_OUTPUT
from ._seen import Level, as_seen_by_privileged
from ._triple import Doubt, ModelValidator, RuleValidator, Triple, Validator
from .shield import Mark, Screening, screen

__all__ = [
    "COPIED",
    "MAX_OUTPUT",
    "MAX_SOURCE",
    "Absence",
    "Alert",
    "AlertKind",
    "BoundaryError",
    "Doubt",
    "Executor",
    "Extractor",
    "Filled",
    "Handle",
    "Handles",
    "Held",
    "Level",
    "Mark",
    "ModelValidator",
    "NotFound",
    "Outcome",
    "ReadOnly",
    "Rejected",
    "RejectionKind",
    "RuleValidator",
    "Screening",
    "Triple",
    "Validator",
    "as_seen_by_privileged",
    "filled",
    "screen",
    "typed",
]
