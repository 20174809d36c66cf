"""A code repository: issues, pull requests, releases, builds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from bicameral.tools import tool


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue."""

    number: int
    title: str
    body: str
    author: str
    labels: list[str]
    state: str
    comments: int
    created: date


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request."""

    number: int
    title: str
    author: str
    approvals: int
    draft: bool
    checks_pass: bool
    changed_lines: int
    branch: str


@dataclass(frozen=True, slots=True)
class Release:
    """A release."""

    tag: str
    published: date
    notes: str
    downloads: int


@dataclass(frozen=True, slots=True)
class Build:
    """A run of the build."""

    branch: str
    passed: bool
    minutes: float
    output: str


@tool(effect="read")
def issues_list(state: str = "open", label: str = "", author: str = "", since: date | None = None) -> list[Issue]:
    """Issues, newest first."""
    raise NotImplementedError


@tool(effect="read")
def issue_view(number: int) -> Issue:
    """One issue."""
    raise NotImplementedError


@tool(effect="read")
def pulls_list(author: str = "", base: str = "main") -> list[Pull]:
    """Open pull requests."""
    raise NotImplementedError


@tool(effect="read")
def releases_list(limit: int = 10) -> list[Release]:
    """Releases, newest first."""
    raise NotImplementedError


@tool(effect="read")
def builds_recent(branch: str = "main", limit: int = 20) -> list[Build]:
    """The last builds of a branch, newest first."""
    raise NotImplementedError


@tool(effect="write", words=("issue", "open", "create", "file", "new", "report", "raise"))
def issue_create(title: str, body: str, labels: Sequence[str] = ()) -> Issue:
    """Open an issue."""
    raise NotImplementedError


@tool(effect="write", words=("label", "tag", "mark", "flag"))
def issue_label(number: int, label: str) -> None:
    """Put a label on an issue."""
    raise NotImplementedError


@tool(effect="send", words=("comment", "reply", "ask", "answer", "write", "say", "thank", "post", "remind", "nudge"))
def issue_comment(number: int, text: str) -> None:
    """Comment on an issue or pull request."""
    raise NotImplementedError


@tool(effect="write", words=("close", "shut"))
def issue_close(number: int, reason: str = "completed") -> None:
    """Close an issue."""
    raise NotImplementedError


@tool(effect="irreversible", words=("merge", "land"))
def pull_merge(number: int, squash: bool = True) -> None:
    """Merge a pull request."""
    raise NotImplementedError


@tool(effect="irreversible", words=("release", "publish", "cut", "ship", "tag"))
def release_publish(tag: str, notes: str) -> Release:
    """Publish a release."""
    raise NotImplementedError
