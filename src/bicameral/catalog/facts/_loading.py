"""The catalogue: each of its files is read when something in it is first asked for, and once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from bicameral.errors import CatalogError, nearest

from ._facts import Category, Knob, Mechanism, Pattern
from ._ids import CATEGORIES, IDS, MOVED
from ._reading import Spot, read_value
from ._rules import AntiPattern, CacheRule, Conflict, Law, Requirement
from ._search import Hit, Index
from ._sizes import SIZES
from ._yaml import Row, bad_data, read_rows

T = TypeVar("T")


@cache
def catalog() -> Catalog:
    """The catalogue that comes with the package.

    Example:
        >>> catalog().pattern("O4").name
        'Parallelization'
    """
    return Catalog(Path(__file__).parents[1] / "data")


class Catalog:
    """Patterns, mechanisms and rules by their ids, and how to find them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Category, Mapping[str, Pattern]] = {}

    @cached_property
    def patterns(self) -> Mapping[str, Pattern]:
        """Every pattern by its id, category by category."""
        return MappingProxyType({id: pattern for name in CATEGORIES for id, pattern in self.category(name).items()})

    def category(self, name: str) -> Mapping[str, Pattern]:
        """The patterns of one category; `catalog.unknown-category` if there is none of this name."""
        if name not in CATEGORIES:
            raise CatalogError(
                "catalog.unknown-category",
                f"there is no category {name!r}",
                nearest=nearest(name, CATEGORIES),
                fix=f"There are {', '.join(CATEGORIES)}.",
            )
        known = cast("Category", name)
        if known not in self._read:
            self._read[known] = self._patterns_of(known)
        return self._read[known]

    def pattern(self, id: str) -> Pattern:
        """The pattern with this id; `catalog.unknown-pattern` with the nearest one if there is none."""
        wanted = id.strip().upper()
        if wanted not in IDS:
            raise self._unknown_pattern(id)
        return self.category(IDS[wanted])[wanted]

    def search(self, words: str, *, limit: int = 10) -> list[Hit]:
        """The patterns that fit these words, best first; other forms and small misspellings of a word count too."""
        return self._index.search(words, limit=limit)

    @cached_property
    def mechanisms(self) -> Mapping[str, Mechanism]:
        """The twelve mechanisms by their ids."""
        return self._all("mechanisms.yaml", Mechanism)

    @cached_property
    def requirements(self) -> Mapping[str, Requirement]:
        """What patterns need beside them."""
        return self._all("requirements.yaml", Requirement)

    @cached_property
    def conflicts(self) -> Mapping[str, Conflict]:
        """Which patterns bear on each other."""
        return self._all("conflicts.yaml", Conflict)

    @cached_property
    def laws(self) -> Mapping[str, Law]:
        """What holds for every stack."""
        return self._all("laws.yaml", Law)

    @cached_property
    def anti_patterns(self) -> Mapping[str, AntiPattern]:
        """Shapes that keep going wrong."""
        return self._all("anti_patterns.yaml", AntiPattern)

    @cached_property
    def cache_rules(self) -> Mapping[str, CacheRule]:
        """What keeps prompts cacheable."""
        return self._all("cache_rules.yaml", CacheRule)

    def requirements_of(self, pattern: str) -> list[Requirement]:
        """What a pattern needs."""
        return [each for each in self.requirements.values() if each.binds(pattern)]

    def needed_by(self, pattern: str) -> list[Requirement]:
        """The requirements that a pattern meets, alone or as one of several."""
        return [each for each in self.requirements.values() if pattern in (*each.all_of, *each.any_of)]

    def conflicts_of(self, pattern: str) -> list[Conflict]:
        """The conflicts that a pattern is part of."""
        return [each for each in self.conflicts.values() if pattern in each.patterns]

    def patterns_by(self, mechanism: str) -> list[Pattern]:
        """The patterns that rest on a mechanism."""
        return [pattern for pattern in self.patterns.values() if mechanism in pattern.mechanisms]

    @cached_property
    def _index(self) -> Index:
        return Index(self.patterns.values())

    def _patterns_of(self, category: Category) -> Mapping[str, Pattern]:
        file = f"patterns/{category}.yaml"
        found = self._all(file, Pattern, _checked, category=category)
        wanted = CATEGORIES[category]
        if tuple(found) != wanted:
            missing = ", ".join(id for id in wanted if id not in found)
            strange = ", ".join(id for id in found if id not in wanted)
            what = f"{missing} is missing" if missing else f"{strange} does not belong here" if strange else "the order"
            raise bad_data(f"data/{file}", 1, f"these are not the patterns of {category}: {what}")
        return found

    def _all(
        self, file: str, kind: type[T], check: Callable[[T, Spot], None] | None = None, **given: Any
    ) -> Mapping[str, T]:
        """Every record of a file by its id."""
        shown = f"data/{file}"
        found: dict[str, T] = {}
        for row in self._rows(file):
            id = row.get("id")
            if not isinstance(id, str):
                raise bad_data(shown, row.line, "a record has no id")
            spot = Spot(shown, row.line, id)
            if id in found:
                raise spot.wrong("this id is there twice")
            found[id] = read_value(kind, row, spot, **given)
            if check is not None:
                check(found[id], spot)
        return MappingProxyType(found)

    def _rows(self, file: str) -> Sequence[Row]:
        try:
            text = (self._folder / file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            what = "the file is not there" if isinstance(error, FileNotFoundError) else "the file cannot be read"
            raise bad_data(f"data/{file}", None, what, fix="Install the package again.") from None
        return read_rows(text, f"data/{file}")

    def _unknown_pattern(self, id: str) -> CatalogError:
        wanted = id.strip().upper()
        # A zero is easily written for the letter O.
        lettered = f"O{wanted[1:]}" if wanted.startswith("0") else wanted
        close = MOVED.get(wanted) or nearest(lettered, IDS) or self._named(id)
        return CatalogError(
            "catalog.unknown-pattern",
            f"there is no pattern {id[:60]!r}",
            nearest=close,
            fix="`bicameral patterns list` shows them all.",
        )

    def _named(self, words: str) -> str | None:
        """The pattern whose name was given instead of its id."""
        try:
            names = {pattern.name.lower(): pattern.id for pattern in self.patterns.values()}
        except CatalogError:
            return None
        close = nearest(words.strip().lower()[:60], names)
        return names[close] if close else None


def _checked(pattern: Pattern, spot: Spot) -> None:
    """What the parts of a pattern say of each other."""
    for name, knob in pattern.knobs.items():
        _check_knob(name, knob, spot.at(f"knobs.{name}"))
    for name in pattern.bounded_by:
        if name not in pattern.knobs:
            raise spot.at("bounded_by").wrong(f"there is no knob {name!r}", nearest=nearest(name, pattern.knobs))
    known = SIZES.keys() | pattern.defaults.keys()
    for name in sorted(_names_in(pattern) - known):
        raise spot.at("cost").wrong(f"there is no size and no numeric knob {name!r}", nearest=nearest(name, known))


def _names_in(pattern: Pattern) -> frozenset[str]:
    found: Iterable[frozenset[str]] = (
        each.names
        for session in pattern.cost.sessions
        for each in (
            session.calls,
            session.most,
            session.stable,
            session.prompt,
            session.grows,
            session.output,
            session.parallel,
        )
    )
    return pattern.cost.tools.names.union(*found)


def _check_knob(name: str, knob: Knob, spot: Spot) -> None:
    if name in SIZES:
        raise spot.wrong(f"{name!r} is the name of a size")
    if knob.numeric and knob.least is not None and knob.default < knob.least:
        raise spot.wrong(f"the default {knob.default!r} is below its least")
    if knob.numeric and knob.most is not None and knob.default > knob.most:
        raise spot.wrong(f"the default {knob.default!r} is above its most")
    if knob.choices and knob.default not in (None, *knob.choices):
        raise spot.wrong(f"the default {knob.default!r} is none of its choices")
