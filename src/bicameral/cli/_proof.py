"""The verdict of policy on each call of a plan, before anything happens: as people and programs read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._output import Output

if TYPE_CHECKING:
    from bicameral.plans import CallProof, Proof, Verdict

_STYLES = {"proved": "", "conditional": "yellow", "refused": "red"}


def verdict_name(verdict: Verdict) -> str:
    """`proved`, `conditional` or `refused`."""
    return type(verdict).__name__.lower()


def verdict_text(call: CallProof) -> str:
    """A verdict with what could stop the call: the question that may be asked, or the reason."""
    why = verdict_why(call)
    return verdict_name(call.verdict) + (f": {why}" if why else "")


def verdict_lines(proof: Proof) -> list[str]:
    """Every call of a plan with its verdict, in columns."""
    steps = max((len(call.step) for call in proof.calls), default=0)
    tools = max((len(call.tool) for call in proof.calls), default=0)
    return [f"{call.step:<{steps}}  {call.tool:<{tools}}  {verdict_text(call)}" for call in proof.calls]


def show_verdicts(out: Output, proof: Proof | None) -> None:
    """Every call with its verdict, on standard output."""
    for line in verdict_lines(proof) if proof is not None else ():
        out.show(f"  {line}")


def say_verdicts(out: Output, proof: Proof | None, *, briefly: bool = False) -> None:
    """Every call with its verdict, on standard error; briefly, only those that are refused or may be asked about."""
    if proof is None:
        return
    for call, line in zip(proof.calls, verdict_lines(proof), strict=True):
        name = verdict_name(call.verdict)
        if name == "refused" or not briefly:
            out.say(f"  {line}", style=_STYLES[name])
    if briefly and not proof.refused:
        _say_conditional(out, proof)


def _say_conditional(out: Output, proof: Proof) -> None:
    """What a run may ask about, or stop at, in one place before it begins."""
    lines = [
        f"    step {call.step}  {call.tool}: {verdict_why(call)}"
        for call in proof.calls
        if verdict_name(call.verdict) == "conditional"
    ]
    if lines:
        who = "may ask you about" if out.interactive else "may stop, since nobody can be asked, at"
        out.say("\n".join((f"  This run {who}:", *lines)), style=_STYLES["conditional"])


def call_json(call: CallProof) -> dict[str, Any]:
    """The verdict on one call for a program."""
    return call.to_json()


def proof_json(proof: Proof | None) -> dict[str, Any] | None:
    """The proof for a program; none of a plan with errors."""
    return None if proof is None else proof.to_json()


def verdict_why(call: CallProof) -> str:
    """What may stop a call: the question, or the reason; nothing if it is proved."""
    from bicameral.plans import Conditional, Refused

    match call.verdict:
        case Conditional(questions=questions, why=why):
            told = " ".join(questions) or why
        case Refused(reason=reason):
            told = reason
        case _:
            told = ""
    return told.removeprefix(f"{call.tool}: ")
