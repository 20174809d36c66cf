"""Policies: those that hold, and a playground: a call with labels, the decision on it, and the policies that decided.

Nothing is called. The values that are typed serve for what policies may know of them: whom they name, and what a
recipient could follow in untrusted text.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from starlette.responses import Response

from bicameral.console._pages import PageCall, page_route
from bicameral.errors import BicameralError, Place, PolicyError, ServerError, ToolError, nearest_name
from bicameral.labels import PUBLIC, TRUSTED_USER, USER, Label, Source, Trust
from bicameral.policy import Mode
from bicameral.runs import TriedArgument, parse_typed_reply, try_call, typed_reply_hint
from bicameral.tools import Argument, Registry, Tool
from bicameral.types import mismatch

if TYPE_CHECKING:
    from bicameral.policy import CaseResult, PolicyRule

MAX_VALUE = 4_000
"""Characters of the value of an argument."""
MAX_NAME = 200
MAX_READERS = 50
OWN_SOURCES = ("extract", "lookup")
"""Sources of untrusted text that are no tools: what the quarantined model wrote, what the executor looked up."""
WHOSE: Mapping[str, str] = {"user": "the user's", "system": "a tool's own", "third_party": "untrusted text"}
READERS: Mapping[str, str] = {"public": "everybody", "user": "the user alone", "some": "the user and these"}
DECIDED: Mapping[str, str] = {"allowed": "allowed", "ask": "asks a person", "denied": "denied"}
_NAME_BREAK = re.compile(r"[\s,;]+")


@dataclass(frozen=True, slots=True)
class LabelForm:
    """The label of an argument, or of the control flow, as it is chosen on the page.

    Args:
        key: What the names of its fields begin with.
        whose: Who wrote the value.
        source: The tool that it came from, unless it is the user's.
        part: The part of the result of that tool.
        readers: Who may read it; with `some`, those in `names`.
    """

    key: str
    whose: str = "user"
    source: str = ""
    part: str = ""
    readers: str = "public"
    names: str = ""


@dataclass(frozen=True, slots=True)
class ArgumentForm:
    """An argument of the chosen tool, and what was typed for it."""

    argument: Argument
    label: LabelForm
    text: str = ""
    assembled: bool = False

    @property
    def hint(self) -> str:
        """What to type."""
        return typed_reply_hint(self.argument.type)

    @property
    def is_given(self) -> bool:
        """Whether the call has it. One that is needed is always there; without a value nothing is known of it."""
        return self.argument.required or bool(self.text.strip())


@dataclass(frozen=True, slots=True)
class Playground:
    """The call as it is chosen, and what is decided on it, or what is wrong with the form."""

    tool: Tool | None
    mode: Mode
    arguments: Sequence[ArgumentForm]
    control: LabelForm
    result: CaseResult | None = None
    unknown: Sequence[str] = ()
    """The arguments whose missing values could change the decision."""
    toml: str = ""
    rules: Sequence[PolicyRule] = ()
    faults: Sequence[tuple[str, BicameralError]] = ()
    """What is wrong, each with the name of the argument."""


@dataclass(slots=True)
class _Faults:
    """Collects what is wrong with the fields of a form."""

    found: list[tuple[str, BicameralError]] = field(default_factory=list[tuple[str, BicameralError]])

    def note(self, name: str, error: BicameralError) -> None:
        self.found.append((name, error))


async def policy_page(call: PageCall) -> Response:
    """The policies that hold, and the playground with the tool of the address."""
    return await _show(call, "policy.html", call.query("tool"))


async def try_policy(call: PageCall) -> Response:
    """The page with the decision on the call of the form: for browsers without scripts."""
    return await _show(call, "policy.html", call.field("tool"))


async def policy_form(call: PageCall) -> Response:
    """The form for the chosen tool, with what was typed for arguments of the same names."""
    return await _show(call, "policy_playground.html", call.field("tool"))


async def policy_verdict(call: PageCall) -> Response:
    """The decision on the call of the form."""
    return await _show(call, "policy_verdict.html", call.field("tool"))


async def _show(call: PageCall, template: str, tool: str) -> Response:
    playground = await asyncio.to_thread(_play, call, tool)
    agent = call.context.agent
    return call.page(
        template,
        playground=playground,
        policy=agent.policy,
        toolboxes=_toolboxes(agent.registry),
        sources=(*agent.registry.names, *OWN_SOURCES),
        whose_words=WHOSE,
        reader_words=READERS,
        decided_words=DECIDED,
    )


def _toolboxes(registry: Registry) -> dict[str, list[Tool]]:
    """The tools by their toolbox, those without one last."""
    found: dict[str, list[Tool]] = {}
    for tool in sorted(registry, key=lambda each: (not each.toolbox, each.toolbox, each.name)):
        found.setdefault(tool.toolbox or "other tools", []).append(tool)
    return found


def _play(call: PageCall, name: str) -> Playground:
    """The form as it was sent, and the decision on its call."""
    agent, faults = call.context.agent, _Faults()
    tool = agent.registry.get(name) if name else _first_tool(agent.registry)
    mode: Mode = cast("Mode", call.field("mode")) if call.field("mode") in ("strict", "normal") else agent.policy.mode
    usual = _usual_source(agent.registry)
    control = _label_form(call, "control", usual)
    if tool is None:
        if name:
            nearest = nearest_name(name[:MAX_NAME], agent.registry.names)
            faults.note("", PolicyError("policy.bad-cases", f"there is no tool {name[:60]!r}", nearest=nearest))
        return Playground(None, mode, (), control, faults=faults.found)
    playground = Playground(tool, mode, [_argument_form(call, each, usual) for each in tool.arguments], control)
    return _decide(call, tool, playground, faults)


def _first_tool(registry: Registry) -> Tool | None:
    """The tool to begin with: one that sends something, since there is most to decide."""
    ranked = sorted(registry, key=lambda tool: (tool.effect != "send", not tool.outbound, not tool.changes, tool.name))
    return ranked[0] if ranked else None


def _usual_source(registry: Registry) -> str:
    """A tool that brings untrusted text, to begin with."""
    from bicameral.policy import brings_leg

    return next((tool.name for tool in registry if brings_leg(tool, "untrusted")), OWN_SOURCES[0])


def _label_form(call: PageCall, key: str, usual: str) -> LabelForm:
    whose, readers = call.field(f"{key}.whose", "user"), call.field(f"{key}.readers", "public")
    return LabelForm(
        key,
        whose if whose in WHOSE else "user",
        call.field(f"{key}.source", usual).strip(),
        call.field(f"{key}.part").strip(),
        readers if readers in READERS else "public",
        call.field(f"{key}.names"),
    )


def _argument_form(call: PageCall, argument: Argument, usual: str) -> ArgumentForm:
    key = f"argument.{argument.name}"
    label = _label_form(call, key, usual)
    return ArgumentForm(argument, label, call.field(f"{key}.value"), call.field(f"{key}.assembled") == "1")


def _decide(call: PageCall, tool: Tool, playground: Playground, faults: _Faults) -> Playground:
    agent = call.context.agent
    tried = {
        each.argument.name: TriedArgument(
            _label(each.label, each.argument.name, agent.registry, faults), _value(tool, each, faults), each.assembled
        )
        for each in playground.arguments
        if each.is_given
    }
    control = _label(playground.control, "control flow", agent.registry, faults)
    if faults.found:
        return replace(playground, faults=faults.found)
    from bicameral.policy import case_toml

    try:
        call_tried = try_call(tool, tried, control, agent.policy, agent.registry, mode=playground.mode)
    except BicameralError as error:
        return replace(playground, faults=[("", error)])
    found = call_tried.result
    rules = [rule for rule in agent.policy.rules if rule.id in found.policies]
    return replace(playground, result=found, unknown=call_tried.unknown, toml=case_toml(found.case), rules=rules)


def _value(tool: Tool, form: ArgumentForm, faults: _Faults) -> Any:
    """The value that was typed; None if there is none."""
    text, wanted = form.text, form.argument.type
    if not text.strip():
        return None
    reason = ""
    if len(text) > MAX_VALUE:
        reason = f"it has more than {MAX_VALUE:,} characters"
    else:
        try:
            value = parse_typed_reply(text if "\n" in text else text.strip(), wanted)
            reason = mismatch(value, wanted) or ""
        except (ValueError, RecursionError, OverflowError):
            reason = "it is none"
        else:
            if not reason:
                return value
    place = Place(argument=form.argument.name)
    message = f"{tool.name!r} cannot take this: {reason}"
    faults.note(form.argument.name, ToolError("tools.wrong-type", message, place=place, expected=form.hint))
    return None


def _label(form: LabelForm, name: str, registry: Registry, faults: _Faults) -> Label:
    """The label that is chosen; that of the user's own words where something is wrong with it."""
    try:
        sources = TRUSTED_USER.sources if form.whose == "user" else frozenset({_source(form, registry)})
        return Label(sources, PUBLIC if form.readers == "public" else frozenset(_readers(form)))
    except BicameralError as error:
        faults.note(name, error)
        return TRUSTED_USER


