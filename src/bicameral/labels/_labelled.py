"""`Labelled`: a value that keeps its labels and stays closed until the runtime opens it.

A `Labelled` carries a value from one pattern, strategy or run into the next. Its content is in no attribute: it
cannot be printed, compared, counted, copied out, pickled or found by looking through its slots, so nothing is decided
by it unnoticed. Whoever opens one answers for its label.

`Labelled.map` accepts only functions that plainly compute: nothing they are given stays anywhere but in what they
return. Python cannot prove this, so only plain cases count, and everything else is taken for a function that keeps
its argument: bound methods of mutable objects (`items.append`), functions with a mutable object in their closure,
their defaults or the globals they name, functions that write to attributes, globals or outer variables, that import,
or that call anything of which the same is not plain.
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
from enum import Enum
from functools import lru_cache, partial
from re import Pattern as Regex
from typing import Any, Generic, LiteralString, NoReturn, TypeVar, cast, final

from bicameral.errors import LabelError
from bicameral.labels._label import PUBLIC, TRUSTED_USER, USER, Label, Source
from bicameral.labels._label_tree import LabelTree, taint
from bicameral.labels._released import laundered_label, note_own_words, remember_released

_DEEP = 8
_DATA_TYPES = (str, bytes, int, float, complex, bool, type(None), Decimal, date, time, timedelta, Regex, range)
_PURE_MODULES = frozenset({"re", "json", "math", "string", "textwrap", "unicodedata", "html", "itertools", "operator"})
"""Modules whose functions keep nothing that they are given; `re` and `json` keep patterns and codecs."""
_PURE_BUILTINS = frozenset(
    "abs all any ascii bin bool bytes chr dict divmod enumerate filter float format frozenset hash hex int isinstance "
    "issubclass iter len list map max min next oct ord pow range repr reversed round set slice sorted str sum tuple "
    "type zip".split()
)
_WRITING_OPCODES = frozenset(
    "STORE_GLOBAL DELETE_GLOBAL STORE_ATTR DELETE_ATTR IMPORT_NAME IMPORT_FROM LOAD_BUILD_CLASS".split()
)


def is_plainly_pure(function: object) -> bool:
    """Whether a function plainly does nothing with its argument but compute what it returns."""
    try:
        return _is_pure(function, _DEEP)
    except (AttributeError, TypeError, ValueError):
        # Whatever cannot be looked into is not plain.
        return False


def _is_pure(function: object, deep: int) -> bool:
    match function:
        case _ if deep == 0:
            return False
        case partial():
            made = cast("partial[Any]", function)
            return _is_pure(made.func, deep - 1) and _are_data((*made.args, *made.keywords.values()), deep)
        case types.FunctionType():
            return _is_pure_code(function, deep)
        case types.MethodType():
            return _is_data(function.__self__, deep) and _is_pure(function.__func__, deep)
        case types.MethodDescriptorType():
            # Such as `str.strip`: the object that it works on is the argument itself.
            return function.__objclass__ in (str, bytes, int, float, list, dict, tuple, set, frozenset)
        case types.BuiltinFunctionType():
            owner: object = function.__self__
            if isinstance(owner, types.ModuleType):
                plain = owner is builtins and function.__name__ in _PURE_BUILTINS
                return plain or owner.__name__.lstrip("_") in _PURE_MODULES
            return _is_data(owner, deep)
        case type():
            return _is_plain_class(function)
        case _:
            return False


def _is_plain_class(kind: type) -> bool:
    if kind.__module__ == "builtins":
        return kind.__name__ in _PURE_BUILTINS or issubclass(kind, Exception)
    # A typed dict is a dict, and a named tuple a tuple; of anything else `__init__` may do what it likes.
    typed = bool(getattr(kind, "__total__", None)) or getattr(kind, "__total__", None) is False
    named: object = getattr(kind, "_fields", None)
    return typed or issubclass(kind, Enum) or (issubclass(kind, tuple) and named is not None)


def _is_pure_code(function: types.FunctionType, deep: int) -> bool:
    given = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    cells = {
        name: cell.cell_contents
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    }
    if not (_are_data(given, deep) and all(_is_harmless(each, deep) for each in cells.values())):
        return False
    names: set[str] = set()
    for code in _nested_codes(function.__code__):
        for step in dis.get_instructions(code):
            if step.opname in _WRITING_OPCODES or (step.opname == "STORE_DEREF" and step.argval in cells):
                return False
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names.add(step.argval)
    own = function.__name__
    return all(name == own or _is_harmless(_global_value(function, name), deep) for name in names)


@lru_cache(maxsize=1024)
def _nested_codes(code: types.CodeType) -> tuple[types.CodeType, ...]:
    """A function's code, and that of the functions in it."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return (code, *(found for each in inner for found in _nested_codes(each)))


