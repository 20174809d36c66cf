"""Policy cases from calls with values: what a run would find out about such a call, as a case to be tried and kept.

Nothing is called. Of the values only what policies may know is kept: whom they name, and what a recipient could follow
in untrusted text. Of a value that is not known this is not known either, so that the decision is that for the worst
value: a call may not seem to be allowed because its text is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bicameral.labels import NOTHING, TRUSTED_USER, Label, Public
from bicameral.plans import call_facts
from bicameral.policy import ArgumentFacts, CallFacts, Mode
from bicameral.runs._call_policy import ActionableText, untrusted_content
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


@dataclass(frozen=True, slots=True)
class TriedCall:
    """The decision on a call that was tried.

    Args:
        result: The decision, and the case that expects exactly it.
        unknown: The arguments whose values are not known, if the decision is so only for the worst that they could be.
            None where it is allowed: a call is allowed only if it is so with every value.
    """

    result: CaseResult
    unknown: tuple[str, ...] = ()


def try_call(
    tool: Tool,
    arguments: Mapping[str, TriedArgument],
    control: Label,
    policy: Policy,
    registry: Registry,
    *,
    mode: Mode = "strict",
    name: str = "",
) -> TriedCall:
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
        >>> try_call(registry["post"], {"to": TriedArgument(stranger)}, TRUSTED_USER, policy, registry).result.decided
        'ask'
    """
    # Cedar is loaded when a policy is first used, and not with the runs.
    from bicameral.policy import CaseResult, PolicyCase, run_case

    values = {name: each.value for name, each in arguments.items() if each.value is not None}
    facts = call_facts(tool, {name: each.label for name, each in arguments.items()}, values, "", control, mode)
    missing = _Missing.of(tool, facts, values)
    case = PolicyCase.model_validate(
        {
            "name": name or f"a call of {tool.name}",
            "tool": tool.name,
            "expect": "allowed",
            "mode": mode,
            "arguments": {
                each.name: _argument_case(each, arguments[each.name].assembled, each.name in missing.receivers)
                for each in facts.arguments
                if not each.name.endswith(ATTACHED_SUFFIX)
            },
            "control": _label_case(control),
            "lures": None if missing.content else sorted(ActionableText(None).in_call(facts, values)),
            "executed": "unknown" if facts.executed is None else facts.executed,
            "copied": facts.copied is not NOTHING,
        }
    )
    found = run_case(case, policy, registry)
    expected = {"expect": found.decided, "policies": found.policies}
    result = CaseResult(case.model_copy(update=expected), found.decision)
    unknown = () if found.decided == "allowed" else tuple(name for name in arguments if name in missing.names)
    return TriedCall(result, unknown)


@dataclass(frozen=True, slots=True)
class _Missing:
    """The arguments without a value of which policies would want to know something.

    Args:
        receivers: Those that name who gets it.
        content: Those that carry untrusted text to somebody, which may hold anything that they could follow.
        files: Those that decide whether other programs execute or obey what is written.
    """

    receivers: tuple[str, ...]
    content: tuple[str, ...]
    files: tuple[str, ...]

    @classmethod
    def of(cls, tool: Tool, facts: CallFacts, values: Mapping[str, Any]) -> _Missing:
        # Of a tool that declares nothing, every argument may name who gets it.
        receivers = [each.name for each in facts.arguments if each.name in tool.receivers or not tool.declared]
        content = [each.name for each in untrusted_content(facts)] if facts.outbound else []
        if ActionableText(None).in_call(facts, values):
            # It is known already that there is something to follow, and more of it changes nothing.
            content = []
        files = [each.name for each in facts.arguments] if facts.executed is None else []
        unknown = (tuple(name for name in names if name not in values) for names in (receivers, content, files))
        return cls(*unknown)

    @property
    def names(self) -> frozenset[str]:
        return frozenset((*self.receivers, *self.content, *self.files))


def _argument_case(facts: ArgumentFacts, assembled: bool, is_unknown: bool) -> dict[str, Any]:
    names = "unknown" if is_unknown else sorted(facts.principals or ())
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
