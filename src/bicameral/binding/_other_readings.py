"""Readings that another plan would make: where a file has another form than a plan takes it to have, or is not there.

A planner does not see what is there. So it may take a list of guests for a text though it is a table, and count its
lines; or look for a table of expenses where a note or a mail says what was spent. Which form a file has is known by its
ending. The plan is then written anew with the tools that are left; see `agent` for what may come of that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bicameral.binding._binder import Binder
from bicameral.binding._questions import Binding, Question
from bicameral.binding._screening import display_name
from bicameral.binding._words import words_of
from bicameral.binding._world_source import TEXT_ENDINGS
from bicameral.labels import Label, join_all
from bicameral.plans import Const, Plan, Reference, ReferenceSite, reference_sites, render_expr
from bicameral.tools import Registry, Tool
from bicameral.types import STR, ListType

BindSite = Callable[[ReferenceSite], Awaitable[Binding | Question]]
_LINES = frozenset("line lines zeile zeilen ligne lignes linea lineas".split())
_TEXTS = (STR, ListType(STR))
_BY_NAME = ("exact", "normalised", "stem", "part", "synonym")
_PLACES = {"file": "file", "table": "file", "mail": "mail", "event": "event"}
"""The kinds of things that may be elsewhere, and as what tools take them."""
_LONGEST_ENDING = 5
_LONGEST_QUERY = 200
SEARCH = "find"
"""The tool that searches everything, and its toolbox."""


@dataclass(frozen=True, slots=True)
class OtherReading:
    """Why a plan without effects should be written anew, with other readings.

    Args:
        reason: Whether files have another form, or nothing is called so.
        words: The words of the references.
        without: The tools that the other plan must not call.
        label: Of what the words may have meant: it decides which tools are left.
        text: What is wrong, safe to show.
        begin: The first statement of the other plan, in words of the first one and of the request.
    """

    reason: Literal["misread", "absent"]
    words: tuple[str, ...]
    without: frozenset[str]
    label: Label
    text: str
    begin: str = ""


async def find_misread(
    plan: Plan, registry: Registry, bound: Sequence[Binding], binder: Binder, bind_site: BindSite
) -> OtherReading | None:
    """The files that a plan reads in the wrong form, if all of them are of the other form.

    Args:
        plan: The plan, with its references open and without effects. Its goal is the request.
        registry: The tools.
        bound: What its words are bound to, as far as they are.
        binder: Matches words by rules.
        bind_site: Binds a reference as the plan uses it, by rules alone.
    """
    sites = [site for site in reference_sites(plan, registry) if site.refers == "file" and site.tool is not None]
    by_tool = [(site, tool) for site in sites if (tool := registry.get(site.tool or "")) is not None]
    as_text = [site for site, tool in by_tool if _reads_text(tool)]
    as_table = [site for site, tool in by_tool if tool.table_endings]
    return _find_tables(as_text, plan, registry, bound) or await _find_texts(as_table, registry, binder, bind_site)


def find_absent(questions: Sequence[Question], plan: Plan, registry: Registry) -> OtherReading | None:
    """What a plan without effects reads that is not there, if nothing is near it and the words are no name of a file.

    Args:
        questions: What binding leaves open; a person who is there has said that none is meant.
        plan: The plan. Its goal is the request.
        registry: The tools.
    """
    absent = [each for each in questions if each.reason == "none" and not each.shown and each.kind in _PLACES]
    if not absent or len(absent) < len(questions) or any(_names_file(each.words) for each in absent):
        return None
    kinds = {_PLACES[each.kind] for each in absent}
    reading = [tool.name for tool in registry if any(each.refers in kinds for each in tool.arguments)]
    words = tuple(dict.fromkeys(each.words for each in absent))
    return OtherReading(
        "absent",
        words,
        frozenset((*reading, *_acting(registry))),
        join_all(each.label for each in absent),
        f"no {absent[0].kind} is called *{display_name(words[0])}*, so that it was looked for elsewhere",
        search_statement(plan.goal) if _has_search(registry) else "",
    )


def _has_search(registry: Registry) -> bool:
    tool = registry.get(SEARCH)
    # A program that calls itself so is not the search; a planner does not see its name.
    return tool is not None and not tool.self_described and tool.toolbox == SEARCH


def search_statement(request: str) -> str:
    """The first statement of a plan that looks for what a request says."""
    # Binding does not know what else the request says of it, so all of it is looked for.
    query = " ".join(request.split())[:_LONGEST_QUERY]
    return f"found = {SEARCH}({render_expr(Const(value=query))})\n"


def _find_tables(
    sites: Sequence[ReferenceSite], plan: Plan, registry: Registry, bound: Sequence[Binding]
) -> OtherReading | None:
    """Tables that are read as text, unless the request names the file itself or speaks of lines."""
    endings = tuple(dict.fromkeys(ending for tool in registry for ending in tool.table_endings))
    if not sites or not endings or not _LINES.isdisjoint(words_of(plan.goal)):
        return None
    # However it was found: it is what the plan would read as text.
    files = {each.words: each for each in bound if each.kind == "file"}
    found = [files.get(site.words) for site in sites]
    named = any(site.words.lower().endswith(endings) for site in sites)
    if named or not all(each is not None and _path(each).endswith(endings) for each in found):
        return None
    # A tool that needs more than the file, such as the name of a sheet, is not what the plan means.
    whole = [tool for tool in registry if tool.table_endings and sum(each.required for each in tool.arguments) == 1]
    left = [tool for tool in whole if any(_path(each).endswith(tool.table_endings) for each in found if each)]
    misread = _misread(found, registry, left, "a table, and is read as text")
    # A planner does not know a tool that describes itself by its own name.
    if len(left) == 1 and not left[0].self_described and len(misread.words) == 1:
        return replace(
            misread, begin=f"rows = {left[0].name}({render_expr(Reference(refers='file', words=sites[0].words))})\n"
        )
    return misread


async def _find_texts(
    sites: Sequence[ReferenceSite], registry: Registry, binder: Binder, bind_site: BindSite
) -> OtherReading | None:
    """Texts that are read as tables, where no table fits."""
    found: list[Binding | None] = []
    for site in sites:
        table = await bind_site(site)
        if not isinstance(table, Question) or table.reason != "none":
            return None
        found.append(await _named_file(site, binder))
    if not found or not all(each is not None and _path(each).endswith(TEXT_ENDINGS) for each in found):
        return None
    return _misread(found, registry, filter(_reads_text, registry), "no table, and is read as one")


async def _named_file(site: ReferenceSite, binder: Binder) -> Binding | None:
    """The file that is called so. What a file says may be about anything, so that it need not be meant."""
    found = await binder.bind_by_rules("file", site.words)
    return found if found is not None and found.how in _BY_NAME else None


def _misread(found: Sequence[Binding | None], registry: Registry, left: Iterable[Tool], what: str) -> OtherReading:
    """The reading that only the tools which are left make: the file is known, so that no other place is meant.

    A tool without arguments, such as a clock, reads no place.
    """
    files = [each for each in found if each is not None]
    allowed = {tool.name for tool in left}
    others = [tool.name for tool in registry if tool.effect == "read" and tool.arguments and tool.name not in allowed]
    return OtherReading(
        "misread",
        tuple(dict.fromkeys(each.words for each in files)),
        frozenset((*others, *_acting(registry))),
        join_all(each.label for each in files),
        f"{display_name(str(files[0].value))} is {what}",
    )


def _acting(registry: Registry) -> list[str]:
    """The tools that change something or tell somebody something: what is there must not decide that."""
    return [tool.name for tool in registry if tool.changes or tool.outbound]


def _reads_text(tool: Tool) -> bool:
    takes_file = any(each.refers == "file" for each in tool.arguments)
    return not tool.changes and not tool.table_endings and tool.result in _TEXTS and takes_file


def _names_file(words: str) -> bool:
    """Whether the words are the name of a file: a dot and an ending without blanks."""
    _, dot, ending = words.rpartition(".")
    return bool(dot) and 0 < len(ending) <= _LONGEST_ENDING and ending.isalnum()


def _path(binding: Binding) -> str:
    return str(binding.value).lower()
