"""Files that a plan would read in a form which they do not have: a table as lines of text, or a note as a table.

A planner does not see what is there, so it may take a list of guests for a text though it is a table, and count its
lines. Which form a file has is known by its ending. The plan is then written anew with the tools that are left; see
`agent` for what may come of that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bicameral.binding._binder import Binder
from bicameral.binding._questions import Binding, Question
from bicameral.binding._screening import display_name
from bicameral.binding._words import words_of
from bicameral.binding._world_source import TEXT_ENDINGS
from bicameral.labels import Label, join_all
from bicameral.plans import Call, Plan, ReferenceSite, reference_sites, walk
from bicameral.tools import Registry, Tool
from bicameral.types import STR, ListType

BindSite = Callable[[ReferenceSite], Awaitable[Binding | Question]]
_LINES = frozenset("line lines zeile zeilen ligne lignes linea lineas".split())
_TEXTS = (STR, ListType(STR))
_BY_NAME = ("exact", "normalised", "stem", "part", "synonym")


@dataclass(frozen=True, slots=True)
class Misread:
    """Words whose files a plan reads in a form which they do not have.

    Args:
        words: The words of the references.
        tools: All tools that would read them in that form.
        label: Of what the words may have meant: it decides which tools are left.
        text: What is wrong, safe to show.
    """

    words: tuple[str, ...]
    tools: frozenset[str]
    label: Label
    text: str


async def find_misread(plan: Plan, registry: Registry, binder: Binder, bind_site: BindSite) -> Misread | None:
    """The files that a plan reads in the wrong form, if it changes nothing and all of them are of the other form.

    Args:
        plan: The plan, with its references open. Its goal is the request.
        registry: The tools.
        binder: Matches the words by rules.
        bind_site: Binds a reference as the plan uses it, by rules alone.
    """
    called = [registry.get(step.tool) for _, step in walk(plan.steps) if isinstance(step, Call)]
    if any(tool is None or tool.changes for tool in called):
        # A text that is sent or stored as it is may well be that of a table.
        return None
    sites = [site for site in reference_sites(plan, registry) if site.refers == "file" and site.tool is not None]
    by_tool = [(site, tool) for site in sites if (tool := registry.get(site.tool or "")) is not None]
    as_text = [site for site, tool in by_tool if _reads_text(tool)]
    as_table = [site for site, tool in by_tool if tool.table_endings]
    return await _find_tables(as_text, plan, registry, binder) or await _find_texts(
        as_table, registry, binder, bind_site
    )


async def _find_tables(
    sites: Sequence[ReferenceSite], plan: Plan, registry: Registry, binder: Binder
) -> Misread | None:
    """Tables that are read as text, unless the request names the file itself or speaks of lines."""
    endings = tuple(dict.fromkeys(ending for tool in registry for ending in tool.table_endings))
    if not sites or not endings or not _LINES.isdisjoint(words_of(plan.goal)):
        return None
    # However it is found: it is what the plan would read as text.
    found = [await binder.bind_by_rules("file", site.words) for site in sites]
    named = any(site.words.lower().endswith(endings) for site in sites)
    if named or not all(each is not None and _path(each).endswith(endings) for each in found):
        return None
    return _misread(found, [tool.name for tool in registry if _reads_text(tool)], "a table, and is read as text")


async def _find_texts(
    sites: Sequence[ReferenceSite], registry: Registry, binder: Binder, bind_site: BindSite
) -> Misread | None:
    """Texts that are read as tables, where no table fits."""
    found: list[Binding | None] = []
    for site in sites:
        table = await bind_site(site)
        if not isinstance(table, Question) or table.reason != "none":
            return None
        found.append(await _named_file(site, binder))
    if not found or not all(each is not None and _path(each).endswith(TEXT_ENDINGS) for each in found):
        return None
    return _misread(found, [tool.name for tool in registry if tool.table_endings], "no table, and is read as one")


async def _named_file(site: ReferenceSite, binder: Binder) -> Binding | None:
    """The file that is called so. What a file says may be about anything, so that it need not be meant."""
    found = await binder.bind_by_rules("file", site.words)
    return found if found is not None and found.how in _BY_NAME else None


def _misread(found: Sequence[Binding | None], tools: Sequence[str], what: str) -> Misread:
    files = [each for each in found if each is not None]
    return Misread(
        tuple(dict.fromkeys(each.words for each in files)),
        frozenset(tools),
        join_all(each.label for each in files),
        f"{display_name(str(files[0].value))} is {what}",
    )


def _reads_text(tool: Tool) -> bool:
    takes_file = any(each.refers == "file" for each in tool.arguments)
    return not tool.changes and not tool.table_endings and tool.result in _TEXTS and takes_file


def _path(binding: Binding) -> str:
    return str(binding.value).lower()
