"""What is known of a run beside its steps: its proof, what its words were bound to, and what it came to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bicameral.console._pages import PageCall
from bicameral.console._records import FoundRun, run_address
from bicameral.console._run_progress import RunProgress
from bicameral.console._values import ShownPart, read_labels, read_value, shown_value
from bicameral.durable import Approval
from bicameral.errors import BicameralError
from bicameral.plans import Plan, Reference, children


@dataclass(frozen=True, slots=True)
class CallVerdict:
    """What policy said of a call before the run: `proved`, `conditional` or `refused`, and why."""

    said: str
    why: str


@dataclass(frozen=True, slots=True)
class PlanProof:
    """The verdicts on the calls of a plan, under the policies of now."""

    verdicts: Mapping[str, CallVerdict]
    mode: str
    same_policy: bool
    """Whether the policies are those under which the run was made."""
    fault: str = ""

    @property
    def worst(self) -> str:
        """The verdict on the plan as a whole."""
        said = {verdict.said for verdict in self.verdicts.values()}
        return "refused" if "refused" in said else "conditional" if "conditional" in said else "proved"


async def plan_proof(call: PageCall, progress: RunProgress) -> PlanProof | None:
    """The proof of the plan of a run; None if it has no plan."""
    plan, agent = progress.plan, call.context.agent
    if plan is None:
        return None
    same = progress.first.get("policy") == agent.policy.fingerprint
    if progress.first.get("start"):
        return PlanProof({}, agent.policy.mode, same, "it goes on from an earlier run, whose values are not here")
    try:
        checked = await asyncio.to_thread(agent.check, plan)
    except BicameralError as error:
        return PlanProof({}, agent.policy.mode, same, error.message)
    if checked.proof is None:
        first = checked.report.errors[0].message if checked.report.errors else "it is none of a checked plan"
        return PlanProof({}, agent.policy.mode, same, first)
    return PlanProof(proof_verdicts(checked.proof.to_json()), checked.proof.mode, same)


def proof_verdicts(proof: Mapping[str, Any]) -> dict[str, CallVerdict]:
    """The verdict on each call, by its path."""
    return {
        each["step"]: CallVerdict(each["verdict"], " ".join(each.get("questions", ())) or each.get("why", ""))
        for each in proof["calls"]
    }


@dataclass(frozen=True, slots=True)
class ShownBinding:
    """What words of a request were bound to."""

    refers: str
    words: str
    value: ShownPart | None
    """None for words that are bound when the run begins."""


def shown_bindings(plan: Plan | None) -> list[ShownBinding]:
    """The references of a plan, each once."""
    found: dict[tuple[str, str], ShownBinding] = {}
    waiting: list[Any] = list(plan.steps) if plan is not None else []
    while waiting:
        node = waiting.pop(0)
        waiting += children(node)
        if isinstance(node, Reference):
            bound = node.bound
            value = None if bound is None else shown_value(bound.value, bound.label_tree)
            found.setdefault((node.refers, node.words), ShownBinding(node.refers, node.words, value))
    return list(found.values())


async def result_facts(call: PageCall, found: FoundRun, progress: RunProgress) -> dict[str, Any]:
    """What a run came to so far: its state, answer, doubts, citations, effects and open questions."""
    view, end = found.view, progress.end
    whole = view is not None and found.part == found.run
    state = view.state if view is not None and whole else recorded_state(progress)
    body: Mapping[str, Any] = end.body if end is not None else {}
    answer = None
    if state == "finished" and body.get("answer") is not None:
        answer = await asyncio.to_thread(_shown_answer, body["answer"], body.get("shade"))
    elif view is not None and whole and state == "finished" and view.answer is not None:
        # Of a request in rounds, or one whose journal is gone: the answer without its labels counts as untrusted.
        answer = await asyncio.to_thread(_shown_answer, view.answer, None)
    questions: list[Approval] = []
    if view is not None and view.waits_for and call.token.may("see", "approve"):
        questions = [await call.context.runs.approval(each, call.token.owner) for each in view.waits_for]
    return {
        "state": state,
        "view": view,
        "answer": answer,
        "origin": f"{address_with(found, 'value')}side=answer" if body.get("answer") is not None else "",
        "doubts": (view.doubts if view is not None and whole else ()) or body.get("doubts", ()),
        "citations": (view.citations if view is not None and whole else ()) or body.get("citations", ()),
        "effects": (view.effects if view is not None and whole else ()) or body.get("effects", ()),
        "error": (view.error if view is not None and whole else None) or body.get("error"),
        "questions": questions,
        "usage": body.get("usage") or {},
        "currency": call.context.agent.prices.currency,
        "address_with": address_with,
        "run_address": run_address,
    }


def _shown_answer(written: object, labels: object) -> ShownPart:
    return shown_value(read_value(written), read_labels(labels))


def recorded_state(progress: RunProgress) -> str:
    """The state of a run by its journal alone."""
    if progress.end is None:
        if progress.damage:
            return "damaged"
        return "running" if progress.last >= 0 else "queued"
    states = {"run-failed": "failed", "run-stopped": "stopped", "run-erased": "erased"}
    return states.get(progress.end.kind, "finished")


def address_with(found: FoundRun, what: str) -> str:
    """The address of something of a run, to which parameters are added."""
    part = f"part={found.part}&" if found.part != found.run else ""
    return f"/runs/{found.run}/{what}?{part}"
