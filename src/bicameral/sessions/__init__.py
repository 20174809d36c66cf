"""Sessions: configured model conversations, each with a role, a fixed setup and limits.

A provider and a setup come in. Every `ask` is a fresh conversation and is reported to the accounts in force and to a
listener, so that the requests, replies and costs of each role are known. The two chambers are separated here: a
quarantined session accepts only a `Quarantined` provider.
"""

from bicameral.sessions._session import (
    Chambers as Chambers,
    Listener as Listener,
    Quarantined as Quarantined,
    Session as Session,
    require_privileged as require_privileged,
)
