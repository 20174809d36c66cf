"""Sessions: one configured model conversation each, with a role, a fixed setup and bounds.

A provider and a setup come in; every `ask` is fresh and is told to a listener, so that what each role was asked,
what it answered and what that cost is always known. The two chambers are kept apart here: a quarantined session takes
a `Quarantined` provider and nothing else.
"""

from ._allowance import Allowance, within
from ._chambers import Chambers, Quarantined, privileged_side
from ._ledger import Ledger, Listener, ModelCall, Planning, Role, Spent, counted
from ._session import Session

__all__ = [
    "Allowance",
    "Chambers",
    "Ledger",
    "Listener",
    "ModelCall",
    "Planning",
    "Quarantined",
    "Role",
    "Session",
    "Spent",
    "counted",
    "privileged_side",
    "within",
]
