"""Test cases for policies: the expected decisions on given calls, in a file that `bicameral policy test` runs.

    [[case]]
    name = "a stranger names the recipient"
    tool = "send_mail"
    expect = "ask"
    policies = ["directed-by-strangers"]

    [case.arguments.to]
    sources = [{ trust = "third_party", tool = "search_mail", part = "[].body" }]
    names = ["eve@example.com"]

An argument without sources came from the user. What is not known (`names = "unknown"`, `executed = "unknown"`, no
`lures`) may be anything, and the decision is that for the worst. JSON files with the same content work, too.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bicameral.display import hidden_places
from bicameral.documents import toml_key, toml_pairs
from bicameral.errors import Place, PolicyError, nearest_name
from bicameral.labels import NOTHING, PUBLIC, TRUSTED_USER, USER, Label, Source, Trust
from bicameral.policy._decisions import Allowed, ArgumentFacts, CallFacts, Decision, Denied, Depends, Mode
from bicameral.policy._policy import Policy
from bicameral.policy._rules import read_policy_file
from bicameral.tools import ATTACHED_SUFFIX, Registry, Tool

ExpectedDecision = Literal["allowed", "denied", "ask"]
_Texts = Annotated[tuple[str, ...], Field(strict=False)]


class _CaseModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _CaseSource(_CaseModel):
    trust: Trust
    tool: str
    part: str = ""
    step: str = ""


class _CaseLabel(_CaseModel):
    """Where something came from (left out: the user) and who may read it (left out: everyone)."""

    sources: Annotated[tuple[_CaseSource, ...], Field(strict=False)] | None = None
    readers: Literal["public"] | _Texts = "public"

    @property
    def label(self) -> Label:
        sources = TRUSTED_USER.sources
        if self.sources is not None:
            sources = frozenset(Source(each.trust, each.tool, each.part, each.step) for each in self.sources)
        return Label(sources, PUBLIC if self.readers == "public" else frozenset(self.readers))


class _CaseArgument(_CaseLabel):
    names: Literal["unknown"] | _Texts = ()
    """The people and accounts that the value names."""
    bounded: bool = False
    """Whether the value cannot hold free text."""
    assembled: bool = False
    """Whether a model's plan puts the value together, instead of taking it whole."""


class PolicyCase(_CaseModel):
    """A call, and the expected decision. `policies`, if given, are exactly those that stop it."""

    name: str
    tool: str
    expect: ExpectedDecision
    policies: _Texts | None = None
    mode: Mode = "strict"
    arguments: dict[str, _CaseArgument] = Field(default_factory=dict[str, _CaseArgument])
    control: _CaseLabel = _CaseLabel()
    """What decided that the call is made."""
    lures: _Texts | None = None
    """What a recipient could follow in untrusted text that the call carries; left out: unknown."""
    executed: bool | Literal["unknown"] = False
    """Whether the call writes a file that other programs execute or obey."""
    copied: bool = False
    """Whether the call writes content there that no argument holds, such as a file that it copies."""


