"""Sessions: one configured model conversation each, with a role, a fixed setup and bounds.

A provider and a setup come in; every `ask` is fresh and is told to a listener, so that what each role was asked,
what it answered and what that cost is always known. The two chambers are kept apart here: a quarantined session takes
a `Quarantined` provider and nothing else.
"""

from bicameral.sessions._chambers import Chambers, Quarantined, require_privileged
from bicameral.sessions._ledger import (
    Allowance,
    ChamberUsage,
    Ledger,
    Listener,
    ModelCall,
    PlanningRole,
    Role,
    enforce_allowance,
    open_ledger,
)
from bicameral.sessions._session import Session

__all__ = [
    "Allowance",
    "ChamberUsage",
    "Chambers",
    "Ledger",
    "Listener",
    "ModelCall",
    "PlanningRole",
    "Quarantined",
    "Role",
    "Session",
    "enforce_allowance",
    "open_ledger",
    "require_privileged",
]
