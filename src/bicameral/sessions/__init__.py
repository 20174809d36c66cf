"""Sessions: configured model conversations, each with a role, a fixed setup and limits.

A provider and a setup come in. Every `ask` is a fresh conversation and is reported to a listener, so that the requests,
replies and costs of each role are known. The two chambers are separated here: a quarantined session accepts only a
`Quarantined` provider.
"""

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
from bicameral.sessions._session import Chambers, Quarantined, Session, require_privileged

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
