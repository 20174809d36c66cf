"""I1, direct API call: code makes one call with parameters that code has checked; no model takes part in it.

Use it where program logic or a typed extraction already says what is called and with what. The parameters are checked
before anything is sent, and the check is recorded. A call that may be repeated is tried again after a growing pause;
after several failures in a row nothing is sent for a while. Every attempt is in the record, and so is a refusal by the
breaker. Only declared fields of the result come back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypedDict, cast, final

from bicameral.errors import BicameralError, RunError, ToolError
from bicameral.labels import join, join_all, make_labelled, open_labelled, program_text
from bicameral.limits import Budgets, BudgetSpent, Limits, budget_scope
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    require_tokens,
    select_fields,
)
from bicameral.patterns.kernel._codec import fingerprint, to_record
from bicameral.patterns.kernel._conversation import unlabelled_value_label
from bicameral.patterns.strategies import parse_arguments
from bicameral.routing import BreakerSettings, CircuitBreaker
from bicameral.runs import TRANSIENT_CODES, CallAttempts, use_call_attempts
from bicameral.tools import Origin, Tool, tool
from bicameral.types import to_plain

Parameters = Mapping[str, Any] | Labelled[Any]
RequestCheck = Callable[[Mapping[str, Any]], str | None]
"""Returns what is wrong with the parameters, in words of the program, or None."""
_NO_MODELS = Budgets(Limits(calls=0))
_MAX_PAUSE = 30.0


@dataclass(frozen=True)
class ToolBreakers:
    """The circuit breakers of tools, by name; calls that share this object share them.

    Args:
        rest: The seconds for which nothing is sent after too many failures in a row.
    """

    rest: float = 30.0
    _known: dict[str, CircuitBreaker] = field(
        default_factory=dict[str, CircuitBreaker], init=False, repr=False, compare=False
    )

    def of(self, tool: str, failures: int) -> CircuitBreaker:
        """The breaker of a tool; the first caller says after how many failures it opens."""
        return self._known.setdefault(tool, CircuitBreaker(BreakerSettings(failures, self.rest)))


@final
@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request that was checked, and whose check is recorded. Only such a request can be sent."""

    tool: Tool
    arguments: Mapping[str, Labelled[Any]]
    hash: str


