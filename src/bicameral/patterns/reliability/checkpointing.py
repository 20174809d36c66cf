"""V10, checkpointing: the state of a run is saved at its steps, and around everything that it changes.

Use it where work takes long, waits for people, or ends at a limit. The run's own record is the state: every reply and
every result is in it, and a resumed run comes to its last step from there without doing anything twice. This pattern
adds the saves: a chain of checkpoints, each on the disk before the next step, with the version of the program, the one
before it and a hash. A state that could not be loaded again, because of a secret or an open handle in it, is refused.
If the newest part of a record is damaged, the run goes on from the last checkpoint before that, and asks a person
before each change that it may have made already.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, ParamSpec, Self, TypeVar, cast, final

from bicameral.errors import CatalogError, JournalError, RunError
from bicameral.journal import Event, Journal, NewEvent, dumps
from bicameral.labels import Label, Labelled, program_text
from bicameral.patterns._outcome import Outcome
from bicameral.patterns.integration.direct_call import DirectCall
from bicameral.patterns.kernel import Answered, Context, Pattern, PatternExample, resume_pattern
from bicameral.patterns.kernel._codec import fingerprint, to_record
from bicameral.patterns.kernel._record import RESTORED_FROM
from bicameral.patterns.strategies import Runtime
from bicameral.runs import ENGINE_VERSION, ShouldLeave
from bicameral.secrets import mask_json
from bicameral.tools import Origin, Tool, tool
from bicameral.types import to_plain, value_to_json

P = ParamSpec("P")
T = TypeVar("T")
Moment = Literal["start", "before", "after", "step", "end"]
_NAME: Final = "checkpoint"
_RESTORED_SUFFIX: Final = "-restored"


@final
@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One save of a run. `agent` is the program with its settings, `schema` the version of the record."""

    number: int
    moment: Moment
    tool: str
    at: float
    agent: str
    schema: int
    parent: str
    hash: str

    @classmethod
    def make(cls, number: int, moment: Moment, tool: str, at: float, agent: str, parent: str) -> Self:
        unsealed = cls(number, moment, tool, at, agent, ENGINE_VERSION, parent, "")
        return replace(unsealed, hash=unsealed.seal)

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """What a save has, verified: its hash, and the versions that it was written by."""
        try:
            found = cls(**{name: facts[name] for name in cls.__slots__})
        except KeyError:
            raise _bad_checkpoint_error("a checkpoint is not whole") from None
        if found.hash != found.seal or found.schema != ENGINE_VERSION:
            raise _bad_checkpoint_error(f"checkpoint {found.number} is not what was saved")
        return found

    @property
    def facts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def seal(self) -> str:
        """The hash over everything else."""
        return hashlib.sha256(dumps(self.facts | {"hash": ""}).encode()).hexdigest()


@dataclass(frozen=True)
class Checkpointing(Pattern[P, T]):
    """Another pattern, whose state is saved at its calls of tools. The run must have a record on a disk.

    Args:
        inner: The pattern.
        every_steps: The calls of tools between saves. Those that change something are saved before and after.
        keep_last: How many saves are kept at least. The record keeps all of them until it is erased.

    Example:
        >>> work = Checkpointing(ReWOO(), every_steps=2)
        >>> outcome = await run_pattern(PatternWork(work, [question]), runtime, run="monday")
        >>> # After a crash, in another process:
        >>> outcome = await resume_from_checkpoint(journal, "monday", runtime)
    """

    id: ClassVar[str] = "V10"
    inner: Pattern[P, T]
    every_steps: int = 1
    keep_last: int = 5

    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        state = to_record([self.inner, list(args), dict(kwargs)])
        _require_no_handles(state)
        _require_no_secrets(state)

        async def work(part: Context) -> Labelled[T]:
            saves = _Saves(part, f"{ENGINE_VERSION} {fingerprint(to_record(self.inner))[:16]}", self.every_steps)
            saves.save("start")
            part.add_guard(saves)
            given = await self.inner.execute(part, *args, **kwargs)
            saves.save("end")
            return given

        return await context.run_part("saved", work)


@dataclass(slots=True)
class _Saves:
    """The checkpoints of one run, as a guard of its calls. What it is given decides nothing but the moment."""

    part: Context
    agent: str
    every_steps: int
    last: Checkpoint | None = None
    steps: int = 0

    def save(self, moment: Moment, tool: str = "") -> None:
        """Write the next checkpoint, or verify the one that is recorded in its place."""
        number, parent = (1, "") if self.last is None else (self.last.number + 1, self.last.hash)
        new = Checkpoint.make(number, moment, tool, time.time(), self.agent, parent)
        found = Checkpoint.from_facts(self.part.save(_NAME, **new.facts))
        if (found.number, found.parent, found.agent) != (number, parent, self.agent):
            raise _bad_checkpoint_error(f"checkpoint {number} does not follow the one before it")
        self.last = found

    def before(self, tool: Tool, arguments: Mapping[str, Any], label: Label) -> None:
        _require_no_secrets({name: value_to_json(each) for name, each in arguments.items()})
        if tool.changes:
            self.save("before", tool.name)

    def after(self, tool: Tool, value: Any, label: Label) -> Any:
        self.steps += 1
        _require_no_secrets(value_to_json(to_plain(value)))
        if tool.changes:
            self.save("after", tool.name)
        elif self.steps % self.every_steps == 0:
            self.save("step", tool.name)
        return value


