"""Lookup of tools by what they accept, what they give and what they can do.

Types are media types (`application/pdf`, `image/*`), endings of files (`.pdf`), or types of values in plans (`text`,
`table`, `date`, `path`, the name of a record). All conditions must hold. Where no single tool serves, two tools in a
row may: the first accepts what is asked for, the second gives it, and the value of one is an argument of the other.

What a program describes of itself is found like everything else, since a person reads the result; it is never shown to
a planner for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bicameral import types as t
from bicameral.errors import ToolError, nearest_name
from bicameral.tools._argument import Argument
from bicameral.tools._media import (
    capability_matches,
    media_matches,
    media_of_ending,
    normalise_capability,
    normalise_media,
)
from bicameral.tools._tool import Tool

MAX_CHAINS = 20


@dataclass(frozen=True, slots=True)
class ToolQuery:
    """What a tool must accept, give and be able to do; an empty query holds for every tool.

    Make one with `ToolQuery.parse`.
    """

    accepts: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    can: tuple[str, ...] = ()

    @classmethod
    def parse(cls, accepts: Sequence[str] = (), gives: Sequence[str] = (), can: Sequence[str] = ()) -> ToolQuery:
        """The query in these words; `tools.bad-lookup` names one that cannot be looked up."""
        return cls(tuple(map(_parse_kind, accepts)), tuple(map(_parse_kind, gives)), tuple(map(_parse_capability, can)))

    def __bool__(self) -> bool:
        return bool(self.accepts or self.gives or self.can)

    def matches(self, tool: Tool) -> bool:
        """Whether one tool meets every condition."""
        return (
            all(map(_has_kind(accepted_media(tool), accepted_types(tool)), self.accepts))
            and all(map(_has_kind(given_media(tool), given_types(tool)), self.gives))
            and all(_has_capability(tool, each) for each in self.can)
        )


@dataclass(frozen=True, slots=True)
class ToolChain:
    """Two tools in a row: the result of the first is an argument of the second."""

    first: Tool
    second: Tool
    argument: str

    def to_json(self) -> dict[str, Any]:
        return {"tools": [self.first.name, self.second.name], "argument": self.argument}


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The tools that meet a query; chains of two only where no single tool does.

    `nearest` is the nearest known name to each word of the query that no tool has.
    """

    tools: tuple[Tool, ...]
    chains: tuple[ToolChain, ...] = ()
    nearest: tuple[tuple[str, str | None], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tools or self.chains)


def find_tools(
    tools: Iterable[Tool], *, accepts: Sequence[str] = (), gives: Sequence[str] = (), can: Sequence[str] = ()
) -> LookupResult:
    """The tools that accept these types, give these types and have these capabilities.

    Args:
        tools: A registry, or any tools.
        accepts: Media types, endings of files or types of arguments, all of which a tool must take.
        gives: The same for what it gives: its result, or the file that it writes.
        can: Capabilities; `ocr` is met by `document-ocr`.

    Example:
        >>> [tool.name for tool in find_tools(registry, accepts=["application/pdf"], gives=["text/plain"]).tools]
        ['read_text', 'read_lines']
    """
    known, query = list(tools), ToolQuery.parse(accepts, gives, can)
    found = tuple(tool for tool in known if query.matches(tool))
    if found:
        return LookupResult(tuple(sorted(found, key=lambda tool: -_exactness(tool, query))))
    chains = tuple(_find_chains(known, query))[:MAX_CHAINS] if query.accepts and query.gives else ()
    return LookupResult((), chains, () if chains else tuple(_nearest_names(known, query)))


def _exactness(tool: Tool, query: ToolQuery) -> int:
    """How many conditions a tool names literally, and not by a wildcard or a part of a name."""
    exact = {*accepted_media(tool), *accepted_types(tool)}, {*given_media(tool), *given_types(tool)}
    return (
        sum(each in exact[0] for each in query.accepts)
        + sum(each in exact[1] for each in query.gives)
        + sum(each in tool.capabilities for each in query.can)
    )


def accepted_media(tool: Tool) -> tuple[str, ...]:
    """The media types that a tool takes."""
    return tool.accepts


def given_media(tool: Tool) -> tuple[str, ...]:
    """The media types that a tool gives: those that it declares; a text that it returns is plain text."""
    return tool.gives or (("text/plain",) if {"text", "lines"} & type_names(tool.result) else ())


def accepted_types(tool: Tool) -> frozenset[str]:
    """The names of the types of all arguments."""
    return frozenset(name for argument in tool.arguments for name in type_names(argument.type))


def given_types(tool: Tool) -> frozenset[str]:
    """The names of the type of the result."""
    return type_names(tool.result)


def known_capabilities(tool: Tool) -> tuple[str, ...]:
    """What a tool can do: the capabilities that it declares, its own name, and the words that ask for it."""
    own = (normalise_capability(name) for name in (tool.name, *tool.words))
    return tuple(dict.fromkeys((*tool.capabilities, *(name for name in own if name))))


_PLAIN_NAMES: tuple[tuple[type[t.Type], tuple[str, ...]], ...] = (
    (t.BoolType, ("bool",)),
    (t.IntType, ("int", "number")),
    (t.FloatType, ("float", "number")),
    (t.DateTimeType, ("datetime",)),
    (t.DateType, ("date",)),
    (t.TimeType, ("time",)),
    (t.DurationType, ("duration",)),
    (t.LiteralType, ("choice",)),
    (t.NullType, ("nothing",)),
)
TYPE_NAMES = frozenset(
    {
        *(name for _, names in _PLAIN_NAMES for name in names),
        *("any", "file", "lines", "list", "money", "path", "record", "table", "text"),
        *t.FORMATS,
    }
)
"""The names of types that can be looked up in every registry; records of tools have names besides."""
_TYPE_ALIASES = {
    "str": "text",
    "string": "text",
    "boolean": "bool",
    "integer": "int",
    "dict": "record",
    "rows": "table",
}


