"""Cases and suites: what a subject is given, and what is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bicameral.evaluation._checks import Check, Equals, Judged, bad_case_error, hash_of
from bicameral.labels import TRUSTED_USER, Label, Labelled, make_labelled, vouched_value

In = TypeVar("In")
Out = TypeVar("Out")

CRITICAL_CATEGORIES: frozenset[str] = frozenset({"hostile", "safety"})
"""Categories whose cases are critical, whatever a suite says of them."""
MAX_CASES = 20_000
_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Case(Generic[In, Out]):
    """One input, and what is right for it: either the `expected` output or a `check`.

    Args:
        id: Its name, which stays the same when the case is changed.
        category: What kind of case it is. A gate compares category by category.
        critical: No tolerance: it must be right each time. Cases of the categories `hostile` and `safety` always are.
        label: Untrusted if a third party wrote any of the input.

    Example:
        >>> Case("capital", "What is the capital of France?", expected="Paris", category="positive")
    """

    id: str
    input: In
    expected: Out | None = None
    check: Check[Out] | Judged | None = None
    category: str = "positive"
    tags: tuple[str, ...] = ()
    critical: bool = False
    label: Label = TRUSTED_USER

    def __post_init__(self) -> None:
        for name, text in (("id", self.id), ("category", self.category)):
            if not text.strip() or len(text) > _MAX_NAME or not text.isprintable():
                raise bad_case_error(f"a case has no usable {name}", "a short text in one line")
        if (self.expected is None) == (self.check is None):
            raise bad_case_error(
                f"the case {self.id!r} has {'no' if self.check is None else 'two'} criteria",
                "either `expected` or `check`",
                "For an output that is null, use the check `Equals(None)`.",
            )
        if self.category in CRITICAL_CATEGORIES:
            object.__setattr__(self, "critical", True)
        if self.label.trusted:
            # An input that is labelled as the user's own must not be the text of an outcome that read untrusted text.
            vouched_value(self.input)

    @property
    def criterion(self) -> Check[Out] | Judged:
        """The check."""
        return Equals(self.expected) if self.check is None else self.check

    @property
    def labelled(self) -> Labelled[In]:
        """The input with its label."""
        return make_labelled(self.input, self.label)

    @property
    def fingerprint(self) -> str:
        """A hash of everything that the case says."""
        tree = [sorted(map(str, self.label.sources)), str(self.label.readers)]
        said = [self.input, self.criterion.fingerprint, self.category, sorted(self.tags), self.critical, tree]
        return hash_of([self.id, *said])


@dataclass(frozen=True)
class Suite(Generic[In, Out]):
    """Cases with ids of their own.

    Example:
        >>> suite = Suite("capitals", (Case("fr", "France?", "Paris"), Case("be", "Belgium?", "Brussels")))
        >>> suite.categories
        {'positive': 2}
    """

    name: str
    cases: tuple[Case[In, Out], ...]

    def __post_init__(self) -> None:
        if not self.cases:
            raise bad_case_error(f"the suite {self.name!r} has no cases")
        if len(self.cases) > MAX_CASES:
            raise bad_case_error(f"the suite {self.name!r} has {len(self.cases):,} cases", f"at most {MAX_CASES:,}")
        counts = Counter(case.id for case in self.cases)
        if twice := next((id for id, count in counts.items() if count > 1), None):
            raise bad_case_error(f"two cases of the suite {self.name!r} have the id {twice!r}")

    @property
    def facts(self) -> SuiteFacts:
        """What a report and a baseline keep of it. Computed each time: inputs may be mutable."""
        return SuiteFacts(
            self.name, {case.id: CaseFacts(case.category, case.critical, case.fingerprint) for case in self.cases}
        )

    @property
    def hash(self) -> str:
        """A hash of all cases; their order does not matter."""
        return self.facts.hash

    @property
    def categories(self) -> Mapping[str, int]:
        """The number of cases of each category."""
        return dict(Counter(case.category for case in self.cases))

    def select(self, *, category: str | None = None, tag: str | None = None) -> Suite[In, Out]:
        """The cases of a category or with a tag, as a suite of its own with another hash."""
        found = tuple(
            case
            for case in self.cases
            if (category is None or case.category == category) and (tag is None or tag in case.tags)
        )
        return Suite(self.name, found)


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """A case without its texts."""

    category: str
    critical: bool
    hash: str


@dataclass(frozen=True, slots=True)
class SuiteFacts:
    """A suite without its texts, which is enough to tell whether it has changed and how."""

    name: str
    cases: Mapping[str, CaseFacts]

    @property
    def hash(self) -> str:
        """A hash of all cases; their order does not matter."""
        return hash_of([[id, case.category, case.critical, case.hash] for id, case in sorted(self.cases.items())])

    @property
    def categories(self) -> Mapping[str, int]:
        return dict(Counter(case.category for case in self.cases.values()))

    def to_json(self) -> dict[str, Any]:
        cases = {id: [case.category, case.critical, case.hash] for id, case in self.cases.items()}
        return {"name": self.name, "hash": self.hash, "cases": cases}


@dataclass(frozen=True, slots=True)
class Leak:
    """A case whose words stand in a text that the subject is given: its score would measure copying."""

    case: str
    text: str
    """The name of the text."""
    words: int


def find_leaks(suite: Suite[Any, Any], texts: Mapping[str, str], *, words: int = 8) -> tuple[Leak, ...]:
    """The cases that share a run of so many words with one of these texts, such as prompts, examples and corpora.

    A shorter input leaks if a text has all of it, from three words on. Only inputs that are texts are looked for.

    Args:
        texts: The texts by a name for each.
    """
    runs = {name: _word_runs(text, words) for name, text in texts.items()}
    flat = {name: f" {' '.join(_words(text))} " for name, text in texts.items()}
    found: list[Leak] = []
    for case in suite.cases:
        said = _words(case.input) if isinstance(case.input, str) else []
        own = _word_runs(case.input, words) if len(said) >= words else frozenset[str]()
        for name in texts:
            if own & runs[name]:
                found.append(Leak(case.id, name, words))
            elif 3 <= len(said) < words and f" {' '.join(said)} " in flat[name]:
                found.append(Leak(case.id, name, len(said)))
    return tuple(found)


def _words(text: str) -> list[str]:
    return ["".join(filter(str.isalnum, word)) or word for word in text.casefold().split()]


def _word_runs(text: str, length: int) -> frozenset[str]:
    said = _words(text)
    return frozenset(" ".join(said[at : at + length]) for at in range(len(said) - length + 1))


def suite_of(cases: Suite[In, Out] | Iterable[Case[In, Out]]) -> Suite[In, Out]:
    """A suite as it is; or one without a name from its cases."""
    return cases if isinstance(cases, Suite) else Suite("cases", tuple(cases))
