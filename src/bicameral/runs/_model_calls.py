"""Model calls of a run: each is recorded under its step, and a replay or a resumed run gets the reply from the record.

A step is the place that asked, and not the order of completion, so that parts that ran side by side are replayed alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from bicameral.errors import BicameralError, JournalError, ModelError, Place, PolicyError, RunError, ToolError
from bicameral.journal import dumps
from bicameral.limits import RUN, STRATEGY, BudgetSpent, Charge, LimitReached, Role, recount_reply
from bicameral.models import ModelReply, Route, ToolCall, Usage
from bicameral.types import to_plain, value_from_json, value_to_json


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A reply, the model that wrote it, and the charges of all requests that were made for it."""

    reply: ModelReply
    model: str
    charges: Sequence[Charge] = ()

    def to_json(self) -> dict[str, Any]:
        """For the journal: everything that a replay needs, and the cost."""
        reply = self.reply
        facts: dict[str, Any] = {
            "model": self.model,
            "text": reply.text,
            "finish": reply.finish,
            "calls": [_call_json(call) for call in reply.calls],
            "prompt_tokens": reply.usage.prompt,
            "cached_tokens": reply.usage.cached,
            "output_tokens": reply.usage.output,
            "seconds": round(reply.seconds, 6),
            "charges": [charge.to_json() for charge in self.charges],
        }
        if reply.route is not None:
            facts["route"] = reply.route.to_json()
        return facts | ({"degraded": reply.degraded} if reply.degraded else {})

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> ModelAnswer:
        """The answer that `to_json` wrote."""
        calls = tuple(ToolCall(each["id"], each["name"], value_from_json(each["arguments"])) for each in facts["calls"])
        route = facts.get("route")
        usage = Usage(facts["prompt_tokens"], facts.get("cached_tokens", 0), facts["output_tokens"])
        reply = ModelReply(
            facts["text"],
            facts.get("finish") or ("calls" if calls else "stop"),
            usage,
            facts["seconds"],
            calls,
            facts["model"],
            None if route is None else _read_route(route),
            facts.get("degraded"),
        )
        return cls(reply, facts["model"], tuple(map(Charge.from_json, facts.get("charges", ()))))


AskModel = Callable[[], Awaitable[ModelAnswer]]


def answer_from_record(facts: Mapping[str, Any]) -> ModelAnswer:
    """The recorded answer, or the recorded error raised.

    It counts again for the limits of strategies and patterns, which are counted anew in every attempt. It does not for
    those of the run, which know what earlier attempts have taken.
    """
    role: Role = "quarantined" if facts["chamber"] == "quarantined" else facts["role"]
    if "error" in facts:
        recount_reply(STRATEGY, role, tuple(map(Charge.from_json, facts.get("lost", ()))), None)
        raise recorded_error(facts["error"])
    answer = ModelAnswer.from_json(facts)
    recount_reply(STRATEGY, role, answer.charges, answer.reply)
    return answer


def recount_reading(facts: Mapping[str, Any]) -> None:
    """Count a recorded model call of an extraction again, for the same limits."""
    charges = tuple(map(Charge.from_json, facts.get("charges", ())))
    recount_reply(STRATEGY, facts["role"], charges, ModelReply("", seconds=facts["seconds"], model=facts["model"]))


def recorded_error(facts: Mapping[str, Any]) -> BicameralError:
    """The error that was recorded as these facts, of the class that handlers of errors look for."""
    place = Place(**facts["place"]) if "place" in facts else None
    if facts["code"] == RUN.reached_code and "cap" in facts:
        reached = LimitReached(RUN, facts["cap"], facts["taken"], facts["limit"])
        reached.place = place
        # A record of an earlier version may say it in other words, which stay.
        if is_same_json(facts, reached.to_json()):
            return reached
    if "exit_code" in facts:
        from bicameral.tools import CommandFailed

        ended = CommandFailed(facts["message"], facts["exit_code"])
        ended.place = place
        return ended
    texts = {name: facts.get(name) for name in ("expected", "nearest", "fix")}
    kind = _ERROR_CLASSES.get(str(facts["code"]).partition(".")[0], RunError)
    return kind(facts["code"], facts["message"], place=place, **texts)


_ERROR_CLASSES: Mapping[str, type[BicameralError]] = {"models": ModelError, "tools": ToolError, "policy": PolicyError}


def is_same_json(recorded: Any, now: Any) -> bool:
    """Compare as JSON text: `1`, `1.0` and `true` are equal in Python and different in a record."""
    return dumps(recorded) == dumps(now)


def is_recorded_failure(error: BicameralError) -> bool:
    """Whether a failed model call is recorded as such, and so fails again in a replay.

    A limit that is reached is recorded by the part, or the run, whose limit it is.
    """
    return not isinstance(error, LimitReached | BudgetSpent | JournalError)


# A part of a pattern that is cut off by time, or because enough others have answered, got as far as it got. Whoever
# runs it again must not let it get further, also where it would now have the time.
class CutOff:
    """Whether a part may do what is not recorded; one inside a part that may not, may not either."""

    __slots__ = ("_around", "is_active")

    def __init__(self, around: CutOff | None, *, active: bool) -> None:
        self._around = around
        self.is_active = active

    @property
    def holds(self) -> bool:
        return self.is_active or (self._around is not None and self._around.holds)


_CUT_OFF: ContextVar[CutOff | None] = ContextVar("bicameral-cut-off", default=None)


@contextmanager
def cut_off_as_recorded(*, active: bool = True) -> Generator[CutOff]:
    """Whatever is not recorded is not done inside, once it is active: it waits until it is cancelled."""
    cut_off = CutOff(_CUT_OFF.get(), active=active)
    token = _CUT_OFF.set(cut_off)
    try:
        yield cut_off
    finally:
        _CUT_OFF.reset(token)


def is_cut_off() -> bool:
    """Whether this is done again in a part that was cut off."""
    return (found := _CUT_OFF.get()) is not None and found.holds


async def wait_if_cut_off() -> None:
    """Wait for the cancellation of a part that did not get beyond this step when it was recorded."""
    if is_cut_off():
        await asyncio.get_running_loop().create_future()


def _call_json(call: ToolCall) -> dict[str, Any]:
    return {"id": str(call.id), "name": str(call.name), "arguments": _arguments_json(call)}


def _arguments_json(call: ToolCall) -> Any:
    try:
        return value_to_json(to_plain(call.arguments))
    except TypeError as error:
        return f"no arguments: {error}"


def _read_route(facts: Mapping[str, Any]) -> Route:
    attempts = tuple((str(alias), str(why)) for alias, why in facts.get("attempts", ()))
    return Route(facts["alias"], facts["by"], facts["why"], facts.get("rule"), attempts, facts.get("note"))
