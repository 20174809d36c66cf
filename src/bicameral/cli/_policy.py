"""Policies, cases and proofs as people and programs read them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from textwrap import indent
from typing import TYPE_CHECKING

from ._output import Output
from ._proof import call_json, verdict_lines

if TYPE_CHECKING:
    from bicameral.plans import Plan
    from bicameral.policy import Outcome, Policy, Rule
    from bicameral.tools import Registry


def schema_text() -> str:
    """What a policy can speak of."""
    return files("bicameral.policy").joinpath("schema.cedarschema").read_text(encoding="utf-8")


def show_policy(out: Output, policy: Policy) -> None:
    """Every policy with its text, the defaults first."""
    for default in (True, False):
        rules = [rule for rule in policy.rules if rule.default is default]
        if rules:
            out.show("The defaults" if default else "\nYour own")
        for rule in rules:
            out.show(f"\n  {_headline(rule)}\n{indent(rule.text, '    ')}")
    weaker = " (weaker: control flow does not count)" if policy.mode == "normal" else ""
    out.show(f"\nmode: {policy.mode}{weaker}")
    facts = {"mode": policy.mode, "fingerprint": policy.fingerprint}
    out.object({"ok": True, **facts, "policies": [rule.to_json() for rule in policy.rules]})


def _headline(rule: Rule) -> str:
    match rule.effect:
        case "forbid" if rule.ask is not None:
            does = "asks a person"
        case "forbid":
            does = "refuses"
        case _:
            does = f"lifts {', '.join(rule.overrides)}" if rule.overrides else "allows"
    return f"{rule.id}: {does}" + ("" if rule.default else f"  ({rule.where})")


def show_outcomes(out: Output, outcomes: Sequence[Outcome]) -> None:
    """Each case, and what was said of it where that is not what it should be."""
    for outcome in outcomes:
        out.show(f"{'ok  ' if outcome.ok else 'FAIL'}  {outcome.case.name}: {outcome.said}")
        if not outcome.ok:
            wanted = outcome.case.policies
            out.show(f"      expected {outcome.case.expect}" + (f" by {', '.join(wanted)}" if wanted else ""))
            out.show(f"      {_by(outcome)}")
    failed = sum(not outcome.ok for outcome in outcomes)
    out.show(f"\n{len(outcomes)} {'case' if len(outcomes) == 1 else 'cases'}, {failed or 'none'} failed")
    out.object({"ok": not failed, "cases": [outcome.to_json() for outcome in outcomes]})


def _by(outcome: Outcome) -> str:
    named = f"by {', '.join(outcome.policies)}: " if outcome.policies else ""
    return f"{named}{outcome.why}" if outcome.why else "no policy stops it"


def show_proof(out: Output, plan: Plan, registry: Registry, policy: Policy) -> bool:
    """What would be said of each call of a plan; False if one would be refused."""
    from bicameral.plans import prove

    proof = prove(plan, registry, policy.preview, policy.mode)
    for line in verdict_lines(proof):
        out.show(line)
    if not proof.calls:
        out.show("it calls no tool")
    out.object({"ok": not proof.refused, "mode": policy.mode, "calls": [call_json(call) for call in proof.calls]})
    return not proof.refused
