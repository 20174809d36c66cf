"""A second plan, by a larger model, where the first one's run failed before it had changed anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from bicameral.delta import Compiled, PlanCascade, Planner
from bicameral.errors import ModelError, PlanError
from bicameral.labels import Label
from bicameral.plans import RUN_CODES, Limits
from bicameral.runs import Checked, Failed, Observer, Progress, RunOutcome, Start, check_plan
from bicameral.sessions import counted
from bicameral.tools import CHANGING, Registry

from ._planned import Planned

if TYPE_CHECKING:
    from bicameral.policy import Policy

Run: TypeAlias = Callable[..., Awaitable[RunOutcome]]
WORTH = frozenset({*RUN_CODES, "files.missing"})
"""Failures that a better plan may avoid: a value that is not there, a name that is wrong."""


class Begun:
    """An observer that passes everything on and notes whether a call that changes something was ever begun.

    An effect that has begun may have happened, however its step ended.
    """

    def __init__(self, observer: Observer | None) -> None:
        self._observer = observer
        self.changing = False

    def __call__(self, progress: Progress) -> None:
        self.changing = self.changing or progress.facts.get("effect") in CHANGING
        if self._observer is not None:
            self._observer(progress)


@dataclass(frozen=True, slots=True)
class Again:
    """Runs a plan, and once more with a larger model's plan where the first one was at fault and has changed nothing.

    The larger model reads the request and nothing of the run, so all that the run decides is which of two plans for
    the same request is taken. That decision may be a stranger's doing: its label lies on all that the second plan does.
    """

    planner: Planner
    planned: Planned
    checked: Checked
    registry: Registry
    policy: Policy
    limits: Limits

    async def run(self, run: Run, observer: Observer | None, written_by: Mapping[str, Any]) -> RunOutcome:
        begun = Begun(observer)
        outcome = await run(self.planned.plan, observer=begun, **written_by)
        with counted() as ledger:
            compiled = await self._another(outcome, begun)
        if compiled is None or not isinstance(outcome, Failed):
            return outcome
        start = Start(read=self._label(outcome))
        request = self.planned.intent.request
        checked = check_plan(
            compiled.plan, self.registry, self.policy, limits=self.limits, start=start, request=request
        )
        if not checked.ok:
            return outcome
        spent: dict[str, Any] = {"planning": ledger.spent, "planned_by": ledger.records or ()}
        return await run(compiled.plan, observer=observer, start=start, link={"instead_of": outcome.run}, **spent)

    async def _another(self, outcome: RunOutcome, begun: Begun) -> Compiled | None:
        """What to run instead, if that is worth it and a larger model finds a plan; else the failure stands."""
        planner, route = self.planner, self.planned.route
        if not isinstance(planner, PlanCascade) or not isinstance(outcome, Failed):
            return None
        if begun.changing or outcome.effects or outcome.error.code not in WORTH:
            return None
        if route is None or not planner.can_go_on(route):
            return None
        with suppress(PlanError, ModelError):
            reason = f"its run failed before it changed anything [{outcome.error.code}]"
            return await planner.go_on(route, reason, self.planned.intent, self.registry)
        return None

    def _label(self, outcome: Failed) -> Label:
        from bicameral.reasoner import failure_of, label_of_failure

        failure = failure_of(outcome.error, self.planned.plan, self.registry, outcome.step)
        return label_of_failure(failure, self.checked.proof, self.registry)
