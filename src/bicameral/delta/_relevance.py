"""Which tools and which examples a request needs: by the words they share, rare words counting more.

Every tool is described by its name, its one-line text, its arguments and the words people use for it. A request is
scored against each description with BM25. Nothing here asks a model, so the choice is the same every time.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Sequence

from bicameral.intent import named_dates, stems
from bicameral.tools import Registry, Tool
from bicameral.types import DateTimeType, DateType, ListType, OptionalType, StrType, Type

from ._examples import Example
from ._named import named_in

SHOW_ALL = 60
SHOWN = 20
WHOLE_TOOLBOXES = 8
LARGEST_TOOLBOX = 16
MOST_PURE = 16


_ANY_DAY = dt.date(2025, 1, 1)


class Ranking:
    """Documents ranked by BM25 against a query."""

    def __init__(self, documents: Sequence[str]) -> None:
        self._counts = [Counter(stems(document)) for document in documents]
        self._lengths = [max(1, sum(counts.values())) for counts in self._counts]
        self._mean = sum(self._lengths) / max(1, len(self._lengths))
        seen = Counter(word for counts in self._counts for word in counts)
        total = len(documents)
        self._weight = {word: math.log(1 + (total - n + 0.5) / (n + 0.5)) for word, n in seen.items()}

    def scores(self, query: str) -> list[float]:
        asked = set(stems(query))
        return [self._score(asked, counts, length) for counts, length in zip(self._counts, self._lengths, strict=True)]

    def _score(self, asked: set[str], counts: Counter[str], length: int) -> float:
        norm = 1.2 * (0.25 + 0.75 * length / self._mean)
        return sum(self._weight[w] * counts[w] * 2.2 / (counts[w] + norm) for w in asked if w in counts)

    def best(self, query: str, count: int) -> list[int]:
        """The places of the best documents; documents that share no word with the query are not among them."""
        scores = self.scores(query)
        ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        return [i for i in ranked[:count] if scores[i] > 0]


def relevant_tools(request: str, registry: Registry, *, show_all: int = SHOW_ALL, shown: int = SHOWN) -> Registry:
    """All tools of a small registry; of a large one the best by words and what the request's objects call for.

    The toolboxes of the very best come whole, a file, link or address brings the tools that take one, a day those that
    know days, and pure tools come along while they are few, since people seldom name them.
    """
    if len(registry) <= show_all:
        return registry
    tools = list(registry)
    best = Ranking([describe(tool) for tool in tools]).best(request, shown)
    chosen = {tools[i].name for i in best}
    for i in best[:WHOLE_TOOLBOXES]:
        mates = [tool.name for tool in tools if tool.toolbox == tools[i].toolbox]
        if tools[i].toolbox and len(mates) <= LARGEST_TOOLBOX:
            chosen.update(mates)
    kinds = {kind for kind, names in named_in(request).items() if names}
    if named_dates(request, _ANY_DAY):
        kinds.add("day")
    chosen.update(tool.name for tool in tools if kinds & _kinds(tool))
    pure = [tool.name for tool in tools if tool.effect == "pure"]
    if len(pure) <= MOST_PURE:
        chosen.update(pure)
    return registry.subset(chosen)


def _kinds(tool: Tool) -> set[str]:
    """The kinds of objects that a tool takes, or of days that it takes or gives."""
    found: set[str] = set()
    for type_ in map(_core, (argument.type for argument in tool.arguments)):
        if isinstance(type_, StrType) and type_.format is not None:
            found.add(type_.format)
        elif isinstance(type_, DateType | DateTimeType):
            found.add("day")
    if isinstance(_core(tool.result), DateType | DateTimeType):
        found.add("day")
    return found


def _core(type_: Type) -> Type:
    while isinstance(type_, OptionalType | ListType):
        type_ = type_.item
    return type_


def describe(tool: Tool) -> str:
    """What is known of a tool, as one text."""
    arguments = " ".join(f"{argument.name} {argument.doc}" for argument in tool.arguments)
    return f"{tool.name.replace('_', ' ')} {tool.name.replace('_', ' ')} {tool.doc} {' '.join(tool.words)} {arguments}"


def relevant_examples(request: str, bank: Sequence[Example], count: int) -> list[Example]:
    """The examples nearest to a request, the nearest last, where a model looks most."""
    best = Ranking([example.request for example in bank]).best(request, count)
    return [bank[i] for i in reversed(best)]


def nearest_tools(request: str, registry: Registry, count: int = 3) -> list[str]:
    """The names of the tools whose descriptions are nearest to a request."""
    tools = list(registry)
    return [tools[i].name for i in Ranking([describe(tool) for tool in tools]).best(request, count)]
