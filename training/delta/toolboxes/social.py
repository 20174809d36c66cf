"""Social media: posts, comments, followers, scheduling."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from bicameral.tools import tool
from bicameral.types import Id


@dataclass(frozen=True, slots=True)
class Post:
    """One of my posts."""

    post_id: Id
    text: str
    published: datetime
    likes: int
    shares: int
    views: int
    tags: list[str]


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment under a post."""

    comment_id: Id
    user: str
    text: str
    likes: int
    hidden: bool


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile."""

    user: str
    bio: str
    followers: int
    posts: int
    follows_me: bool


@tool(effect="read")
def get_my_posts(count: int = 20, tag: str = "", since: date | None = None) -> list[Post]:
    """My posts, newest first."""
    raise NotImplementedError


@tool(effect="read")
def get_comments(post_id: Id) -> list[Comment]:
    """The comments under a post."""
    raise NotImplementedError


@tool(effect="read")
def get_profile(user: str) -> Profile:
    """A profile by user name."""
    raise NotImplementedError


@tool(effect="read")
def get_followers(count: int = 100) -> list[Profile]:
    """Who follows me, newest first."""
    raise NotImplementedError


@tool(effect="read")
def get_following() -> list[Profile]:
    """Whom I follow."""
    raise NotImplementedError


@tool(effect="read")
def search_posts(words: str, count: int = 20) -> list[Post]:
    """Posts of anybody with these words."""
    raise NotImplementedError


@tool(effect="send", words=("post", "publish", "tweet", "share", "write", "announce"))
def publish_post(text: str, tags: Sequence[str] = ()) -> Post:
    """Publish a post now."""
    raise NotImplementedError


@tool(effect="write", words=("schedule", "plan", "queue", "later"))
def schedule_post(text: str, at: datetime) -> None:
    """Publish a post at a later time."""
    raise NotImplementedError


@tool(effect="send", words=("reply", "answer", "thank", "respond", "comment", "write"))
def reply_to_comment(comment_id: Id, text: str) -> None:
    """Answer a comment."""
    raise NotImplementedError


@tool(effect="write", words=("hide", "bury", "mute"))
def hide_comment(comment_id: Id) -> None:
    """Hide a comment."""
    raise NotImplementedError


@tool(effect="write", words=("follow",))
def follow_user(user: str) -> None:
    """Follow somebody."""
    raise NotImplementedError


@tool(effect="write", words=("unfollow",))
def unfollow_user(user: str) -> None:
    """Do not follow somebody any more."""
    raise NotImplementedError


@tool(effect="irreversible", words=("delete", "remove", "erase", "take"))
def delete_post(post_id: Id) -> None:
    """Delete one of my posts."""
    raise NotImplementedError
