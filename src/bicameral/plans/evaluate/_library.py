"""The closed library: every function that a plan may use in an expression, and those on lists and dicts.

There is no way to add a function from a plan. Text made of texts and values is a `Format` expression, so `concat` and
`format` are surface syntax and not functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, cast

from bicameral import types as t
from bicameral.plans._type_rules import (
    BOTTOM,
    DICT,
    TEXT,
    CallTypes,
    LibraryFunction,
    is_orderable,
    item_type,
    item_types,
    library_function,
    merge,
    merge_all,
    signature,
)
from bicameral.plans.evaluate._bounds import EvaluationError, bad_value, check_length, preview
from bicameral.plans.evaluate._library_cells import CELL_FUNCTIONS
from bicameral.plans.evaluate._library_scalars import DATE_FUNCTIONS, NUMBER_FUNCTIONS, TEXT_FUNCTIONS
from bicameral.plans.evaluate._values import distinct_values, extreme_position, format_value, sorted_positions


def _unique(xs: Any = ()) -> list[Any]:
    return distinct_values(list(xs))


def _range(*numbers: int) -> list[int]:
    if len(numbers) == 3 and numbers[2] == 0:
        raise EvaluationError("run.too-large", "a range with step 0 never ends", fix="Use a step of 1 or -1.")
    found = range(*numbers)
    # len() itself refuses ranges that are longer than a machine word.
    length = (found.stop - found.start) // found.step
    check_length("the range", length)
    return list(found)


def _enumerate(xs: Any, start: int = 0) -> list[list[Any]]:
    return [[number, item] for number, item in enumerate(xs, start)]


def _zip(*lists: Any) -> list[list[Any]]:
    return [list(items) for items in zip(*lists, strict=False)]


def _flatten(xs: list[Any]) -> list[Any]:
    length = 0
    for item in xs:
        if not isinstance(item, list | tuple):
            raise bad_value(f"flatten() needs a list of lists, but one item is {preview(item)}", [item])
        length += len(cast("list[Any]", item))
        check_length("the list", length)
    return [inner for item in xs for inner in item]


def _reversed(xs: list[Any]) -> list[Any]:
    return list(xs[::-1])


def _first(xs: list[Any], default: Any = None) -> Any:
    return xs[0] if xs else default


def _last(xs: list[Any], default: Any = None) -> Any:
    return xs[-1] if xs else default


def _dict(pairs: Any = ()) -> dict[str, Any]:
    if isinstance(pairs, dict):
        return dict(cast("dict[str, Any]", pairs))
    found: dict[str, Any] = {}
    for pair in pairs:
        parts = cast("list[Any]", pair) if isinstance(pair, list | tuple) else []
        if len(parts) != 2:
            raise EvaluationError("run.unpack", f"dict() needs pairs, but one item is {preview(cast('object', pair))}")
        key, value = parts
        found[check_dict_key(key)] = value
    return found


def check_dict_key(key: object) -> str:
    """A key of a dict: only text can be one."""
    if isinstance(key, str):
        return key
    raise bad_value(f"the key of a dict is text, not {preview(key)}", [key], fix="Use str(key).")


def _values(entries: dict[str, Any]) -> list[Any]:
    return list(entries.values())


def _items(entries: dict[str, Any]) -> list[list[Any]]:
    return [[key, value] for key, value in entries.items()]


def _items_list_type(given: CallTypes) -> t.Type:
    return t.ListType(item_type(given["xs"])) if "xs" in given.types else t.ListType(BOTTOM)


def _item_or_default_type(given: CallTypes) -> t.Type:
    item = item_type(given["xs"])
    default = given.get("default")
    return t.optional_type(item) if default is None else merge(item, default) or t.ANY


def dict_value_type(type_: t.Type) -> t.Type:
    """The type of what is under the keys of a dict."""
    match type_:
        case t.DictType(value=value):
            return value
        case t.RecordType(fields=fields, name=""):
            return merge_all(field.type for field in fields) or t.ANY
        case _:
            # A tool's record may carry more fields than it declares.
            return t.ANY


def _get_type(given: CallTypes) -> t.Type:
    entries, key = given["entries"], given.constants.get("key")
    value = dict_value_type(entries)
    if isinstance(entries, t.RecordType) and isinstance(key, str):
        field = entries.get(key)
        if field is not None:
            return field
        value = t.ANY
    default = given.get("default")
    return t.optional_type(value) if default is None else merge(value, default) or t.ANY


def _dict_type(given: CallTypes) -> t.Type:
    if "entries" in given.types:
        return given["entries"]
    if "pairs" not in given.types:
        return t.RecordType(())
    pair = item_type(given["pairs"])
    match pair:
        case t.TupleType(items=(key, value)):
            _check_dict_key_type(given, key)
            return t.DictType(value)
        case t.ListType(item=item):
            _check_dict_key_type(given, item)
            return t.DictType(item)
        case _:
            return t.DictType(t.ANY)


def _check_dict_key_type(given: CallTypes, key: t.Type) -> None:
    if not TEXT.fits(key):
        given.report("plan.wrong-type", f"the keys of a dict are text, not {key}", "Use str(key).")


_lists = partial(library_function, "lists")
_dicts = partial(library_function, "dicts", method=True)

LIST_FUNCTIONS = (
    _lists(
        "len", "How many items (of a text: characters) there are.", signature("xs: sized", t.INT, len), cost="constant"
    ),
    _lists(
        "list",
        "The items of a list, the keys of a dict, or the characters of a text.",
        signature("xs?: sized", _items_list_type, list),
        grows=True,
    ),
    _lists(
        "tuple",
        "The same as list: tuples are lists of a known length.",
        signature("xs?: sized", _items_list_type, list),
        grows=True,
    ),
    _lists(
        "unique",
        "Each value once, in the order they first come.",
        signature("xs: sized", _items_list_type, _unique),
        cost="deep",
        grows=True,
    ),
    _lists(
        "set",
        "The same as unique: the order is kept.",
        signature("xs?: sized", _items_list_type, _unique),
        cost="deep",
        grows=True,
    ),
    _lists("reversed", "The items from last to first.", signature("xs: list", _items_list_type, _reversed)),
    _lists(
        "range",
        "The whole numbers from start (or 0) up to, not including, stop.",
        signature("stop: int", t.ListType(t.INT), _range),
        signature("start: int, stop: int, step?: int", t.ListType(t.INT), _range),
    ),
    _lists(
        "enumerate",
        "Pairs of a running number and an item.",
        signature(
            "xs: iterable, start?: int",
            lambda given: t.ListType(t.TupleType((t.INT, item_type(given["xs"])))),
            _enumerate,
        ),
        grows=True,
    ),
    _lists(
        "zip",
        "Tuples of the first items, the second items, and so on.",
        signature(
            "*lists: iterable", lambda given: t.ListType(t.TupleType(tuple(map(item_type, given.variadic_types)))), _zip
        ),
        grows=True,
    ),
    _lists(
        "flatten",
        "One list of the items of all the lists.",
        signature(
            "xs: lists", lambda given: t.ListType(merge_all(map(item_type, item_types(given["xs"]))) or t.ANY), _flatten
        ),
        grows=True,
    ),
    _lists(
        "first",
        "The first item, or None (or the default) if there is none.",
        signature("xs: list, default?", _item_or_default_type, _first),
        cost="constant",
    ),
    _lists(
        "last",
        "The last item, or None (or the default) if there is none.",
        signature("xs: list, default?", _item_or_default_type, _last),
        cost="constant",
    ),
)

DICT_FUNCTIONS = (
    _dicts(
        "get",
        "The value under a key, or None (or the default) if there is none.",
        signature("entries: dict, key: text, default?", _get_type, dict[str, Any].get),
        cost="constant",
    ),
    _dicts("keys", "The keys of a dict.", signature("entries: dict", t.ListType(t.STR), list)),
    _dicts(
        "values",
        "The values of a dict.",
        signature("entries: dict", lambda given: t.ListType(dict_value_type(given["entries"])), _values),
    ),
    _dicts(
        "items",
        "Pairs of a key and its value.",
        signature(
            "entries: dict", lambda given: t.ListType(t.TupleType((t.STR, dict_value_type(given["entries"])))), _items
        ),
        grows=True,
    ),
    _dicts(
        "dict",
        "A dict from pairs of a key and a value, or a copy of a dict.",
        signature("", _dict_type, _dict),
        signature("entries: dict", _dict_type, _dict),
        signature("pairs: pairs", _dict_type, _dict),
        method=False,
        grows=True,
    ),
)


KeyFunction = Callable[[Any], Any]


def _sorted(xs: Any, *, key: KeyFunction | None = None, reverse: bool = False) -> list[Any]:
    items = list(xs)
    keys = items if key is None else [key(item) for item in items]
    return [items[at] for at in sorted_positions(keys, reverse=reverse)]


_MISSING = object()


def _extreme_of_list(*, largest: bool) -> Callable[..., Any]:
    def run(xs: Any, *, key: KeyFunction | None = None, default: Any = _MISSING) -> Any:
        items = list(xs)
        if not items and default is not _MISSING:
            return default
        keys = items if key is None else [key(item) for item in items]
        return items[extreme_position(keys, largest=largest)]

    return run


def _extreme_of_values(*, largest: bool) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        return values[extreme_position(values, largest=largest)]

    return run


def _field_key(name: str) -> KeyFunction:
    def key(row: Any) -> Any:
        if not isinstance(row, dict):
            raise bad_value(f"only records have a field {name!r}, not {preview(row)}", [row])
        if name not in row:
            raise EvaluationError("run.no-field", f"an item has no field {preview(name)}")
        return row[name]  # pyright: ignore[reportUnknownVariableType]

    return key


def _group_by(rows: Iterable[Any], key: KeyFunction | str) -> dict[str, list[Any]]:
    key_of = _field_key(key) if isinstance(key, str) else key
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(format_value(key_of(row)), []).append(row)
    return groups


def _count_by(xs: Iterable[Any], key: KeyFunction | str | None = None) -> dict[str, int]:
    key_of = _field_key(key) if isinstance(key, str) else key
    counts: dict[str, int] = {}
    for x in xs:
        name = format_value(x if key_of is None else key_of(x))
        counts[name] = counts.get(name, 0) + 1
    return counts


# The types of results


def _check_order_key(given: CallTypes, name: str = "key") -> None:
    found = given.lambda_result(name, (item_type(given["xs"]),))
    if found is None or isinstance(found, t.AnyType):
        return
    if isinstance(found, t.OptionalType) and is_orderable(found.item):
        given.report("plan.none-value", "the key of the order may be None", "Write `x.field or ''` or filter first.")
    elif not is_orderable(found):
        given.report("plan.wrong-type", f"values of type {found} have no order", "Order by a number, text or date.")


def _sorted_type(given: CallTypes) -> t.Type:
    _check_order_key(given)
    return t.ListType(item_type(given["xs"]))


def _extreme_type(given: CallTypes) -> t.Type:
    _check_order_key(given)
    item, default = item_type(given["xs"]), given.get("default")
    return item if default is None else merge(item, default) or t.ANY


def _extreme_of_values_type(given: CallTypes) -> t.Type:
    types = (given["value"], *given.variadic_types)
    found = merge_all(types)
    if found is None or not is_orderable(found):
        shown = " and ".join(dict.fromkeys(map(str, types)))
        given.report("plan.wrong-type", f"{shown} cannot be compared", "Give values of one type.")
    return found or t.ANY


def _check_group_key(given: CallTypes) -> t.Type:
    """The type of the items; the field they are grouped by must be one of theirs."""
    item, field = item_type(given["xs"]), given.constants.get("key")
    given.lambda_result("key", (item,))
    if "key" not in given.types:
        return item
    if not DICT.fits(item):
        given.report("plan.wrong-type", f"each item is {item}; it has no fields", "Use a lambda: lambda x: x.")
    elif isinstance(item, t.RecordType) and isinstance(field, str) and field not in item.names:
        given.report("plan.unknown-field", f"the items have no field {field!r}", f"Fields: {', '.join(item.names)}.")
    return item


def _group_by_type(given: CallTypes) -> t.Type:
    return t.DictType(t.ListType(_check_group_key(given)))


def _count_by_type(given: CallTypes) -> t.Type:
    _check_group_key(given)
    return t.DictType(t.INT)


_order = partial(library_function, "order and groups", cost="deep")


def _extreme_function(name: str, doc: str, *, largest: bool) -> LibraryFunction:
    run = _extreme_of_list(largest=largest)
    return _order(
        name,
        doc,
        signature("xs: ordered, *, default?", _extreme_type, run),
        signature("xs: iterable, *, key: lambda, default?", _extreme_type, run),
        signature("value, *more", _extreme_of_values_type, _extreme_of_values(largest=largest)),
    )


ORDER_FUNCTIONS = (
    _order(
        "sorted",
        "The items in ascending order, by a key if one is given: `sorted(rows, key=lambda r: r.total, reverse=True)`.",
        signature("xs: ordered, *, reverse?: bool", _sorted_type, _sorted),
        signature("xs: iterable, *, key: lambda, reverse?: bool", _sorted_type, _sorted),
    ),
    _extreme_function("min", "The smallest of a list or of some values.", largest=False),
    _extreme_function("max", "The largest of a list or of some values.", largest=True),
    _order(
        "count_by",
        "How often each value comes, by its text: `count_by(rows, 'country')` counts a field.",
        signature("xs: iterable", _count_by_type, _count_by),
        signature("xs: iterable, key: lambda", _count_by_type, _count_by),
        signature("xs: iterable, key: text", _count_by_type, _count_by),
    ),
    _order(
        "group_by",
        "The items in lists by the text of a field or key: `group_by(rows, 'country')`.",
        signature("xs: iterable, key: lambda", _group_by_type, _group_by),
        signature("xs: iterable, key: text", _group_by_type, _group_by),
        grows=True,
    ),
)


_ALL_FUNCTIONS: tuple[LibraryFunction, ...] = (
    *TEXT_FUNCTIONS,
    *NUMBER_FUNCTIONS,
    *LIST_FUNCTIONS,
    *ORDER_FUNCTIONS,
    *DICT_FUNCTIONS,
    *DATE_FUNCTIONS,
    *CELL_FUNCTIONS,
)

FUNCTIONS: Mapping[str, LibraryFunction] = MappingProxyType({function.name: function for function in _ALL_FUNCTIONS})
"""Every library function by its name."""

METHODS: Mapping[str, str] = MappingProxyType(
    {name: name for name, function in FUNCTIONS.items() if function.method}
    | {"casefold": "lower", "date": "date", "time": "time"}
)
"""The function that a Python method of this name stands for; the receiver is its first argument."""