@dataclass(frozen=True)
class DirectCall(Pattern[[Parameters], Any]):
    """One call of one tool. It is given the parameters by name, or one labelled record of them, and never a text.

    A tool that is neither idempotent nor keyed is tried once.

    Args:
        tool: Its name.
        fields: The fields of the result that come back, as a record; by default the whole declared result.
        check: Looks at the parameters after their types were checked, for ranges and lists.
        privileged: Whether a person must approve the request, also where policy would not ask.
        seconds: The most seconds of one attempt.
        breaker_after: The failures in a row after which nothing is sent for a while.
        result_tokens: The most tokens of a result, as an estimate.
        pause: The seconds before the second attempt; they double from one to the next.

    Example:
        >>> rate = DirectCall("exchange_rate", fields=("rate",))
        >>> outcome = await rate.run(runtime, {"currency": program_text("USD")})
        >>> outcome.value
        {'rate': 1.08}
    """

    id: ClassVar[str] = "I1"
    tool: str
    fields: tuple[str, ...] = ()
    check: RequestCheck | None = None
    privileged: bool = False
    max_attempts: int = 3
    seconds: float = 10.0
    breaker_after: int = 5
    result_tokens: int = 500
    pause: float = 0.4
    breakers: ToolBreakers = field(default_factory=ToolBreakers)

    async def execute(self, context: Context, /, parameters: Parameters) -> Labelled[Any]:
        return await context.run_part("call", partial(self._work, parameters=parameters))

    async def _work(self, part: Context, parameters: Parameters) -> Labelled[Any]:
        request = self.check_request(part, parameters)
        if self.privileged and not await part.approve("May this request be sent?", **request.arguments):
            raise RunError("run.refused", f"the call of {self.tool!r} was not approved")
        return await self.send(part, request)

    # Check ----------------------------------------------------------------------------------------------------------

    def check_request(self, part: Context, parameters: Parameters) -> CheckedRequest:
        """The request, if its parameters have the declared types and pass the check; otherwise nothing is sent."""
        # Copies: whoever holds the values cannot change what was checked, nor what a person was shown.
        given = _arguments_by_name(part, parameters)
        arguments = {
            name: make_labelled(to_plain(open_labelled(each)), each.label_tree) for name, each in given.items()
        }
        found = part.find_tool(self.tool)
        label = join_all((part.read_label, *(each.label for each in arguments.values())))
        values = {name: open_labelled(each) for name, each in arguments.items()}
        try:
            parsed = parse_arguments(found, values)
            found.bind(parsed)
        except ToolError as error:
            part.read_label = label
            if label.trusted:
                raise
            # The message may quote a value.
            raise ToolError(error.code, f"the parameters do not fit {self.tool!r}", expected=found.signature) from None
        if self.check is not None:
            # Whether anything is sent depends on the values now, so that the call has their labels.
            part.read_label = label
            try:
                # A copy: what is checked is what is sent, whatever the check does with it.
                problem = self.check({name: to_plain(each) for name, each in parsed.items()})
            except Exception as error:
                raise _bad_request_error(self.tool, f"the check failed with {type(error).__name__}") from None
            if problem is not None:
                raise _bad_request_error(self.tool, problem if label.trusted else "a value is not accepted")
        request = CheckedRequest(found, arguments, request_hash(found, arguments))
        part.note("checked", tool=self.tool, request=request.hash[:16])
        return request

    # Send -----------------------------------------------------------------------------------------------------------

    async def send(self, part: Context, request: CheckedRequest) -> Labelled[Any]:
        """Send a checked request, and return the declared fields of its result."""
        return self._shape(part, await self._attempt(part, request))

    async def _attempt(self, part: Context, request: CheckedRequest) -> Labelled[Any]:
        breaker = self.breakers.of(self.tool, self.breaker_after)
        log = _AttemptLog(self.tool, breaker)
        self._require_closed(part, breaker)
        attempts = CallAttempts(
            self.max_attempts, min(self.pause, _MAX_PAUSE), self.seconds, before=log.begin, after=log.end
        )
        try:
            with use_call_attempts(attempts):
                result = await self._call(part, request)
        except BicameralError:
            self._note_attempts(part, request, log)
            raise
        finally:
            if not log.codes:
                breaker.release()
        # Not where the run only waits for a person: the attempts are made when it goes on.
        self._note_attempts(part, request, log)
        return result

    async def _call(self, part: Context, request: CheckedRequest) -> Labelled[Any]:
        try:
            # A budget of no calls at all: whatever the tool does, it asks no model.
            with budget_scope(_NO_MODELS):
                return await part.call(self.tool, request.arguments)
        except BudgetSpent:
            raise RunError(
                "pattern.model-in-path",
                f"{self.tool!r} wants to ask a model",
                expected="a tool that does its work by code alone",
                fix="Use I2, or let a pattern ask the model before the call.",
            ) from None

    def _require_closed(self, part: Context, breaker: CircuitBreaker) -> None:
        """Raise if the breaker is open. A replay decides as it was decided, whatever the breaker says now."""
        place, handler = part.step_name("breaker"), part.shared.handler
        recorded = handler.recorded_note(place)
        allowed = breaker.allows() if recorded is None else bool(recorded["allowed"])
        handler.record_note(place, {"allowed": allowed, "tool": self.tool})
        if not allowed:
            part.note("attempt", number=0, code="tools.circuit-open")
            raise _open_error(self.tool)

    def _note_attempts(self, part: Context, request: CheckedRequest, log: _AttemptLog) -> None:
        """Write down every attempt. A replay makes none, and has those of the record."""
        place, handler = part.step_name("attempts"), part.shared.handler
        recorded = handler.recorded_note(place)
        codes = log.codes if recorded is None else [str(code) for code in recorded["codes"]]
        handler.record_note(place, {"request": request.hash[:16], "codes": codes})
        for number, code in enumerate(codes, 1):
            part.note("attempt", number=number, code=code)

    # Shape ----------------------------------------------------------------------------------------------------------

    def _shape(self, part: Context, result: Labelled[Any]) -> Labelled[Any]:
        """The declared fields of a result, if they stay under the cap."""
        shaped = select_fields(result, self.fields) if self.fields else result
        fix = "Name the fields that are needed with `fields`. The call itself was made."
        require_tokens(self.tool, part.read(shaped), self.result_tokens, fix=fix)
        return shaped


