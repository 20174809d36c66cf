"""A plan as its check sees it: its text line by line with what is found at each, and what it costs at worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bicameral.agent import Agent, Checked, Planned
from bicameral.binding import Binding, binding_doubts
from bicameral.console._plan_graph import PlanStep, plan_steps
from bicameral.console._run_facts import CallVerdict, proof_verdicts
from bicameral.errors import BicameralError, Place
from bicameral.plans import Finding, Plan, parse
from bicameral.server.surface import CheckedText

MAX_LINES = 2_000
"""Lines of a plan on one page. The verdict and the findings are those of all of it."""
_WORST = ("refused", "conditional", "proved")


@dataclass(slots=True)
class CheckedLine:
    """A line of a plan with its step, the findings about it, and the verdict on its call."""

    number: int | None
    """None for a step that binding added."""
    text: str
    step: PlanStep | None = None
    verdict: CallVerdict | None = None
    findings: list[Finding] = field(default_factory=list[Finding])


@dataclass(frozen=True, slots=True)
class PlanView:
    """A checked plan to be shown.

    Args:
        source: Its text.
        lines: Its lines with what was found at each.
        others: Findings that are about no line.
        ok: Whether it may run.
        verdict: `proved`, `conditional` or `refused`; empty if it has errors.
        worst: What a run takes at worst: calls, tokens and money.
        changes: The tools through which it changes the world, with their effects.
        bindings: What its words mean.
        doubts: What is not sure about it.
        currency: That of the money.
        left_out: Lines that are not shown.
    """

    source: str
    lines: Sequence[CheckedLine]
    others: Sequence[Finding]
    ok: bool
    verdict: str
    worst: Mapping[str, Any]
    changes: Sequence[tuple[str, str]]
    bindings: Sequence[Binding]
    doubts: Sequence[Mapping[str, Any]]
    currency: str = ""
    left_out: int = 0


def view_of_text(agent: Agent, text: str, found: CheckedText) -> PlanView:
    """The view of a plan that a person wrote."""
    doubts = [doubt.to_json() for doubt in binding_doubts(found.bound.bindings)]
    return _view(agent, text, found.bound.plan, found.checked, found.places, found.bound.bindings, doubts)


def view_of_planned(agent: Agent, planned: Planned) -> PlanView:
    """The view of a plan that a model wrote for a request."""
    try:
        places: Mapping[str, Place] = parse(planned.source, agent.registry, file="plan").places
    except BicameralError:
        # Then its findings stand under it, and not at their lines.
        places = {}
    doubts = [doubt.to_json() for doubt in planned.doubts]
    return _view(agent, planned.source, planned.plan, planned.checked, places, planned.bindings, doubts)


def view_of_fault(source: str, error: BicameralError) -> PlanView:
    """The view of a text that is no plan: its lines, with the fault at the one where it is."""
    lines = _numbered_lines(source)
    at = error.place.line if error.place is not None else None
    finding = Finding("error", error.code, error.message, "", error.place, error.expected, error.nearest, error.fix)
    is_here = at is not None and 0 < at <= len(lines)
    if is_here and at is not None:
        lines[at - 1].findings.append(finding)
    is_shown = is_here and at is not None and at <= MAX_LINES
    return PlanView(
        source,
        lines[:MAX_LINES],
        [] if is_shown else [finding],
        ok=False,
        verdict="",
        worst={},
        changes=(),
        bindings=(),
        doubts=(),
        left_out=max(0, len(lines) - MAX_LINES),
    )


def _numbered_lines(source: str) -> list[CheckedLine]:
    return [CheckedLine(number, text) for number, text in enumerate(source.rstrip("\n").split("\n"), 1)]


def _view(
    agent: Agent,
    source: str,
    plan: Plan,
    checked: Checked,
    places: Mapping[str, Place],
    bindings: Sequence[Binding],
    doubts: Sequence[Mapping[str, Any]],
) -> PlanView:
    lines = _numbered_lines(source)
    written = len(lines)
    verdicts = proof_verdicts(checked.proof.to_json()) if checked.proof is not None else {}
    by_path: dict[str, CheckedLine] = {}
    for step in plan_steps(plan, agent.registry):
        place = places.get(step.path)
        line = lines[place.line - 1] if place is not None and place.line and place.line <= written else None
        if line is None or line.step is not None:
            line = CheckedLine(None, step.text)
            lines.append(line)
        line.step, line.verdict = step, verdicts.get(step.path)
        by_path[step.path] = line
    others: list[Finding] = []
    for finding in checked.report.findings:
        at = finding.place.line if finding.place is not None else None
        line = by_path.get(finding.path) or (lines[at - 1] if at and at <= written else None)
        (others if line is None else line.findings).append(finding)
    said = {verdict.said for verdict in verdicts.values()}
    others += [finding for line in lines[MAX_LINES:] for finding in line.findings]
    return PlanView(
        source,
        lines[:MAX_LINES],
        others,
        checked.ok,
        "" if checked.proof is None else next((each for each in _WORST if each in said), "proved"),
        agent.worst_case(checked.report).to_json() if checked.report.ok else {},
        [(use.tool, use.effect) for use in checked.report.effects if use.effect in ("write", "send", "irreversible")],
        bindings,
        doubts,
        agent.prices.currency,
        max(0, len(lines) - MAX_LINES),
    )
