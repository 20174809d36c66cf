"""Names of foreign tools that tell their reader to use the tool of another server.

A name is the one word of a server that models read, and four words are enough for an order: an argument
`run_files_wipe_first` is read before the user's request is done. Whoever reviews a server sees its names, but need not
know that `files_wipe` is a tool of the next one. So it is looked for where all tools are known. A tool with such a name
counts as one that nobody has reviewed: no model is told of it, and every call asks.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from itertools import combinations

from bicameral.foreign._tools import name_words
from bicameral.tools import Tool
from bicameral.types import LiteralType, RecordType, Type, iter_types

_CALLING = frozenset("apply call do exec execute invoke perform run start trigger try use using".split())
"""Words with which somebody is told to use a tool."""
_ORDERING = frozenset("afterwards also before beforehand first next now then".split())
"""Words that say when."""


_MOST_CHARACTERS = 200
"""Characters of a name that are looked at: names have a few words, and choices at most sixty characters."""
Phrases = Mapping[tuple[str, ...], Set[str]]
"""The toolboxes that have a tool of a name, by the words of it."""


class MentioningNameWarning(UserWarning):
    """A name of a tool tells its reader to use the tool of another server; nobody counts as having reviewed it."""


def set_aside_mentioning(tools: Iterable[Tool]) -> list[Tool]:
    """The tools, with those as `self_described` whose names order the tools of others to be used.

    Only tools that came with names of a stranger are looked at; every other tool is one that they may mention.
    """
    tools = list(tools)
    phrases: dict[tuple[str, ...], set[str]] = {}
    for tool in tools:
        for phrase in _tool_phrases(tool):
            phrases.setdefault(phrase, set()).add(tool.toolbox)
    found: list[Tool] = []
    for tool in tools:
        mentioned = _mentioned(tool, phrases) if _is_foreign(tool) and not tool.self_described else None
        if mentioned is None:
            found.append(tool)
            continue
        warnings.warn(
            f"{tool.name!r} counts as not reviewed, since its name {mentioned!r} tells models to use the tool of "
            "another server; leave it out with `use = false`, or give the other tool another `name`",
            MentioningNameWarning,
            stacklevel=2,
        )
        found.append(replace(tool, self_described=True, unreviewed=True))
    return found


def _is_foreign(tool: Tool) -> bool:
    return tool.toolbox.startswith(("mcp:", "openapi:"))


def _tool_phrases(tool: Tool) -> set[tuple[str, ...]]:
    """How others can mention a tool: by its whole name, or without the name of its server."""
    whole = tuple(name_words(tool.name))
    server = tuple(name_words(tool.toolbox.partition(":")[2]))
    own = whole[len(server) :] if whole[: len(server)] == server else whole
    return {whole, own} - {()}


def _mentioned(tool: Tool, phrases: Phrases) -> str | None:
    """The first name of a tool that orders the use of a tool of another server."""
    for name in _names(tool):
        words = tuple(name_words(name[:_MOST_CHARACTERS]))
        if not (_CALLING | _ORDERING).isdisjoint(words) and _orders(words, tool.toolbox, phrases):
            return name
    return None


def _orders(words: tuple[str, ...], toolbox: str, phrases: Phrases) -> bool:
    for start, end in combinations(range(len(words) + 1), 2):
        if phrases.get(words[start:end], set()) - {toolbox}:
            beside = {*words[:start], *words[end:]}
            calling, ordering = bool(_CALLING & beside), bool(_ORDERING & beside)
            # One word alone is seldom a mention: `use_cache` is an argument, and `run_wipe_first` an order.
            if (calling or ordering) if end - start > 1 else (calling and ordering):
                return True
    return False


def _names(tool: Tool) -> Iterator[str]:
    """All names and choices of a tool that models read."""
    yield tool.name
    for argument in tool.arguments:
        yield argument.name
        yield from _names_in(argument.type)
    yield from _names_in(tool.result)


def _names_in(type_: Type) -> Iterator[str]:
    for each in iter_types(type_):
        match each:
            case LiteralType(values=values):
                yield from values
            case RecordType(names=names):
                yield from names
            case _:
                pass
