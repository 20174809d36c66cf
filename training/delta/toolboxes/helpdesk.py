"""Help-desk tickets: find, assign, comment, close."""

from dataclasses import dataclass
from datetime import date, datetime

from bicameral.tools import tool
from bicameral.types import Address, Id


@dataclass(frozen=True, slots=True)
class Ticket:
    """A ticket; priority 1 is the most urgent."""

    ticket_id: Id
    subject: str
    description: str
    requester: Address
    assignee: str | None
    status: str
    priority: int
    created: datetime


@dataclass(frozen=True, slots=True)
class Agent:
    """Somebody who works on tickets."""

    username: str
    team: str
    open_tickets: int
    on_shift: bool


@dataclass(frozen=True, slots=True)
class Article:
    """A page of the knowledge base."""

    title: str
    body: str
    views: int


@tool(effect="read")
def find_tickets(
    words: str = "", status: str = "open", assignee: str = "", created_after: date | None = None
) -> list[Ticket]:
    """Tickets that match, newest first."""
    raise NotImplementedError


@tool(effect="read")
def list_agents(team: str = "") -> list[Agent]:
    """The agents of a team, or all."""
    raise NotImplementedError


@tool(effect="read")
def search_knowledge(words: str) -> list[Article]:
    """Pages of the knowledge base, best first."""
    raise NotImplementedError


@tool(effect="write", words=("open", "create", "file", "raise", "log", "make", "new"))
def open_ticket(subject: str, description: str, priority: int = 3) -> Ticket:
    """Open a new ticket."""
    raise NotImplementedError


@tool(effect="write", words=("assign", "give", "hand", "reassign", "pass", "take", "put", "route"))
def assign_ticket(ticket_id: Id, username: str) -> None:
    """Give a ticket to an agent."""
    raise NotImplementedError


@tool(
    effect="write",
    words=("priority", "prioritise", "prioritize", "escalate", "bump", "raise", "set", "urgent", "lower", "downgrade"),
)
def set_priority(ticket_id: Id, priority: int) -> None:
    """Change the priority of a ticket."""
    raise NotImplementedError


@tool(effect="write", words=("comment", "note", "add", "leave", "internal", "write"))
def add_comment(ticket_id: Id, comment: str) -> None:
    """Add a note that only agents see."""
    raise NotImplementedError


@tool(effect="send", words=("reply", "answer", "respond", "tell", "write", "send", "ask", "let", "inform"))
def reply_to_requester(ticket_id: Id, text: str) -> None:
    """Answer the person who wrote the ticket."""
    raise NotImplementedError


@tool(effect="irreversible", words=("close", "resolve", "shut"))
def close_ticket(ticket_id: Id, resolution: str) -> None:
    """Close a ticket for good."""
    raise NotImplementedError
