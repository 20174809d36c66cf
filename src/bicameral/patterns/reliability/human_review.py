"""V1, human in the loop: a risky action waits until a person has read an account of it and said yes to exactly it.

Use it where a program or a model proposes an action that it cannot undo, or that reaches other people. Code classes the
action by what its tool declares. For a risky one a model writes a short account, the state is saved, and the run waits,
without a process where it may. The person approves, rejects with a reason, edits the values, or passes it up. Silence
is never a yes: it passes the action up while there is another reviewer, and then ends it. Policy decides about the
approved call as about every other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, LiteralString, TypedDict, TypeVar, final

from bicameral.errors import CatalogError, ModelError, RunError
from bicameral.labels import TRUSTED_USER, UNKNOWN, Labelled, make_labelled, open_labelled, program_text
from bicameral.patterns.integration.direct_call import CheckedRequest, DirectCall, Parameters, request_hash
from bicameral.patterns.kernel import Answered, Context, Pattern, PatternExample, PromptText, Role
from bicameral.patterns.strategies import parse_arguments
from bicameral.tools import Origin, Tool, tool
from bicameral.types import STR, Field, LiteralType, OptionalType, RecordType

PRESENTER = Role(
    "Presenter",
    "A person must decide whether an action is done. Write for somebody who knows nothing of it, in plain words, a "
    "sentence each: action (what would be done), reason (why), outcome (what is then different), way_back (how it "
    "could be undone, or that it cannot), alternatives (what could be done instead). Judge nothing.",
    tier="large",
    max_tokens=400,
)
ACCOUNT_FIELDS: Final = ("action", "reason", "outcome", "way_back", "alternatives")
ACCOUNT: Final = RecordType(tuple(Field(name, STR) for name in ACCOUNT_FIELDS), "account")
Verdict = Literal["not-gated", "approved", "edited", "rejected", "expired", "unanswered"]
_MAX_EMPTY_REASONS: Final = 3
_QUESTION: Final = "May this action be done, exactly with these values?"

T = TypeVar("T")


class ReviewedAction(TypedDict):
    """What became of a proposed action: whether it was done, by which verdict of whom, and what came back.

    `expired` is silence, `unanswered` that nobody could be asked.
    """

    done: bool
    verdict: Verdict
    reviewer: str | None
    reason: str | None
    result: Any


@final
@dataclass(frozen=True, slots=True)
class ApprovedRequest:
    """A request that a person has approved, with the hash of what they saw. Only such a request is sent."""

    request: CheckedRequest
    hash: str


@dataclass(frozen=True)
class HumanReview(Pattern[[Parameters, Labelled[str]], ReviewedAction]):
    """One call of one tool, done only after a person's yes if it is risky. It is given the parameters and the reason.

    Args:
        call: How the call is made. Its checks hold for edited values too.
        min_radius: The reach from which an action is gated, see `tool_radius`.
        radius: The reach of this action if the program knows it to be wider than its tool declares.
        timeout_seconds: How long the action waits for a verdict, all reviewers together.
        max_words: The most words of the account.
        max_edits: How often an edited action is shown again.
        reviewers: Who is asked, one after another: each can pass it up, and silence does so.
        rubber_stamp: The share of approvals without change from which `is_rubber_stamp` is true.
        weak_plans: The share of approvals below which `has_weak_plans` is true.

    Example:
        >>> paying = HumanReview(DirectCall("pay"), reviewers=("accounting", "the head of finance"))
        >>> outcome = await paying.run(runtime, {"invoice": number}, program_text("The invoice is due today."))
        >>> outcome.value["verdict"]
        'approved'
    """

    id: ClassVar[str] = "V1"
    call: DirectCall
    min_radius: int = 4
    radius: int = 1
    timeout_seconds: float = 900
    max_words: int = 200
    max_edits: int = 3
    reviewers: tuple[str, ...] = ("the reviewer",)
    rubber_stamp: float = 0.95
    weak_plans: float = 0.5
    presenter: Role = PRESENTER

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.reviewers or len(set(self.reviewers)) < len(self.reviewers):
            raise CatalogError(
                "pattern.bad-knob", f"V1: there are {len(self.reviewers)} reviewers", expected="one or more, each once"
            )

    def is_rubber_stamp(self, reviewed: Sequence[ReviewedAction]) -> bool:
        """Whether so many of these actions were approved without change that nobody may have read them."""
        asked = [each["verdict"] for each in reviewed if each["verdict"] != "not-gated"]
        return bool(asked) and asked.count("approved") > self.rubber_stamp * len(asked)

    def has_weak_plans(self, reviewed: Sequence[ReviewedAction]) -> bool:
        """Whether so few of these actions were approved that whoever proposes them is at fault."""
        asked = [each["verdict"] for each in reviewed if each["verdict"] != "not-gated"]
        return bool(asked) and asked.count("approved") + asked.count("edited") < self.weak_plans * len(asked)

    async def execute(
        self, context: Context, /, parameters: Parameters, why: Labelled[str]
    ) -> Labelled[ReviewedAction]:
        return await context.run_part("review", lambda part: self._work(part, parameters, why))

    async def _work(self, part: Context, parameters: Parameters, why: Labelled[str]) -> Labelled[ReviewedAction]:
        request = self.call.check_request(part, parameters)
        reach = max(tool_radius(request.tool), self.radius)
        part.note("classed", tool=self.call.tool, radius=reach, gated=reach >= self.min_radius)
        if reach < self.min_radius:
            return _reviewed(part, "not-gated", None, await self.call.send(part, request))
        await _require_no_files(part, request)
        return await self._review(part, request, why)

    async def _review(self, part: Context, request: CheckedRequest, why: Labelled[str]) -> Labelled[ReviewedAction]:
        account = await self._present(part, request, why)
        at, edits = 0, 0
        while True:
            reviewer = self.reviewers[at]
            answer = await self._ask(part, request, account, reviewer)
            if answer == "approved":
                approved = ApprovedRequest(request, request.hash)
                part.note("verdict", verdict="edited" if edits else "approved", request=request.hash)
                result = await self._perform(part, approved)
                return _reviewed(part, "edited" if edits else "approved", reviewer, result)
            shown = [account, *request.arguments.values()]
            said = None
            if answer == "refused":
                can_edit, can_pass = edits < self.max_edits, at + 1 < len(self.reviewers)
                said = await self._ask_instead(part, request, shown, can_edit=can_edit, can_pass=can_pass)
            if said is not None and said.verdict == "reject":
                part.note("verdict", verdict="rejected", request=request.hash)
                return _reviewed(part, "rejected", reviewer, *shown, reason=said.reason)
            if said is not None and said.verdict == "edit":
                edits += 1
                part.note("edited", request=request.hash, number=edits)
                # It is checked, presented and asked about like any other request.
                request = self.call.check_request(part, {**request.arguments, **said.values})
                await _require_no_files(part, request)
                account = await self._present(part, request, why)
                continue
            if answer == "nobody" or at + 1 == len(self.reviewers):
                verdict: Verdict = "unanswered" if answer == "nobody" else "expired"
                part.note("verdict", verdict=verdict, request=request.hash)
                return _reviewed(part, verdict, reviewer, *shown)
            at += 1
            part.note("passed-up", to=self.reviewers[at], silence=said is None)

    # Account --------------------------------------------------------------------------------------------------------

    async def _present(self, part: Context, request: CheckedRequest, why: Labelled[str]) -> Labelled[Any]:
        """The account of an action. One that no account can be written of is not done."""
        tool = request.tool
        # The texts of a tool that describes itself are somebody else's.
        label = UNKNOWN if tool.self_described else TRUSTED_USER
        about: tuple[PromptText, ...] = (
            "Tool: ",
            make_labelled(f"{tool.name}: {tool.doc.strip()}", label),
            "\nValues:",
        )
        for name, each in request.arguments.items():
            about = (*about, "\n- ", make_labelled(name, label), ": ", each)
        about = (*about, "\nReason given: ", why)

        async def write(inner: Context) -> Labelled[Any]:
            return await inner.fill(self.presenter, *about, wanted=ACCOUNT, check=self._account_fault, retries=0)

        try:
            return await part.run_part("account", write)
        except ModelError as error:
            if error.code != "models.bad-reply":
                raise
            raise RunError(
                "pattern.no-account",
                f"the call of {self.call.tool!r} was not put into plain words, and is not done",
                expected=f"{len(ACCOUNT_FIELDS)} sentences of at most {self.max_words} words together",
                fix="Split the action, or describe its tool better.",
            ) from None

    def _account_fault(self, account: Mapping[str, str]) -> str | None:
        if empty := [name for name in ACCOUNT_FIELDS if not account[name].strip()]:
            return f"{empty[0]} is empty"
        words = sum(len(account[name].split()) for name in ACCOUNT_FIELDS)
        return f"it has {words} words, and may have {self.max_words}" if words > self.max_words else None

    # People ---------------------------------------------------------------------------------------------------------

    async def _ask(
        self, part: Context, request: CheckedRequest, account: Labelled[Any], reviewer: str
    ) -> Literal["approved", "refused", "silent", "nobody"]:
        details = {
            "for": make_labelled(reviewer, TRUSTED_USER),
            "tool": make_labelled(request.tool.name, UNKNOWN if request.tool.self_described else TRUSTED_USER),
            "request": make_labelled(request.hash, TRUSTED_USER),
            "account": account,
            **{f"argument {name}": each for name, each in request.arguments.items()},
        }
        try:
            yes = await self._within_time(part, request, lambda inner: inner.approve(_QUESTION, **details))
        except RunError as error:
            if error.code != "run.needs-approval":
                raise
            return "nobody"
        return "silent" if yes is None else "approved" if yes else "refused"

    async def _ask_instead(
        self,
        part: Context,
        request: CheckedRequest,
        shown: Sequence[Labelled[Any]],
        *,
        can_edit: bool,
        can_pass: bool,
    ) -> _Instead | None:
        """What a person wants instead of an action that they did not approve; None if they do not say it in time."""
        options = ("reject", *(("edit",) if can_edit else ()), *(("pass up",) if can_pass else ()))
        values = RecordType(
            tuple(Field(each.name, OptionalType(each.type), each.doc) for each in request.tool.arguments), "values"
        )
        wanted = RecordType(
            (
                Field("verdict", LiteralType(options)),
                Field("reason", STR, "why it is rejected"),
                Field("values", OptionalType(values), "what is edited; what is null stays as it is"),
            ),
            "verdict",
        )
        question: LiteralString = "The action is not done. What should happen instead?"
        for _ in range(_MAX_EMPTY_REASONS):
            reply = await self._within_time(
                part, request, lambda inner, said=question: inner.ask_person(said, wanted=wanted, about=shown)
            )
            if reply is None:
                return None
            said = part.read(reply.field("verdict"))
            reason = reply.field("reason")
            if said != "reject":
                given = reply.field("values")
                edited = {name: given.field(name) for name in values.names} if _has_values(given) else {}
                return _Instead(said, reason, {name: each for name, each in edited.items() if _has_values(each)})
            if part.read(reason).strip():
                return _Instead(said, reason, {})
            question = "The action is not done. A rejection needs a reason: what should happen instead?"
        raise RunError("run.refused", f"the call of {self.call.tool!r} was rejected, and no reason was given")

    async def _within_time(
        self, part: Context, request: CheckedRequest, ask: Callable[[Context], Awaitable[T]]
    ) -> T | None:
        """The answer of a person; None if it is not there in time, or came to be known too late.

        The state is saved before the wait, with the time of the question: a run that is resumed waits no longer for it.
        Whether there was an answer in time is recorded before anything is done with it.
        """
        inner, handler = part.part("question"), part.shared.handler
        until = inner.save("question", request=request.hash, at=_now())["at"] + self._seconds_each
        place = inner.step_name("reply")
        recorded = handler.recorded_note(place)
        answer: T | None = None
        in_time = recorded is not None and bool(recorded["in_time"])
        try:
            if recorded is not None and in_time:
                answer = await ask(inner)
            elif recorded is None and _now() < until:
                try:
                    async with asyncio.timeout(until - _now()):
                        answer = await ask(inner)
                    in_time = _now() < until
                except TimeoutError:
                    in_time = False
            handler.record_note(place, {"in_time": in_time}, sync=True)
        finally:
            inner.life.end()
        return answer if in_time else None

    @property
    def _seconds_each(self) -> float:
        return self.timeout_seconds / len(self.reviewers)

    async def _perform(self, part: Context, approved: ApprovedRequest) -> Labelled[Any]:
        if request_hash(approved.request.tool, approved.request.arguments) != approved.hash:
            raise RunError("run.refused", f"the call of {self.call.tool!r} is not the one that was approved")
        return await self.call.send(part, approved.request)


@dataclass(frozen=True, slots=True)
class _Instead:
    """What a person wants instead: a rejection with its reason, other values, or somebody else's verdict."""

    verdict: str
    reason: Labelled[str]
    values: Mapping[str, Labelled[Any]]


