"""A plan in plain words: what each step does, and what it does to the world."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from bicameral.plans import (
    Answer,
    Ask,
    Call,
    Compute,
    Each,
    Extract,
    Plan,
    Proof,
    Report,
    Step,
    Update,
    When,
    print_plan,
)
from bicameral.tools import Registry

from ._proof import verdict_name, verdict_why

_EFFECTS = {
    "pure": "",
    "read": "reads",
    "write": "writes",
    "send": "sends out of here",
    "irreversible": "cannot be undone",
}


@dataclass(frozen=True, slots=True)
class Explained:
    """One step: where it is, what it does in words and to the world, and what policy will say of it."""

    path: str
    depth: int
    words: str
    effect: str = ""
    verdict: str = ""
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        more = {"effect": self.effect, "verdict": self.verdict, "why": self.why}
        return {"path": self.path, "words": self.words} | {name: text for name, text in more.items() if text}


def explain(plan: Plan, registry: Registry, proof: Proof | None = None) -> list[Explained]:
    """Every step of a plan in plain words, in order, with the verdict on each call."""
    found = {call.step: call for call in proof.calls} if proof is not None else {}
    steps = _steps(plan.steps, registry, "", 0)
    return [
        replace(step, verdict=verdict_name(call.verdict), why=verdict_why(call))
        if (call := found.get(step.path))
        else step
        for step in steps
    ]


def summary(report: Report) -> list[str]:
    """What a run of the plan can do and cost at worst, in sentences."""
    calls, models = report.cost.tool_calls, report.cost.model_calls
    changing = [use for use in report.effects if use.effect in ("write", "send", "irreversible")]
    told = ", ".join(f"{use.tool} ({_EFFECTS[use.effect]})" for use in changing)
    return [
        f"It changes the world through {told}." if changing else "It changes nothing.",
        f"It calls tools {calls} times and asks the quarantined model {models} times."
        if models.most
        else f"It calls tools {calls} times and asks no model.",
    ]


def _steps(steps: tuple[Step, ...], registry: Registry, at: str, depth: int) -> Iterator[Explained]:
    for number, step in enumerate(steps):
        path = f"{at}{number}"
        yield Explained(path, depth, _words(step, registry), _effect(step, registry))
        match step:
            case Each():
                yield from _steps(step.steps, registry, f"{path}/", depth + 1)
            case When():
                yield from _steps(step.steps, registry, f"{path}/then/", depth + 1)
                if step.otherwise:
                    yield Explained(f"{path}/else", depth, "Otherwise:")
                    yield from _steps(step.otherwise, registry, f"{path}/else/", depth + 1)
            case _:
                pass


def _words(step: Step, registry: Registry) -> str:
    match step:
        case Call():
            return _call_words(step, registry)
        case Extract():
            asked, source = _shown(step.instruction), _shown(step.source)
            return f"Let the quarantined model read {source} and fill in {asked} as {step.wanted}; call it {step.name}."
        case Compute():
            return f"Work out {step.name} = {_shown(step.value)}."
        case Update():
            return _update_words(step)
        case Each():
            return f"For each {', '.join(step.names)} in {_shown(step.over)}, one after the other:"
        case When():
            return f"If {_shown(step.condition)}:"
        case Ask():
            return f"Ask you: {_shown(step.question)} (as {step.wanted}); call the reply {step.name}."
        case Answer():
            return f"Answer with {_shown(step.value)}, and end."


def _call_words(step: Call, registry: Registry) -> str:
    tool = registry.get(step.tool)
    does = tool.doc.splitlines()[0].rstrip(".") if tool is not None and tool.doc else f"Call {step.tool}"
    given = ", ".join(f"{name} {_shown(value)}" for name, value in step.args.items())
    text = f"{does} [{step.tool}" + (f": {given}]" if given else "]")
    return text + (f"; call it {step.name}." if step.name else ".")


def _update_words(step: Update) -> str:
    match step.op:
        case "append":
            return f"Put {_shown(step.value)} at the end of {step.name}."
        case "add":
            return f"Add {_shown(step.value)} to {step.name}."
        case "put":
            return f"Set {step.name} at {_shown(step.key)} to {_shown(step.value)}."


def _effect(step: Step, registry: Registry) -> str:
    tool = registry.get(step.tool) if isinstance(step, Call) else None
    return _EFFECTS[tool.effect] if tool is not None else ""


def _shown(expr: Any) -> str:
    """An expression as the plan's surface syntax writes it."""
    line = print_plan(Plan(steps=(Compute(name="_", value=expr),)))
    return line.removeprefix("_ = ").rstrip("\n")
