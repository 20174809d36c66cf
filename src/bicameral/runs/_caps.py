"""Caps: how much a run may take of everything, counted over all attempts at it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

from bicameral.errors import RunError
from bicameral.plans import RunWork
from bicameral.routing import Asked, Budgets, Charge, Purse

T = TypeVar("T")

Cap = Literal["rounds", "calls", "tokens", "money", "seconds", "work"]
"""What a run can run out of."""
CAPS: tuple[Cap, ...] = ("rounds", "calls", "tokens", "money", "seconds", "work")
_METERED = CAPS[:5]
"""Those that are counted over all attempts; each attempt computes anew what the one before it computed."""
_UNLIMITED = 10**17


@dataclass(frozen=True, slots=True)
class Caps:
    """How much a run may take of each; nothing is begun beyond that, and how it ends is `run.cap`.

    `rounds` are the plans that were written for one request, of which this run is one; `calls` those of tools and of
    models together; `money` is what is known of the models' cost, in the currency of the price table; `seconds` are
    those in which it works, not those in which it waits for a person. Tokens of the last call, which nobody knows
    before it is made, may go beyond. `work` is what its expressions compute: an item gone over, a value compared or
    made, or 64 characters of text are one step each, about 100 ns.
    """

    rounds: int = 20
    calls: int = 20_000
    tokens: int = 5_000_000
    money: float = 10.0
    seconds: float = 3_600.0
    work: int = 100_000_000

    def __post_init__(self) -> None:
        for name in CAPS:
            limit: object = getattr(self, name)
            whole = type(limit) is int or (type(limit) is float and name in ("money", "seconds"))
            if not whole or not 0 < float(limit) < 1e18:  # pyright: ignore[reportArgumentType]
                raise RunError("run.bad-cap", f"a cap of {limit!r} {name} makes no sense", expected="more than 0")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Caps:
        # A run that was recorded before there was a limit on its work had none.
        return cls(**{name: facts[name] for name in _METERED}, work=facts.get("work") or _UNLIMITED)

    def run_work(self) -> RunWork:
        """What counts the work of one attempt."""
        return RunWork(self.work, lambda: CapReached("work", self.work, self.work))


class CapReached(RunError):
    """A run has no more of something: `taken` of `limit`."""

    def __init__(self, cap: Cap, taken: float, limit: float) -> None:
        super().__init__(
            "run.cap",
            f"the run has no {cap} left: {taken:g} of {limit:g} are taken",
            fix=f"Ask for less, or allow more: `{cap}` in [limits] of bicameral.toml.",
        )
        self.cap: Cap = cap
        self.taken = taken
        self.limit = limit

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"cap": self.cap, "taken": round(self.taken, 9), "limit": self.limit}


@dataclass(frozen=True, slots=True)
class Taken:
    """How much was taken of each."""

    rounds: int = 1
    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0


class CapMeter:
    """Counts what a run takes; before each call of a tool or a model it is asked whether there is some left.

    Models are counted by a purse, as an account of theirs.
    """

    def __init__(self, caps: Caps, before: Taken = Taken()) -> None:  # noqa: B008 (frozen)
        self.caps = caps
        self._before = before
        self._purse = Purse(Budgets())
        self._tools = 0
        self._people = 0
        self._working = 0.0
        self._since = time.monotonic()
        self._deadline: asyncio.Timeout | None = None

    @property
    def worked(self) -> float:
        """The seconds that this attempt has worked."""
        return self._working + (0.0 if self._people else time.monotonic() - self._since)

    @property
    def taken(self) -> Taken:
        """What all attempts together have taken."""
        before, spent = self._before, self._purse.spent
        return Taken(
            before.rounds,
            before.calls + self._tools + spent.calls,
            before.tokens + spent.tokens + spent.reading,
            before.money + spent.money,
            before.seconds + self.worked,
        )

    def check(self) -> None:
        """Raise if there is nothing left of something."""
        taken = self.taken
        for cap in _METERED:
            limit, had = getattr(self.caps, cap), getattr(taken, cap)
            # The round that is under way counts already.
            if had > limit or (had == limit and cap != "rounds"):
                raise CapReached(cap, had, limit)

    def tool(self) -> None:
        """A tool is about to be called."""
        self.check()
        self._tools += 1

    def begin(self, call: Asked) -> None:
        """A model is about to be asked."""
        self.check()
        self._purse.begin(call)

    def end(self, call: Asked, charge: Charge) -> None:
        self._purse.end(call, charge)

    @contextmanager
    def asking(self) -> Generator[None]:
        """A person is asked: that takes as long as it takes."""
        if not self._people:
            self._working = self.worked
            self._until(None)
        self._people += 1
        try:
            yield
        finally:
            self._people -= 1
            if not self._people:
                self._since = time.monotonic()
                self._until(self._left)

    async def within(self, work: Awaitable[T]) -> T:
        """Do it in the seconds that are left; what is under way then comes to its end as when a run is stopped."""
        deadline = self._deadline = asyncio.timeout(self._left)
        try:
            async with deadline:
                return await work
        except TimeoutError:
            if not deadline.expired():
                raise
            raise CapReached("seconds", self.taken.seconds, self.caps.seconds) from None
        finally:
            self._deadline = None

    @property
    def _left(self) -> float:
        return max(0.0, self.caps.seconds - self.taken.seconds)

    def _until(self, seconds: float | None) -> None:
        if self._deadline is not None and not self._deadline.expired():
            now = asyncio.get_running_loop().time()
            self._deadline.reschedule(None if seconds is None else now + seconds)
