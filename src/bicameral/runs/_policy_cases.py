"""Policy cases from calls with values: what a run would find out about such a call, as a case to be tried and kept.

Nothing is called. Of the values only what policies may know is kept: whom they name, and what a recipient could follow
in untrusted text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bicameral.labels import TRUSTED_USER, Label, Public
from bicameral.plans import call_facts
from bicameral.policy import ArgumentFacts, Mode
from bicameral.runs._call_policy import ActionableText
from bicameral.tools import ATTACHED_SUFFIX, Registry, Tool

if TYPE_CHECKING:
    from bicameral.policy import CaseResult, Policy


@dataclass(frozen=True, slots=True)
class TriedArgument:
    """An argument of a call to be tried.

    Args:
        label: Where it came from, and who may read it.
        value: Its value; None if it is not known.
        assembled: Whether a model's plan puts it together, instead of taking it whole.
    """

    label: Label
    value: Any = None
    assembled: bool = False


def try_call(
    tool: Tool,
    arguments: Mapping[str, TriedArgument],
    control: Label,
    policy: Policy,
    registry: Registry,
    *,
    mode: Mode = "strict",
    name: str = "",
) -> CaseResult:
    """The decision of the policies on a call, with the case that expects exactly this decision.

    Args:
        tool: The tool.
        arguments: The arguments that are given.
        control: What decided that the call is made.
        policy: The policies.
        registry: The tools.
        mode: Whether control flow counts.
        name: The name of the case.

    Example:
        >>> stranger = Label({Source("third_party", "search_mail", "[].body")})
        >>> try_call(registry["post"], {"to": TriedArgument(stranger)}, TRUSTED_USER, policy, registry).decided
        'ask'
    """
    # Cedar is loaded when a policy is first used, and not with the runs.
    from bicameral.policy import CaseResult, PolicyCase, run_case

    values = {name: each.value for name, each in arguments.items() if each.value is not None}
    facts = call_facts(tool, {name: each.label for name, each in arguments.items()}, values, "", control, mode)
    case = PolicyCase.model_validate(
        {
            "name": name or f"a call of {tool.name}",
            "tool": tool.name,
            "expect": "allowed",
            "mode": mode,
            "arguments": {
                each.name: _argument_case(each, arguments[each.name].assembled)
                for each in facts.arguments
                if not each.name.endswith(ATTACHED_SUFFIX)
            },
            "control": _label_case(control),
            "lures": sorted(ActionableText(None).in_call(facts, values)),
            # A file of which it is not known counts as executed.
            "executed": facts.executed is not False,
        }
    )
    found = run_case(case, policy, registry)
    expected = {"expect": found.decided, "policies": found.policies}
    return CaseResult(case.model_copy(update=expected), found.decision)


def _argument_case(facts: ArgumentFacts, assembled: bool) -> dict[str, Any]:
    names = sorted(facts.principals or ())
    return {**_label_case(facts.label), "names": names, "bounded": facts.bounded, "assembled": assembled}


def _label_case(label: Label) -> dict[str, Any]:
    """A label as cases write it. What came from the user alone is what they assume."""
    readers = "public" if isinstance(label.readers, Public) else sorted(label.readers)
    if label.sources == TRUSTED_USER.sources:
        return {"readers": readers}
    sources = [
        {"trust": each.trust, "tool": each.tool, "part": each.part, "step": each.step} for each in sorted(label.sources)
    ]
    return {"sources": sources, "readers": readers}
