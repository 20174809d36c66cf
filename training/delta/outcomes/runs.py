"""Runs of plans in made worlds, through the real pipeline without a model: bind by rules, check, run."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from benchmarks.planning.world import World
from bicameral.agent import Agent
from bicameral.binding import Binder, PlanBinder, WorldSource
from bicameral.errors import BicameralError, IntentError
from bicameral.models import ModelRequest, ScriptedProvider
from bicameral.planning import Intent
from bicameral.planning._decode import refusal_reason
from bicameral.plans import parse
from bicameral.runs import Answers, ApprovalQuestion, Failed, Finished
from bicameral.text import text_stems
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes
from bicameral.types import Type

from ..sample import STANDARD
from .contents import Content
from .facts import Outcome, outcome_of

CONTACTS = ("contacts.csv",)
SECONDS = 20.0
"""A run that takes longer is wrong."""


class MadeWorld(World):
    """A world with made content, laid out as the benchmark of planning lays out its own."""

    def __init__(self, content: Content, today: dt.date) -> None:
        # Not that of the base class, which generates the benchmark's data.
        self.now = dt.datetime.combine(today, dt.time(10, 0))
        self.data = content.data
        self._port = 0
        self._stack = ExitStack()


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of a plan in one world: its outcome, or the code of what stopped it."""

    outcome: Outcome | None
    code: str = ""
    message: str = ""


def registry_of(world: World) -> Registry:
    """The standard tools over a made world; `find` goes by words alone, since no model may decide here."""
    settings: dict[str, Mapping[str, Any]] = {name: world.settings.get(name, {}) for name in STANDARD}
    settings["find"] = {"mail": str(world.maildir), "calendar": str(world.calendar), "meaning": False}
    around = Surroundings(_folders(world), now=lambda: world.now.replace(tzinfo=dt.UTC))
    return load_toolboxes(settings, around)


def _folders(world: World) -> Folders:
    return Folders(base=world.folder, read=tuple(world.reads), write=tuple(world.writes))


class Person:
    """Approves everything, since what should not have been done shows in the outcome, and answers from the content."""

    def __init__(self, content: Content, asked: Mapping[str, str]) -> None:
        self._answers, self._uses = content.answers, list(asked.values())

    async def ask(self, question: str, type: Type) -> Any:
        if not self._uses:
            # The reference asks nothing: whoever asks here does not know what the request says.
            raise IntentError("intent.questions", f"I don't know: {question}")
        return self._answers[self._uses[0] if len(self._uses) == 1 else self._uses.pop(0)]

    async def approve(self, question: ApprovalQuestion) -> Answers:
        return Answers.yes(question.calls)


_VALUE = re.compile(r": ((?:[^\\\n\"]|\\\")+)")
_FORM = re.compile(r"^Text:\n<<<\n(.*)\n>>>\n\n(?:Today is [^\n]*\n)?Form: (.*?)\nFields:\n", re.DOTALL)


def labelled_reader(labels: Iterable[str]) -> ScriptedProvider:
    """A quarantined model that finds `label: value`, for the label that shares most words with what is asked for.

    A text without any label, such as what a person answered, is itself the value.
    """
    known = sorted(labels)

    def reply(request: ModelRequest) -> str:
        found = _FORM.match(request.messages[-1].text)
        text, instruction = (found[1], found[2]) if found else ("", "")
        schema: Mapping[str, Any] = request.json_schema or {}
        fields: Mapping[str, Any] = schema.get("properties", {})
        return json.dumps({name: _blank(text, known, instruction, name, kind) for name, kind in fields.items()})

    return ScriptedProvider(reply)


def _blank(text: str, known: Sequence[str], instruction: str, name: str, schema: Mapping[str, Any]) -> Any:
    wanted = set(text_stems(f"{instruction} {name}"))
    lines: list[tuple[float, str]] = []
    for label in known:
        stems = set(text_stems(label))
        # As it stands there, or as it stands in a text within JSON.
        for said in {label, json.dumps(label)[1:-1]}:
            at = text.find(f"{said}: ")
            if at >= 0 and (value := _VALUE.match(text, at + len(said))):
                lines.append((len(wanted & stems) / max(1, len(wanted | stems)), value[1]))
    if not lines and len(text) < 60:
        return _converted(text.strip().strip('"'), schema)
    shared, value = max(lines, default=(0.0, ""))
    return _converted(value.strip(), schema) if shared else None


def _converted(value: str, schema: Mapping[str, Any]) -> Any:
    kinds = [schema, *schema.get("anyOf", ())]
    for each in kinds:
        match each.get("type"):
            case "number" | "integer":
                try:
                    number = float(value)
                except ValueError:
                    return None
                return int(number) if each["type"] == "integer" else number
            case "boolean":
                return value.casefold() in ("yes", "ja", "oui", "sí")
            case "array":
                return value.split(", ")
            case _:
                continue
    return value


async def attempt(
    plan: str, content: Content, today: dt.date, asked: Mapping[str, str], intent: Intent | None
) -> Attempt:
    """Run a plan in a fresh world of this content.

    Args:
        plan: The plan in its surface syntax; one that is `cannot(…)` has the outcome of a refusal.
        content: The content of the world.
        today: The day of the request.
        asked: How the answers to the reference plan's questions are used.
        intent: What the plan was written for; it is held against that, too.
    """
    if refusal_reason(plan) is not None:
        return Attempt(Outcome(refused=True))
    with MadeWorld(content, today) as world:
        registry = registry_of(world)
        agent = Agent(
            registry,
            privileged=ScriptedProvider([], name="planner"),
            quarantined=labelled_reader(content.labels),
            cache={},
            now=lambda: world.now,
        )
        person = Person(content, asked)
        try:
            async with asyncio.timeout(SECONDS):
                source = WorldSource(registry, folders=_folders(world), contacts=CONTACTS, today=today)
                bound = await PlanBinder(registry, Binder(source)).bind(parse(plan, registry).plan)
                bound.require()
                checked = agent.check(bound.plan, intent=intent)
                checked.require()
                ended = await agent.run(checked, approver=person, asker=person)
        except BicameralError as error:
            return Attempt(None, error.code, str(error))
        except (TimeoutError, RecursionError) as error:
            return Attempt(None, type(error).__name__, str(error))
        match ended:
            case Finished():
                return Attempt(outcome_of(world, ended.answer, content))
            case Failed():
                return Attempt(None, ended.error.code, str(ended.error))
            case _:
                return Attempt(None, type(ended).__name__)
