"""A whole description: the members of a stack, patterns of one's own, and waivers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast

from bicameral.errors import CatalogError, Place, nearest

from ._sections import (
    CATALOGUE,
    pattern_id,
    read_actions,
    read_declares,
    read_facts,
    read_guards,
    read_legs,
    read_loops,
    read_pipeline,
    read_prompt,
    read_sessions,
    read_stores,
    read_tools,
    read_uses,
)
from ._stack import Defined, Keys, Member, Stack, Waiver
from ._values import At

Read = Callable[[At, Collection[str]], Any]

_SECTIONS: Mapping[str, tuple[str, Read]] = {
    "patterns": ("uses", read_uses),
    "facts": ("facts", lambda at, _: read_facts(at)),
    "declares": ("declares", lambda at, _: read_declares(at)),
    "model": ("model", lambda at, _: at.text()),
    "owner": ("owner", lambda at, _: at.text()),
    "policy": ("policy", lambda at, _: at.text()),
    "tools": ("tools", lambda at, _: read_tools(at)),
    "legs": ("legs", lambda at, _: read_legs(at)),
    "guards": ("guards", lambda at, _: read_guards(at)),
    "prompt": ("prompt", read_prompt),
    "loops": ("loops", lambda at, _: read_loops(at)),
    "sessions": ("sessions", lambda at, _: read_sessions(at)),
    "actions": ("actions", lambda at, _: read_actions(at)),
    "stores": ("stores", read_stores),
    "pipeline": ("pipeline", read_pipeline),
}
"""What can be said of an agent, and of the whole."""
_OF_STACK = ("name", "agents", "define", "waivers")


def read_description(settings: Mapping[str, Any], locate: Callable[[Keys], Place], file: str | None = None) -> Stack:
    """The stack that a mapping describes; what is wrong with it is told with its place."""
    top = At(settings, (), locate)
    found = top.keys((*_OF_STACK, *_SECTIONS), "a stack")
    defined = _defined(found["define"]) if "define" in found else {}
    known = CATALOGUE | defined.keys()
    agents = _agents(found["agents"], known) if "agents" in found else ()
    whole = _member("", (), {key: at for key, at in found.items() if key in _SECTIONS}, known)
    if not whole.uses and not any(agent.uses for agent in agents):
        raise top.wrong(
            "stack.empty",
            "the stack has no patterns",
            expected="patterns, as in `patterns: [R4, V9, V14]`",
            fix="`bicameral patterns list` shows them all.",
        )
    waivers = tuple(_waiver(each) for each in found["waivers"].items("a list of waivers")) if "waivers" in found else ()
    name = found["name"].text() if "name" in found else "stack"
    return Stack(name, whole, agents, waivers, defined, file, locate)


def _agents(at: At, known: Collection[str]) -> tuple[Member, ...]:
    found: list[Member] = []
    for name, each in at.mapping("agents by their names"):
        if not name.strip():
            raise each.wrong("stack.bad-value", "an agent has no name", expected="a name")
        sections = each.keys(_SECTIONS, "an agent") if each.value is not None else {}
        found.append(_member(name, each.path, sections, known))
    return tuple(found)


def _member(name: str, path: Keys, found: Mapping[str, At], known: Collection[str]) -> Member:
    read = {_SECTIONS[key][0]: _SECTIONS[key][1](at, known) for key, at in found.items()}
    return Member(name, path, **read)


def _defined(at: At) -> dict[str, Defined]:
    """Patterns of one's own. They may need each other, but not in a circle."""
    given = dict(at.mapping("patterns of your own by their ids"))
    for id, each in given.items():
        if id in CATALOGUE:
            raise each.wrong("stack.known-pattern", f"the catalogue has a pattern {id!r} already", fix="Rename yours.")
    known = CATALOGUE | given.keys()
    found = {id: _definition(id, each, known) for id, each in given.items()}
    try:
        TopologicalSorter({id: each.needs for id, each in found.items()}).prepare()
    except CycleError as error:
        # The sorter goes from what is needed to what needs it.
        circle = cast("list[str]", error.args[1])[::-1]
        raise given[circle[0]].wrong(
            "stack.circle",
            f"these patterns need each other in a circle: {' needs '.join(circle)}",
            fix="Take one need away.",
        ) from None
    return found


def _definition(id: str, at: At, known: Collection[str]) -> Defined:
    keys = at.keys(("name", "needs", "needs_one_of", "not_with", "loops", "why"), "a pattern of your own")

    def listed(key: str) -> tuple[str, ...]:
        if key not in keys:
            return ()
        return tuple(pattern_id(each, known) for each in keys[key].items("a list of patterns"))

    if id in listed("not_with"):
        raise keys["not_with"].wrong("stack.bad-value", f"{id!r} cannot be without itself", expected="other patterns")
    return Defined(
        id,
        keys["name"].text() if "name" in keys else id,
        at.path,
        listed("needs"),
        listed("needs_one_of"),
        listed("not_with"),
        keys["loops"].truth() if "loops" in keys else False,
        keys["why"].text() if "why" in keys else "its definition says so",
    )


def _waiver(at: At) -> Waiver:
    found = at.keys(("rule", "at", "reason", "until"), "a waiver")
    if "rule" not in found:
        raise at.wrong("stack.bad-value", "a waiver names no rule", expected="a rule, as in `rule: CRIT6`")
    rule = found["rule"]
    rules = (rule.text(),) if isinstance(rule.value, str) else rule.texts()
    # A reason that is empty is none: that is a finding, and no fault of the description.
    reason = found["reason"].value if "reason" in found else None
    if reason is not None and not isinstance(reason, str):
        raise found["reason"].bad("a text")
    return Waiver(
        rules,
        at.path,
        found["at"].text() if "at" in found else None,
        reason.strip() or None if reason else None,
        _day(found["until"]) if "until" in found else None,
    )


def _day(at: At) -> date:
    value = at.value
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise at.bad("a day, as in 2027-03-01") from None


def check_rules(stack: Stack, known: Collection[str]) -> None:
    """Every rule that a waiver names must be one: a misspelt waiver would seem to waive."""
    for waiver in stack.waivers:
        for number, rule in enumerate(waiver.rules):
            if rule not in known:
                raise CatalogError(
                    "stack.unknown-rule",
                    f"there is no rule {rule[:60]!r}",
                    place=stack.place((*waiver.path, "rule", number)),
                    nearest=nearest(rule, known),
                    fix="`bicameral lint --rules` lists them.",
                )
