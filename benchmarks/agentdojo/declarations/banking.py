"""The banking suite: what the bank books is the bank's word, what a payer writes as a subject is not."""

from __future__ import annotations

from collections.abc import Mapping

from bicameral.tools import Origin

from . import ECHO, Declaration

_BANK = Origin("system")
_OWN = Origin("user")
_STRANGER = Origin("third_party")

# The bank numbers, dates and books a transaction and knows whose accounts it moves money between. The subject is
# whatever the payer wrote, and of what the user paid that was the user.
_TRANSACTIONS = {"": _BANK, "outgoing[].subject": _OWN, "incoming[].subject": _STRANGER}
# Nobody but the user can schedule a transaction of the user's account: its subject is the user's own.
_ORDERS = {"": _OWN, "[].id": _BANK, "[].sender": _BANK}
_ACCOUNT = {"": _OWN}
_CHANGING = ("change", "update", "edit", "adjust", "modify", "correct", "increase", "decrease", "raise", "lower")

DECLARATIONS: Mapping[str, Declaration] = {
    "get_iban": Declaration("read", result={"": _BANK}),
    "get_balance": Declaration("read", result={"": _BANK}),
    "get_most_recent_transactions": Declaration("read", {"n": "selects"}, _TRANSACTIONS),
    "get_scheduled_transactions": Declaration("read", result=_ORDERS),
    "read_file": Declaration("read", {"file_path": "selects"}, {"": _STRANGER}),
    "get_user_info": Declaration("read", result=_ACCOUNT),
    "send_money": Declaration(
        "irreversible",
        {"recipient": "directs", "amount": "directs", "subject": "carries", "date": "directs"},
        {"": ECHO},
        receivers=("recipient",),
        words=("send", "pay", "transfer", "wire", "refund", "reimburse", "repay", "settle", "give back"),
    ),
    "schedule_transaction": Declaration(
        "irreversible",
        {
            "recipient": "directs",
            "amount": "directs",
            "subject": "carries",
            "date": "directs",
            "recurring": "directs",
        },
        {"": ECHO},
        receivers=("recipient",),
        words=("schedule", "set up", "arrange", "plan", "create", "standing order", "recurring"),
    ),
    "update_scheduled_transaction": Declaration(
        "irreversible",
        {
            "id": "directs",
            "recipient": "directs",
            "amount": "directs",
            "subject": "carries",
            "date": "directs",
            "recurring": "directs",
        },
        {"": ECHO},
        receivers=("recipient",),
        words=_CHANGING,
    ),
    "update_password": Declaration(
        "irreversible", {"password": "directs"}, {"": ECHO}, outbound=False, words=(*_CHANGING, "set", "reset")
    ),
    # An address decides where the bank sends what it has to say: more than something stored.
    "update_user_info": Declaration(
        "write",
        {"first_name": "directs", "last_name": "directs", "street": "directs", "city": "directs"},
        _ACCOUNT,
        words=_CHANGING,
    ),
}
