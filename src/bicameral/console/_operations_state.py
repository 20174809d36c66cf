"""What the operations pages keep between requests: figures that take long to work out, and the last verification."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from bicameral.console._pages import PageCall
from bicameral.durable import CostLog
from bicameral.errors import ServerError
from bicameral.server.surface import HttpError

if TYPE_CHECKING:
    from bicameral.mcp import ServerCheck

KEPT_SECONDS = 20.0
"""How old a figure may be that took long to work out; the pages say when it was."""
MAX_KEPT = 24

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figure(Generic[T]):
    """Something that was worked out, and when."""

    value: T
    at: float


@dataclass(slots=True)
class JournalCheck:
    """One verification of the journal: who began it, how far it is, and what it found."""

    by: str
    known: int
    """How many anchors it compares with."""
    began: float = field(default_factory=time.time)
    done: int = 0
    of: int = 0
    ended: float | None = None
    breaks: list[str] = field(default_factory=list[str])
    error: str = ""
    """Why it could not be done."""

    @property
    def seconds(self) -> float:
        return (self.ended or time.time()) - self.began

    @property
    def state(self) -> str:
        """`running`, `failed`, `broken` or `intact`."""
        if self.ended is None:
            return "running"
        return "failed" if self.error else "broken" if self.breaks else "intact"


@dataclass(slots=True)
class ServerRound:
    """One round in which the MCP servers are asked what they list: who began it, and how far it is."""

    by: str
    of: int
    """How many servers are asked."""
    began: float = field(default_factory=time.time)
    done: int = 0
    ended: float | None = None
    error: str = ""
    """Why it did not come to its end."""


@dataclass(slots=True)
class AskedServer:
    """What a server answered when it was asked, and who asked."""

    check: ServerCheck
    by: str
    is_outdated: bool = False
    """Whether a newer review differs from the answer, which then says nothing about what the server lists now."""


class Operations:
    """What is kept for one server."""

    def __init__(self) -> None:
        self._figures: OrderedDict[Hashable, asyncio.Task[Figure[Any]]] = OrderedDict()
        self.cost_log = CostLog()
        self.check: JournalCheck | None = None
        self.task: asyncio.Task[None] | None = None
        """Does the verification; held here, since the event loop holds its tasks only weakly."""
        self.round: ServerRound | None = None
        self.round_task: asyncio.Task[None] | None = None
        """Asks the MCP servers."""
        self.asked: dict[str, AskedServer] = {}
        """The last answer of each MCP server."""
        self.answers = 0
        """Counts the answers: figures about servers that were made before one are not shown after it."""

    async def figure(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> Figure[T]:
        """A figure, worked out at most once in a while; whoever asks for it meanwhile waits for the same work.

        Args:
            key: What it is, and whose: nobody may get a figure about the runs of somebody else.
            work: Works it out. If that fails, it is tried again next time.
        """
        task = self._figures.get(key)
        if task is None or _is_over(task):
            task = self._figures[key] = asyncio.create_task(_work_out(work))
            task.add_done_callback(_note_failure)
        self._figures.move_to_end(key)
        while len(self._figures) > MAX_KEPT:
            self._figures.popitem(last=False)
        # A browser that goes away ends its own wait, and not the work that others wait for.
        return cast("Figure[T]", await asyncio.shield(task))


async def _work_out(work: Callable[[], Coroutine[Any, Any, T]]) -> Figure[T]:
    value = await work()
    return Figure(value, time.time())


def _is_over(task: asyncio.Task[Figure[Any]]) -> bool:
    if not task.done():
        return False
    return task.cancelled() or task.exception() is not None or time.time() - task.result().at > KEPT_SECONDS


def _note_failure(task: asyncio.Task[Figure[Any]]) -> None:
    # Whoever waits gets the error; if nobody does any more, asyncio would report that nobody has looked at it.
    if not task.cancelled():
        task.exception()


def operations_of(call: PageCall) -> Operations:
    """What is kept for the server of a request."""
    state = call.request.app.state
    if not hasattr(state, "operations"):
        state.operations = Operations()
    return cast("Operations", state.operations)


def require_all_users(call: PageCall) -> None:
    """Raise `console.needs-all-users` for a token that is for one user: what is shown there belongs to no user."""
    if not call.token.all_users:
        error = ServerError(
            "console.needs-all-users",
            "this is about the whole server, and the token is for one user",
            fix="`bicameral serve token add USER --all-users` makes a token for all users.",
        )
        raise HttpError(403, error)