def _source(form: LabelForm, registry: Registry) -> Source:
    known = (*registry.names, *OWN_SOURCES)
    if form.source not in known:
        message = f"there is no tool {form.source[:60]!r} that it could come from" if form.source else "name a tool"
        nearest = nearest_name(form.source[:MAX_NAME], known) if form.source else None
        raise ServerError("console.unknown-source", message, expected="a tool of this server", nearest=nearest)
    if len(form.part) > MAX_NAME:
        expected = "the place in a result, such as `[].body`, or nothing"
        raise ServerError("console.unknown-source", f"{form.part[:60]!r} is no part of a result", expected=expected)
    return Source(cast("Trust", form.whose), form.source, form.part)


def _readers(form: LabelForm) -> Iterator[str]:
    yield USER
    if form.readers != "some":
        return
    names = [name for name in _NAME_BREAK.split(form.names[: MAX_READERS * MAX_NAME]) if name]
    if not names or len(names) > MAX_READERS or any(len(name) > MAX_NAME for name in names):
        message = "these are too many names, or too long ones" if names else "nobody is named who may read it"
        expected = f"up to {MAX_READERS} addresses or accounts, separated by commas"
        raise ServerError("console.bad-readers", message, expected=expected)
    yield from names


policy_routes = [
    page_route("/policy", policy_page, "see", "run"),
    page_route("/policy", try_policy, "see", "run", method="POST"),
    page_route("/policy/form", policy_form, "see", "run", method="POST"),
    page_route("/policy/verdict", policy_verdict, "see", "run", method="POST"),
]
