"""Limits that hold across all workers: how many at the same time, and how many in a time.

Who has a turn is in the database, until a time that his worker renews: the turns of a dead worker come free with its
lease. Whoever gets none waits, and nothing fails.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import sqlalchemy as sa

from bicameral.config import QuotaTable, rate_of
from bicameral.errors import DurableError
from bicameral.turns import What

from ._database import Database

SOON, SELDOM = 0.05, 1.0


@dataclass(frozen=True, slots=True)
class Quota:
    """How many at the same time, and how many in how many seconds; None is no limit."""

    concurrency: int | None
    rate: tuple[int, float] | None


def quotas(limits: QuotaTable) -> dict[tuple[What, str], Quota]:
    """What a configuration limits, by name."""
    found: dict[tuple[What, str], Quota] = {}
    kinds: tuple[tuple[What, Mapping[str, object]], ...] = (("tool", limits.tools), ("model", limits.models))
    for what, _ in kinds:
        for name, each in (limits.tools if what == "tool" else limits.models).items():
            found[what, name] = Quota(each.concurrency, None if each.rate is None else rate_of(each.rate))
    return found


class SharedTurns:
    """Turns that all workers of a database take together."""

    def __init__(self, database: Database, limits: QuotaTable, worker: str, seconds: float) -> None:
        self._database = database
        self._quotas = quotas(limits)
        self._worker = worker
        self._seconds = seconds
        self.held: set[str] = set()
        """The turns that this worker has, for its heart to renew."""

    @asynccontextmanager
    async def turn(self, what: What, name: str) -> AsyncGenerator[None]:
        quota = self._quotas.get((what, name))
        if quota is None:
            yield
            return
        id = await self._taken(f"{what}:{name}", quota)
        try:
            yield
        finally:
            self.held.discard(id)
            if quota.concurrency is not None:
                await asyncio.shield(self._freed(id))

    async def _taken(self, what: str, quota: Quota) -> str:
        id, pause = uuid.uuid4().hex, SOON
        self.held.add(id)
        try:
            while not await self._database.do(lambda db: self._take(db, id, what, quota)):
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
                pause = min(SELDOM, pause * 1.5)
        except BaseException:
            self.held.discard(id)
            await asyncio.shield(self._freed(id))
            raise
        return id

    async def _freed(self, id: str) -> None:
        holders = self._database.t.holders
        # What cannot be freed now comes free when it is not renewed.
        with suppress(DurableError):
            await self._database.do(lambda db: db.execute(holders.delete().where(holders.c.id == id)).rowcount)

    def _take(self, db: sa.Connection, id: str, what: str, quota: Quota) -> bool:
        holders, starts, now = self._database.t.holders, self._database.t.starts, self._database.now
        if not self._database.sqlite:
            db.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(what, 0))))
        # In SQLite the first change takes the lock, so what is counted after it stays true.
        db.execute(holders.delete().where(holders.c.what == what, holders.c.until < now))
        if db.execute(sa.select(starts.c.id).where(starts.c.id == id)).first():
            return True
        if quota.concurrency is not None and _count(db, holders.c.id, holders.c.what == what) >= quota.concurrency:
            return False
        if quota.rate is not None:
            number, period = quota.rate
            db.execute(starts.delete().where(starts.c.what == what, starts.c.at < now - period))
            if _count(db, starts.c.id, starts.c.what == what) >= number:
                return False
            db.execute(starts.insert().values(id=id, what=what, at=now))
        if quota.concurrency is not None and not db.execute(sa.select(holders.c.id).where(holders.c.id == id)).first():
            row = {"id": id, "what": what, "worker": self._worker, "until": now + self._seconds}
            db.execute(holders.insert().values(**row))
        return True


def _count(db: sa.Connection, column: sa.Column[str], where: sa.ColumnElement[bool]) -> int:
    return db.execute(sa.select(sa.func.count(column)).where(where)).scalar_one()