async def resume_from_checkpoint(
    journal: Journal,
    run: str,
    runtime: Runtime,
    *,
    pattern: Pattern[..., Any] | None = None,
    leaving: ShouldLeave | None = None,
) -> Outcome[Any]:
    """Continue a run as `resume_pattern` does; one whose newest events are damaged, from its last checkpoint before.

    The damaged run stays as it is. Another run begins with the intact part of its record, under the id of the first
    with `-restored` behind it. What the damaged events said is not known: a person is asked before every change.

    Args:
        journal: The journal with the record.
        run: The whole id of the run.
        runtime: The models, tools and people.
        pattern: As in `resume_pattern`.
        leaving: As in `run_pattern`.
    """
    while not _is_intact(journal, run):
        run = _restore(journal, run)
    return await resume_pattern(journal, run, runtime, pattern=pattern, leaving=leaving)


def checkpoints(events: Sequence[Event]) -> list[Checkpoint]:
    """The checkpoints among the events of a run, in their order, verified."""
    saved = (event.body for event in events if event.kind == "note" and event.body.get("saved") == _NAME)
    return [Checkpoint.from_facts(each) for each in saved]


def _is_intact(journal: Journal, run: str) -> bool:
    try:
        journal.events(run)
    except JournalError as error:
        if error.code != "journal.damaged":
            raise
        return False
    return True


def _restore(journal: Journal, run: str) -> str:
    """Begin another run with the record of a damaged one up to its last checkpoint; its id."""
    to = f"{run}{_RESTORED_SUFFIX}"
    if journal.events_after(to, -1):
        # Somebody has restored it before: there must not be two of them that go on.
        return to
    intact = journal.intact_events(run)
    saved = [number for number, event in enumerate(intact) if event.body.get("saved") == _NAME]
    if not saved:
        raise JournalError(
            "journal.damaged",
            f"{journal.path}: run {run} is damaged, and has no checkpoint before that",
            fix="Begin the work again, after a look at what it has done.",
        )
    kept = intact[: saved[-1] + 1]
    checkpoints(kept)
    first = kept[0]
    body = {**first.body, RESTORED_FROM: run}
    entries = [NewEvent(first.at, first.kind, first.step, body)]
    entries += [NewEvent(event.at, event.kind, event.step, event.body) for event in kept[1:]]
    journal.append_all(to, entries, first=0, sync=True)
    return to


def _require_no_handles(state: object) -> None:
    if isinstance(state, dict):
        written = cast("dict[str, object]", state)
        if (name := written.get("$object")) is not None:
            raise CatalogError(
                "pattern.not-portable",
                f"{name!r} is a live object, and no state that can be saved",
                expected="patterns, roles, functions and plain values",
            )
        for each in written.values():
            _require_no_handles(each)
    elif isinstance(state, list):
        for each in cast("list[object]", state):
            _require_no_handles(each)


def _require_no_secrets(state: object) -> None:
    text = dumps(state)
    if mask_json(text) != text:
        raise RunError(
            "pattern.secret-state",
            "there is a secret in the state, which is not saved",
            expected="values without secrets: a tool gets its own from the configuration",
        )


def _bad_checkpoint_error(problem: str) -> JournalError:
    return JournalError("journal.damaged", problem, fix="`resume_from_checkpoint` goes back to the one before.")


# An example ---------------------------------------------------------------------------------------------------------


def _tools(folder: Path) -> Sequence[Tool]:
    @tool(effect="write", origins=Origin("system"), purpose={"line": "directs"})
    def add_line(line: str) -> int:
        """Add a line to the report."""
        with (folder / "report.txt").open("a") as report:
            report.write(f"{line}\n")
        return len((folder / "report.txt").read_text().splitlines())

    return (add_line,)


def _is_correct(outcome: Answered[Any]) -> bool:
    return outcome.value == 1 and [each.tool for each in outcome.effects] == ["add_line"]


EXAMPLE = PatternExample(
    "A line is written to a report, with a save before and after it: a crash never writes it twice.",
    lambda folder: Checkpointing(DirectCall("add_line")),
    lambda folder: ({"line": program_text("All doors are closed.")},),
    _is_correct,
    lambda folder: {},
    _tools,
)
