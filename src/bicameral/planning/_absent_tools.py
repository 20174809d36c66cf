"""Requests and plans that need a tool which is not set up, found by code, and refused with the setting that is missing.

The planner is not told of a tool whose settings are missing, so it could serve the rest of a request and leave the
order out without a word. What orders such a tool is therefore refused before any model is asked. It counts as an order
only if rules find the order and no working tool could be meant; where that is not certain, the plan gets a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from bicameral.planning._capabilities import serving_tools, speaks_of, tool_objects
from bicameral.planning._clauses import only_asks, ordering_clauses
from bicameral.planning._failed_plans import NoPlanError
from bicameral.planning._intent import asked_effects
from bicameral.planning._language import fold, guess_language
from bicameral.planning._matching import named_objects
from bicameral.planning._refusals import missing_capability
from bicameral.plans import Call, Plan, walk
from bicameral.tools import AbsentTool, Registry

_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# Words for the place itself. What is said of an event or of a message may stand in a note as well.
_STORES: dict[str, re.Pattern[str]] = {
    "calendar": re.compile(r"\b(?:calendars?|kalendern?|kalenders|agendas?|calendriers?|calendarios?)\b"),
    "mail": re.compile(
        r"\b(?:e?-?mails?|mailbox|inbox|postfach|posteingang|courriels?|boite\s+mail|correos?|bandeja\s+de\s+entrada)\b"
    ),
}


def ordered_absent_tool(request: str, registry: Registry, absent: Sequence[AbsentTool]) -> AbsentTool | None:
    """The absent tool that a request certainly orders; None if it orders none, or may mean another tool.

    Args:
        request: The user's request.
        registry: All tools, the absent ones among them.
        absent: The tools that cannot work.

    Example:
        >>> ordered_absent_tool("Mail the list to Kim", registry, absent).missing.lacking
        'no SMTP server is set'
    """
    working = registry.without(each.name for each in absent)
    for each in absent:
        if each.tool is None:
            if _asks_store(request, each.toolbox, working):
                return each
        elif each.tool.changes and _asks_for(request, each, working) and not _is_served(request, each, working):
            return each
    return None


def doubtful_absent_tools(request: str, registry: Registry, absent: Iterable[AbsentTool]) -> tuple[AbsentTool, ...]:
    """The absent tools that a request may order, by words that other tools have, too."""
    text = _ADDRESS.sub("somebody", request)
    return tuple(
        each
        for each in absent
        if each.tool is not None
        and each.tool.changes
        and each.tool.effect in asked_effects(text, Registry([each.tool]))
    )


def asked_stores(request: str, registry: Registry) -> tuple[str, ...]:
    """The toolboxes whose mailbox, calendar or the like a request asks about by name, and no file.

    Example:
        >>> asked_stores("What is in my calendar tomorrow?", registry)
        ('calendar',)
    """
    if not only_asks(request, guess_language(request)) or _names_file(request):
        return ()
    boxes = dict.fromkeys(tool.toolbox for tool in registry if tool.effect == "read" and not tool.self_described)
    return tuple(box for box in boxes if _names_store(request, box))


def unready_reader(request: str, registry: Registry, unready: Sequence[AbsentTool]) -> AbsentTool | None:
    """One of the tools that a question about a store needs, if none of that store's reading tools works now."""
    names = {each.name for each in unready}
    for box in asked_stores(request, registry):
        readers = [tool.name for tool in registry if tool.toolbox == box and tool.effect == "read"]
        if readers and names.issuperset(readers):
            return next(each for each in unready if each.name == readers[0])
    return None


def called_toolboxes(plan: Plan, registry: Registry) -> frozenset[str]:
    """The toolboxes of the tools that a plan calls."""
    called = (registry.get(step.tool) for _, step in walk(plan.steps) if isinstance(step, Call))
    return frozenset(tool.toolbox for tool in called if tool is not None)


def called_absent_tool(plan: Plan, absent: Collection[AbsentTool]) -> AbsentTool | None:
    """The first call of a plan that cannot work; one is none that comes after a call which makes what it lacks."""
    by_name, made = {each.name: each for each in absent}, set[str]()
    for _, step in walk(plan.steps):
        if isinstance(step, Call):
            found = by_name.get(step.tool)
            if found is not None and made.isdisjoint(found.missing.begun_by):
                return found
            made.add(step.tool)
    return None


def refused_absent_tool(reason: str, absent: Iterable[AbsentTool]) -> AbsentTool | None:
    """The absent tool of which the planner says that there is none; None if it says something else."""
    capability = missing_capability(reason)
    known = {each.name: each for each in absent if each.tool is not None}
    if capability is None or not known:
        return None
    served = serving_tools(capability, Registry(each.tool for each in known.values() if each.tool is not None))
    return known[served[0]] if served else None


def absent_tool_error(absent: AbsentTool) -> NoPlanError:
    """The refusal of a request that needs a tool which cannot work, with the setting that it lacks."""
    what = f"the toolbox {absent.toolbox!r}" if absent.tool is None else f"the tool {absent.name!r}"
    error = NoPlanError(
        "plan.absent-tool",
        f"this needs {what}, which cannot work: {absent.missing.lacking}",
        fix=absent.missing.fix,
    )
    error.is_founded = True
    return error


def absent_tool_doubt(absent: AbsentTool) -> str:
    """What a person is told where a plan may have left out an order for want of a tool."""
    return f"nothing is done with {absent.name!r}, which cannot work: {absent.missing.lacking}. {absent.missing.fix}"


def _asks_for(request: str, absent: AbsentTool, working: Registry) -> bool:
    """Whether rules find an order for the effect of a tool, by words that no working tool has.

    Not by an address alone: `Add kim@example.org to contacts.csv` sends nothing.
    """
    tool = absent.tool
    if tool is None:
        return False
    shared = {word for other in working if other.changes for word in other.words}
    own = replace(tool, words=tuple(word for word in tool.words if word not in shared))
    return tool.effect in asked_effects(_ADDRESS.sub("somebody", request), Registry([own]))


def _is_served(request: str, absent: AbsentTool, working: Registry) -> bool:
    """Whether a working tool has the same effect and could be meant: the request names nothing that it cannot serve."""
    tool = absent.tool
    others = [] if tool is None else [each for each in working if each.effect == tool.effect]
    if tool is None or not others:
        return False
    text = " ".join(clause.text for clause in ordering_clauses(request, guess_language(request)))
    own = tool_objects(tool).difference(*(tool_objects(each) for each in others))
    return not any(speaks_of(text, name) for name in own)


def _asks_store(request: str, toolbox: str, working: Registry) -> bool:
    """Whether a request is about what only a toolbox has that is left out."""
    if any(tool.toolbox == toolbox or toolbox in tool_objects(tool) for tool in working):
        return False
    if toolbox == "web":
        return bool(named_objects(request)["url"])
    return _names_store(request, toolbox) and not _names_file(request)


def _names_file(request: str) -> bool:
    """Whether a file or a page is named, which may hold anything."""
    named = named_objects(request)
    return bool(named["path"] or named["url"])


def _names_store(request: str, toolbox: str) -> bool:
    pattern = _STORES.get(toolbox)
    return pattern is not None and pattern.search(fold(request)) is not None
