"""The pattern runs of the storm, and the model that they ask.

Each kind is a pattern, or several put together, whose work is the same each time: what its models reply follows from
the prompt alone. Every effect has a name of its own, which begins with the run's ticket. The last reply has a
fingerprint of everything that its model was shown, so that a result which got lost or changed on the way makes another
answer.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

from benchmarks.chaos.plans import Errand
from bicameral.labels import Labelled
from bicameral.models import Chamber, ModelRequest, ScriptedProvider, ToolCall
from bicameral.patterns import OrchestratorWorkers, OutputTemplate, Parallelization, Pattern, ReAct, ReWOO, from_user
from bicameral.patterns.kernel import PatternWork, Role
from bicameral.patterns.orchestration.chain import Chain
from bicameral.patterns.orchestration.orchestrator_workers import WorkerSpec
from bicameral.patterns.reasoning.react import AGENT
from bicameral.patterns.reasoning.rewoo import PLANNER
from bicameral.types import type_from_annotation

TextPattern = Pattern[[Labelled[str]], Any]
Call = tuple[str, Mapping[str, Any]]
_TICKET = re.compile(r"ticket (t\d+) number (\d+)")
_PART = re.compile(r"^Part (\w+)\.")


class Slip(TypedDict):
    """What a form of the storm holds."""

    ticket: str
    seen: str


def pattern_errands(many: int, seed: int = 0) -> list[Errand]:
    """So many runs of patterns, of every kind in turn, in an order that looks like none."""
    kinds = [list(KINDS)[number % len(KINDS)] for number in range(many)]
    random.Random(seed).shuffle(kinds)
    return [
        Errand(f"t{number}", kind, PatternWork(KINDS[kind](), (from_user(f"ticket t{number} number {number}"),)))
        for number, kind in enumerate(kinds)
    ]


# What is done -------------------------------------------------------------------------------------------------------


def _planned(name: str) -> ReWOO:
    return ReWOO(planner=_named(PLANNER, name))


def _stepwise(name: str) -> ReAct:
    return ReAct(agent=_named(AGENT, name))


def _named(role: Role, name: str) -> Role:
    """A role whose model knows by its setup which part it has."""
    return replace(role, setup=f"Part {name}. {role.setup}")


def _worker(name: str) -> WorkerSpec:
    return WorkerSpec(name, f"does the part {name}", _stepwise(name), ("note",))


KINDS: Mapping[str, Callable[[], TextPattern]] = {
    "planned": lambda: _planned("notes"),
    "planned, approved": lambda: _planned("pays"),
    "stepwise": lambda: _stepwise("steps"),
    "stepwise, approved": lambda: _stepwise("reads"),
    "stamps": lambda: _stepwise("stamps"),
    "chain": lambda: Chain.of(_planned("notes"), _stepwise("steps"), OutputTemplate(type_from_annotation(Slip))),
    "side by side": lambda: Parallelization.sections(
        {"left": _planned("left"), "right": _stepwise("right"), "middle": Chain.of(_planned("middle"))}
    ),
    "workers": lambda: OrchestratorWorkers([_worker("one"), _worker("two")]),
}
PLANS: Mapping[str, Sequence[Call]] = {
    "notes": (
        ("read_page", {"number": "{number}"}),
        ("note", {"what": "{ticket}/notes/1", "text": "begun"}),
        ("note", {"what": "{ticket}/notes/2", "text": "after #E2"}),
        ("note", {"what": "{ticket}/notes/3", "text": "on the page: #E1"}),
    ),
    "pays": (
        ("read_large", {"number": "{number}", "size": "40"}),
        ("pay", {"what": "{ticket}/pays/1", "to": "#E1", "amount": "3"}),
        ("note", {"what": "{ticket}/pays/2", "text": "#E2"}),
    ),
    "left": (
        ("note", {"what": "{ticket}/left/1", "text": "begun"}),
        ("note", {"what": "{ticket}/left/2", "text": "#E1"}),
    ),
    "middle": (
        ("read_large", {"number": "{number}", "size": "60"}),
        ("note", {"what": "{ticket}/middle", "text": "#E1"}),
    ),
}
"""The calls of the parts that plan them in advance; a person is asked about a payment to whom a page names."""
ACTS: Mapping[str, Sequence[Call]] = {
    "steps": (
        ("note", {"what": "{ticket}/steps/1", "text": "one"}),
        ("note", {"what": "{ticket}/steps/2", "text": "two"}),
        ("note", {"what": "{ticket}/steps/3", "text": "three"}),
    ),
    "reads": (
        ("note", {"what": "{ticket}/reads/1", "text": "begun"}),
        ("read_large", {"number": 5, "size": 50}),
        ("pay", {"what": "{ticket}/reads/2", "to": "ann@example.com", "amount": 2}),
    ),
    "stamps": (
        ("stamp", {"what": "{ticket}/stamps/1", "text": "one"}),
        ("note", {"what": "{ticket}/stamps/2", "text": "two"}),
        ("stamp", {"what": "{ticket}/stamps/3", "text": "three"}),
    ),
    "right": (
        ("note", {"what": "{ticket}/right/1", "text": "one"}),
        ("note", {"what": "{ticket}/right/2", "text": "two"}),
    ),
    "one": (("note", {"what": "{ticket}/one", "text": "one"}),),
    "two": (("note", {"what": "{ticket}/two/1", "text": "one"}), ("note", {"what": "{ticket}/two/2", "text": "two"})),
}
"""The calls of the parts that make one after the other."""


# The model ----------------------------------------------------------------------------------------------------------


def storm_model(chamber: Chamber | None = None) -> ScriptedProvider:
    """The model of a chamber; it replies the same to the same prompt, in every process."""
    return ScriptedProvider(reply, name=chamber or "privileged", chamber=chamber)


def reply(request: ModelRequest) -> str | ToolCall:
    """What the model of the storm replies. No plan of the storm asks it."""
    prompt = "\n".join(message.text for message in request.messages)
    found = _TICKET.search(prompt)
    if found is None:
        raise RuntimeError("a model was asked about no ticket")
    words = {"ticket": found[1], "number": found[2]}
    part = _PART.match(request.messages[0].text)
    if request.tools and part is not None:
        made = sum(message.speaker == "tool" for message in request.messages)
        if made < len(ACTS[part[1]]):
            tool, arguments = ACTS[part[1]][made]
            return ToolCall(f"{part[1]}-{made}", tool, _filled(arguments, words))
    fields = (request.json_schema or {}).get("properties", {})
    seen = f"{found[0]} seen {zlib.crc32(prompt.encode()):08x}"
    if "calls" in fields and part is not None:
        return json.dumps({"calls": [_planned_call(tool, _filled(given, words)) for tool, given in PLANS[part[1]]]})
    if "briefs" in fields:
        return json.dumps({"briefs": [_brief(worker, found[0]) for worker in ("one", "two")]})
    return json.dumps(Slip(ticket=found[1], seen=seen)) if fields else seen


def _filled(arguments: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    return {name: each.format(**words) if isinstance(each, str) else each for name, each in arguments.items()}


def _planned_call(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"tool": tool, "arguments": [{"name": name, "value": value} for name, value in arguments.items()]}


def _brief(worker: str, task: str) -> dict[str, str]:
    return {"worker": worker, "objective": task, "context": "none", "form": "a line", "limits": "none"}
