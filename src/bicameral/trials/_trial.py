"""A trial: a model is tried in each role, case by case, and what was measured so far can be reported at any time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bicameral.models import Provider
from bicameral.trials._cases import TrialRole, cases_of
from bicameral.trials._intent_trial import IntentTrial
from bicameral.trials._judgement import RoleTrial
from bicameral.trials._planner_trial import PlannerTrial
from bicameral.trials._reader_trial import ReaderTrial
from bicameral.trials._report import CaseReport, RoleReport, TrialReport, advise, report_role


@dataclass(frozen=True, slots=True)
class CaseProgress:
    """A case was tried: the `number`-th of `total` cases of the role."""

    role: TrialRole
    number: int
    total: int
    case: CaseReport


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A role in which the model cannot be tried, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class TrialModel:
    """The model of a trial.

    Args:
        name: The name that was asked for.
        provider: What it stands for.
        roles: The provider for each role that is tried: of the quarantined chamber for `quarantined`, of the privileged
            one for the others.
        sha256: The hash of the weights file; None for a remote model.
        timeout: Seconds for one call.
    """

    name: str
    provider: str
    roles: Mapping[TrialRole, Provider | Unavailable]
    sha256: str | None = None
    timeout: float | None = None

    @property
    def providers(self) -> list[Provider]:
        """The providers of all roles."""
        return [each for each in self.roles.values() if not isinstance(each, Unavailable)]


def _watch_nothing(_: CaseProgress) -> None:
    """Nobody watches."""


@dataclass
class ModelTrial:
    """Tries a model on the built-in cases. `report` has what was measured so far, also after an interruption.

    Args:
        model: The model.
        quick: Try only a few cases of each role.
        seconds: Begin no case after so many seconds.
        watch: Gets each case when it was tried.
        clock: Seconds that pass.

    Example:
        >>> trial = ModelTrial(TrialModel("mine", "scripted", {"delta": provider}), quick=True)
        >>> await trial.run()
        >>> trial.report().roles["delta"].verdict
        'good'
    """

    model: TrialModel
    quick: bool = False
    seconds: float | None = None
    watch: Callable[[CaseProgress], None] = _watch_nothing
    clock: Callable[[], float] = time.perf_counter
    _tried: dict[TrialRole, list[CaseReport]] = field(default_factory=dict[TrialRole, "list[CaseReport]"], init=False)
    _used: float = field(default=0.0, init=False)

    async def run(self) -> None:
        """Try every role; a `ModelError` ends it if the model cannot be used, and what was measured stays."""
        begun = self.clock()
        try:
            for role, provider in self.model.roles.items():
                if not isinstance(provider, Unavailable):
                    await self._try_role(role, provider, begun)
        finally:
            self._used = self.clock() - begun

    async def _try_role(self, role: TrialRole, provider: Provider, begun: float) -> None:
        tried = self._tried.setdefault(role, [])
        trial = _open_role(role, provider, self.model.timeout)
        try:
            # Nobody pays for a remote model to read a prompt ahead.
            if self.model.sha256 is not None and not self._is_over(begun):
                await trial.prepare()
            cases = cases_of(role, quick=self.quick)
            for number, case in enumerate(cases, start=1):
                if self._is_over(begun):
                    return
                started = self.clock()
                found = await trial.run(case)
                took = round(self.clock() - started, 3)
                report = CaseReport(
                    name=case.name,
                    group=case.group,
                    passed=found.passed,
                    expected=found.expected,
                    came=found.came,
                    obeyed=found.obeyed,
                    seconds=took,
                )
                tried.append(report)
                self.watch(CaseProgress(role, number, len(cases), report))
        finally:
            trial.close()

    def _is_over(self, begun: float) -> bool:
        return self.seconds is not None and self.clock() - begun >= self.seconds

    @property
    def is_begun(self) -> bool:
        """Whether any case was tried."""
        return any(self._tried.values())

    def report(self) -> TrialReport:
        """What was measured so far."""
        roles: dict[TrialRole, RoleReport] = {
            role: report_role(
                role,
                self._tried.get(role, []),
                len(cases_of(role, quick=self.quick)),
                untried=provider.reason if isinstance(provider, Unavailable) else "",
            )
            for role, provider in self.model.roles.items()
        }
        return TrialReport(
            model=self.model.name,
            provider=self.model.provider,
            sha256=self.model.sha256,
            quick=self.quick,
            partial=any(each.partial for each in roles.values()),
            seconds=round(self._used, 1),
            roles=roles,
            advice=advise(self.model.name, roles),
        )


def _open_role(role: TrialRole, provider: Provider, timeout: float | None) -> RoleTrial:
    trials: Mapping[TrialRole, Callable[..., RoleTrial]] = {
        "quarantined": ReaderTrial,
        "delta": PlannerTrial,
        "echo": IntentTrial,
    }
    return trials[role](provider, timeout=timeout)