def _global_value(function: types.FunctionType, name: str) -> object:
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name)


def _is_harmless(value: object, deep: int) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__ in _PURE_MODULES
    return _is_data(value, deep) or _is_pure(value, deep - 1)


def _are_data(values: Iterable[object], deep: int) -> bool:
    return all(_is_data(each, deep) for each in values)


def _is_data(value: object, deep: int) -> bool:
    """Whether nothing can be put into this value."""
    if deep == 0:
        return False
    if isinstance(value, _DATA_TYPES):
        return True
    if isinstance(value, tuple | frozenset):
        return _are_data(cast("Iterable[object]", value), deep - 1)
    if isinstance(value, types.MappingProxyType):
        entries = cast("Mapping[object, object]", value)
        return _are_data((*entries.keys(), *entries.values()), deep - 1)
    # An object of anybody's class, frozen or not, has methods, and what those do is not plain.
    return False


T = TypeVar("T")
U = TypeVar("U")


@final
class Labelled(Generic[T]):
    """A value and its labels, closed. It can be passed on, taken apart and put together, but not looked into.

    Only a stage opens one (`Stage.read`), and from then on whatever the stage does carries its label. It is neither
    true nor false, has no text and equals nothing but itself: a pattern that forgets this fails at once, instead of
    losing a label. It is made by the runtime, by `program_text`, `from_user` and `untrusted_value`, and never changes.

    Example:
        >>> program_text("Hello").label.trusted
        True
    """

    __slots__ = ("_content", "_shade")

    def __new__(cls, *_: object, **__: object) -> NoReturn:
        raise LabelError(
            "labels.forged",
            "a labelled value is made by the runtime, which knows where the value came from",
            fix="Pass on `outcome.labelled`; use `said`, `from_user` or `strangers` for what comes from outside.",
        )

    @property
    def label_tree(self) -> LabelTree:
        """Its labels, part by part."""
        return _LABELS_SLOT.__get__(self)

    @property
    def label(self) -> Label:
        """The join of all its labels."""
        return self.label_tree.flat

    def map(self, change: Callable[[T], U]) -> Labelled[U]:
        """The value changed by a function of it alone; whatever comes of it carries every label it had.

        A function that is not plainly pure may keep the value somewhere. In a run it therefore counts as opened: all
        that the run does afterwards carries the label. Outside a run such a function is refused. What the function
        raises may quote the value, so only the kind of the error is told, and that it failed counts as opened, too.
        """
        if not is_plainly_pure(change):
            record_escape(self, f"{_function_name(change)!r} is not plainly pure: it could keep what it is given")
        try:
            return make_labelled(change(open_labelled(self)), self.label)
        except Exception as error:
            failed = type(error).__name__
        # Raised outside of the handler, so that not even the context of the error holds the value's text.
        record_escape(self, None)
        raise LabelError("labels.function-failed", f"a function of a labelled value failed with {failed}")

    def field(self, name: str) -> Labelled[Any]:
        """One field of a record, with the labels of that field."""
        value: object = open_labelled(self)
        if not isinstance(value, Mapping) or name not in value:
            # That there is no such field was decided by whoever wrote the value.
            record_escape(self, None)
            raise LabelError("labels.no-field", f"a labelled value has no field {name!r}")
        # That the field is there is known from the keys.
        return make_labelled(
            cast("Mapping[str, Any]", value)[name], taint(self.label_tree.field(name), self.label_tree.own)
        )

    def with_label(self, label: Label) -> Labelled[T]:
        """The same with one more label on all of it."""
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
        # Not even the type of the value: a branch on it would be decided by whoever wrote the value.
        return f"Labelled({self.label_tree!r})"