def type_names(type_: t.Type) -> frozenset[str]:
    """The names by which a type is looked up: `list[dict[str, str]]` is a `table` and a `list`."""
    match type_:
        case t.OptionalType(item=item):
            return type_names(item)
        case t.ListType(item=item):
            inner = type_names(item)
            kind = {"table"} if "record" in inner else {"lines"} if "text" in inner else set[str]()
            return frozenset({"list", *kind, *(inner - {"text", "record", "list", "table", "lines"})})
        case t.TupleType():
            return frozenset({"list"})
        case t.StrType(format=None):
            return frozenset({"text"})
        case t.StrType(format=str() as name):
            return frozenset({name, "file"} if name == "path" else {name})
        case t.RecordType(name=name):
            return frozenset({"record", name.lower()} if name else {"record"})
        case t.DictType():
            return frozenset({"record"})
        case t.AnyType():
            return frozenset({"any"})
        case _:
            return next((frozenset(names) for kind, names in _PLAIN_NAMES if isinstance(type_, kind)), frozenset[str]())


def lookup_names(tools: Iterable[Tool]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """What can be looked up in these tools: types that are accepted, types that are given, capabilities."""
    takes, returns, capabilities = set[str](), set[str](), set[str]()
    for tool in tools:
        takes.update(accepted_media(tool), accepted_types(tool))
        returns.update(given_media(tool), given_types(tool))
        capabilities.update(known_capabilities(tool))
    # The names of records are those of a program if it describes itself, and so may be anything.
    accepted, given = frozenset(filter(_is_name, takes)), frozenset(filter(_is_name, returns))
    return accepted, given, frozenset(capabilities)


def _is_name(text: str) -> bool:
    return normalise_media(text) is not None or normalise_capability(text) is not None


def _parse_kind(text: str) -> str:
    word = text.strip()
    if "/" in word:
        if (media := normalise_media(word)) is None:
            raise _lookup_error(text, "a MIME type, such as application/pdf or image/*")
        return media
    if word.startswith("."):
        if (media := media_of_ending(word)) is None:
            raise _lookup_error(text, "the ending of a file whose type is known, such as .pdf, or its MIME type")
        return media
    if (plain := normalise_capability(word)) is None:
        raise _lookup_error(text, "a MIME type, the ending of a file, or a type such as text, table, date or path")
    return _TYPE_ALIASES.get(plain, plain)


def _parse_capability(text: str) -> str:
    if (plain := normalise_capability(text)) is None:
        raise _lookup_error(text, "words joined by hyphens, such as document-ocr")
    return plain


def _lookup_error(text: str, expected: str) -> ToolError:
    return ToolError("tools.bad-lookup", f"{text[:60]!r} cannot be looked up", expected=expected)


def _has_kind(media: Sequence[str], names: frozenset[str]) -> Any:
    def holds(wanted: str) -> bool:
        return any(media_matches(wanted, each) for each in media) if "/" in wanted else wanted in names

    return holds


def _has_capability(tool: Tool, wanted: str) -> bool:
    return any(capability_matches(wanted, each) for each in known_capabilities(tool))


def _find_chains(tools: Sequence[Tool], query: ToolQuery) -> Iterator[ToolChain]:
    accepting, giving = ToolQuery(accepts=query.accepts), ToolQuery(gives=query.gives)
    lasts = [tool for tool in tools if giving.matches(tool)]
    for first in filter(accepting.matches, tools):
        for second in lasts:
            if first is second or (argument := _linked_argument(first, second)) is None:
                continue
            if all(_has_capability(first, each) or _has_capability(second, each) for each in query.can):
                yield ToolChain(first, second, argument.name)


def _linked_argument(first: Tool, second: Tool) -> Argument | None:
    """The argument of a tool that takes what another one gives.

    A text fits only a tool that says it reads texts: most arguments of that type are names and patterns.
    """
    result = t.without_optional(first.result)
    if isinstance(result, t.StrType):
        media = [each for each in given_media(first) if each.startswith("text/")]
        fits = any(media_matches(each, other) for each in media for other in accepted_media(second))
        return next((each for each in second.arguments if fits and each.type == t.STR), None)
    if not isinstance(result, t.ListType | t.RecordType):
        return None
    taken = (each for each in second.arguments if not isinstance(t.without_optional(each.type), t.AnyType))
    return next((each for each in taken if t.is_assignable(result, each.type)), None)


def _nearest_names(tools: Sequence[Tool], query: ToolQuery) -> Iterator[tuple[str, str | None]]:
    """The words of a query that no tool has by itself, with the nearest one that some tool has."""
    accepted, given, capabilities = lookup_names(tools)
    for words, known, side in ((query.accepts, accepted, "accepts"), (query.gives, given, "gives")):
        for word in words:
            if not any(ToolQuery(**{side: (word,)}).matches(tool) for tool in tools):
                yield word, _nearest_kind(word, known)
    for word in query.can:
        if not any(_has_capability(tool, word) for tool in tools):
            yield word, nearest_name(word, sorted(capabilities))


def _nearest_kind(word: str, known: frozenset[str]) -> str | None:
    """The nearest known type: of the same family for a media type, and of similar spelling otherwise."""
    similar = nearest_name(word, sorted(known))
    if similar is not None or "/" not in word:
        return similar
    family = word.split("/")[0]
    return next((each for each in sorted(known) if each.startswith(f"{family}/")), None)
