"""Run a recorded conversation again from its record: nothing is asked, nothing is touched."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bicameral.errors import BicameralError, JournalError
from bicameral.labels import TRUSTED_USER, labelled, shade_from_json
from bicameral.models import Chamber, ModelReply, ModelRequest, Route, ToolCall, Usage
from bicameral.runs import Event, Journal, Judge, RecordedHands, Replayed, recorded_error, replay_work
from bicameral.sessions import Chambers, Quarantined
from bicameral.tools import Registry
from bicameral.types import value_from_json

from ._bounds import Bounds
from ._conversation import Voices
from ._phases import Params, strategy_named
from ._work import Desk, Working

if TYPE_CHECKING:
    from bicameral.policy import Policy


async def replay_conversation(
    journal: Journal, run: str, registry: Registry, policy: Policy, *, decide: bool = False
) -> Replayed:
    """Run a conversation again with the recorded replies of models, tools and people.

    Everything is decided as it was, unless the policy is to `decide` again.
    """
    events = journal.events(run)
    body = events[0].body
    try:
        strategy = strategy_named(str(body["strategy"]))
        # Time is not replayed: where it ran out, the record ends.
        params, bounds = Params(**body["params"]), replace(Bounds(**body["bounds"]), seconds=3600.0)
        shade = shade_from_json(body["request_shade"]) if "request_shade" in body else TRUSTED_USER
        request = labelled(str(body["request"]), shade)
    except (BicameralError, KeyError, TypeError) as error:
        raise JournalError("journal.damaged", f"{journal.path}: run {run} cannot be read: {error}") from None
    replies = _replies(events)
    voices = Voices(Chambers(Recorded(replies, "privileged"), Quarantined(Recorded(replies, "quarantined"))), params)
    desk = Desk(voices, registry, policy, bounds)

    def make(hands: RecordedHands, judge: Judge) -> Working:
        return Working(request, strategy, desk, judge, hands)

    return await replay_work(events, journal, registry, make, policy if decide else None)


def is_conversation(journal: Journal, run: str) -> bool:
    """Whether a recorded run is a conversation."""
    first = journal.events(run)[0]
    return first.kind == "run-started" and "strategy" in first.body


class Recorded:
    """A model that says again what a record holds, both chambers from the same record; then it ends as the run did."""

    grammars = True
    adapters: Mapping[str, str] = MappingProxyType({})

    def __init__(self, replies: Iterator[ModelReply], chamber: Chamber) -> None:
        self.name = f"recorded:{chamber}"
        self.chamber: Chamber | None = chamber
        self._replies = replies

    async def generate(self, request: ModelRequest) -> ModelReply:
        return next(self._replies)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        yield next(self._replies).text

    async def aclose(self) -> None: ...


def _replies(events: list[Event]) -> Iterator[ModelReply]:
    for event in events:
        if event.kind == "model-called":
            yield _reply(event.body)
    last = events[-1]
    if last.kind == "run-failed":
        # What a model fails with, or the time that runs out while it is asked, is no event of its own.
        raise recorded_error(last.body["error"])
    raise JournalError("journal.not-recorded", "the record holds no further reply of a model")


def _reply(body: Mapping[str, Any]) -> ModelReply:
    route = body.get("route")
    calls = tuple(ToolCall(each["id"], each["name"], value_from_json(each["arguments"])) for each in body["calls"])
    return ModelReply(
        body["text"],
        "calls" if calls else "stop",
        Usage(body["prompt_tokens"], 0, body["output_tokens"]),
        body["seconds"],
        calls,
        body["model"],
        None if route is None else _route(route),
        body.get("degraded"),
    )


def _route(facts: Mapping[str, Any]) -> Route:
    attempts = tuple((str(alias), str(why)) for alias, why in facts.get("attempts", ()))
    return Route(facts["alias"], facts["by"], facts["why"], facts.get("rule"), attempts)
