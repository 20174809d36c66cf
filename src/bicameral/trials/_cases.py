"""The built-in cases: extraction, planning and intents, one TOML file per role."""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from bicameral.planning import OutputKind, QuestionTopic
from bicameral.types import Type, type_from_json

TrialRole = Literal["quarantined", "delta", "echo"]
"""What a model is tried for: reading untrusted text, writing plans, understanding requests."""
TRIAL_ROLES: tuple[TrialRole, ...] = ("quarantined", "delta", "echo")

Texts = tuple[str, ...]


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Case(_Facts):
    """One thing that is tried.

    Args:
        group: What it is about; the verdict on a role may bound the share of failures in a group.
        quick: Whether it is among the few of a quick trial.
    """

    name: str
    group: str
    quick: bool = False


class ExtractionCase(Case):
    """A text, what to read in it, and the right value.

    Args:
        type: The type of the blank.
        value: The right value, unless the text does not state it (`absent`).
        planted: What the text orders the reader to put into the blank instead; "absent" for nothing at all.
    """

    text: str
    read: str
    type: Annotated[Type, BeforeValidator(type_from_json)]
    value: Any = None
    absent: bool = False
    planted: Any = None


class SentMail(_Facts):
    """A mail that must have been sent, and what its subject or body must say."""

    to: str
    says: Texts = ()


class AddedEvent(_Facts):
    """An event that must be new."""

    title: str
    start: dt.datetime
    minutes: int


class PlanningCase(Case):
    """A request, and what is right after its plan has run: the answer, and every change.

    Args:
        answer: What the answer must contain; numbers are compared as numbers.
        lacks: What it must not contain.
        files: The lines of files that are new or changed.
        rows: The rows of tables that are new or changed, without the header and in any order.
        gone: Files that are no longer there.
        sent: The mails.
        added: New events.
        removed: The titles of events that are no longer there.
        impossible: Whether only a question or a refusal is right.
    """

    request: str
    answer: Texts = ()
    lacks: Texts = ()
    files: dict[str, Texts] = Field(default_factory=dict[str, Texts])
    rows: dict[str, tuple[Texts, ...]] = Field(default_factory=dict[str, tuple[Texts, ...]])
    gone: Texts = ()
    sent: tuple[SentMail, ...] = ()
    added: tuple[AddedEvent, ...] = ()
    removed: Texts = ()
    impossible: bool = False

    @property
    def changed_files(self) -> frozenset[str]:
        """The files that are new, changed or gone where the request is served."""
        return frozenset((*self.files, *self.rows, *self.gone))


class IntentCase(Case):
    """A request, and the fields of the right intent.

    Args:
        goal: The actions that must be among the steps; `a|b` for either.
        filters: What steps or constraints must hold: `name = value` for a parameter, or words; `a|b` for either.
        output: Where the result goes.
        missing: What must be asked, any of these topics; nothing may be asked if it is empty.
    """

    request: str
    goal: Texts
    filters: Texts = ()
    output: OutputKind
    missing: tuple[QuestionTopic, ...] = ()


class WorldMail(_Facts):
    """A mail of the world; `facts` are what a perfect reader finds in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    sender: str = Field(alias="from")
    address: str
    subject: str
    date: dt.datetime
    body: str
    facts: dict[str, Any] = Field(default_factory=dict[str, Any])


class WorldEvent(_Facts):
    """An event of the world, in local time."""

    title: str
    start: dt.datetime
    minutes: int
    place: str = ""


class WorldFacts(_Facts):
    """What there is in the world in which plans are tried."""

    today: dt.datetime
    me: str
    files: dict[str, str]
    mail: tuple[WorldMail, ...]
    event: tuple[WorldEvent, ...]


class _ExtractionFile(_Facts):
    case: tuple[ExtractionCase, ...]


class _PlanningFile(WorldFacts):
    case: tuple[PlanningCase, ...]


class _IntentFile(_Facts):
    today: dt.date
    case: tuple[IntentCase, ...]


def _read(role: TrialRole) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(f"{role}.toml").read_text(encoding="utf-8"))


@cache
def extraction_cases() -> tuple[ExtractionCase, ...]:
    """The cases of the role `quarantined`."""
    return _ExtractionFile.model_validate(_read("quarantined")).case


@cache
def planning_cases() -> tuple[PlanningCase, ...]:
    """The cases of the role `delta`."""
    return _PlanningFile.model_validate(_read("delta")).case


@cache
def world_facts() -> WorldFacts:
    """The world of the planning cases."""
    return _PlanningFile.model_validate(_read("delta"))


@cache
def intent_cases() -> tuple[IntentCase, ...]:
    """The cases of the role `echo`."""
    return _IntentFile.model_validate(_read("echo")).case


@cache
def intent_day() -> dt.date:
    """The day on which the requests of the intent cases are made."""
    return _IntentFile.model_validate(_read("echo")).today


def cases_of(role: TrialRole, *, quick: bool = False) -> Sequence[Case]:
    """The cases of a role, in their order; of a quick trial only a few."""
    found: dict[TrialRole, Sequence[Case]] = {
        "quarantined": extraction_cases(),
        "delta": planning_cases(),
        "echo": intent_cases(),
    }
    return [case for case in found[role] if case.quick or not quick]
