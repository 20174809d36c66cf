"""V7, declarative governance: every action of a pattern is judged by the rules of a versioned specification.

Use it where compliance has to be shown, where rules differ by role, or where actions are final. The rules are Cedar, in
a file outside of every prompt, and no model judges. What writes, sends, deletes or touches private data is denied
unless a rule permits it. A rule may demand that something else is done first (a duty), and a forbid may be lifted for a
while (a waiver). Each decision is recorded with its rules and the version. The policies of the run hold as well.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, ParamSpec, TypeVar

from bicameral.errors import BicameralError, JournalError, PolicyError, RunError
from bicameral.labels import Labelled, make_labelled
from bicameral.limits import LimitReached
from bicameral.patterns._conversation import FINAL_CODES
from bicameral.patterns.integration.tool_call import ROUTER, RoutedCall, ToolCalling
from bicameral.patterns.kernel import Answered, Context, InterceptedCall, Pattern, PatternExample
from bicameral.patterns.kernel._codec import fingerprint, to_record
from bicameral.patterns.strategies import list_tools
from bicameral.policy import Duty, Specification, SpecificationEngine, sample_call
from bicameral.tools import Origin, Registry, Tool, tool

P = ParamSpec("P")
T = TypeVar("T")
_SLACK = dt.timedelta(seconds=2)
"""How far a clock may be set back without being doubted: clocks are corrected by a little all the time."""


def utc_now() -> dt.datetime:
    """The moment in UTC."""
    return dt.datetime.now(dt.UTC)


@dataclass(frozen=True)
class WaiverClock:
    """The clock that decides whether a waiver has ended. One that was set back is not believed.

    Args:
        now: Says what time it is, with a time zone.
    """

    now: Callable[[], dt.datetime] = utc_now
    _seen: list[dt.datetime] = field(default_factory=list[dt.datetime], init=False, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def read(self) -> dt.datetime | None:
        """The moment; None if the clock says an earlier one than before, so that no waiver counts."""
        moment = self.now()
        # Runs in several threads share a clock, and the latest moment must not go back between them.
        with self._lock:
            if self._seen and moment < self._seen[0] - _SLACK:
                return None
            self._seen[:] = [max(moment, *self._seen)] if self._seen else [moment]
            return self._seen[0]

    def observe(self, moment: dt.datetime) -> None:
        """Take a moment from a record for one that has been."""
        with self._lock:
            self._seen[:] = [max(moment, *self._seen)] if self._seen else [moment]


SYSTEM_CLOCK: Final = WaiverClock()


@dataclass(frozen=True)
class Governance(Pattern[P, T]):
    """Another pattern under a specification; it takes the same arguments and returns the same value.

    Args:
        inner: The pattern whose actions are judged.
        specification: The rules (`bicameral.policy.read_specification`).
        max_obligations: How many duties may stand in front of each other.
        clock: What decides whether a waiver is in force.

    Example:
        >>> governed = Governance(ReAct(), read_specification("refunds.yaml"))
        >>> outcome = await governed.run(runtime, program_text("Refund order 17."))
    """

    id: ClassVar[str] = "V7"
    inner: Pattern[P, T]
    specification: Specification
    max_obligations: int = 3
    clock: WaiverClock = SYSTEM_CLOCK

    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        spec = self.specification
        spec.require_tools(context.registry)
        governor = Governor(SpecificationEngine(spec), self.max_obligations, self.clock)
        for duty in spec.duties:
            governor.require_end(duty, context.registry)
        context.note("governed", specification=spec.name, version=spec.version, hash=fingerprint(to_record(spec))[:16])

        async def governed(part: Context) -> Labelled[T]:
            part.add_interceptor(governor)
            return await self.inner.execute(part, *args, **kwargs)

        return await context.run_part("governed", governed)


@dataclass(frozen=True, eq=False)
class Governor:
    """Brings every action to the engine: it denies, has duties done first, and records each decision.

    Args:
        chain: The duties within which it decides now.
    """

    engine: SpecificationEngine
    max_duties: int
    clock: WaiverClock
    chain: tuple[str, ...] = ()

    async def admit(self, call: InterceptedCall) -> None:
        facts = call.facts
        at = self._moment(call)
        verdict = self.engine.judge(call.tool, facts, call.context.registry, at)
        spec = self.engine.specification
        call.note(
            "decision",
            tool=call.tool.name,
            permitted=verdict.permitted,
            rules=", ".join(verdict.rules),
            duties=", ".join(duty.name for duty in verdict.duties),
            waivers=", ".join(f"{each.rule} by {each.author}" for each in verdict.waivers),
            specification=spec.name,
            version=spec.version,
            inputs=fingerprint(to_record(facts))[:16],
            moment="" if at is None else at.isoformat(),
        )
        if not verdict.permitted:
            raise _denied_error(spec, repr(call.tool.name), verdict.reason)
        for duty in verdict.duties:
            await self._fulfil(duty, call)

    async def admit_work(self, context: Context, step: str, name: str) -> None:
        spec = self.engine.specification
        permitted = name in spec.work
        context.note("work-decision", work=name, permitted=permitted, specification=spec.name, version=spec.version)
        if not permitted:
            raise _denied_error(spec, f"the work {name!r}", "it is not listed under `work`")

    def require_end(self, duty: Duty, registry: Registry, before: tuple[str, ...] = ()) -> None:
        """Raise if this duty has duties of its own that come back to it, or too many of them, one behind another.

        The most harmless call of each is judged here; each real one is judged again, with the same limits.
        """
        chain = self._lengthen(before, duty)
        found = registry[duty.tool]
        for each in self.engine.judge(found, sample_call(found, "strict"), registry, None).duties:
            self.require_end(each, registry, chain)

    def _moment(self, call: InterceptedCall) -> dt.datetime | None:
        """The moment of the decision; that of the record if the run is run again."""
        recorded = call.recorded("decision")
        if recorded is None:
            return self.clock.read()
        if not recorded["moment"]:
            return None
        moment = dt.datetime.fromisoformat(recorded["moment"])
        self.clock.observe(moment)
        return moment

    def _lengthen(self, chain: tuple[str, ...], duty: Duty) -> tuple[str, ...]:
        if duty.name in chain:
            raise PolicyError("policy.duty-cycle", f"the duty {duty.name!r} needs itself to be done first")
        if len(chain) >= self.max_duties:
            raise PolicyError(
                "policy.duties-too-deep",
                f"before the duty {duty.name!r} there are {len(chain)} others",
                expected=f"at most {self.max_duties} in a row (max_obligations)",
            )
        return (*chain, duty.name)

    async def _fulfil(self, duty: Duty, call: InterceptedCall) -> None:
        deeper = replace(self, chain=self._lengthen(self.chain, duty))
        arguments: dict[str, Any] = dict(duty.values)
        for name, source in duty.copies.items():
            if source not in call.arguments:
                raise _duty_error(duty, call.tool, f"the call has no argument {source!r}")
            arguments[name] = make_labelled(call.arguments[source], call.labels[source])

        async def fulfil(part: Context) -> Labelled[Any]:
            part.interceptors = tuple(deeper if each is self else each for each in part.interceptors)
            return await part.call(duty.tool, arguments, because=call.label)

        place = call.step.removeprefix(call.context.place)
        try:
            await call.context.run_part(f"duty {duty.name} before {place}", fulfil)
        except (LimitReached, JournalError):
            raise
        except BicameralError as error:
            if error.code in FINAL_CODES:
                raise
            # Its message may quote what a tool has read.
            raise _duty_error(duty, call.tool, f"it failed with {error.code}") from None


def _denied_error(spec: Specification, what: str, reason: str) -> RunError:
    return RunError("policy.denied", f"{what} is denied by the specification {spec.name!r} {spec.version}: {reason}")


def _duty_error(duty: Duty, tool: Tool, why: str) -> RunError:
    return RunError("policy.duty-failed", f"{tool.name!r} is not called: before it comes {duty.name!r}, and {why}")


# An example ---------------------------------------------------------------------------------------------------------

_TASK: Final = "Refund 20 euros to the customer Ada Moss."
_RULES: Final = """
@id("refunds") @duties("ticket")
permit (principal, action, resource in Tool::"refund");
@id("tickets")
permit (principal, action, resource in Tool::"open_ticket");
"""
_SPECIFICATION = Specification(
    "refunds", "1", _RULES, (Duty("ticket", "open_ticket", {"kind": "refund"}, {"customer": "customer"}),)
)


def _tools(folder: Path) -> Sequence[Tool]:
    @tool(effect="write", outbound=False, purpose={"customer": "directs", "kind": "carries"}, origins=Origin("system"))
    def open_ticket(customer: str, kind: str) -> str:
        """Open a ticket for a customer."""
        (folder / "tickets.txt").write_text(f"{kind}: {customer}\n")
        return "opened"

    @tool(effect="write", outbound=False, purpose={"customer": "directs", "euros": "directs"}, origins=Origin("system"))
    def refund(customer: str, euros: int) -> str:
        """Refund euros to a customer."""
        return f"{euros} euros refunded"

    return (open_ticket, refund)


def _is_correct(outcome: Answered[RoutedCall]) -> bool:
    called = [each.tool for each in outcome.tool_calls]
    return called == ["open_ticket", "refund"] and outcome.value["result"] == "20 euros refunded"


def _sizes(folder: Path) -> dict[str, int | float | str]:
    tools = f"Tools:\n{list_tools(Registry(_tools(folder)))}"
    return {"setup": ROUTER.setup, "tools": tools, "input": _TASK, "item_output": 30}


EXAMPLE = PatternExample(
    "A refund is made, and a ticket is opened before it because a rule says so.",
    lambda folder: Governance(ToolCalling(), _SPECIFICATION),
    _TASK,
    _is_correct,
    _sizes,
    _tools,
)
