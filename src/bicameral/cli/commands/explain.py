"""`bicameral explain`: a plan in plain words, what each step does, and what it does to the world."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import fetch_missing_weights, open_agent
from bicameral.cli._displays import open_display
from bicameral.cli._options import CommonOptions, common_options, planning_options, quarantine_option
from bicameral.cli._output import NO_PLAN, OK
from bicameral.cli._render import checked_json, show_finding, verdict_name, verdict_why
from bicameral.labels import user_input
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

if TYPE_CHECKING:
    from bicameral.agent import Checked
    from bicameral.boundary import ExecutorFacts
    from bicameral.config import Config
    from bicameral.patterns.strategies import StrategyChoice


_EFFECT_WORDS = {
    "pure": "",
    "read": "reads",
    "write": "writes",
    "send": "sends out of here",
    "irreversible": "cannot be undone",
}


@dataclass(frozen=True, slots=True)
class ExplainedStep:
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


def explain_plan(plan: Plan, registry: Registry, proof: Proof | None = None) -> list[ExplainedStep]:
    """Every step of a plan in plain words, in order, with the verdict on each call."""
    found = {call.step: call for call in proof.calls} if proof is not None else {}
    steps = _explain_steps(plan.steps, registry, "", 0)
    return [
        replace(step, verdict=verdict_name(call.verdict), why=verdict_why(call))
        if (call := found.get(step.path))
        else step
        for step in steps
    ]


def plan_summary(report: Report) -> list[str]:
    """What a run of the plan can do and cost at worst, in sentences."""
    calls, models = report.cost.tool_calls, report.cost.model_calls
    changing = [use for use in report.effects if use.effect in ("write", "send", "irreversible")]
    told = ", ".join(f"{use.tool} ({_EFFECT_WORDS[use.effect]})" for use in changing)
    return [
        f"It changes the world through {told}." if changing else "It changes nothing.",
        f"It calls tools {calls} times and asks the quarantined model {models} times."
        if models.most
        else f"It calls tools {calls} times and asks no model.",
    ]


def executor_summary(report: Report, executor: ExecutorFacts) -> list[str]:
    """How the untrusted texts of the plan are read, in a sentence; nothing if it reads none."""
    if not report.cost.model_calls.most:
        return []
    match executor.variant:
        case "read-only" if executor.tools:
            tools = ", ".join(executor.tools)
            return [f"What a text leaves open the executor may look up by itself with {tools} (read-only)."]
        case "read-only":
            return ["A long text is read part by part, as the executor chooses (read-only)."]
        case "triple":
            checked_by = ", ".join(executor.validators)
            return [f"Every value that is read is checked by {checked_by} before it is used (triple)."]
        case _:
            return []


def _explain_steps(steps: tuple[Step, ...], registry: Registry, at: str, depth: int) -> Iterator[ExplainedStep]:
    for number, step in enumerate(steps):
        path = f"{at}{number}"
        tool = registry.get(step.tool) if isinstance(step, Call) else None
        effect = _EFFECT_WORDS[tool.effect] if tool is not None else ""
        limit = step.timeout_secs if isinstance(step, Call | Extract) else None
        words = _step_words(step, registry) + (f" At most {limit:g} s." if limit is not None else "")
        yield ExplainedStep(path, depth, words, effect)
        match step:
            case Each():
                yield from _explain_steps(step.steps, registry, f"{path}/", depth + 1)
            case When():
                yield from _explain_steps(step.steps, registry, f"{path}/then/", depth + 1)
                if step.otherwise:
                    yield ExplainedStep(f"{path}/else", depth, "Otherwise:")
                    yield from _explain_steps(step.otherwise, registry, f"{path}/else/", depth + 1)
            case _:
                pass


def _step_words(step: Step, registry: Registry) -> str:
    match step:
        case Call():
            return _call_words(step, registry)
        case Extract():
            asked, source = _expression_text(step.instruction), _expression_text(step.source)
            filled = f"fill in {asked} as {step.result_type}; call it {step.name}"
            return f"Let the quarantined model read {source} and {filled}."
        case Compute():
            return f"Work out {step.name} = {_expression_text(step.value)}."
        case Update():
            return _update_words(step)
        case Each():
            return f"For each {', '.join(step.names)} in {_expression_text(step.over)}, one after the other:"
        case When():
            return f"If {_expression_text(step.condition)}:"
        case Ask():
            return f"Ask you: {_expression_text(step.question)} (as {step.result_type}); call the reply {step.name}."
        case Answer():
            return f"Answer with {_expression_text(step.value)}, and end."


def _call_words(step: Call, registry: Registry) -> str:
    tool = registry.get(step.tool)
    does = tool.doc.splitlines()[0].rstrip(".") if tool is not None and tool.doc else f"Call {step.tool}"
    given = ", ".join(f"{name} {_expression_text(value)}" for name, value in step.args.items())
    text = f"{does} [{step.tool}" + (f": {given}]" if given else "]")
    return text + (f"; call it {step.name}." if step.name else ".")


def _update_words(step: Update) -> str:
    match step.op:
        case "append":
            return f"Put {_expression_text(step.value)} at the end of {step.name}."
        case "add":
            return f"Add {_expression_text(step.value)} to {step.name}."
        case "put":
            return f"Set {step.name} at {_expression_text(step.key)} to {_expression_text(step.value)}."


def _expression_text(expr: Any) -> str:
    """An expression as the plan's surface syntax writes it."""
    line = print_plan(Plan(steps=(Compute(name="_", value=expr),)))
    return line.removeprefix("_ = ").rstrip("\n")