@dataclass(slots=True)
class _AttemptLog:
    """The attempts at one request; each of them counts for the breaker."""

    tool: str
    breaker: CircuitBreaker
    codes: list[str] = field(default_factory=list[str])

    def begin(self, attempt: int) -> None:
        # The first was allowed before the call; later ones may find that others have opened the breaker meanwhile.
        if attempt > 1 and not self.breaker.allows():
            self.codes.append("tools.circuit-open")
            raise _open_error(self.tool)

    def end(self, attempt: int, error: BaseException | None) -> None:
        code = "ok" if error is None else error.code if isinstance(error, BicameralError) else type(error).__name__
        self.codes.append(code)
        if isinstance(error, ToolError) and code.endswith(TRANSIENT_CODES):
            self.breaker.record_failure()
        elif error is None or isinstance(error, ToolError):
            # A service that refuses a request is there.
            self.breaker.record_success()
        else:
            self.breaker.release()


def request_hash(tool: Tool, arguments: Mapping[str, Labelled[Any]]) -> str:
    """A hash of a request: the tool, its declaration and every value."""
    parsed = parse_arguments(tool, {name: open_labelled(each) for name, each in arguments.items()})
    return fingerprint(to_record([tool.name, tool.fingerprint, sorted(tool.bind(parsed).items())]))


def _arguments_by_name(part: Context, parameters: Parameters) -> Mapping[str, Labelled[Any]]:
    if not isinstance(parameters, Labelled):
        return {
            name: cast("Labelled[Any]", each)
            if isinstance(each, Labelled)
            else make_labelled(each, unlabelled_value_label(each))
            for name, each in parameters.items()
        }
    opened: object = open_labelled(parameters)
    if not isinstance(opened, dict):
        part.read(parameters)
        raise ToolError("tools.wrong-type", "the parameters are no record", expected="one value for each argument")
    # Which parameters there are is a fact about the record, and not about the values in it.
    part.read_label = join(part.read_label, parameters.label_tree.own)
    return {name: parameters.field(name) for name in cast("dict[str, Any]", opened)}


def _bad_request_error(tool: str, problem: str) -> RunError:
    return RunError("pattern.bad-request", f"the request to {tool!r} is not sent: {problem}")


def _open_error(tool: str) -> ToolError:
    return ToolError(
        "tools.circuit-open",
        f"{tool!r} has failed several times in a row, and is not called for a while",
        fix="Wait, or serve something else meanwhile (V19).",
    )


# An example ---------------------------------------------------------------------------------------------------------


class _Rate(TypedDict):
    rate: float
    source: str


def _tools(folder: Path) -> Sequence[Tool]:
    @tool(
        effect="read",
        outbound=False,
        origins=Origin("system", "public"),
        purpose={"currency": "selects"},
        idempotent=True,
    )
    def exchange_rate(currency: str) -> _Rate:
        """The rate of a currency."""
        return {"rate": {"USD": 1.25, "CHF": 0.95}[currency], "source": "the table of this example"}

    return (exchange_rate,)


def _is_correct(outcome: Answered[Any]) -> bool:
    return outcome.value == {"rate": 1.25} and not outcome.model_calls


EXAMPLE = PatternExample(
    "A rate is looked up by code, and one field of the result comes back.",
    lambda folder: DirectCall("exchange_rate", fields=("rate",)),
    lambda folder: ({"currency": program_text("USD")},),
    _is_correct,
    lambda folder: {},
    _tools,
)