def tool_radius(tool: Tool) -> int:
    """How far a call reaches, from 1 (this session) to 5 (law, money, good name), by what its tool declares alone."""
    match tool.effect:
        case "pure":
            return 1
        case "read":
            reach = 2 if tool.outbound else 1
        case "write":
            # What is not a file of the user's cannot be taken back by the runtime.
            reach = 3 if tool.files_only else 4
        case "send":
            reach = 4
        case "irreversible":
            reach = 5
    return 5 if tool.self_described or not tool.declared else reach


async def _require_no_files(part: Context, request: CheckedRequest) -> None:
    """Refuse a request that sends files along: their content is not in its hash, and may change after the yes."""
    place, handler = part.step_name("files"), part.shared.handler
    recorded = handler.recorded_note(place)
    if recorded is None:
        values = {name: open_labelled(each) for name, each in request.arguments.items()}
        bound = request.tool.bind(parse_arguments(request.tool, values))
        recorded = {"files": len(await handler.attached_files(place, request.tool, bound))}
    handler.record_note(place, dict(recorded))
    if recorded["files"]:
        raise RunError(
            "pattern.bad-request",
            f"the call of {request.tool.name!r} sends files along",
            expected="a call whose values are all that is sent",
            fix="Call the tool itself: policy binds an approval to the content of its files.",
        )


