"""Requests and plans that need a tool which is not set up, found by code, and refused with the setting that is missing.

The planner is not told of a tool whose settings are missing, so it could serve the rest of a request and leave the
order out without a word. What orders such a tool is therefore refused before any model is asked. It counts as an order
only if rules find the order and no working tool could be meant; where that is not certain, the plan gets a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from bicameral.planning._capabilities import serving_tools, speaks_of, tool_objects
from bicameral.planning._clauses import only_asks, ordering_clauses
from bicameral.planning._effect_words import effects_in_words
from bicameral.planning._failed_plans import NoPlanError
from bicameral.planning._intent import asked_effects
from bicameral.planning._language import Language, fold, guess_language
from bicameral.planning._matching import named_objects
from bicameral.planning._refusals import missing_capability
from bicameral.planning._unserved_orders import without_opening
from bicameral.plans import Call, Plan, walk
from bicameral.text import lazy_pattern
from bicameral.tools import AbsentTool, Registry, Tool

_ADDRESS = lazy_pattern(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# Words for the place itself. What is said of an event or of a message may stand in a note as well.
_STORES: dict[str, re.Pattern[str]] = {
    "calendar": lazy_pattern(r"\b(?:calendars?|kalendern?|kalenders|agendas?|calendriers?|calendarios?)\b"),
    "mail": lazy_pattern(
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
        if each.tool is None or each.tool.effect == "read":
            if _asks_store(request, each.toolbox, working):
                return each
        elif each.tool.changes and _asks_for(request, each, working) and not _is_served(request, each, working):
            return each
    return None


def doubtful_absent_tools(request: str, registry: Registry, absent: Iterable[AbsentTool]) -> tuple[AbsentTool, ...]:
    """The absent tools that a request may order, by words that other tools have, too, or that mean other things."""
    text = _ADDRESS.sub("somebody", request)
    changing = [(each, each.tool) for each in absent if each.tool is not None and each.tool.changes]
    return tuple(
        each
        for each, tool in changing
        if tool.effect in asked_effects(text, Registry([tool])) and _may_be_meant(request, tool)
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
    if not served and "send" in capability.actions:
        # A message to somebody may go by any way.
        served = tuple(name for name, each in known.items() if each.tool is not None and each.tool.effect == "send")
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
    """Whether a clause of a request certainly orders a tool, by a verb that no working tool has.

    The words that allow an effect are generous: they find an order in `answer how many lines there are` and in `write
    the guests to list.txt`. Here the clause must begin with the verb and name somebody whom it goes to, if it is one
    that goes to somebody.
    """
    tool = absent.tool
    # Not by an address alone: `Add kim@example.org to contacts.csv` sends nothing.
    if tool is None or tool.effect not in asked_effects(_ADDRESS.sub("somebody", request), Registry([tool])):
        return False
    shared = {word for other in working if other.changes for word in other.words}
    own = [re.escape(fold(word)) for word in tool.words if word not in shared]
    verb = lazy_pattern(rf"(?:{'|'.join(sorted(own, key=len, reverse=True))})\b") if own else None
    language = guess_language(request)

    def begins(clause: str) -> bool:
        return verb is not None and verb.match(without_opening(clause)) is not None

    for clause in ordering_clauses(request, language, known=begins):
        start = len(clause.text) - len(without_opening(clause.text))
        found = verb.match(clause.text, start) if verb is not None else None
        if found is None and tool.effect not in effects_in_words(clause.spelled):
            continue
        end = found.end() if found is not None else start + _first_word_length(clause.text[start:])
        if not tool.receivers or _goes_to_somebody(clause.text[end:], clause.spelled[end:], language):
            return True
    return False


def _may_be_meant(request: str, tool: Tool) -> bool:
    """Whether a clause says that something goes to somebody, whatever its verb is."""
    language = guess_language(request)
    for clause in ordering_clauses(request, language, known=lambda _: True):
        start = len(clause.text) - len(without_opening(clause.text))
        end = start + _first_word_length(clause.text[start:])
        if not tool.receivers or _goes_to_somebody(clause.text[end:], clause.spelled[end:], language):
            return True
    return False


def _first_word_length(text: str) -> int:
    return len(text.split(maxsplit=1)[0]) if text.strip() else 0


_TOWARDS: dict[Language, re.Pattern[str]] = {
    "en": lazy_pattern(r"\bto\s+"),
    "de": lazy_pattern(r"\ban\s+"),
    "fr": lazy_pattern(r"\b(?:a|au|aux)\s+"),
    "es": lazy_pattern(r"\b(?:al?)\s+"),
}
_PLACES = ("file", "folder", "table", "calendar", "web", "chat")
_ONESELF = frozenset({"me", "myself", "mir", "mich", "moi", "mi"})
_DETAIL = lazy_pattern(r"\b(?:on|from|in|of|with|about|aus|von|mit|in|auf|de|du|dans|sur|avec|en|con|sobre)\b")
_NAME = lazy_pattern(r"\s+[A-ZÀ-ÖØ-Þ][\w'-]*")
_MASKED_ADDRESS = lazy_pattern(r"\s+x{6,}(?!\w)")
_PRONOUN = lazy_pattern(r"\s+(?:him|her|them|everyone|everybody|all\s+of\s+them)\b")


def _goes_to_somebody(text: str, spelled: str, language: Language) -> bool:
    """Whether what follows a verb says to whom: a name, an address or a pronoun at once, or somebody after `to`."""
    name = _NAME.match(spelled)
    if name is not None and not any(speaks_of(name[0], each) for each in _PLACES):
        return True
    # An address is masked as well. `Write kim@example.com to contacts.txt` writes it.
    if _PRONOUN.match(text) or (_MASKED_ADDRESS.match(text) and "qqq" not in text):
        return True
    for found in _TOWARDS[language].finditer(text):
        words = _DETAIL.split(text[found.end() :], maxsplit=1)[0].split()[:4]
        # A file is masked as `qqq`; what goes to a place goes to nobody.
        is_place = any("/" in word or word.startswith("qqq") for word in words)
        is_place = is_place or any(speaks_of(" ".join(words), each) for each in _PLACES)
        if words and not is_place and words[0] not in _ONESELF:
            return True
    return False


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
