"""Team chat: channels, messages and members."""

from dataclasses import dataclass
from datetime import datetime

from bicameral.tools import tool
from bicameral.types import Id


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel."""

    name: str
    topic: str
    member_count: int
    unread_count: int
    last_post: datetime


@dataclass(frozen=True, slots=True)
class Message:
    """A message in a channel."""

    id: Id
    author: str
    text: str
    sent: datetime
    reactions: int
    pinned: bool


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody in the workspace."""

    handle: str
    full_name: str
    online: bool
    timezone: str


@tool(effect="read")
def fetch_channels(archived: bool = False) -> list[Channel]:
    """The channels of the workspace."""
    raise NotImplementedError


@tool(effect="read")
def fetch_messages(channel: str, since: datetime | None = None, author: str = "", limit: int = 100) -> list[Message]:
    """Messages of a channel, newest first."""
    raise NotImplementedError


@tool(effect="read")
def fetch_members(channel: str = "") -> list[Member]:
    """The members of a channel, or of the whole workspace."""
    raise NotImplementedError


@tool(effect="read")
def lookup_handle(full_name: str) -> str:
    """The handle of a person."""
    raise NotImplementedError


@tool(
    effect="send",
    words=("post", "announce", "send", "write", "tell", "say", "drop", "share", "message", "ask", "remind"),
)
def post_message(channel: str, text: str) -> Id:
    """Post a message in a channel."""
    raise NotImplementedError


@tool(effect="send", words=("dm", "message", "tell", "send", "ping", "remind", "write", "ask", "direct", "note"))
def direct_message(handle: str, text: str) -> Id:
    """Send a private message to somebody."""
    raise NotImplementedError


@tool(effect="write", words=("pin", "stick"))
def pin_message(channel: str, message_id: Id) -> None:
    """Pin a message in its channel."""
    raise NotImplementedError


@tool(effect="write", words=("invite", "add", "bring", "put", "get"))
def invite_member(channel: str, handle: str) -> None:
    """Add somebody to a channel."""
    raise NotImplementedError


@tool(effect="write", words=("create", "make", "open", "start", "set", "new"))
def create_channel(name: str, topic: str = "") -> Channel:
    """Create a channel."""
    raise NotImplementedError


@tool(effect="irreversible", words=("archive", "close", "retire", "shut"))
def archive_channel(name: str) -> None:
    """Archive a channel for good."""
    raise NotImplementedError


@tool(effect="irreversible", words=("delete", "remove", "erase", "drop", "wipe", "clear"))
def delete_message(message_id: Id) -> None:
    """Delete a message."""
    raise NotImplementedError
