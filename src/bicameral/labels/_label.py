"""Sources, readers and labels. Equal labels are one object, so that a join is a table lookup.

Label trees are interned in the same way. The limits here bound the depth and size of every tree.
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
"""Who wrote a text: the user, a service itself, or anybody else."""
TRUSTS: tuple[Trust, ...] = get_args(Trust)

USER: Final = "user"
"""The principal who made the request and may see everything."""

_JOIN_MEMORY = 1 << 14


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """Where a value came from: a part of a tool's result at a step of the plan, and who wrote it.

    Args:
        trust: Who wrote the text.
        tool: The tool; `request`, `ask`, `extract`, `lookup` or `endorsed` for the values of the runtime itself.
        part: The path inside the result ("[].subject").
        step: The static path of the step ("2/then/0"), never a loop iteration, so a plan has finitely many sources.
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
        # The quarantined model reads untrusted text, so its output is untrusted whatever a declaration says.
        if self.tool == "extract" and self.trust != "third_party":
            raise LabelError("labels.forged", "what a quarantined model wrote is a third party's, whatever it read")

    def __str__(self) -> str:
        origin = self.tool + (f" {self.part}" if self.part else "")
        return f"{origin} (step {self.step})" if self.step else origin


class Public(Enum):
    """The readers of a value that everyone may see."""

    PUBLIC = "public"

    def __repr__(self) -> str:
        return "PUBLIC"


PUBLIC: Final = Public.PUBLIC
Readers = Public | frozenset[str]
"""Who may see a value: everyone, or these principals. The user is always among them."""


class FrozenAttributes:
    """Base class of immutable objects; attributes are set only at interning, with `set_frozen`."""

    __slots__ = ("__weakref__",)

    def __setattr__(self, *_: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    __delattr__ = __setattr__


set_frozen = object.__setattr__
INTERN_LOCK = RLock()
"""Held while a label or tree is looked up and made: both are compared by identity, so no two may be equal."""

# Weak values: a label lives as long as something carries it.
_interned_labels: WeakValueDictionary[tuple[frozenset[Source], Readers], Label] = WeakValueDictionary()


@final
class Label(FrozenAttributes):
    """Where a value came from and who may see it. Equal labels are one object.

    Args:
        sources: Where the value came from; none for a constant.
        readers: PUBLIC, or the principals who may see the value; the user is added.

    Example:
        >>> mail = Label(frozenset({Source("third_party", "read_mail", "body")}), frozenset({"ada@example.com"}))
        >>> mail.trusted, sorted(mail.readers)
        (False, ['ada@example.com', 'user'])
    """

    __slots__ = ("readers", "sources", "trusted")

    sources: frozenset[Source]
    readers: Readers
    trusted: bool
    """Whether no source is a third party."""

    def __new__(cls, sources: Iterable[Source] = (), readers: Readers | Iterable[str] = PUBLIC) -> Label:
        source_set = frozenset(sources)
        reader_set = _check_readers(readers)
        for source in source_set:
            if type(source) is not Source:
                raise LabelError("labels.malformed", f"{_brief_repr(source)} is not a Source")
        return _intern_label(source_set, reader_set)

    @property
    def third_parties(self) -> tuple[Source, ...]:
        """The untrusted sources, in order."""
        return tuple(sorted(source for source in self.sources if source.trust == "third_party"))

    @property
    def own(self) -> Label:
        """As a label tree: the label of a value's size and keys."""
        return self

    @property
    def flat(self) -> Label:
        """As a label tree: the join of all parts."""
        return self

    @property
    def item(self) -> Label:
        """As a label tree: the labels of an item of an iteration."""
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
            # All attributes are set before the label is published in the table.
            set_frozen(label, "sources", sources)
            set_frozen(label, "readers", readers)
            set_frozen(label, "trusted", all(source.trust != "third_party" for source in sources))
            _interned_labels[key] = label
    return label


def _check_readers(readers: Readers | Iterable[str]) -> Readers:
    if isinstance(readers, Public):
        return readers
    # A str is an iterable of str: its letters would become principals.
    if isinstance(readers, str):
        raise LabelError(
            "labels.malformed", f"{_brief_repr(readers)} is one text", expected="PUBLIC or a set of principals"
        )
    principals = frozenset(readers)
    for reader in principals:
        if type(reader) is not str:
            raise LabelError("labels.malformed", f"the principal {_brief_repr(reader)} is not text")
    return principals if USER in principals else principals | {USER}


def _brief_repr(value: object) -> str:
    if type(value) not in (str, int, float, bool, type(None)):
        return f"a {type(value).__name__}"
    text = repr(value[:60] if isinstance(value, str) else value)
    return text if len(text) <= 60 else text[:57] + "..."


@lru_cache(maxsize=_JOIN_MEMORY)
def join(left: Label, right: Label) -> Label:
    """The label of a value made of both: the sources of either, and only the common readers.

    Example:
        >>> join(TRUSTED_USER, mail).trusted
        False
    """
    if left is right:
        return left
    # `_intern_label` and not `Label`: the parts of two labels need no validation.
    return _intern_label(left.sources | right.sources, common_readers(left.readers, right.readers))


def join_all(labels: Iterable[Label]) -> Label:
    """The join of any number of labels; NOTHING for none."""
    joined = NOTHING
    for label in labels:
        joined = join(joined, label)
    return joined


def common_readers(left: Readers, right: Readers) -> Readers:
    """The readers that both allow."""
    if isinstance(left, Public):
        return right
    return left if isinstance(right, Public) else left & right


NOTHING: Final = Label()
"""The label without sources: joining it changes nothing."""

TRUSTED_USER: Final = Label({Source("user", "request")})
"""The label of the request and of the literals of a plan."""

UNKNOWN: Final = Label({Source("third_party", "unknown")}, {USER})
"""The label of a value of unknown origin: untrusted, and only for the user."""


MAX_LEVELS = 10
"""The deepest tree; the labels below this level are joined into one."""
MAX_PARTS = 2_000
"""A tree with more parts is cut to fewer levels."""
TREE_MEMORY = 1 << 13
"""The cache size of each function of label trees."""

_interned_trees: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()


class SizedTree(Protocol):
    """Anything with levels and parts: every label tree."""

    @property
    def levels(self) -> int: ...

    @property
    def parts(self) -> int: ...


find_tree = _interned_trees.get
"""The interned tree with this key, or None. Without the lock: a miss is checked again in `intern_tree`."""


def intern_tree(kind: type[Any], key: Hashable, **attributes: object) -> Any:
    """The only tree with this key, made of these attributes if there is none yet."""
    with INTERN_LOCK:
        tree = _interned_trees.get(key)
        if tree is None:
            tree = object.__new__(kind)
            for name, value in attributes.items():
                set_frozen(tree, name, value)
            _interned_trees[key] = tree
    return tree


def tree_size(children: Iterable[SizedTree]) -> tuple[int, int]:
    """The levels and parts of a tree with these children."""
    levels, parts = 0, 1
    for child in children:
        levels = max(levels, child.levels)
        parts += child.parts
    return levels + 1, parts


def levels_left(levels: int) -> int:
    """How many levels the children of a tree that is too large may keep."""
    return min(levels, MAX_LEVELS + 1) - 2 if levels > 1 else 0
