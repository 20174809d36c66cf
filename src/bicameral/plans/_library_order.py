"""Library functions that order, choose, count and group the items of a list, most of them by a lambda."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bicameral.types import ANY, INT, AnyType, DictType, ListType, OptionalType, RecordType, Type

from ._failure import EvaluationError, brief, wrong
from ._function import Cost, Function, Given, Parameter, Signature, may, need
from ._kinds import ANYTHING, DICT, FLAG, MANY, ORDERED, TEXT, item_of, orderable
from ._merge import merge, merged
from ._order import extreme, positions
from ._show import show

Key = Callable[[Any], Any]


def _sorted(xs: Any, *, key: Key | None = None, reverse: bool = False) -> list[Any]:
    items = list(xs)
    keys = items if key is None else [key(item) for item in items]
    return [items[at] for at in positions(keys, reverse=reverse)]


_MISSING = object()


def _extreme(*, largest: bool) -> Callable[..., Any]:
    def run(xs: Any, *, key: Key | None = None, default: Any = _MISSING) -> Any:
        items = list(xs)
        if not items and default is not _MISSING:
            return default
        keys = items if key is None else [key(item) for item in items]
        return items[extreme(keys, largest=largest)]

    return run


def _extreme_of(*, largest: bool) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        return values[extreme(values, largest=largest)]

    return run


def _field(name: str) -> Key:
    def key(row: Any) -> Any:
        if not isinstance(row, dict):
            raise wrong(f"only records have a field {name!r}, not {brief(row)}", [row])
        if name not in row:
            raise EvaluationError("run.no-field", f"an item has no field {brief(name)}")
        return row[name]  # pyright: ignore[reportUnknownVariableType]

    return key


def _group_by(rows: Iterable[Any], key: Key | str) -> dict[str, list[Any]]:
    key_of = _field(key) if isinstance(key, str) else key
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(show(key_of(row)), []).append(row)
    return groups


def _count_by(xs: Iterable[Any], key: Key | str | None = None) -> dict[str, int]:
    key_of = _field(key) if isinstance(key, str) else key
    counts: dict[str, int] = {}
    for x in xs:
        name = show(x if key_of is None else key_of(x))
        counts[name] = counts.get(name, 0) + 1
    return counts


# The types of results


def _check_key(given: Given, name: str = "key") -> None:
    found = given.returns(name, (item_of(given["xs"]),))
    if found is None or isinstance(found, AnyType):
        return
    if isinstance(found, OptionalType) and orderable(found.item):
        given.report("plan.none-value", "the key of the order may be None", "Write `x.field or ''` or filter first.")
    elif not orderable(found):
        given.report("plan.wrong-type", f"values of type {found} have no order", "Order by a number, text or date.")


def _in_order(given: Given) -> Type:
    _check_key(given)
    return ListType(item_of(given["xs"]))


def _one_of(given: Given) -> Type:
    _check_key(given)
    item, default = item_of(given["xs"]), given.get("default")
    return item if default is None else merge(item, default) or ANY


def _one_of_values(given: Given) -> Type:
    types = (given["value"], *given.rest)
    found = merged(types)
    if found is None or not orderable(found):
        shown = " and ".join(dict.fromkeys(map(str, types)))
        given.report("plan.wrong-type", f"{shown} cannot be compared", "Give values of one type.")
    return found or ANY


def _check_field(given: Given) -> Type:
    """The type of the items; the field they are grouped by must be one of theirs."""
    item, field = item_of(given["xs"]), given.constants.get("key")
    given.returns("key", (item,))
    if "key" not in given.types:
        return item
    if not DICT.fits(item):
        given.report("plan.wrong-type", f"each item is {item}; it has no fields", "Use a lambda: lambda x: x.")
    elif isinstance(item, RecordType) and isinstance(field, str) and field not in item.names:
        given.report("plan.unknown-field", f"the items have no field {field!r}", f"Fields: {', '.join(item.names)}.")
    return item


def _grouped(given: Given) -> Type:
    return DictType(ListType(_check_field(given)))


def _counted(given: Given) -> Type:
    _check_field(given)
    return DictType(INT)


_XS, _ORDERED = need("xs", MANY), need("xs", ORDERED)
_REVERSE = may("reverse", FLAG, named_only=True)
_DEFAULT = may("default", named_only=True)
_BY = Parameter("key", takes=1)
_BY_FIELD = need("key", TEXT)


def _extremes(name: str, doc: str, *, largest: bool) -> Function:
    run, run_of = _extreme(largest=largest), _extreme_of(largest=largest)
    rest = Parameter("more", ANYTHING, many=True)
    signatures = (
        Signature((_ORDERED, _DEFAULT), _one_of, run),
        Signature((_XS, Parameter("key", takes=1, named_only=True), _DEFAULT), _one_of, run),
        Signature((need("value"), rest), _one_of_values, run_of),
    )
    return Function(name, doc, "order and groups", signatures, cost="deep")


def _function(name: str, doc: str, *signatures: Signature, cost: Cost = "flat", grows: bool = False) -> Function:
    return Function(name, doc, "order and groups", signatures, cost=cost, grows=grows)


ORDER_FUNCTIONS: tuple[Function, ...] = (
    _function(
        "sorted",
        "The items in ascending order, by a key if one is given: `sorted(rows, key=lambda r: r.total, reverse=True)`.",
        Signature((_ORDERED, _REVERSE), _in_order, _sorted),
        Signature((_XS, Parameter("key", takes=1, named_only=True), _REVERSE), _in_order, _sorted),
        cost="deep",
    ),
    _extremes("min", "The smallest of a list or of some values.", largest=False),
    _extremes("max", "The largest of a list or of some values.", largest=True),
    _function(
        "count_by",
        "How often each value comes, by its text: `count_by(rows, 'country')` counts a field.",
        Signature((_XS,), _counted, _count_by),
        Signature((_XS, _BY), _counted, _count_by),
        Signature((_XS, _BY_FIELD), _counted, _count_by),
        cost="deep",
    ),
    _function(
        "group_by",
        "The items in lists by the text of a field or key: `group_by(rows, 'country')`.",
        Signature((_XS, _BY), _grouped, _group_by),
        Signature((_XS, _BY_FIELD), _grouped, _group_by),
        cost="deep",
        grows=True,
    ),
)
