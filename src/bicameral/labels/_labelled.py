"""`Labelled`: a value that keeps its labels and stays opaque until the runtime opens it.

A `Labelled` carries a value from one pattern or run into the next. Its content is in no attribute: it cannot be
printed, compared, counted, copied out, pickled or found through its slots, so no branch can depend on it without the
runtime knowing. Code that opens one is responsible for its label.

`Labelled.map` accepts only functions that are plainly pure: they keep their argument nowhere but in their result.
Python cannot prove this, so only plain cases pass. Everything else counts as a function that may keep its argument:
bound methods of mutable objects (`items.append`), functions with a mutable object in their closure, defaults or
globals, functions that write to attributes, globals or outer variables, that import, or that call such a function.
"""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum, EnumMeta
from functools import lru_cache, partial
from re import Pattern as Regex
from typing import Any, Generic, LiteralString, NoReturn, TypedDict, TypeVar, cast, final

from bicameral.errors import LabelError
from bicameral.labels._label import PUBLIC, TRUSTED_USER, USER, Label, Source
from bicameral.labels._label_tree import LabelTree, taint
from bicameral.labels._released import laundered_label, note_own_words, remember_released

_MAX_INSPECTION_DEPTH = 8
_DATA_TYPES = (str, bytes, int, float, complex, bool, type(None), Decimal, date, time, timedelta, Regex, range)
_PURE_MODULES = frozenset({"re", "json", "math", "string", "textwrap", "unicodedata", "html", "itertools", "operator"})
"""Modules whose functions do not store their arguments; `re` caches only patterns."""
_PURE_BUILTINS = frozenset(
    "abs all any ascii bin bool bytes chr dict divmod enumerate filter float format frozenset hash hex int isinstance "
    "issubclass iter len list map max min next oct ord pow range repr reversed round set slice sorted str sum tuple "
    "type zip".split()
)
_TYPED_DICT_META = type(TypedDict("_AnyTypedDict", {}))
"""The metaclass of every TypedDict; its instances are plain dicts, whatever their class defines."""
_WRITING_OPCODES = frozenset(
    "STORE_GLOBAL DELETE_GLOBAL STORE_ATTR DELETE_ATTR IMPORT_NAME IMPORT_FROM LOAD_BUILD_CLASS".split()
)


def is_plainly_pure(function: object) -> bool:
    """Whether a function plainly does nothing with its argument but compute its result."""
    try:
        return _is_pure(function, _MAX_INSPECTION_DEPTH)
    except (AttributeError, TypeError, ValueError):
        # A function that cannot be inspected is not plainly pure.
        return False


def _is_pure(function: object, depth: int) -> bool:
    match function:
        case _ if depth == 0:
            return False
        case partial():
            made = cast("partial[Any]", function)
            return _is_pure(made.func, depth - 1) and _are_data((*made.args, *made.keywords.values()), depth)
        case types.FunctionType():
            return _is_pure_code(function, depth)
        case types.MethodType():
            return _is_data(function.__self__, depth) and _is_pure(function.__func__, depth)
        case types.MethodDescriptorType():
            # Such as `str.strip`: its `self` is the argument.
            return function.__objclass__ in (str, bytes, int, float, list, dict, tuple, set, frozenset)
        case types.BuiltinFunctionType():
            owner: object = function.__self__
            if isinstance(owner, types.ModuleType):
                plain = owner is builtins and function.__name__ in _PURE_BUILTINS
                return plain or owner.__name__.lstrip("_") in _PURE_MODULES
            return _is_data(owner, depth)
        case type():
            return _is_plain_class(function)
        case _:
            return False


def _is_plain_class(kind: type) -> bool:
    """Whether making an instance stores the argument nowhere but in the instance.

    A user-defined class may do anything in `__init__`, `__new__` or its metaclass. Only those pass whose construction
    is the standard library's: a TypedDict makes a dict, a NamedTuple a tuple, and an Enum looks a member up.
    """
    if getattr(builtins, kind.__name__, None) is kind:
        return kind.__name__ in _PURE_BUILTINS or issubclass(kind, Exception)
    if type(kind) is _TYPED_DICT_META:
        return True
    if type(kind) is EnumMeta:
        # `_missing_` is given every value that names no member.
        return cast("Any", kind)._missing_.__func__.__module__ == Enum.__module__
    return type(kind) is type and kind.__bases__ == (tuple,) and _is_named_tuple(kind)


def _is_named_tuple(kind: type) -> bool:
    # `collections.namedtuple` generates `__new__`, which calls `tuple.__new__` and names nothing else.
    made_by: object = getattr(vars(kind).get("__new__"), "__func__", None)
    if not isinstance(made_by, types.FunctionType) or "__init__" in vars(kind):
        return False
    names, calls = made_by.__code__.co_names, made_by.__globals__.get("_tuple_new")
    return names == ("_tuple_new",) and calls is cast("Any", tuple).__new__


