"""Sources, readers and labels. Equal labels are one object, so that a join is a table lookup.

Label trees are interned in the same way; none is deeper or larger than the limits here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from threading import RLock
from typing import Any, Final, Literal, NoReturn, Protocol, final, get_args
from weakref import WeakValueDictionary

from bicameral.errors import LabelError

Trust = Literal["user", "system", "third_party"]
"""Who wrote it: the user, a service itself, or anybody else."""
TRUSTS: tuple[Trust, ...] = get_args(Trust)

USER: Final = "user"
"""The principal who made the request; he may see everything."""

_JOIN_MEMORY = 1 << 14


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """Where a value came from: a part of a tool's result at a step of the plan, and who wrote it.

    `tool` is `request`, `ask`, `extract` or `endorsed` for what the runtime itself brings in. `part` is the path inside
    the result ("[].subject"), `step` the static path of the step ("2/then/0"), never the turn of a loop: a plan has
    finitely many sources.
    """

    trust: Trust
    tool: str
    part: str = ""
    step: str = ""

    def __post_init__(self) -> None:
        for text in (self.trust, self.tool, self.part, self.step):
            if type(text) is not str:
                raise LabelError("labels.malformed", f"a source is made of texts, not {type(text).__name__!r}")
        if self.trust not in TRUSTS:
            raise LabelError(
                "labels.malformed", f"{_brief_repr(self.trust)} is no trust", expected=" or ".join(map(repr, TRUSTS))
            )
        if self.tool == "extract" and self.trust != "third_party":
            raise LabelError("labels.forged", "what a quarantined model wrote is a third party's, whatever it read")

    def __str__(self) -> str:
        what = self.tool + (f" {self.part}" if self.part else "")
        return f"{what} (step {self.step})" if self.step else what


class Public(Enum):
    """The readers of what everyone may see."""

    PUBLIC = "public"

    def __repr__(self) -> str:
        return "PUBLIC"


PUBLIC: Final = Public.PUBLIC
Readers = Public | frozenset[str]
"""Who may see a value: everyone, or these principals. The user is always among them."""


class FrozenAttributes:
    """What cannot be changed once it is made; `_make` alone sets attributes."""

    __slots__ = ("__weakref__",)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")


set_frozen = object.__setattr__
INTERN_LOCK = RLock()
"""Held while a label or shade is looked for and made, so that there are never two that are equal."""

_interned_labels: WeakValueDictionary[tuple[frozenset[Source], Readers], Label] = WeakValueDictionary()


@final
class Label(FrozenAttributes):
    """Where a value came from and who may see it. Equal labels are one object.

    Example:
        >>> mail = Label(frozenset({Source("third_party", "read_mail", "body")}), frozenset({"ada@example.com"}))
        >>> mail.trusted, sorted(mail.readers)
        (False, ['ada@example.com', 'user'])
    """

    __slots__ = ("readers", "sources", "trusted")

    sources: frozenset[Source]
    readers: Readers
    trusted: bool
    """Whether no third party had a hand in it."""

    def __new__(cls, sources: Iterable[Source] = (), readers: Readers | Iterable[str] = PUBLIC) -> Label:
        found = frozenset(sources)
        seen_by = _check_readers(readers)
        for source in found:
            if type(source) is not Source:
                raise LabelError("labels.malformed", f"{_brief_repr(source)} is not a Source")
        return _intern_label(found, seen_by)

    @property
    def own(self) -> Label:
        """As a shade: the label of how many and which."""
        return self

    @property
    def flat(self) -> Label:
        """As a shade: the join of everything in it."""
        return self

    @property
    def item(self) -> Label:
        """As a shade: the labels of what one gets by going over it."""
        return self

    def place(self, number: int) -> Label:
        return self

    def field(self, name: str) -> Label:
        return self

    @property
    def values(self) -> Label:
        return self

    @property
    def levels(self) -> int:
        return 0

    @property
    def parts(self) -> int:
        return 1

    def __reduce__(self) -> tuple[Any, ...]:
        return Label, (self.sources, self.readers)

    def __repr__(self) -> str:
        readers = "PUBLIC" if self.readers is PUBLIC else sorted(self.readers)
        return f"Label({', '.join(map(str, sorted(self.sources))) or 'nothing'}; {readers})"


def _intern_label(sources: frozenset[Source], readers: Readers) -> Label:
    key = (sources, readers)
    with INTERN_LOCK:
        label = _interned_labels.get(key)
        if label is None:
            label = object.__new__(Label)
            set_frozen(label, "sources", sources)
            set_frozen(label, "readers", readers)
            set_frozen(label, "trusted", all(source.trust != "third_party" for source in sources))
            _interned_labels[key] = label
    return label


def _check_readers(readers: Readers | Iterable[str]) -> Readers:
    if isinstance(readers, Public):
        return readers
    # A text is many texts to Python, and none of its letters is a principal.
    if isinstance(readers, str):
        raise LabelError(
            "labels.malformed", f"{_brief_repr(readers)} is one text", expected="PUBLIC or a set of principals"
        )
    found = frozenset(readers)
    for reader in found:
        if type(reader) is not str:
            raise LabelError("labels.malformed", f"the principal {_brief_repr(reader)} is not text")
    return found if USER in found else found | {USER}


def _brief_repr(value: object) -> str:
    if type(value) not in (str, int, float, bool, type(None)):
        return f"a {type(value).__name__}"
    shown = repr(value[:60] if isinstance(value, str) else value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


@lru_cache(maxsize=_JOIN_MEMORY)
def join(left: Label, right: Label) -> Label:
    """The label of what is made of both: all sources, and only the readers of both.

    Example:
        >>> join(TRUSTED_USER, mail).trusted
        False
    """
    if left is right:
        return left
    return _intern_label(left.sources | right.sources, common_readers(left.readers, right.readers))


def join_all(labels: Iterable[Label]) -> Label:
    """The join of any number of labels; of none, NOTHING."""
    found = NOTHING
    for label in labels:
        found = join(found, label)
    return found


def common_readers(left: Readers, right: Readers) -> Readers:
    """Those who may see both."""
    if isinstance(left, Public):
        return right
    return left if isinstance(right, Public) else left & right


NOTHING: Final = Label()
"""The label of what comes from nowhere: joining it changes nothing."""

TRUSTED_USER: Final = Label({Source("user", "request")})
"""The label of the request and of the literals of a plan."""

UNKNOWN: Final = Label({Source("third_party", "unknown")}, {USER})
"""The label of what nothing is known about: the worst is assumed."""


MAX_LEVELS = 10
"""Deeper parts are not told apart: the labels of everything below are joined."""
MAX_PARTS = 2_000
"""A shade with more parts is cut off at fewer levels."""
TREE_MEMORY = 1 << 13
"""How many answers about shades are remembered, for each kind of question."""

_interned_trees: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()


class SizedTree(Protocol):
    """Whatever has levels and parts: every shade."""

    @property
    def levels(self) -> int: ...

    @property
    def parts(self) -> int: ...


find_tree = _interned_trees.get
"""The shade that was made of the same parts, if there still is one."""


def intern_tree(kind: type[Any], key: Hashable, facts: Iterable[tuple[str, object]]) -> Any:
    """The one shade that is made of these facts, from now on."""
    with INTERN_LOCK:
        found = _interned_trees.get(key)
        if found is None:
            found = object.__new__(kind)
            for name, value in facts:
                set_frozen(found, name, value)
            _interned_trees[key] = found
    return found


def tree_size(inside: Iterable[SizedTree]) -> tuple[int, int]:
    """How many levels and parts a shade has that holds these."""
    levels, parts = 0, 1
    for each in inside:
        levels = max(levels, each.levels)
        parts += each.parts
    return levels + 1, parts


def levels_left(levels: int) -> int:
    """How many levels the parts of a shade that is too large may keep."""
    return min(levels, MAX_LEVELS + 1) - 2 if levels > 1 else 0
