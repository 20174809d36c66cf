"""A staff directory with leave, reviews and pay."""

from datetime import date
from typing import TypedDict

from bicameral.tools import tool
from bicameral.types import Address, Id


class Employee(TypedDict):
    """Somebody who works here."""

    employee_id: Id
    name: str
    job_title: str
    department: str
    manager: str
    office: str
    hired: date
    salary: float
    work_email: Address


class Leave(TypedDict):
    """A leave that was asked for."""

    leave_id: Id
    name: str
    first_day: date
    last_day: date
    days: int
    reason: str
    approved: bool


class Review(TypedDict):
    """What a reviewer wrote about somebody."""

    reviewer: str
    year: int
    score: float
    remarks: str


@tool(effect="read")
def employee_lookup(name: str) -> Employee:
    """One employee by name."""
    raise NotImplementedError


@tool(effect="read")
def employees_in(department: str = "", office: str = "") -> list[Employee]:
    """The employees of a department or office, or all."""
    raise NotImplementedError


@tool(effect="read")
def leave_requests(first_day: date | None = None, last_day: date | None = None, department: str = "") -> list[Leave]:
    """Leaves that were asked for."""
    raise NotImplementedError


@tool(effect="read")
def leave_days_left(employee_id: Id) -> int:
    """How many days of leave somebody has left this year."""
    raise NotImplementedError


@tool(effect="read")
def reviews_of(employee_id: Id, year: int | None = None) -> list[Review]:
    """The reviews of an employee."""
    raise NotImplementedError


@tool(effect="read")
def departments() -> list[str]:
    """The names of the departments."""
    raise NotImplementedError


@tool(effect="write", words=("approve", "grant", "accept", "ok", "confirm"))
def approve_leave(leave_id: Id) -> None:
    """Approve a leave."""
    raise NotImplementedError


@tool(effect="write", words=("reject", "decline", "refuse", "deny"))
def reject_leave(leave_id: Id, explanation: str) -> None:
    """Reject a leave."""
    raise NotImplementedError


@tool(effect="write", words=("move", "transfer", "change", "reassign", "relocate", "promote", "put", "switch"))
def update_employee(
    employee_id: Id, job_title: str = "", department: str = "", office: str = "", manager: str = ""
) -> Employee:
    """Change what the directory says about somebody."""
    raise NotImplementedError


@tool(effect="write", words=("salary", "raise", "pay", "increase"))
def set_salary(employee_id: Id, salary: float) -> None:
    """Change somebody's salary."""
    raise NotImplementedError


@tool(
    effect="send",
    words=(
        "email",
        "mail",
        "write",
        "tell",
        "notify",
        "inform",
        "remind",
        "congratulate",
        "send",
        "let",
        "invite",
        "ask",
    ),
)
def email_staff(to: list[Address], subject: str, body: str) -> None:
    """Send a mail to employees."""
    raise NotImplementedError
