"""Runs wherever they are recorded: in the journal of this machine, and with those that were submitted.

With SQLite both share one journal; with PostgreSQL what was submitted is recorded there. Where nothing was submitted,
nothing of that is loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bicameral.errors import BicameralError, DurableError, JournalError

from ._durable import in_postgres, is_there, submitted_runs

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import Runs, RunView
    from bicameral.runs import Journal, RunSummary

_PAGE = 1000
_UNKNOWN = ("journal.unknown-run", "journal.no-runs", "durable.unknown-run", "durable.no-runs")


@dataclass(frozen=True, slots=True)
class Found:
    """A run by its full id: the journal that has it, unless it has not begun, and how it stands if it was submitted."""

    run: str
    journal: Journal | None
    view: RunView | None

    def recorded(self) -> Journal:
        """The journal; a run that has not begun has none."""
        if self.journal is None:
            state = self.view.state if self.view else "unknown"
            raise DurableError(
                "durable.not-ended",
                f"the run {self.run} is {state}: nothing of it is recorded yet",
                fix=f"`bicameral runs watch {self.run}` shows how it goes on.",
            )
        return self.journal

    def ended(self) -> Journal:
        """The journal of a run that nobody works on any more."""
        if self.view is not None and not self.view.ended:
            raise DurableError(
                "durable.not-ended",
                f"the run {self.run} is {self.view.state}",
                fix=f"Let it end, or stop it: `bicameral runs cancel {self.run}`.",
            )
        return self.recorded()


class Records:
    """All runs that a configuration knows. `trouble` says why those that were submitted are not among them."""

    def __init__(self, journal: Journal, runs: Runs | None, trouble: BicameralError | None) -> None:
        self.journal, self.runs, self.trouble = journal, runs, trouble

    @property
    def journals(self) -> list[Journal]:
        if self.runs is None or self.runs.database.sqlite:
            return [self.journal]
        return [self.journal, self.runs.record]

    async def views(self, limit: int) -> list[RunView]:
        """The newest submitted runs, page by page."""
        found: list[RunView] = []
        while self.runs is not None and len(found) < limit:
            before = found[-1].run if found else None
            page = await self.runs.list(limit=min(limit - len(found), _PAGE), before=before)
            found += page
            if len(page) < _PAGE:
                break
        return found

    async def summaries(self, limit: int) -> list[RunSummary]:
        found = [each for journal in self.journals for each in await asyncio.to_thread(_newest, journal, limit)]
        return sorted(found, key=lambda each: each.started, reverse=True)[:limit]

    async def find(self, run: str) -> Found:
        """A run by its id, the beginning of it, or `last`."""
        if run == "last":
            run = await self._last()
        problem: BicameralError | None = None
        names: dict[str, Journal | None] = {}
        for journal in self.journals:
            try:
                names[journal.find(run)] = journal
            except JournalError as error:
                problem = self._unknown(problem, error)
        view = None
        try:
            view = None if self.runs is None else await self.runs.get(next(iter(names), run))
        except DurableError as error:
            problem = self._unknown(problem, error)
        if view is not None:
            names.setdefault(view.run, None)
        return self._only(run, names, view, problem)

    def _only(
        self, run: str, names: dict[str, Journal | None], view: RunView | None, problem: BicameralError | None
    ) -> Found:
        if len(names) > 1:
            raise ambiguous(run, names)
        for name, journal in names.items():
            return Found(name, journal, view)
        raise self.trouble or problem or JournalError("journal.unknown-run", f"there is no run {run!r}")

    def _unknown(self, before: BicameralError | None, error: BicameralError) -> BicameralError:
        """Of several that do not know a run, the one that knows a name like it."""
        if error.code not in _UNKNOWN:
            raise error
        return error if before is None or (error.nearest and not before.nearest) else before

    async def _last(self) -> str:
        found = [(each.started, each.run) for each in await self.summaries(1)]
        found += [(each.created.timestamp(), each.run) for each in await self.views(1)]
        if not found:
            raise JournalError("journal.no-runs", f"{self.journal.path} holds no run yet")
        return max(found)[1]


def _newest(journal: Journal, limit: int) -> list[RunSummary]:
    return list(journal.runs(limit))


@asynccontextmanager
async def records(config: Config) -> AsyncGenerator[Records]:
    """All runs of a configuration. If submitted ones cannot be reached, the others still can."""
    from bicameral.config import open_journal

    async with AsyncExitStack() as stack:
        journal = stack.enter_context(open_journal(config))
        runs, trouble = None, None
        if is_there(config):
            try:
                runs = await stack.enter_async_context(submitted_runs(config))
            except DurableError as error:
                trouble = error
        yield Records(journal, runs, trouble)


@contextmanager
def journals(config: Config) -> Generator[list[Journal]]:
    """The journal of this machine, and the one of submitted runs where that is another."""
    from bicameral.config import open_journal
    from bicameral.runs import open_journal_at

    with ExitStack() as stack:
        found = [stack.enter_context(open_journal(config))]
        if in_postgres(config):
            found.append(stack.enter_context(open_journal_at(config.durable_database)))
        yield found


def recorded_in(known: Sequence[Journal], run: str) -> tuple[Journal, str]:
    """The journal that has a run, and its full id, from the beginning of it or `last`."""
    if run == "last":
        newest = [(each.started, number, each.run) for number, one in enumerate(known) for each in one.runs(limit=1)]
        if newest:
            _, number, name = max(newest)
            return known[number], name
    problem: JournalError | None = None
    found: dict[str, Journal] = {}
    for journal in known:
        try:
            found[journal.find(run)] = journal
        except JournalError as error:
            if error.code not in _UNKNOWN:
                raise
            problem = error if problem is None or (error.nearest and not problem.nearest) else problem
    if len(found) > 1:
        raise ambiguous(run, found)
    for name, journal in found.items():
        return journal, name
    raise problem or JournalError("journal.unknown-run", f"there is no run {run!r}")


def ambiguous(run: str, names: Iterable[str]) -> JournalError:
    return JournalError(
        "journal.ambiguous-run", f"{run!r} begins several runs: {', '.join(names)}", fix="Give more of the id."
    )
