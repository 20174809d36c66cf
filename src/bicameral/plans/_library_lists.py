"""Library functions on lists and dicts."""

from __future__ import annotations

from typing import Any, cast

from bicameral.types import ANY, INT, STR, DictType, ListType, RecordType, TupleType, Type, optional

from ._bounds import check_length
from ._failure import EvaluationError, brief, wrong
from ._function import Cost, Function, Given, Parameter, Signature, may, need
from ._kinds import DICT, INTEGER, LIST, LISTS, MANY, PAIRS, SIZED, TEXT, item_of, items_of
from ._merge import NOTHING, merge, merged
from ._order import distinct


def _list(xs: Any = ()) -> list[Any]:
    return list(xs)


def _unique(xs: Any = ()) -> list[Any]:
    return distinct(list(xs))


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
            raise wrong(f"flatten() needs a list of lists, but one item is {brief(item)}", [item])
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
            raise EvaluationError("run.unpack", f"dict() needs pairs, but one item is {brief(cast('object', pair))}")
        key, value = parts
        found[dict_key(key)] = value
    return found


def dict_key(key: object) -> str:
    """A key of a dict: only text can be one."""
    if isinstance(key, str):
        return key
    raise wrong(f"the key of a dict is text, not {brief(key)}", [key], fix="Use str(key).")


def _get(entries: dict[str, Any], key: str, default: Any = None) -> Any:
    return entries.get(key, default)


def _keys(entries: dict[str, Any]) -> list[str]:
    return list(entries)


def _values(entries: dict[str, Any]) -> list[Any]:
    return list(entries.values())


def _items(entries: dict[str, Any]) -> list[list[Any]]:
    return [[key, value] for key, value in entries.items()]


def _len(value: Any) -> int:
    return len(value)


# The types of results


def _same_items(given: Given) -> Type:
    return ListType(item_of(given["xs"])) if "xs" in given.types else ListType(NOTHING)


def _numbered(given: Given) -> Type:
    return ListType(TupleType((INT, item_of(given["xs"]))))


def _zipped(given: Given) -> Type:
    return ListType(TupleType(tuple(item_of(type_) for type_ in given.rest)))


def _flattened(given: Given) -> Type:
    return ListType(merged(item_of(item) for item in items_of(given["xs"])) or ANY)


def _or_default(given: Given) -> Type:
    item = item_of(given["xs"])
    default = given.get("default")
    return optional(item) if default is None else merge(item, default) or ANY


def value_of(type_: Type) -> Type:
    """The type of what is under the keys of a dict."""
    match type_:
        case DictType(value=value):
            return value
        case RecordType(fields=fields, name=""):
            return merged(field.type for field in fields) or ANY
        case _:
            # A tool's record may carry more fields than it declares.
            return ANY


def _got(given: Given) -> Type:
    entries, key = given["entries"], given.constants.get("key")
    value = value_of(entries)
    if isinstance(entries, RecordType) and isinstance(key, str):
        field = entries.get(key)
        if field is not None:
            return field
        value = ANY
    default = given.get("default")
    return optional(value) if default is None else merge(value, default) or ANY


def _made_dict(given: Given) -> Type:
    if "entries" in given.types:
        return given["entries"]
    if "pairs" not in given.types:
        return RecordType(())
    pair = item_of(given["pairs"])
    match pair:
        case TupleType(items=(key, value)):
            _check_key(given, key)
            return DictType(value)
        case ListType(item=item):
            _check_key(given, item)
            return DictType(item)
        case _:
            return DictType(ANY)


def _check_key(given: Given, key: Type) -> None:
    if not TEXT.fits(key):
        given.report("plan.wrong-type", f"the keys of a dict are text, not {key}", "Use str(key).")


def _pairs_type(given: Given) -> Type:
    return ListType(TupleType((STR, value_of(given["entries"]))))


def _function(
    name: str, doc: str, *signatures: Signature, group: str = "lists", cost: Cost = "flat", grows: bool = False
) -> Function:
    return Function(name, doc, group, signatures, group == "dicts", cost=cost, grows=grows)


_XS, _START = need("xs", MANY), may("start", INTEGER)
_ENTRIES = need("entries", DICT)
_LISTS = Parameter("lists", MANY, many=True)

LIST_FUNCTIONS: tuple[Function, ...] = (
    _function(
        "len",
        "How many items (of a text: characters) there are.",
        Signature((need("xs", SIZED),), INT, _len),
        cost="constant",
    ),
    _function(
        "list",
        "The items of a list, the keys of a dict, or the characters of a text.",
        Signature((may("xs", SIZED),), _same_items, _list),
        grows=True,
    ),
    _function(
        "tuple",
        "The same as list: tuples are lists of a known length.",
        Signature((may("xs", SIZED),), _same_items, _list),
        grows=True,
    ),
    _function(
        "unique",
        "Each value once, in the order they first come.",
        Signature((need("xs", SIZED),), _same_items, _unique),
        cost="deep",
        grows=True,
    ),
    _function(
        "set",
        "The same as unique: the order is kept.",
        Signature((may("xs", SIZED),), _same_items, _unique),
        cost="deep",
        grows=True,
    ),
    _function("reversed", "The items from last to first.", Signature((need("xs", LIST),), _same_items, _reversed)),
    _function(
        "range",
        "The whole numbers from start (or 0) up to, not including, stop.",
        Signature((need("stop", INTEGER),), ListType(INT), _range),
        Signature((need("start", INTEGER), need("stop", INTEGER), may("step", INTEGER)), ListType(INT), _range),
    ),
    _function(
        "enumerate",
        "Pairs of a running number and an item.",
        Signature((_XS, _START), _numbered, _enumerate),
        grows=True,
    ),
    _function(
        "zip",
        "Tuples of the first items, the second items, and so on.",
        Signature((_LISTS,), _zipped, _zip),
        grows=True,
    ),
    _function(
        "flatten",
        "One list of the items of all the lists.",
        Signature((need("xs", LISTS),), _flattened, _flatten),
        grows=True,
    ),
    _function(
        "first",
        "The first item, or None (or the default) if there is none.",
        Signature((need("xs", LIST), may("default")), _or_default, _first),
        cost="constant",
    ),
    _function(
        "last",
        "The last item, or None (or the default) if there is none.",
        Signature((need("xs", LIST), may("default")), _or_default, _last),
        cost="constant",
    ),
)

DICT_FUNCTIONS: tuple[Function, ...] = (
    _function(
        "get",
        "The value under a key, or None (or the default) if there is none.",
        Signature((_ENTRIES, need("key", TEXT), may("default")), _got, _get),
        group="dicts",
        cost="constant",
    ),
    _function("keys", "The keys of a dict.", Signature((_ENTRIES,), ListType(STR), _keys), group="dicts"),
    _function(
        "values",
        "The values of a dict.",
        Signature((_ENTRIES,), lambda given: ListType(value_of(given["entries"])), _values),
        group="dicts",
    ),
    _function(
        "items", "Pairs of a key and its value.", Signature((_ENTRIES,), _pairs_type, _items), group="dicts", grows=True
    ),
    Function(
        "dict",
        "A dict from pairs of a key and a value, or a copy of a dict.",
        "dicts",
        (
            Signature((), _made_dict, _dict),
            Signature((_ENTRIES,), _made_dict, _dict),
            Signature((need("pairs", PAIRS),), _made_dict, _dict),
        ),
        grows=True,
    ),
)
