"""Expressions of a plan: the pydantic nodes, their children and their free names.

Expressions are pure and total, and a plan cannot add functions to the library. Every node has a `kind`, by which it is
read from JSON. What is computed once for each node is memoized by identity, since comparing nodes would cost more.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from keyword import kwlist
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, ValidationInfo, field_validator

from bicameral.errors import LabelError
from bicameral.labels import Label, label_tree_from_json
from bicameral.tools import REFERENCE_KINDS, ReferenceKind

_Result = TypeVar("_Result")


def memoize_by_identity(compute: Callable[[Any], _Result]) -> Callable[[Any], _Result]:
    """Memoize a function of one object for as long as that object lives."""
    cache: dict[int, tuple[weakref.ref[Any], _Result]] = {}
    # Bound here: when the interpreter exits, the last weak references may die after the names of this module.
    forget = cache.pop

    @wraps(compute)
    def run(node: Any) -> _Result:
        key = id(node)
        entry = cache.get(key)
        # An id may be used again: the entry counts only if it is of this very object.
        if entry is not None and entry[0]() is node:
            return entry[1]
        result = compute(node)
        cache[key] = (weakref.ref(node, lambda _: forget(key, None)), result)
        return result

    return run


NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
_KEYWORDS = frozenset(kwlist)


def _validate_name(name: str) -> str:
    if name in _KEYWORDS:
        raise ValueError(f"{name!r} is a word of the language and cannot be a name")
    return name


Name = Annotated[
    str,
    Field(pattern=NAME_PATTERN, max_length=64, json_schema_extra={"not": {"enum": list(kwlist)}}),
    AfterValidator(_validate_name),
]

SURFACE_WORDS = frozenset(
    {"answer", "ask", "cannot", "concat", "extract", "format", "plan_id", "print", "within", *REFERENCE_KINDS}
)
"""Called names that are steps, formatted text or references in the surface syntax: no tool or function has them."""

MAX_INT = 10**15


def has_lone_surrogate(text: str) -> bool:
    """Whether a text has half of a surrogate pair. It has no bytes: such text cannot be saved, hashed or sent."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _validate_text(text: str) -> str:
    if has_lone_surrogate(text):
        raise ValueError("the text has half a character (a lone surrogate)")
    return text


def _validate_literal(value: str | bool | int | float | None) -> str | bool | int | float | None:
    if isinstance(value, str):
        return _validate_text(value)
    if isinstance(value, int) and abs(value) > MAX_INT:
        raise ValueError("the number is too large: whole numbers go up to 10**15")
    return value


Text = Annotated[str, AfterValidator(_validate_text)]
Scalar = Annotated[str | bool | int | FiniteFloat | None, AfterValidator(_validate_literal)]

ArithmeticOp = Literal["+", "-", "*", "/", "//", "%"]
CompareOp = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in"]


class Node(BaseModel):
    """A frozen part of a plan; unknown keys are errors."""

    # Schemas are built at first use: most commands never need a plan. Rules are validators of fields, not of whole
    # models: pydantic would run those again each time a node becomes part of another.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)
    child_fields: ClassVar[tuple[str, ...]] = ()
    """The fields that hold other nodes, in the order of evaluation. The order of the fields themselves is that of the
    JSON form, which the plan's hash depends on."""


class Const(Node):
    """A literal: text, number, boolean or None."""

    kind: Literal["const"] = "const"
    value: Scalar


class Ref(Node):
    """The value of a variable."""

    kind: Literal["ref"] = "ref"
    name: Name


MAX_REFERENCE_WORDS = 200


def _validate_label(written: Any) -> Any:
    try:
        tree = label_tree_from_json(written)
    except LabelError as error:
        raise ValueError(error.message) from None
    if not isinstance(tree, Label):
        raise ValueError("the label of a bound reference is one label")
    return written


class BoundTo(Node):
    """What a reference was bound to: a value of the world, with the label of where the candidates came from, as JSON.

    A plan that a model writes cannot have one, since the surface syntax has no way to write it.
    """

    value: Scalar
    label: Annotated[Any, AfterValidator(_validate_label)]

    @property
    def label_tree(self) -> Label:
        return cast("Label", label_tree_from_json(self.label))


