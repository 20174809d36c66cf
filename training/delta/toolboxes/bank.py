"""A bank account: balances, transactions, transfers and standing orders."""

from dataclasses import dataclass
from datetime import date

from bicameral.tools import tool
from bicameral.types import Id


@dataclass(frozen=True, slots=True)
class Transaction:
    """Money that went or came; the other of `spent` and `received` is zero."""

    id: Id
    day: date
    partner: str
    spent: float
    received: float
    category: str
    note: str


@dataclass(frozen=True, slots=True)
class Payee:
    """Somebody who can be paid."""

    name: str
    iban: str


@dataclass(frozen=True, slots=True)
class Order:
    """A standing order."""

    id: Id
    payee: str
    amount: float
    next_day: date


@tool(effect="read")
def get_balance(account: str = "checking") -> float:
    """The balance of an account."""
    raise NotImplementedError


@tool(effect="read")
def get_transactions(
    account: str = "checking", since: date | None = None, until: date | None = None, partner: str = ""
) -> list[Transaction]:
    """The transactions of an account, newest first."""
    raise NotImplementedError


@tool(effect="read")
def find_payees(name: str) -> list[Payee]:
    """Saved payees with this name."""
    raise NotImplementedError


@tool(effect="read")
def get_exchange_rate(currency: str) -> float:
    """How much one euro is in a currency."""
    raise NotImplementedError


@tool(effect="send", words=("pay", "transfer", "send", "wire", "settle", "give"))
def transfer_money(iban: str, amount: float, reference: str = "") -> str:
    """Transfer money to somebody; gives the confirmation number."""
    raise NotImplementedError


@tool(effect="write", words=("move", "put", "shift", "top", "set", "transfer"))
def move_between_accounts(source: str, target: str, amount: float) -> None:
    """Move money between two own accounts."""
    raise NotImplementedError


@tool(effect="write", words=("category", "categorize", "categorise", "label", "mark", "tag", "file", "sort"))
def set_category(id: Id, category: str) -> None:
    """Put a transaction into a category."""
    raise NotImplementedError


@tool(effect="read")
def get_standing_orders() -> list[Order]:
    """All standing orders, each paid monthly."""
    raise NotImplementedError


@tool(effect="irreversible", words=("cancel", "stop", "end", "delete", "remove", "kill"))
def cancel_standing_order(id: Id) -> None:
    """Cancel a standing order."""
    raise NotImplementedError
