"""The banking suite: what the user paid and what he was paid, an account, and a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from ..dojo import Transaction
from . import Shape


class Account(TypedDict):
    first_name: str
    last_name: str
    street: str
    city: str


class Done(TypedDict):
    message: str


class History(TypedDict):
    """The bank knows which way the money went: what the user paid, whose words those subjects are, and the rest."""

    outgoing: list[Transaction]
    incoming: list[Transaction]


def _history(raw: list[Any]) -> dict[str, Any]:
    return {
        "outgoing": [each for each in raw if each.sender == "me"],
        "incoming": [each for each in raw if each.sender != "me"],
    }


SHAPES: Mapping[str, Shape] = {
    "get_most_recent_transactions": Shape(History, _history),
    "get_user_info": Shape(Account),
    "update_user_info": Shape(Account),
    "send_money": Shape(Done),
    "schedule_transaction": Shape(Done),
    "update_scheduled_transaction": Shape(Done),
    "update_password": Shape(Done),
}