def _is_pure_code(function: types.FunctionType, depth: int) -> bool:
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    cells = {
        name: cell.cell_contents
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    }
    if not (_are_data(defaults, depth) and all(_is_harmless(each, depth) for each in cells.values())):
        return False
    names: set[str] = set()
    for code in _nested_codes(function.__code__):
        for step in dis.get_instructions(code):
            if step.opname in _WRITING_OPCODES or (step.opname == "STORE_DEREF" and step.argval in cells):
                return False
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names.add(step.argval)
    own = function.__name__
    return all(name == own or _is_harmless(_global_value(function, name), depth) for name in names)


@lru_cache(maxsize=1024)
def _nested_codes(code: types.CodeType) -> tuple[types.CodeType, ...]:
    """The code of a function and of the functions nested in it."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return (code, *(nested for each in inner for nested in _nested_codes(each)))


def _global_value(function: types.FunctionType, name: str) -> object:
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name)


def _is_harmless(value: object, depth: int) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__ in _PURE_MODULES
    return _is_data(value, depth) or _is_pure(value, depth - 1)


def _are_data(values: Iterable[object], depth: int) -> bool:
    return all(_is_data(each, depth) for each in values)


def _is_data(value: object, depth: int) -> bool:
    """Whether a value is immutable, so that nothing can be stored in it."""
    if depth == 0:
        return False
    if isinstance(value, _DATA_TYPES):
        return True
    if isinstance(value, tuple | frozenset):
        return _are_data(cast("Iterable[object]", value), depth - 1)
    if isinstance(value, types.MappingProxyType):
        entries = cast("Mapping[object, object]", value)
        return _are_data((*entries.keys(), *entries.values()), depth - 1)
    # Any other object, frozen or not, has methods that are not inspected.
    return False


T = TypeVar("T")
U = TypeVar("U")


@final
class Labelled(Generic[T]):
    """An opaque value and its labels. It can be passed on, taken apart and put together, but not inspected.

    Only a pattern's context opens one (`Context.read`); from then on everything the context does carries its label. A
    `Labelled` has no truth value and no text, and equals nothing but itself: a pattern that forgets this fails at once
    instead of losing a label. It is made by the runtime, `program_text`, `from_user` and `untrusted_value`, and never
    changes.

    Example:
        >>> program_text("Hello").label.trusted
        True
    """

    __slots__ = ("_content", "_labels")

    def __new__(cls, *_: object, **__: object) -> NoReturn:
        raise LabelError(
            "labels.forged",
            "a labelled value is made by the runtime, which knows where the value came from",
            fix="Pass on `outcome.labelled`; for what comes from outside use `program_text`, `from_user` "
            "or `untrusted_value`.",
        )

    @property
    def label_tree(self) -> LabelTree:
        """The labels, part by part."""
        return _LABELS_SLOT.__get__(self)

    @property
    def label(self) -> Label:
        """The join of all labels."""
        return self.label_tree.flat

    def map(self, change: Callable[[T], U]) -> Labelled[U]:
        """The result of a function of the value; it carries every label of the value.

        A function that is not plainly pure may store the value. Within a run the value therefore counts as opened:
        everything the run does afterwards carries the label. Outside a run such a function is refused. An exception of
        the function may quote the value, so only its class is reported, and the failure counts as opening the value,
        too.

        Args:
            change: A function of the value alone, such as `str.strip`.
        """
        if not is_plainly_pure(change):
            record_escape(self, f"{_function_name(change)!r} is not plainly pure: it could keep what it is given")
        try:
            return make_labelled(change(open_labelled(self)), self.label)
        except Exception as error:
            failed = type(error).__name__
        # Raised outside the handler, so that `__context__` does not keep an error that quotes the value.
        record_escape(self, None)
        raise LabelError("labels.function-failed", f"a function of a labelled value failed with {failed}")

    def field(self, name: str) -> Labelled[Any]:
        """One field of a record, with the labels of that field."""
        value: object = open_labelled(self)
        if not isinstance(value, Mapping) or name not in value:
            # The missing field is a fact about the value, so the failure carries its label.
            record_escape(self, None)
            raise LabelError("labels.no-field", f"a labelled value has no field {name!r}")
        # That the field exists is a fact about the keys, so the label of the keys is joined.
        return make_labelled(
            cast("Mapping[str, Any]", value)[name], taint(self.label_tree.field(name), self.label_tree.own)
        )

    def with_label(self, label: Label) -> Labelled[T]:
        """The same value with one more label on every part."""
        return make_labelled(open_labelled(self), taint(self.label_tree, label))

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("a class of somebody's own could be open; Labelled has no subclasses")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a labelled value never changes, nor does its label")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a labelled value never changes, nor does its label")

    def __bool__(self) -> NoReturn:
        raise _closed_error("be asked whether it is true")

    def __str__(self) -> NoReturn:
        raise _closed_error("be written out")

    def __format__(self, spec: str) -> NoReturn:
        raise _closed_error("be put into a text")

    def __iter__(self) -> NoReturn:
        raise _closed_error("be gone through")

    def __contains__(self, item: object) -> NoReturn:
        raise _closed_error("be searched")

    def __len__(self) -> NoReturn:
        raise _closed_error("be counted")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise _closed_error("be pickled")

    def __copy__(self) -> Labelled[T]:
        return self

    def __deepcopy__(self, memo: object) -> Labelled[T]:
        return self

    def __repr__(self) -> str:
        # Not even the type of the value: a branch on it would depend on untrusted data.
        return f"Labelled({self.label_tree!r})"


# The slots are reachable only through these descriptors, which are removed from the class: neither attribute access nor
# a walk over `__slots__` (debuggers, serializers, `copyreg`) finds the value by accident.
_CONTENT_SLOT: Any = Labelled.__dict__["_content"]
_LABELS_SLOT: Any = Labelled.__dict__["_labels"]
for _slot in Labelled.__slots__:
    delattr(Labelled, _slot)


def make_labelled(value: T, tree: LabelTree) -> Labelled[T]:
    """A value with its labels. For the runtime only: the caller is responsible for the labels."""
    made = cast("Labelled[T]", object.__new__(cast("type[object]", Labelled)))
    _CONTENT_SLOT.__set__(made, value)
    _LABELS_SLOT.__set__(made, tree)
    return made


def open_labelled(closed: Labelled[T]) -> T:
    """The content. For the runtime only: the caller is responsible for the label."""
    return _CONTENT_SLOT.__get__(closed)


# Values from outside


def program_text(words: LiteralString) -> Labelled[str]:
    """A literal of the program: as trusted as its code.

    The type checker enforces that it is a literal. A text that an outcome released is refused: pass on
    `outcome.labelled` instead.
    """
    return vouched_value(words)


def from_user(value: T) -> Labelled[T]:
    """A value that the user typed, chose or configured at run time. The caller vouches for that.

    Do not use it for a page, a mail or a file (`untrusted_value`), nor for the value of an outcome
    (`outcome.labelled`). A text that an outcome of this process released, or that contains a long piece of one, is
    refused with `labels.laundered`, as far as it can be recognised.
    """
    return vouched_value(value)


def untrusted_value(value: T, where: str, *, private: bool = False) -> Labelled[T]:
    """A value that somebody else wrote: a page, a mail, the answer of a service.

    Args:
        value: The value; all of it gets the same label.
        where: Where it was found; the name of its source.
        private: Whether only the user may see it.

    Example:
        >>> untrusted_value("Please call back.", "voicemail").label.trusted
        False
    """
    return make_labelled(value, Label((Source("third_party", where),), {USER} if private else PUBLIC))


def user_input(words: str) -> Labelled[str]:
    """Text from a person's own channel: a line of a terminal, the body of an authenticated request.

    Call it where the text arrives, in the code that owns the channel and so knows that nobody else wrote into it.
    Unlike `from_user` it does not refuse a person who repeats an earlier answer.
    """
    note_own_words(words)
    return make_labelled(words, TRUSTED_USER)


def vouched_value(value: T) -> Labelled[T]:
    """A value that the caller vouches for; `labels.laundered` if it contains a released untrusted text."""
    if laundered_label(value) is not None:
        raise LabelError(
            "labels.laundered",
            "this text was handed out by an outcome, and strangers had a hand in it: it is not the user's own",
            fix="Pass on `outcome.labelled`, which keeps its label; `user_input` is for what a person has just typed.",
        )
    note_own_words(value)
    return make_labelled(value, TRUSTED_USER)


# Values that leave a `Labelled`

_escape_listener: ContextVar[Callable[[Label], None] | None] = ContextVar("bicameral_escapes", default=None)


@contextmanager
def listen_for_escapes(note: Callable[[Label], None]) -> Generator[None]:
    """Within this, `note` gets the label of every value that leaves a `Labelled` other than by `Context.read`.

    A nested run notifies the outer listeners, too: a value that one run stored can be used by the other.
    """
    outer = _escape_listener.get()

    def notify(label: Label) -> None:
        note(label)
        if outer is not None:
            outer(label)

    token = _escape_listener.set(notify)
    try:
        yield
    finally:
        _escape_listener.reset(token)


def record_escape(closed: Labelled[Any], why_not: str | None) -> None:
    """Record that a value, or a fact about it, leaves its `Labelled`: the run carries its label from now on.

    Args:
        closed: The value.
        why_not: Why this is refused outside a run; None if nothing but a failure gets out.
    """
    notify = _escape_listener.get()
    if notify is not None:
        notify(closed.label)
    elif why_not is not None:
        raise LabelError(
            "labels.impure-function",
            why_not,
            fix="Use a function that only computes, or change the value in a pattern, in its context.",
        )
    if why_not is not None:
        # The function may store the text, and the program may pass it back in as its own.
        remember_released(open_labelled(closed), closed.label_tree)


def _function_name(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))[:80]


def _closed_error(action: str) -> LabelError:
    return LabelError(
        "labels.closed",
        f"a labelled value cannot {action}: its label would be lost",
        fix="Pass it on as it is, put it into a `text`, or open it with `context.read`.",
    )
