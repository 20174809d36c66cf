"""Variables of a run with their labels, and how turns of a loop that ran side by side are put together again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, cast

from bicameral.errors import RunError
from bicameral.labels import NOTHING, Label, Shade, join, join_shades, tainted
from bicameral.plans import RUN_WORK, flat_cost, updated

Op = Literal["append", "add", "put"]
_CONTAINERS = (list, tuple, dict)
_OWNED = (list, dict)
_NOT_BOUND: list[Any] = []


class Addition(NamedTuple):
    """Something that a turn added to a variable from outside the loop."""

    op: Op
    key: Any
    value: Any


class Frame:
    """The variables at one place of a run.

    Values are never changed under another name: adding to a list copies it once, and then extends that copy for as
    long as nobody else can have seen it. A turn of a loop that may overlap with others has a frame of its own with a
    log; the log is played into the outer frame in the order of the turns.

    Beside the values are their `shades`; where labels are off there are none.
    """

    __slots__ = ("_found", "_log", "_own", "_taints", "shades", "values")

    def __init__(
        self, values: dict[str, Any] | None = None, shades: dict[str, Shade] | None = None, *, logged: bool = False
    ) -> None:
        self.values: dict[str, Any] = {} if values is None else values
        self.shades: dict[str, Shade] = {} if shades is None else shades
        self._own: set[str] = set()
        # The shades as a turn found them, and what has tainted names that were not bound in this turn.
        self._found: dict[str, Shade] = dict(self.shades) if logged else {}
        self._taints: dict[str, Label] = {}
        # What happened to each name: the additions, or None once it was bound in this frame.
        self._log: dict[str, list[Addition] | None] | None = {} if logged else None

    def snapshot(self) -> tuple[dict[str, Any], dict[str, Shade]]:
        """The variables and their shades as every turn of a loop finds them."""
        self._own.clear()
        return dict(self.values), dict(self.shades)

    def bind(self, name: str, value: Any, shade: Shade | None = None) -> None:
        self.values[name] = value
        self._own.discard(name)
        if shade is not None:
            self.shades[name] = shade
        if self._log is not None:
            self._log[name] = None
            self._taints.pop(name, None)

    def taint(self, names: Iterable[str], label: Label) -> None:
        """What decided a branch or loop is joined into every variable that it may change."""
        if label is NOTHING:
            return
        for name in names:
            if name in self.shades:
                self.shades[name] = tainted(self.shades[name], label)
            if not self._bound_here(name):
                self._taints[name] = join(self._taints.get(name, NOTHING), label)

    @property
    def extends_in_place(self) -> bool:
        """Whether there are lists or dicts that only this frame knows."""
        return bool(self._own)

    def seen(self, names: frozenset[str]) -> None:
        """These variables were read: their lists may now be known under other names."""
        self._own -= names

    def update(self, name: str, op: Op, key: Any, value: Any) -> None:
        """Add to a variable; an EvaluationError says why that has no meaning."""
        if self._log is None or self._bound_here(name):
            self._apply(name, op, key, value)
            return
        self._apply_to_nothing(name, op, key, value)
        additions = self._log.setdefault(name, [])
        if additions is not None:
            additions.append(Addition(op, key, value))

    def charge(self, amount: int) -> None:
        """Count work of the run that is not part of an expression."""
        work = self.values.get(RUN_WORK)
        if work is not None:
            work.charge(amount)

    def takes(self, additions: Iterable[tuple[str, str]]) -> bool:
        """Whether these variables are such that additions can be put together later, with the same result."""
        return all(isinstance(self.values.get(name), _ADDED_LATER[op]) for name, op in additions)

    def merge(self, turn: Frame) -> None:
        """Play what a turn did into this frame, and what it computed into the work of the run."""
        if (work := turn.values.get(RUN_WORK)) is not None:
            self.charge(work.used)
        for name, additions in (turn._log or {}).items():
            if additions is None:
                self.bind(name, turn.values[name], turn.shades.get(name))
            else:
                for addition in additions:
                    self.update(name, *addition)
        self._merge_shades(turn)

    def _merge_shades(self, turn: Frame) -> None:
        """What was bound in the turn has its shade already; all else keeps what it had and takes on what is new."""
        for name, shade in turn.shades.items():
            if shade is not turn._found.get(name) and not turn._bound_here(name):
                known = self.shades.get(name)
                self.shades[name] = shade if known is None else join_shades(known, shade)
        for name, label in turn._taints.items():
            self.taint((name,), label)

    def _bound_here(self, name: str) -> bool:
        """Whether a name was bound in this turn; outside of turns that overlap every name was."""
        return self._log is None or self._log.get(name, _NOT_BOUND) is None

    def _apply(self, name: str, op: Op, key: Any, value: Any) -> None:
        if name not in self.values:
            raise RunError("run.unbound", f"{name!r} has no value yet", fix="Assign it before.")
        current = self.values[name]
        if name in self._own and self._in_place(current, op, key, value):
            return
        after = self.values[name] = updated(op, current, key, value)
        # What is not extended in place is copied as a whole.
        self.charge(1 + flat_cost(after))
        if isinstance(after, _OWNED):
            self._own.add(name)

    def _in_place(self, current: Any, op: Op, key: Any, value: Any) -> bool:
        """Extend a container that only this frame knows; False where it has to be weighed or refused as a whole."""
        if op == "put":
            if not (isinstance(current, dict) and isinstance(key, str) and _same_size(current, key not in current)):
                return False
            current[key] = _weighed(value)
            return True
        if not isinstance(current, list):
            return False
        if op == "append":
            if not _same_size(current, 1):
                return False
            cast("list[Any]", current).append(_weighed(value))
            return True
        if not isinstance(value, list) or not _same_size(current, len(cast("list[Any]", value))):
            return False
        cast("list[Any]", current).extend(_weighed(each) for each in cast("list[Any]", value))
        return True

    def _apply_to_nothing(self, name: str, op: Op, key: Any, value: Any) -> None:
        """Refuse now what would be refused when the turns are put together."""
        current = self.values.get(name)
        match current:
            case list():
                current = []
            case dict():
                current = {}
            case str():
                current = ""
            case _:
                pass
        updated(op, current, key, value)


# The kind of a variable of these types stays the same whatever is added, and adding can be checked by itself.
_ADDED_LATER: dict[str, tuple[type, ...]] = {"append": (list,), "put": (dict,), "add": (list, str, int, float)}


def _same_size(container: Any, more: int) -> bool:
    """Whether a container stays below the next power of two; there it is copied and weighed as a whole."""
    return len(container).bit_length() == (len(container) + more).bit_length()


def _weighed(value: Any) -> Any:
    """The same value; one with too much in it is refused, as everywhere in a plan."""
    return updated("append", [], None, value)[0] if isinstance(value, _CONTAINERS) else value
