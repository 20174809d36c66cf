"""What is known of a plan before it runs: the report, and the verdict of policy on each call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bicameral.errors import Place
from bicameral.plans import Finding, Limits, Plan, Proof, Refused, Report, check, prove
from bicameral.tools import Registry

from ._start import Start

if TYPE_CHECKING:
    from bicameral.policy import Policy


@dataclass(frozen=True, slots=True)
class Checked:
    """The report on a plan, and the proof. A plan with errors has none: what makes no sense cannot be proved.

    A call that policy would refuse is an error of the report.
    """

    report: Report
    proof: Proof | None = None

    @property
    def ok(self) -> bool:
        """Whether the plan may run. Calls that are conditional may still be asked about."""
        return self.report.ok


def check_plan(
    plan: Plan,
    registry: Registry,
    policy: Policy,
    *,
    limits: Limits | None = None,
    places: Mapping[str, Place] | None = None,
    start: Start | None = None,
    request: str | None = None,
) -> Checked:
    """What is wrong with a plan, what it does and costs, and what policy will say of each call; nothing is run.

    `start` is what the plan goes on from, if it does; `request` is what a model wrote it for. Without one a person did.

    Example:
        >>> checked = check_plan(plan, registry, Policy.load((), registry))
        >>> checked.ok, checked.proof.questions
    """
    start = start or Start()
    report = check(plan, registry, places=places, limits=limits or Limits(), scope=start.types)
    if not report.ok:
        return Checked(report)
    assembled = start.assembled_values(plan, registry, request, policy.me).calls
    options: dict[str, Any] = {"env": start.shades, "read": start.read, "assembled": assembled}
    proof = prove(plan, registry, policy.preview, policy.mode, **options)
    refused = tuple(_refused(proof, places or {}))
    return Checked(replace(report, findings=(*report.findings, *refused)), proof)


def _refused(proof: Proof, places: Mapping[str, Place]) -> Iterator[Finding]:
    for call in proof.calls:
        if isinstance(call.verdict, Refused):
            reason = call.verdict.reason.rstrip(".")
            yield Finding("error", "plan.refused", reason, path=call.step, place=places.get(call.step))
