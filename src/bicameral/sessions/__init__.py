"""Sessions: one configured model conversation each, with a role, a fixed setup and bounds.

A provider and a setup come in; every `ask` is fresh and is told to a listener, so that what each role was asked,
what it answered and what that cost is always known.
"""

from ._session import Ledger, Listener, ModelCall, Role, Session

__all__ = ["Ledger", "Listener", "ModelCall", "Role", "Session"]
