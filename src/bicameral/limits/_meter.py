"""The meter: it counts what is taken against limits, and refuses a call before it begins when one is reached."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any

from bicameral.errors import BicameralError, ModelError
from bicameral.limits._accounts import (
    Account,
    Charge,
    Ledger,
    LimitUsage,
    ModelCall,
    PendingCall,
    Role,
    charge_to,
    current_accounts,
)
from bicameral.limits._limits import BUDGET, Bound, BudgetOwner, Budgets, BudgetSpent, LimitReached, Limits, Scope
from bicameral.models import ModelReply, ModelRequest

_NO_USAGE = LimitUsage()
_NO_ROLES: Mapping[str, Limits] = {}


class Meter(Account):
    """Counts what is taken, and refuses whatever would begin when a limit is reached.

    A call that is refused was not made: only the tokens and the money of a call that was begun in time may go beyond.
    Which calls count is said by the scope of the limits.

    Args:
        limits: How much may be taken.
        roles: Budgets of single roles, besides the limits of the whole.
        before: What earlier attempts at the same run have taken.
        above: The meter of a whole of which this is a part: rounds and calls of tools are taken from it too.
        owner: What a budget belongs to.
        whom: The name of the model that a budget belongs to.
        warn_at: The share of a limit on replies or calls of tools from which `warn` is called, once for each bound.
        warn: Gets the bound that is near its limit.

    Example:
        >>> with budget_scope(Budgets(run=Limits(money=0.50), roles={"echo": Limits(calls=3)})) as meter:
        ...     await agent.run(request)
        >>> meter.usage.money
    """

    def __init__(
        self,
        limits: Limits,
        *,
        roles: Mapping[str, Limits] = _NO_ROLES,
        before: LimitUsage = _NO_USAGE,
        above: Meter | None = None,
        owner: BudgetOwner = "run",
        whom: str = "",
        warn_at: float = 1.0,
        warn: Callable[[Bound], None] | None = None,
    ) -> None:
        self.limits = limits
        self.roles = roles
        self._scope = limits.scope
        self._counts_requests = limits.scope.counts == "requests"
        self._before = before
        self._above = above
        self._owner: BudgetOwner = owner
        self._whom = whom
        self._warn_at = warn_at
        self._warn = warn
        self._warned: set[Bound] = set()
        self._refusal: BicameralError | None = None
        self._taken = replace(before, scope=limits.scope)
        self._taken_by_role: dict[str, LimitUsage] = {}
        self._replies = Ledger()
        self._replies_begun = 0
        self._people = 0
        self._worked = 0.0
        self._since = time.monotonic()
        self._deadline: asyncio.Timeout | None = None

    @property
    def usage(self) -> LimitUsage:
        """What was taken so far, by earlier attempts too."""
        if self._counts_requests:
            return replace(self._taken, seconds=self._seconds)
        return LimitUsage.of_models(
            self._before.models + self._replies.spent,
            self._scope,
            rounds=self._taken.rounds,
            tool_calls=self._taken.tool_calls,
            money=self._before.money + self._replies.cost(self.limits.prices),
            seconds=self._seconds,
        )

    @property
    def waits_for_person(self) -> bool:
        """Whether a person is being asked, so that its seconds stand still."""
        return self._people > 0

    @property
    def seconds_worked(self) -> float:
        """The seconds since it was made, without those in which a person was asked."""
        return self._worked + (0.0 if self._people else time.monotonic() - self._since)

    @property
    def _seconds(self) -> float:
        return self._before.seconds + self.seconds_worked

    # Requests to models, and with them calls of tools ---------------------------------------------------------------

    def begin(self, call: PendingCall) -> None:
        if self._counts_requests:
            self.check(call)
            for _, taken, _, _ in self._limits_of_role(call.role):
                taken.calls += 1
                taken.pending_tokens += call.prompt_tokens

    def end(self, call: PendingCall, charge: Charge) -> None:
        if self._counts_requests and call.is_real:
            for _, taken, _, _ in self._limits_of_role(call.role):
                taken.pending_tokens -= call.prompt_tokens
                taken.tokens += charge.tokens
                taken.money += charge.money or 0.0
                taken.seconds += charge.seconds

    def check(self, call: PendingCall | None = None) -> None:
        """Raise if there is nothing left of something, or if money is limited and the price of a call is unknown."""
        for limits, taken, owner, whom in self._limits_of_role(None if call is None else call.role):
            if self._scope is BUDGET and limits.money is not None and call is not None and not call.has_price:
                raise ModelError(
                    "models.price-unknown",
                    f"nobody knows what {call.model!r} costs, and money is bounded",
                    fix="Give its price in a file of prices, or bound tokens instead.",
                )
            for bound in self._scope.bounds:
                limit: float | None = getattr(limits, bound)
                # Each attempt computes anew what the one before it computed: the engine counts the work of one attempt.
                if limit is None or bound == "work":
                    continue
                had = self._amount(bound, taken, owner)
                # The round that is under way counts already.
                if had > limit or (had == limit and bound != "rounds"):
                    raise self._error(bound, had, limit, owner, whom)

    def remaining(self, bound: Bound, role: str | None = None) -> float | None:
        """How much is left of something for a role; None where nothing limits it."""
        left = [
            limit - self._amount(bound, taken, owner)
            for limits, taken, owner, _ in self._limits_of_role(role)
            if (limit := getattr(limits, bound)) is not None
        ]
        return max(0.0, min(left)) if left else None

    def _limits_of_role(self, role: str | None) -> list[tuple[Limits, LimitUsage, BudgetOwner, str]]:
        found: list[tuple[Limits, LimitUsage, BudgetOwner, str]] = [(self.limits, self._taken, self._owner, self._whom)]
        role = role or ""
        if role in self.roles:
            found.append((self.roles[role], self._taken_by_role.setdefault(role, LimitUsage()), "role", role))
        return found

    def _amount(self, bound: Bound, taken: LimitUsage, owner: BudgetOwner) -> float:
        if bound == "seconds" and owner == "run":
            return self._seconds
        return taken.tokens + taken.pending_tokens if bound == "tokens" else getattr(taken, bound)

    # Replies, rounds and calls of tools -----------------------------------------------------------------------------

    def start_reply(self, role: Role) -> None:
        if not self._counts_requests:
            # Calls that are under way count: several may be made side by side.
            self._hold("calls", self._before.models.calls + self._replies_begun)
            self._hold("tokens", self._before.models.tokens + self._replies.tokens)
            self._hold("money", self._before.money + self._replies.cost(self.limits.prices))
            self._replies_begun += 1
            self._warn_if_near()

    def add_reply(self, call: ModelCall) -> None:
        self._replies.add_reply(call)
        self._warn_if_near()

    def add_lost(self, role: Role, charges: Sequence[Charge]) -> None:
        self._replies.add_lost(role, charges)
        self._warn_if_near()

    def recount(self, role: Role, charges: Sequence[Charge], reply: ModelReply | None) -> None:
        """Count a recorded reply, or a recorded failure if it is None."""
        self._replies_begun += 1
        if reply is None:
            self._replies.add_lost(role, charges)
        else:
            request = ModelRequest(messages=())
            self._replies.add_reply(ModelCall(role, reply.model, request, reply, reply.seconds, tuple(charges)))
        self._warn_if_near()

    def count_round(self) -> None:
        """Before each round."""
        if self._above is not None:
            self._above.count_round()
        self._hold("rounds", self._taken.rounds)
        self._taken.rounds += 1

    def count_tool_call(self) -> None:
        """Before each call of a tool."""
        if self._above is not None:
            self._above.count_tool_call()
        if self._counts_requests:
            self.check()
            self._taken.calls += 1
        else:
            self._hold("tool_calls", self._taken.tool_calls)
            self._taken.tool_calls += 1
            self._warn_if_near()

    def _warn_if_near(self) -> None:
        if self._warn is None:
            return
        taken: Mapping[Bound, float] = {
            "calls": self._before.models.calls + self._replies_begun,
            "tool_calls": self._taken.tool_calls,
            "tokens": self._before.models.tokens + self._replies.tokens,
            "money": self._before.money + self._replies.cost(self.limits.prices),
        }
        for bound, amount in taken.items():
            limit: float | None = getattr(self.limits, bound)
            if limit is not None and amount >= self._warn_at * limit and bound not in self._warned:
                self._warned.add(bound)
                self._warn(bound)

    def _hold(self, bound: Bound, taken: float) -> None:
        limit: float | None = getattr(self.limits, bound)
        if limit is not None and taken >= limit:
            self._refusal = self._error(bound, taken, limit, self._owner, self._whom)
            raise self._refusal

    @property
    def refusal(self) -> BicameralError | None:
        """The error for the last reply or call of a tool that was refused, or for the time, if that is over.

        Whatever is inside may have caught it, and have something to say all the same.
        """
        if self._deadline is not None and self._deadline.expired():
            return self._error("seconds", self._seconds, self.limits.seconds or 0.0, self._owner, self._whom)
        return self._refusal

    def _error(self, bound: Bound, taken: float, limit: float, owner: BudgetOwner, whom: str) -> BicameralError:
        if self._scope is BUDGET:
            return BudgetSpent(bound, taken, limit, owner, whom)
        return LimitReached(self._scope, bound, taken, limit, self)

    def is_exhausted_by(self, error: LimitReached) -> bool:
        """Whether it was a limit of this one, or of a whole around it, that was reached: not of a part of it."""
        return error.counter is self or (self._above is not None and self._above.is_exhausted_by(error))

    # Time -----------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Count what is done inside, and stop it when its seconds are over, as when a run is stopped."""
        deadline = self._deadline = asyncio.timeout(self._seconds_left)
        try:
            async with deadline:
                with charge_to(self):
                    yield
        except TimeoutError:
            # Another time-out that ends what is inside is not this limit.
            if not deadline.expired():
                raise
            limit = self.limits.seconds or 0.0
            raise self._error("seconds", self._seconds, limit, self._owner, self._whom) from None
        finally:
            self._deadline = None

    @contextmanager
    def pause_for_person(self) -> Generator[None]:
        """A person is asked: the seconds stand still, and the deadline moves."""
        if not self._people:
            self._worked = self.seconds_worked
            self._move_deadline(None)
        self._people += 1
        try:
            yield
        finally:
            self._people -= 1
            if not self._people:
                self._since = time.monotonic()
                self._move_deadline(self._seconds_left)

    def expire(self) -> None:
        """Let the time be over now: a replay ends a part where its time was over."""
        self._move_deadline(0.0)

    @property
    def _seconds_left(self) -> float | None:
        limit = self.limits.seconds
        return None if limit is None else max(0.0, limit - self._seconds)

    def _move_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None and not self._deadline.expired():
            now = asyncio.get_running_loop().time()
            self._deadline.reschedule(None if seconds is None else now + seconds)


