"""What the words of a request match: objects it names, tools, and worked examples.

Tools and examples (`examples.txt` beside this file) are ranked with BM25 over the words they share with the request,
rare words counting more. A description may be written by anybody, so a match is always reported in the bytes of the
request. No model is asked, so the choice is the same every time.
"""

from __future__ import annotations

import ast
import datetime as dt
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from bicameral.planning._intent import named_dates
from bicameral.text import STOP_WORDS, Ranking, lazy_pattern, stem
from bicameral.tools import Registry, Tool, media_matches, media_of_request
from bicameral.types import DateTimeType, DateType, ListType, OptionalType, StrType, Type

FILE_PATTERN = lazy_pattern(r"(?<![\w@:/.-])[\w./-]*\w\.(?:[a-z]{2,4}|json|html|jsonl)(?![\w@])")
ADDRESS_PATTERN = lazy_pattern(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
LINK_PATTERN = lazy_pattern(r"https?://[^\s'\",;)]+")
_QUOTED = lazy_pattern(r"[\"'“](\w[^\"'”\n]{0,80})[\"'”]")


def named_objects(request: str) -> dict[str, list[str]]:
    """The files, links and addresses that a request names, by the format of arguments that take them."""
    patterns = {"path": FILE_PATTERN, "url": LINK_PATTERN, "email": ADDRESS_PATTERN}
    found = {kind: dict.fromkeys(pattern.findall(request)) for kind, pattern in patterns.items()}
    found["path"] |= dict.fromkeys(_QUOTED.findall(request))
    return {kind: [name.rstrip(".,;:!?)") for name in names] for kind, names in found.items()}


_BUILT_IN = frozenset(
    "answer extract combine date datetime time timedelta len sum min max sorted mean str int float round unique".split()
)


@dataclass(frozen=True)
class PlanExample:
    """A request with the plan that serves it."""

    request: str
    plan: str

    @cached_property
    def tools(self) -> frozenset[str]:
        """The tools that the plan calls."""
        calls = (node.func for node in ast.walk(ast.parse(self.plan)) if isinstance(node, ast.Call))
        return frozenset(call.id for call in calls if isinstance(call, ast.Name)) - _BUILT_IN


@dataclass(frozen=True, slots=True)
class PlanExamples:
    """`always` are in every prompt; of `bank` the ones nearest to the request are added."""

    always: tuple[PlanExample, ...]
    bank: tuple[PlanExample, ...]


@cache
def load_examples() -> PlanExamples:
    """The examples that come with the package."""
    text = files("bicameral.planning").joinpath("examples.txt").read_text("utf-8")
    _, always, bank = text.split("\n## ")
    return PlanExamples(_parse_examples(always), _parse_examples(bank))


def _parse_examples(part: str) -> tuple[PlanExample, ...]:
    blocks = part.split("\n#: ")[1:]
    return tuple(
        PlanExample(request, f"{plan.rstrip()}\n") for request, plan in (block.split("\n", 1) for block in blocks)
    )


MAX_SHARED = 2
"""The most words of the request that are shown for one description."""

_TOKEN = lazy_pattern(r"[^\W_]+(?:_[^\W_]+)*")
# `customer_id`, `customer-id`, `Customer ID` and `customerId` are two words each.
_NAME_WORD = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")

Stems = tuple[str, ...]


def name_stems(text: str) -> Stems:
    """The words of a name without case, diacritics and separators, folded to their stems."""
    flat = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return tuple(stem(word.casefold()) for word in _NAME_WORD.findall(flat))


def shared_words(request: str, text: str) -> tuple[str, ...]:
    """The first few words of a request that a text also has, as the request spells them."""
    known = set(name_stems(text))
    words = (token[0] for token in _plain_tokens(request) if token[0].lower() not in STOP_WORDS)
    found = {stems: word for word in words if len(stems := name_stems(word)) == 1 and stems[0] in known}
    return tuple(found.values())[:MAX_SHARED]


def _plain_tokens(request: str) -> Iterable[re.Match[str]]:
    named = [
        found.span() for pattern in (FILE_PATTERN, ADDRESS_PATTERN, LINK_PATTERN) for found in pattern.finditer(request)
    ]
    for token in _TOKEN.finditer(request):
        if not any(start <= token.start() < end for start, end in named):
            yield token


SHOW_ALL_UP_TO = 60
SHOWN_TOOLS = 20
WHOLE_TOOLBOXES = 8
MAX_WHOLE_TOOLBOX = 16
MAX_PURE_TOOLS = 16
# Only whether the request names a date matters here, not which one.
_ANY_DAY = dt.date(2025, 1, 1)


def relevant_tools(
    request: str, registry: Registry, *, show_all: int = SHOW_ALL_UP_TO, shown: int = SHOWN_TOOLS
) -> Registry:
    """All tools of a small registry; of a large one those that match the words and the objects of the request.

    The toolboxes of the best matches are included whole. A file, link or address in the request adds the tools that
    take one, a date those that take or return dates, and a kind of file (`scan.pdf`, "the photo") those that say that
    they take such files. Pure tools are added if they are few: requests seldom name them.
    """
    if len(registry) <= show_all:
        return registry
    tools = list(registry)
    named = named_objects(request)
    media = media_of_request(request, named["path"])
    kinds = {kind for kind, names in named.items() if names}
    if named_dates(request, _ANY_DAY):
        kinds.add("day")
    # A program that describes itself may say of itself whatever ranks high. So its tools are ranked among themselves,
    # and at most as many are added: no description can take the place of another tool, or bury it among its own.
    vouched = [tool for tool in tools if not tool.self_described]
    described = [tool for tool in tools if tool.self_described]
    chosen = set(_matching_names(request, vouched, kinds, media, shown))
    chosen.update(_matching_names(request, described, kinds, media, shown)[:shown])
    pure = [tool.name for tool in tools if tool.effect == "pure"]
    if len(pure) <= MAX_PURE_TOOLS:
        chosen.update(pure)
    return registry.subset(chosen)


def ranked_tools(request: str, tools: Sequence[Tool], *, least: float = 0.0) -> list[Tool]:
    """The tools that share words, objects or kinds of files with a request, best first; the others are left out.

    Args:
        request: What is to be done.
        tools: The tools to choose from.
        least: The share of the best score by words that a tool needs if nothing else speaks for it.
    """
    named = named_objects(request)
    media = media_of_request(request, named["path"])
    kinds = {kind for kind, names in named.items() if names}
    scores = Ranking([tool_description(tool) for tool in tools]).scores(request)
    enough = least * max(scores, default=0.0)
    fits = [
        (_media_fit(tool, media), score if score >= enough else 0.0, bool(kinds & _object_kinds(tool)))
        for tool, score in zip(tools, scores, strict=True)
    ]
    order = sorted(range(len(tools)), key=lambda i: (*(-part for part in fits[i]), i))
    return [tools[i] for i in order if any(fits[i])]


def _matching_names(
    request: str, tools: Sequence[Tool], kinds: set[str], media: Sequence[str], shown: int
) -> list[str]:
    """The tools that fit a request, best first: by its kinds of files, its words, their toolboxes, its objects."""
    if not tools:
        return []
    fits = {tool.name: fit for tool in tools if (fit := _media_fit(tool, media))}
    chosen = dict.fromkeys(sorted(fits, key=lambda name: -fits[name])[:shown])
    best = Ranking([tool_description(tool) for tool in tools]).best(request, shown)
    chosen |= dict.fromkeys(tools[i].name for i in best)
    for i in best[:WHOLE_TOOLBOXES]:
        mates = [tool.name for tool in tools if tool.toolbox == tools[i].toolbox]
        if tools[i].toolbox and len(mates) <= MAX_WHOLE_TOOLBOX:
            chosen |= dict.fromkeys(mates)
    chosen |= dict.fromkeys(tool.name for tool in tools if kinds & _object_kinds(tool))
    return list(chosen)


def _media_fit(tool: Tool, media: Sequence[str]) -> int:
    """How well a tool takes one of these kinds of files: 2 where it names it, 1 where a wildcard covers it, else 0."""
    if any(kind in tool.accepts for kind in media):
        return 2
    return int(any(media_matches(kind, each) for kind in media for each in tool.accepts))


def _object_kinds(tool: Tool) -> set[str]:
    """The formats of the texts that a tool takes, and "day" if it takes or returns a date."""
    found: set[str] = set()
    for type_ in map(_inner_type, (argument.type for argument in tool.arguments)):
        if isinstance(type_, StrType) and type_.format is not None:
            found.add(type_.format)
        elif isinstance(type_, DateType | DateTimeType):
            found.add("day")
    if isinstance(_inner_type(tool.result), DateType | DateTimeType):
        found.add("day")
    return found


def _inner_type(type_: Type) -> Type:
    while isinstance(type_, OptionalType | ListType):
        type_ = type_.item
    return type_


def tool_description(tool: Tool) -> str:
    """The words that a tool is ranked by; its name counts twice."""
    arguments = " ".join(f"{argument.name} {argument.doc}" for argument in tool.arguments)
    return f"{tool.name.replace('_', ' ')} {tool.name.replace('_', ' ')} {tool.doc} {' '.join(tool.words)} {arguments}"


def relevant_examples(request: str, bank: Sequence[PlanExample], count: int) -> list[PlanExample]:
    """The examples nearest to a request, the nearest last, where it has the most influence on a model."""
    best = Ranking([example.request for example in bank]).best(request, count)
    return [bank[i] for i in reversed(best)]


def nearest_tools(request: str, registry: Registry, count: int = 3) -> list[str]:
    """The names of the tools whose descriptions are nearest to a request."""
    tools = list(registry)
    return [tools[i].name for i in Ranking([tool_description(tool) for tool in tools]).best(request, count)]
