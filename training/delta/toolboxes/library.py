"""A public library: books, members, loans, holds and fines."""

from dataclasses import dataclass
from datetime import date

from bicameral.tools import tool
from bicameral.types import Id


@dataclass(frozen=True, slots=True)
class Book:
    """A book of the catalogue."""

    book_id: Id
    title: str
    author: str
    year: int
    copies_free: int
    shelf: str
    blurb: str


@dataclass(frozen=True, slots=True)
class Loan:
    """A book that somebody has."""

    loan_id: Id
    title: str
    card_no: str
    due: date
    renewals: int
    fine: float


@dataclass(frozen=True, slots=True)
class Patron:
    """Somebody with a library card."""

    card_no: str
    name: str
    phone: str
    joined: date
    loans: int
    fines: float


@tool(effect="read")
def catalogue_search(words: str, author: str = "", only_free: bool = False) -> list[Book]:
    """Books of the catalogue, best match first."""
    raise NotImplementedError


@tool(effect="read")
def loans_of(card_no: str) -> list[Loan]:
    """What somebody has borrowed."""
    raise NotImplementedError


@tool(effect="read")
def loans_overdue(as_of: date) -> list[Loan]:
    """All loans whose due day was before a day."""
    raise NotImplementedError


@tool(effect="read")
def patron_by_name(name: str) -> Patron:
    """One patron by name."""
    raise NotImplementedError


@tool(effect="read")
def patrons_with_fines(at_least: float = 0.01) -> list[Patron]:
    """Patrons who owe money."""
    raise NotImplementedError


@tool(effect="read")
def opening_hours(branch: str = "main") -> str:
    """The opening hours of a branch in words."""
    raise NotImplementedError


@tool(effect="write", words=("renew", "extend", "prolong"))
def renew_loan(loan_id: Id, days: int = 14) -> date:
    """Renew a loan; gives the new due day."""
    raise NotImplementedError


@tool(effect="write", words=("hold", "reserve", "keep", "put"))
def place_hold(book_id: Id, card_no: str) -> int:
    """Reserve a book; gives the place in the queue."""
    raise NotImplementedError


@tool(effect="write", words=("lend", "check", "borrow", "loan", "give", "out"))
def check_out(book_id: Id, card_no: str) -> Loan:
    """Lend a book to somebody."""
    raise NotImplementedError


@tool(effect="write", words=("return", "back", "check", "brought", "in"))
def check_in(loan_id: Id) -> None:
    """Take a book back."""
    raise NotImplementedError


@tool(effect="irreversible", words=("waive", "forgive", "clear", "drop", "cancel", "delete", "write"))
def waive_fine(loan_id: Id) -> None:
    """Forget a fine."""
    raise NotImplementedError


@tool(effect="send", words=("text", "sms", "remind", "message", "tell", "notify", "send", "let", "inform"))
def send_sms(phone: str, text: str) -> None:
    """Send a text message."""
    raise NotImplementedError