class Reference(Node):
    """Something in the world, in the words of the request: `file("bills")`, `person("Anna")`.

    `bound` is what these words mean. A plan with an open reference can be checked and is not run.
    """

    kind: Literal["reference"] = "reference"
    refers: ReferenceKind
    words: Annotated[Text, Field(min_length=1, max_length=MAX_REFERENCE_WORDS)]
    bound: BoundTo | None = None


class Get(Node):
    """A field of a record: `mail.subject`."""

    kind: Literal["get"] = "get"
    child_fields = ("value",)
    value: Expr
    field: Name


class Index(Node):
    """An item of a list or dict: `rows[0]`, `row['amount']`."""

    kind: Literal["index"] = "index"
    child_fields = ("value", "at")
    value: Expr
    at: Expr


class Slice(Node):
    """A part of a list or text: `lines[1:10]`."""

    kind: Literal["slice"] = "slice"
    child_fields = ("value", "start", "stop", "step")
    value: Expr
    start: Expr | None = None
    stop: Expr | None = None
    step: Expr | None = None


class ListOf(Node):
    kind: Literal["list"] = "list"
    child_fields = ("items",)
    items: tuple[Expr, ...] = ()


class TupleOf(Node):
    kind: Literal["tuple"] = "tuple"
    child_fields = ("items",)
    items: tuple[Expr, ...] = ()


class DictOf(Node):
    kind: Literal["dict"] = "dict"
    child_fields = ("entries",)
    entries: tuple[tuple[Expr, Expr], ...] = ()


class Arithmetic(Node):
    kind: Literal["arithmetic"] = "arithmetic"
    child_fields = ("left", "right")
    op: ArithmeticOp
    left: Expr
    right: Expr

    @field_validator("left")
    @classmethod
    def _canonical(cls, value: Any, info: ValidationInfo) -> Any:
        if info.data.get("op") == "%" and _is_text_expression(value):
            raise ValueError("formatted text is written as a format")
        return value


def _is_text_expression(expr: object) -> bool:
    return isinstance(expr, Format) or (isinstance(expr, Const) and isinstance(expr.value, str))


class Negative(Node):
    """`-x`; the negative of a literal number is itself a literal."""

    kind: Literal["negative"] = "negative"
    child_fields = ("value",)
    value: Expr

    @field_validator("value")
    @classmethod
    def _canonical(cls, value: Any) -> Any:
        if isinstance(value, Const) and isinstance(value.value, int | float):
            raise ValueError("the negative of a literal number is written as a const")
        return value


class Not(Node):
    kind: Literal["not"] = "not"
    child_fields = ("value",)
    value: Expr


class Logic(Node):
    """`a and b and c` or `a or b`."""

    kind: Literal["logic"] = "logic"
    child_fields = ("items",)
    op: Literal["and", "or"]
    items: Annotated[tuple[Expr, ...], Field(min_length=2)]


class Compare(Node):
    """A comparison, possibly chained: `0 < x <= 10` is first 0, rest (('<', x), ('<=', 10))."""

    kind: Literal["compare"] = "compare"
    child_fields = ("first", "rest")
    first: Expr
    rest: Annotated[tuple[tuple[CompareOp, Expr], ...], Field(min_length=1)]


class Choose(Node):
    """`then if condition else otherwise`."""

    kind: Literal["choose"] = "choose"
    child_fields = ("condition", "then", "otherwise")
    condition: Expr
    then: Expr
    otherwise: Expr


