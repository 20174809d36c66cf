"""A run as its journal tells it, brought up to date event by event.

Each event changes the few steps that it is about, so that a page that follows a long run draws no more than what has
changed. The events are facts of the runtime; the texts in them may be anybody's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from bicameral.console._plan_graph import PlanStep, plan_steps
from bicameral.errors import BicameralError
from bicameral.limits import CostTotals, cost_entries
from bicameral.plans import Plan, load_plan
from bicameral.runs import Event
from bicameral.tools import Registry

StepState = Literal["planned", "running", "waiting", "done", "failed", "denied", "skipped"]
STATE_WORDS: Mapping[StepState, str] = {
    "planned": "not yet",
    "running": "running",
    "waiting": "waits for you",
    "done": "done",
    "failed": "failed",
    "denied": "refused",
    "skipped": "not reached",
}
TURN = re.compile(r"\[\d+\]")
LOCAL_KINDS = frozenset({"compute", "update", "each", "when", "answer"})
"""Steps that are worked out in the plan itself: what they did is in no event, and can be worked out again."""
HEAD = ""
"""The key of what is not about a single step."""


@dataclass(slots=True)
class StepProgress:
    """One step of a plan, or of a run without a plan, with all its turns."""

    step: PlanStep
    state: StepState = "planned"
    begun: int = 0
    ended: int = 0
    seconds: float = 0.0
    cost: CostTotals = field(default_factory=CostTotals)
    retries: int = 0
    alerts: int = 0
    error: Mapping[str, Any] | None = None
    last: str = ""
    """The path of its latest turn."""

    @property
    def is_recorded(self) -> bool:
        """Whether the journal says of the step itself when it is done; a pure step leaves no trace there."""
        return self.step.kind not in LOCAL_KINDS

    @property
    def anchor(self) -> str:
        """Its name in the page."""
        return "step-" + self.step.path.replace("/", "-")

    @property
    def state_words(self) -> str:
        return STATE_WORDS[self.state]


class RunProgress:
    """The state of a run, by its journal.

    Args:
        run: Its id.
        registry: The tools, to print its plan.

    Example:
        >>> progress = RunProgress("20261119-133619-d047fa", registry)
        >>> progress.apply(journal.events_after(progress.run, progress.last))
        {'', '0', '1'}
    """

    def __init__(self, run: str, registry: Registry) -> None:
        self.run, self._registry = run, registry
        self.last = -1
        """The number of the last event that is in it."""
        self.request = ""
        self.started: float | None = None
        self.plan: Plan | None = None
        self.plan_fault = ""
        """Why the plan cannot be shown, if there is one that cannot be read."""
        self.first: Mapping[str, Any] = {}
        """The facts of its first event."""
        self.steps: dict[str, StepProgress] = {}
        self.cost = CostTotals()
        self.rounds: list[str] = []
        """The runs of its rounds, if it is a request in rounds."""
        self.alerts: list[Mapping[str, Any]] = []
        self.notes: list[Mapping[str, Any]] = []
        self.end: Event | None = None
        self.attempts = 1
        self.changes: list[str] = []
        """The files that it has changed."""
        self.damage = ""
        """What is wrong with the first event that is not what was written; nothing after that is known."""

    @property
    def has_ended(self) -> bool:
        return self.end is not None

    @property
    def seconds(self) -> float | None:
        """How long it took, as its end says."""
        found = self.end.body.get("seconds") if self.end is not None else None
        return float(found) if isinstance(found, int | float) else None

    def apply(self, events: Iterable[Event]) -> set[str]:
        """Take events in; returns the paths of the steps that they changed, and an empty one for anything else."""
        changed: set[str] = set()
        for event in events:
            self.last = event.number
            changed |= self._apply(event)
        return changed

    def _apply(self, event: Event) -> set[str]:
        changed = {HEAD} if self._add_costs(event) else set[str]()
        body, path = event.body, TURN.sub("", event.step)
        match event.kind:
            case "run-started" | "reason-started":
                self._start(event)
                return {HEAD, *self.steps}
            case "run-resumed":
                self.attempts += 1
                self.end = None
                return {HEAD, *self._set_all("waiting", "planned")}
            case "run-finished" | "run-failed" | "run-stopped" | "reason-ended" | "run-erased":
                self.end = event
                ended_at = self._note_end(path, body)
                return {HEAD, *ended_at, *self._set_all("running", "failed"), *self._set_all("planned", "skipped")}
            case "reason-planned":
                self.rounds.append(str(body.get("run", "")))
                return {HEAD}
            case "step-started" | "step-retried" | "step-finished" | "step-failed" | "call-waits" | "call-denied":
                self._change_step(self._step(path, body), event)
                return changed | {path}
            case "model-called" if path in self.steps:
                return changed | {path}
            case "file-change":
                self.changes += [str(each.get("path", "")) for each in body.get("changes", ())]
                return changed | {HEAD}
            case "note" | "lookup-started" | "lookup-ended" | "approval" | "run-waits":
                return changed | {HEAD}
            case _:
                return changed

    def _start(self, event: Event) -> None:
        self.first, self.started = event.body, event.at
        self.request = str(event.body.get("request") or "")
        written = event.body.get("plan")
        if not written:
            return
        try:
            self.plan = load_plan(str(written), file=f"run {self.run}", keep_bindings=True)
        except BicameralError as error:
            self.plan_fault = str(error)
            return
        start: Mapping[str, Any] = event.body.get("start") or {}
        for step in plan_steps(self.plan, self._registry, dict.fromkeys(start.get("variables") or (), "")):
            self.steps[step.path] = StepProgress(step)

    def _step(self, path: str, body: Mapping[str, Any]) -> StepProgress:
        """The step with this path; in a run without a plan it is new."""
        if path not in self.steps:
            tool, effect = str(body.get("tool", "")), str(body.get("effect", ""))
            what = str(body.get("what") or tool or "step")
            step = PlanStep(path, "call", what, path.count("/"), what, tool, effect)
            self.steps[path] = StepProgress(step)
        return self.steps[path]

    def _change_step(self, step: StepProgress, event: Event) -> None:
        body, step.last = event.body, event.step
        match event.kind:
            case "step-started":
                step.begun += 1
                step.state = "running"
            case "step-finished" | "step-failed":
                step.ended += 1
                took = body.get("seconds")
                step.seconds += float(took) if isinstance(took, int | float) else 0.0
                failed = event.kind == "step-failed"
                step.state = "failed" if failed else "running" if step.begun > step.ended else "done"
                step.error = body.get("error") if failed else step.error
                found: list[Mapping[str, Any]] = list(body.get("alerts", ()))
                step.alerts += len(found)
                self.alerts += found
            case "step-retried":
                step.retries += 1
            case "call-waits":
                step.state = "waiting"
            case "call-denied":
                step.state, step.error = "denied", body.get("error") or {"message": str(body.get("why", ""))}
            case _:
                pass

    def _note_end(self, path: str, body: Mapping[str, Any]) -> set[str]:
        """The step at which a run ended without an event of its own: one that a person refused, for example."""
        step, error = self.steps.get(path), cast("Mapping[str, Any]", body.get("error") or {})
        if step is None or not error or step.state not in ("planned", "waiting"):
            return set()
        step.state, step.error = "denied" if error.get("code") == "run.refused" else "failed", error
        return {path}

    def _set_all(self, before: StepState, after: StepState) -> set[str]:
        """Change the state of all steps in another one; returns their paths."""
        found = {path for path, step in self.steps.items() if step.state == before and step.is_recorded}
        for path in found:
            self.steps[path].state = after
        return found

    def _add_costs(self, event: Event) -> bool:
        entries = list(cost_entries(event.run, event.at, event.kind, event.step, event.body))
        for entry in entries:
            self.cost += entry.cost
            if (step := self.steps.get(TURN.sub("", entry.step))) is not None:
                step.cost += entry.cost
        return bool(entries)