class _CaseFile(_CaseModel):
    case: Annotated[tuple[PolicyCase, ...], Field(strict=False, min_length=1)]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The decision of the policies on a case."""

    case: PolicyCase
    decision: Decision

    @property
    def decided(self) -> ExpectedDecision:
        match self.decision:
            case Allowed():
                return "allowed"
            case Denied() | Depends():
                # As in a run: nobody can approve a call that a policy may forbid for what is not known of it.
                return "denied"
            case _:
                return "ask"

    @property
    def policies(self) -> tuple[str, ...]:
        return () if isinstance(self.decision, Allowed) else self.decision.rules

    @property
    def explanation(self) -> str:
        match self.decision:
            case Allowed():
                return ""
            case Denied(reason=reason):
                return reason
            case asked:
                return asked.question

    @property
    def is_expected(self) -> bool:
        wanted = self.case.policies
        return self.decided == self.case.expect and (wanted is None or set(wanted) == set(self.policies))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.case.name,
            "ok": self.is_expected,
            "expected": self.case.expect,
            "said": self.decided,
            "policies": list(self.policies),
            **({"why": self.explanation} if self.explanation else {}),
        }


def read_cases(file: Path) -> tuple[PolicyCase, ...]:
    """The cases in a file: JSON if its name ends in `.json`, otherwise TOML."""
    text, place = read_policy_file(file), Place(file=str(file))
    try:
        content: Any = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise PolicyError(
            "policy.bad-cases", f"this is neither TOML nor JSON: {error}", place=place, expected="a table [[case]]"
        ) from None
    try:
        return _CaseFile.model_validate(content).case
    except ValidationError as error:
        raise _case_file_error(error, place) from None


def run_case(case: PolicyCase, policy: Policy, registry: Registry) -> CaseResult:
    """The decision of the policies on a case; the facts about the tool are those of its declaration."""
    return CaseResult(case, policy.decide(case_facts(case, registry)))


def case_facts(case: PolicyCase, registry: Registry) -> CallFacts:
    """The facts about the call of a case."""
    tool = registry.get(case.tool)
    if tool is None:
        raise PolicyError(
            "policy.bad-cases",
            f"the case {case.name!r} calls {case.tool!r}, which is not there",
            nearest=nearest_name(case.tool, registry.names),
            fix="`bicameral tools list` shows what there is.",
        )
    arguments = tuple(_argument_facts(case, name, given, tool) for name, given in case.arguments.items())
    attached = tool.attached_labels({}, tuple(case.arguments), "")
    arguments += tuple(ArgumentFacts(name + ATTACHED_SUFFIX, "attaches", label) for name, label in attached)
    more: dict[str, Any] = {
        "lures": None if case.lures is None else frozenset(case.lures),
        "executed": None if case.executed == "unknown" else case.executed,
        "copied": Label({Source("third_party", tool.name)}, {USER}) if case.copied else NOTHING,
        "assembled": frozenset(name for name, given in case.arguments.items() if given.assembled),
    }
    return CallFacts.of_tool(tool, arguments, case.control.label, case.mode, **more)


def case_toml(case: PolicyCase) -> str:
    """A case as TOML, as `read_cases` reads it. Characters that nobody sees are written as escapes.

    Example:
        >>> print(case_toml(PolicyCase(name="mine", tool="post", expect="allowed")))
        [[case]]
        name = "mine"
        tool = "post"
        expect = "allowed"
    """
    plain = case.model_dump(mode="json", exclude_defaults=True)
    arguments: dict[str, dict[str, Any]] = plain.pop("arguments", {})
    control: dict[str, Any] = plain.pop("control", {})
    lines = ["[[case]]", *toml_pairs(plain)]
    lines += [f"control.{line}" for line in toml_pairs(control)]
    for name in case.arguments:
        # An argument of which nothing is to be said is given all the same.
        key, given = f"arguments.{toml_key(name)}", arguments.get(name, {})
        lines += [f"{key}.{line}" for line in toml_pairs(given)] or [f"{key} = {{}}"]
    text = "\n".join(lines)
    hidden = hidden_places(text)
    return "".join(
        each if each == "\n" or (each.isprintable() and at not in hidden) else _toml_escape(each)
        for at, each in enumerate(f"{text}\n")
    )


def _toml_escape(character: str) -> str:
    """A character as an escape of TOML; every one that nobody sees stands in quotation marks here."""
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _argument_facts(case: PolicyCase, name: str, given: _CaseArgument, tool: Tool) -> ArgumentFacts:
    declared = tool.argument(name)
    if declared is None:
        raise PolicyError(
            "policy.bad-cases",
            f"the case {case.name!r} gives {tool.name!r} an argument {name!r}, which it does not have",
            nearest=nearest_name(name, [each.name for each in tool.arguments]),
            expected=tool.signature,
        )
    named = None if given.names == "unknown" else frozenset(given.names)
    return ArgumentFacts(name, declared.purpose, given.label, given.bounded, named)


def _case_file_error(error: ValidationError, place: Place) -> PolicyError:
    """The first validation error, with the path to it."""
    detail = error.errors(include_url=False, include_context=False)[0]
    path = ".".join(str(part) for part in detail["loc"])
    keys = [part for part in detail["loc"] if isinstance(part, str)]
    models = {"case": PolicyCase, "arguments": _CaseArgument, "sources": _CaseSource, "control": _CaseLabel}
    model = next((models[key] for key in reversed(keys[:-1]) if key in models), _CaseFile)
    unknown = detail["type"] == "extra_forbidden"
    return PolicyError(
        "policy.bad-cases",
        f"there is no {path!r}" if unknown else f"{path!r} is wrong" if path else "this is no file of cases",
        place=place,
        expected=detail["msg"].removeprefix("Input should be ") if not unknown else ", ".join(model.model_fields),
        nearest=nearest_name(keys[-1], model.model_fields) if unknown and keys else None,
    )