class Apply(Node):
    """A call of a function of the closed library: `lower(text)`, `sorted(rows, key=…)`."""

    kind: Literal["apply"] = "apply"
    child_fields = ("args", "named")
    function: Name
    args: tuple[Expr, ...] = ()
    named: tuple[tuple[Name, Expr], ...] = ()

    @field_validator("function")
    @classmethod
    def _refuse_surface_words(cls, value: str) -> str:
        if value in SURFACE_WORDS:
            raise ValueError(f"{value!r} is not a function of the library")
        return value

    @field_validator("named")
    @classmethod
    def _require_unique_names(cls, value: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
        if len({name for name, _ in value}) < len(value):
            raise ValueError("an argument is named twice")
        return value


class Shown(Node):
    """A value inside formatted text, with Python's format spec."""

    kind: Literal["shown"] = "shown"
    child_fields = ("value",)
    value: Expr
    spec: Text = ""


class Format(Node):
    """Formatted text (an f-string): texts and values in turn."""

    kind: Literal["format"] = "format"
    child_fields = ("parts",)
    parts: tuple[Text | Shown, ...]

    @field_validator("parts")
    @classmethod
    def _canonical(cls, value: tuple[str | Shown, ...]) -> tuple[str | Shown, ...]:
        if not any(isinstance(part, Shown) for part in value):
            raise ValueError("formatted text without a value is written as a const")
        for part, after in zip(value, (*value[1:], None), strict=True):
            if part == "" or (isinstance(part, str) and isinstance(after, str)):
                raise ValueError("texts in formatted text are not empty and not adjacent")
        return value


class Clause(Node):
    """`for names in over if condition if condition`."""

    child_fields = ("over", "conditions")
    names: Annotated[tuple[Name, ...], Field(min_length=1)]
    over: Expr
    conditions: tuple[Expr, ...] = ()


class Comprehension(Node):
    """`[element for … ]`, or with a `key` a dict `{key: element for … }`."""

    kind: Literal["comprehension"] = "comprehension"
    child_fields = ("clauses", "key", "element")
    element: Expr
    key: Expr | None = None
    clauses: Annotated[tuple[Clause, ...], Field(min_length=1)]


class Lambda(Node):
    """A function of a few names, only as an argument of a library function such as `sorted`."""

    kind: Literal["lambda"] = "lambda"
    child_fields = ("body",)
    names: tuple[Name, ...]
    body: Expr


Expr = Annotated[
    Const
    | Ref
    | Reference
    | Get
    | Index
    | Slice
    | ListOf
    | TupleOf
    | DictOf
    | Arithmetic
    | Negative
    | Not
    | Logic
    | Compare
    | Choose
    | Apply
    | Format
    | Comprehension
    | Lambda,
    Field(discriminator="kind"),
]


def children(node: object) -> tuple[Any, ...]:
    """The expressions directly inside a node (of a step also the steps), in the order they are evaluated."""
    names = getattr(node, "child_fields", ())
    if not names:
        return ()
    found: list[Any] = []
    for name in names:
        _collect_nodes(getattr(node, name), found)
    return tuple(found)


def _collect_nodes(value: Any, found: list[Any]) -> None:
    # By exact type: isinstance is slow for pydantic models, and a plan's whole tree passes here.
    kind = cast("object", type(value))
    if kind is tuple or kind is dict:
        for each in value.values() if kind is dict else value:
            _collect_nodes(each, found)
    elif kind is Clause or kind is Shown:
        found.extend(children(value))
    elif value is not None and kind is not str:
        found.append(value)


def map_children(node: Any, change: Callable[[Any], Any]) -> Any:
    """The node with each of its `children` changed."""

    def changed(value: Any) -> Any:
        match value:
            case tuple():
                return tuple(map(changed, cast("tuple[Any, ...]", value)))
            case dict():
                return {name: changed(each) for name, each in cast("dict[str, Any]", value).items()}
            case Clause() | Shown():
                return map_children(value, change)
            case _:
                return change(value) if isinstance(value, Node) else value

    fields = node.child_fields
    return node.model_copy(update={name: changed(getattr(node, name)) for name in fields}) if fields else node


@memoize_by_identity
def free_names(expr: Any) -> frozenset[str]:
    """The variables that an expression reads and does not itself bind; of a step, those of all expressions in it."""
    return _find_free_names(expr)


def _find_free_names(expr: Any) -> frozenset[str]:
    match expr:
        case Ref(name=name):
            return frozenset({name})
        case Lambda(names=names, body=body):
            return _find_free_names(body) - set(names)
        case Comprehension():
            found: set[str] = set()
            bound: set[str] = set()
            for clause in expr.clauses:
                found |= _find_free_names(clause.over) - bound
                bound |= set(clause.names)
                for condition in clause.conditions:
                    found |= _find_free_names(condition) - bound
            for inner in (expr.element, expr.key):
                if inner is not None:
                    found |= _find_free_names(inner) - bound
            return frozenset(found)
        case _:
            return frozenset[str]().union(*(_find_free_names(child) for child in children(expr)))