def meters_in_force(scope: Scope) -> tuple[Meter, ...]:
    """The meters of one scope that count what is done here, the outermost first."""
    return tuple(each for each in current_accounts() if isinstance(each, Meter) and each.limits.scope is scope)


@contextmanager
def pause_meters(meters: Iterable[Meter]) -> Generator[None]:
    """A person is asked on behalf of everything that these meters count: their seconds stand still."""
    with ExitStack() as paused:
        for meter in meters:
            paused.enter_context(meter.pause_for_person())
        yield


@contextmanager
def budget_scope(budgets: Budgets) -> Generator[Meter]:
    """Hold every model call made inside to these budgets, also those of tasks started there.

    Inside a block with the very same budgets it goes on with their meter: a run and the planning before it share one.
    """
    for account in current_accounts():
        if isinstance(account, Meter) and account.limits is budgets.run and account.roles is budgets.roles:
            yield account
            return
    meter = Meter(budgets.run, roles=budgets.roles)
    with charge_to(meter):
        yield meter


_REMAINING: tuple[tuple[str, Bound], ...] = (
    ("tokens_left", "tokens"),
    ("money_left", "money"),
    ("seconds_left", "seconds"),
)


def remaining_for_role(role: str) -> dict[str, Any]:
    """What the budgets around leave to a role, by the names of the call context; nothing that is not limited."""
    remaining: dict[str, Any] = {}
    for account in current_accounts():
        if isinstance(account, Meter) and account.limits.scope is BUDGET:
            for name, bound in _REMAINING:
                if (left := account.remaining(bound, role)) is not None:
                    remaining[name] = min(left, remaining.get(name, left))
    return remaining


def recount_reply(scope: Scope, role: Role, charges: Sequence[Charge], reply: ModelReply | None) -> None:
    """Count a recorded reply, or a recorded failure if it is None, for the meters of one scope that are in force here.

    Nothing is refused: what is recorded was allowed. Calls that are made afterwards find it taken.
    """
    for meter in meters_in_force(scope):
        meter.recount(role, charges, reply)