@click.command(short_help="Say in plain words what a plan does, step by step.")
@click.argument("what", metavar="FILE|REQUEST")
@planning_options
@quarantine_option
@common_options
def command(chosen: CommonOptions, what: str, deterministic: bool, fresh: bool) -> int:
    """Say in plain words what the plan in a file does, or the plan that would serve a request.

    Where the strategy is chosen automatically, it says which one and why. One that calls tools as it goes has no plan
    that could be explained: then it says what each phase does, and who reads untrusted text.
    """
    from bicameral.config import configured_executor

    config = chosen.config()
    is_file_name = " " not in what.strip() and Path(what).suffix in (".json", ".py")
    if what == "-" or is_file_name or Path(what).is_file():
        from bicameral.cli.commands.check import load_checked

        read, checked, registry = load_checked(config, what)
        plan = read.plan
        return _show_explanation(chosen, plan, checked, registry, configured_executor(config))
    return asyncio.run(_explain_request(chosen, config, what, deterministic, fresh))


async def _explain_request(
    chosen: CommonOptions, config: Config, request: str, deterministic: bool, fresh: bool
) -> int:
    from bicameral.config import configured_executor

    fetch_missing_weights(chosen.out, config, ["privileged"])
    async with open_agent(config) as agent:
        choice = await agent.choose_strategy(user_input(request))
        if choice.strategy != "compiled":
            return _show_strategy(chosen, choice, config)
        if choice.is_automatic:
            chosen.out.show(f"Strategy: {choice}\n")
        with open_display(chosen.out) as shown:
            shown.phase("planning")
            planned = await agent.plan(request, deterministic=deterministic, fresh=fresh, watch=shown.statement)
        automatic = choice if choice.is_automatic else None
        executor = configured_executor(config)
        return _show_explanation(chosen, planned.plan, planned.checked, agent.registry, executor, automatic)


_PHASE_WORDS = {
    "sense": "The privileged model says what is asked and what must be found out.",
    "plan": "The privileged model writes a list of steps, before anything is read but the request.",
    "act": "A model asks for tools; policy decides about each call.",
    "reflect": "A model looks back, with tools that only read, and says whether a step is done again.",
    "final_answer": "A model writes the answer.",
}
_STRATEGY_PHASES = {
    "native_react": ("act",),
    "plan_and_execute": ("plan", "act", "final_answer"),
    "spar": ("sense", "plan", "act", "reflect", "final_answer"),
}
_READING_WORDS = {
    "typed": "the privileged model goes on with typed values; the quarantined model sees one typed sub-task and the "
    "data, never the request or a tool.",
    "as_needed": "the privileged model goes on with typed values; the quarantined model sees one typed sub-task and "
    "the data. Only a step that is left to it sees the tools that are named for it, and is marked in the record.",
    "open": "the quarantined model goes on, and sees the request and all tools: the second key rule does not hold.",
}


def _show_strategy(chosen: CommonOptions, choice: StrategyChoice, config: Config) -> int:
    """What a strategy without a plan does, phase by phase, and who reads untrusted text in it."""
    reading = config.agent.planning_strategy_params.reading
    chosen.out.show(f"Strategy: {choice}\n")
    phases = _STRATEGY_PHASES[choice.strategy]
    for phase in phases:
        chosen.out.show(f"{phase:<13} {_PHASE_WORDS[phase]}")
    chosen.out.show(f"\nAfter untrusted text has come in: {_READING_WORDS[reading]}")
    chosen.out.write_json(
        {"ok": True, "strategy_choice": choice.to_json(), "phases": list(phases), "reading": reading, "steps": []}
    )
    return OK


def _show_explanation(
    chosen: CommonOptions,
    plan: Plan,
    checked: Checked,
    registry: Registry,
    executor: ExecutorFacts,
    choice: StrategyChoice | None = None,
) -> int:
    out, report, steps = chosen.out, checked.report, explain_plan(plan, registry, checked.proof)
    if plan.goal:
        out.show(f"Goal: {plan.goal}\n")
    if plan.plan_id:
        out.show(f"Plan: {plan.plan_id}\n")
    for step in steps:
        indent = "  " * step.depth
        noted = "; ".join(filter(None, (step.effect, step.verdict)))
        out.show(f"{indent}{step.path:<6} {step.words}" + (f"  ({noted})" if noted else ""))
        if step.why:
            out.show(f"{indent}       {step.why}")
    summary = [*plan_summary(report), *executor_summary(report, executor)]
    out.show("\n" + " ".join(summary))
    for finding in report.findings:
        show_finding(out, finding)
    out.write_json(
        {
            "ok": report.ok,
            "goal": plan.goal,
            **({"plan_id": plan.plan_id} if plan.plan_id else {}),
            **({} if choice is None else {"strategy_choice": choice.to_json()}),
            "steps": [step.to_json() for step in steps],
            "summary": summary,
            "executor": executor.to_json(),
            **checked_json(checked),
        }
    )
    return OK if report.ok else NO_PLAN