def _now() -> float:
    return time.time()


def _has_values(given: Labelled[Any]) -> bool:
    """Whether a person gave a value here: that is their choice, and no fact about what they were shown."""
    return open_labelled(given) is not None


def _reviewed(
    part: Context, verdict: Verdict, reviewer: str | None, *of: Labelled[Any], reason: Labelled[str] | None = None
) -> Labelled[ReviewedAction]:
    done = verdict in ("not-gated", "approved", "edited")
    said = None if reason is None else part.read(reason)
    result = part.read(of[0]) if done else None
    return part.derive(ReviewedAction(done=done, verdict=verdict, reviewer=reviewer, reason=said, result=result), *of)


# An example ---------------------------------------------------------------------------------------------------------

_VALUES: Final = {"room": program_text("Blue room"), "day": program_text("2026-11-20")}
_WHY: Final = program_text("The meeting was moved to another day, and a late cancellation costs money.")


def _tools(folder: Path) -> Sequence[Tool]:
    @tool(effect="send", origins=Origin("system"), purpose={"room": "directs", "day": "directs"})
    def cancel_booking(room: str, day: str) -> str:
        """Cancel the booking of a room at the hotel."""
        return f"{room}: cancelled for {day}"

    return (cancel_booking,)


def _is_correct(outcome: Answered[ReviewedAction]) -> bool:
    reviewed = outcome.value
    return reviewed["done"] == (reviewed["verdict"] in ("approved", "edited")) and len(outcome.model_calls) == 1


EXAMPLE = PatternExample(
    "A booking is cancelled only after somebody says yes to exactly this; with nobody to ask, it is not.",
    lambda folder: HumanReview(DirectCall("cancel_booking")),
    lambda folder: (_VALUES, _WHY),
    _is_correct,
    lambda folder: {
        "input": "Tool: cancel_booking: Cancel the booking of a room at the hotel.\nValues:\n- room: Blue room\n"
        "- day: 2026-11-20\nReason given: The meeting was moved to another day, and a late cancellation costs money.",
        "brief": 0,
        "item_output": 110,
    },
    _tools,
)