# The slots are reached through their descriptors alone, which the class does not have any more: neither an attribute
# nor a walk over `__slots__` (debuggers, serializers, `copyreg`) comes to the value by accident.
_CONTENT_SLOT: Any = Labelled.__dict__["_content"]
_LABELS_SLOT: Any = Labelled.__dict__["_shade"]
for _slot in Labelled.__slots__:
    delattr(Labelled, _slot)


def make_labelled(value: T, shade: LabelTree) -> Labelled[T]:
    """A value with its labels. For the runtime alone: whoever makes one answers for its labels."""
    made = cast("Labelled[T]", object.__new__(cast("type[object]", Labelled)))
    _CONTENT_SLOT.__set__(made, value)
    _LABELS_SLOT.__set__(made, shade)
    return made


def open_labelled(closed: Labelled[T]) -> T:
    """What is in it. For the runtime alone: whoever opens a value answers for its label."""
    return _CONTENT_SLOT.__get__(closed)


# What comes from outside ---------------------------------------------------------------------------------------------


def program_text(words: LiteralString) -> Labelled[str]:
    """Words that stand in the program as a literal: the program's own, as trusted as its code.

    The type checker holds that it is a literal. A text that an outcome handed out is refused: pass on
    `outcome.labelled` instead.
    """
    return vouched_value(words)


def from_user(value: T) -> Labelled[T]:
    """What the user gave this program at run time: typed, chosen or configured by him. The caller vouches for that.

    Nothing else may come in here: not a page, a mail or a file (`untrusted_value`), and no value of an outcome
    (`outcome.labelled`). A text that an outcome of this process handed out, or that holds a long piece of one, is
    refused with `labels.laundered`, as far as it can be recognised.
    """
    return vouched_value(value)


def untrusted_value(value: T, where: str, *, private: bool = False) -> Labelled[T]:
    """What somebody else wrote: a page, a mail, an answer of a service. `where` says where it was found."""
    return make_labelled(value, Label((Source("third_party", where),), {USER} if private else PUBLIC))


def user_input(words: str) -> Labelled[str]:
    """Words from a person's own channel: a line of a terminal, the body of an authenticated request.

    For whoever holds the channel, at the very place where the words arrive, and so knows that nobody else wrote into
    it. Unlike `from_user` it does not refuse a person who repeats what an earlier answer said.
    """
    note_own_words(words)
    return make_labelled(words, TRUSTED_USER)


def vouched_value(value: T) -> Labelled[T]:
    """A value that somebody vouches for; `labels.laundered` if a text in it was handed out as a stranger's."""
    if laundered_label(value) is not None:
        raise LabelError(
            "labels.laundered",
            "this text was handed out by an outcome, and strangers had a hand in it: it is not the user's own",
            fix="Pass on `outcome.labelled`, which keeps its label; `received` is for what a person has just typed.",
        )
    note_own_words(value)
    return make_labelled(value, TRUSTED_USER)


# Values that get out -------------------------------------------------------------------------------------------------

_escape_listener: ContextVar[Callable[[Label], None] | None] = ContextVar("bicameral_escapes", default=None)


@contextmanager
def listen_for_escapes(note: Callable[[Label], None]) -> Generator[None]:
    """Within this, `note` is told the label of whatever gets out of a `Labelled` other than by a stage's `read`.

    A run inside a run tells both: what one of them has kept, the other may use.
    """
    outer = _escape_listener.get()

    def tell(label: Label) -> None:
        note(label)
        if outer is not None:
            outer(label)

    token = _escape_listener.set(tell)
    try:
        yield
    finally:
        _escape_listener.reset(token)


def record_escape(closed: Labelled[Any], why_not: str | None) -> None:
    """A value, or something about it, gets out: the run carries its label from now on.

    Without a run that could carry it, `why_not` says why it is refused; with None nothing but a failure gets out.
    """
    tell = _escape_listener.get()
    if tell is not None:
        tell(closed.label)
    elif why_not is not None:
        raise LabelError(
            "labels.impure-function",
            why_not,
            fix="Use a function that only computes, or change the value in a pattern, on a stage.",
        )
    if why_not is not None:
        remember_released(open_labelled(closed), closed.label_tree)


def _function_name(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))[:80]


def _closed_error(what: str) -> LabelError:
    return LabelError(
        "labels.closed",
        f"a labelled value cannot {what}: its label would be lost",
        fix="Pass it on as it is, put it into a `text`, or open it with `stage.read`.",
    )
