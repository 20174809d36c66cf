"""The state of parsing a plan: source text, syntax tree, pre-pass, and the lowering of calls into steps.

Sizes and nesting are bounded before anything recurses. The pre-pass says which names a plan uses and what in it becomes
a step. Calls inside expressions are lifted out as steps with fresh names. Types are those that `extract` and `ask`
take: `list[str]`, `{"payee": iban, "total": money}`, `date | None`.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from bicameral import types as t
from bicameral.errors import Place, PlanError, nearest_name
from bicameral.plans._expressions import SURFACE_WORDS, Const, Expr, Index, Ref, has_lone_surrogate
from bicameral.plans._plan import Compute, Step, too_deep_error
from bicameral.plans.evaluate._library import FUNCTIONS
from bicameral.tools import Registry

MAX_SOURCE_BYTES = 200_000
# Python's parser takes time that grows with the square of the values in an f-string.
MAX_BRACES = 10_000

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class PlanSource:
    """The text of a plan, which gives syntax nodes their places."""

    text: str
    file: str | None = None
    lines: list[str] = field(default_factory=list[str])

    @classmethod
    def from_text(cls, text: str, file: str | None = None) -> PlanSource:
        return cls(text, file, _LINE_END.split(text))

    def place(self, node: ast.AST) -> Place:
        """Where a node begins; columns count characters from 1."""
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        if not text.isascii():
            offset = len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore"))
        return Place(file=self.file, line=line, column=offset + 1)

    def error(self, node: ast.AST, code: str, message: str, **hints: str | None) -> PlanError:
        """A PlanError at a node; `hints` are `expected`, `nearest` and `fix`."""
        return PlanError(code, message, place=self.place(node), **hints)


def syntax_tree(source: PlanSource) -> ast.Module:
    """The syntax tree of a plan, or a PlanError with the place of the first error."""
    if len(source.text) > MAX_SOURCE_BYTES or len(source.text.encode("utf-8", "surrogatepass")) > MAX_SOURCE_BYTES:
        raise PlanError(
            "plan.too-long", "the text of the plan is too long", expected=f"at most {MAX_SOURCE_BYTES // 1000} KB"
        )
    if source.text.count("{") > MAX_BRACES:
        raise PlanError("plan.too-long", "the plan has too many braces", expected=f"at most {MAX_BRACES}")
    try:
        with warnings.catch_warnings():
            # Python warns about "\d" in a text; a plan may hold such a pattern.
            warnings.simplefilter("ignore")
            return ast.parse(source.text)
    except SyntaxError as error:
        raise _syntax_error(source, error) from None
    except (RecursionError, MemoryError):  # how Python's parser says that the text is nested too deep for it
        raise too_deep_error(Place(file=source.file)) from None
    except ValueError as error:  # null bytes, lone surrogates
        message = f"the text of the plan cannot be read: {error}"
        raise PlanError("plan.syntax", message, place=Place(file=source.file)) from None


def _syntax_error(source: PlanSource, error: SyntaxError) -> PlanError:
    place = Place(file=source.file, line=error.lineno or 1, column=max(error.offset or 1, 1))
    if error.msg.startswith("too many"):
        return too_deep_error(place)
    return PlanError("plan.syntax", f"the plan is not written as Python: {error.msg}", place=place)


STEP_WORDS = frozenset({"extract", "ask", "within"})
_NUMBERED_NAME = re.compile(r"\b_[0-9]+\b")


METHODS_ONLY = frozenset({"find"})
"""Functions of the library that are written as a method alone (`text.find("a")`), so that a tool may have the name."""


def is_step_call(node: ast.AST) -> bool:
    """Whether a node is a call that the plan makes as a step of its own."""
    if type(node) is not ast.Call or type(node.func) is not ast.Name:
        return False
    name = node.func.id
    if name in STEP_WORDS or name in METHODS_ONLY:
        return True
    return name not in FUNCTIONS and name not in SURFACE_WORDS


class Prepass:
    """Facts about a whole plan, each computed when it is first needed, since most plans need few of them."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self._tree = tree
        self._has_step: dict[ast.AST, bool] = {}
        self.numbered_names = frozenset(_NUMBERED_NAME.findall(text))
        """The names in the plan that look like fresh names, which must not be used again."""

    @cached_property
    def name_counts(self) -> Counter[str]:
        """How often the plan uses each name."""
        return Counter(node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name))

    def has_step(self, node: ast.AST) -> bool:
        """Whether a tool, `extract` or `ask` is called anywhere in a node."""
        known = self._has_step.get(node)
        if known is None:
            known = is_step_call(node) or any(map(self.has_step, _child_nodes(node)))
            self._has_step[node] = known
        return known


def _child_field_names(kind: type[ast.AST]) -> tuple[str, ...]:
    return tuple(field for field in kind._fields if field not in ("ctx", "op", "ops"))


# ast.iter_child_nodes takes three times as long, and also gives operators.
_CHILD_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: _child_field_names(kind)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


def _child_nodes(node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for name in _CHILD_FIELDS[type(node)]:
        value = getattr(node, name, None)
        if type(value) is list:
            found += [item for item in cast("list[object]", value) if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


NodeReader = Callable[["Lowering", Any], Expr]

MAX_SYNTAX_DEPTH = 80
"""Some forms take two levels of Python for one of a plan, so this bounds every plan that is not too deep."""

_PLAN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class Lowering:
    """Lowers syntax nodes to expressions and collects the steps that must run before them."""

    def __init__(
        self,
        source: PlanSource,
        survey: Prepass,
        registry: Registry | None,
        readers: Mapping[type[ast.expr], NodeReader],
    ) -> None:
        self.source = source
        self.error = source.error
        self.prepass = survey
        self.registry = registry
        self.steps: list[Step] = []
        self.places: dict[int, Place] = {}
        self.substitutions: dict[str, Expr] = {}
        self._readers = readers
        self._refs: dict[str, Ref] = {}
        self._fresh = 0
        self.depth = 0
        self.deepest = 0

    def lower_expression(self, node: ast.expr) -> Expr:
        """The expression of a node; calls of tools in it become steps before it."""
        reader = self._readers.get(type(node))
        if reader is None:
            raise self.refusal(node, f"{type(node).__name__!r}")
        self.enter(node)
        found = reader(self, node)
        self.depth -= 1
        return found

    def enter(self, node: ast.AST) -> None:
        """Go one level deeper; the caller goes back. Parsing ends with the first error, so errors need not go back."""
        self.depth += 1
        if self.depth > self.deepest:
            self.deepest = self.depth
            if self.depth > MAX_SYNTAX_DEPTH:
                raise too_deep_error(self.source.place(node))

    def lower_name(self, node: ast.Name) -> Expr:
        """The expression of a name here. Expressions are frozen, so equal references share one object."""
        if found := self.substitutions.get(node.id) or self._refs.get(node.id):
            return found
        self._refs[node.id] = reference = Ref(name=self.check_name(node, node.id))
        return reference

    def add_step(self, step: Step, node: ast.AST) -> None:
        self.steps.append(step)
        self.places[id(step)] = self.source.place(node)

    def fresh_name(self) -> str:
        """A name `_1`, `_2`, … that the plan does not use."""
        while True:
            self._fresh += 1
            if (name := f"_{self._fresh}") not in self.prepass.numbered_names:
                return name

    def needs_steps(self, *nodes: ast.AST | None) -> bool:
        return any(self.prepass.has_step(node) for node in nodes if node is not None)

    @contextmanager
    def collect_steps(self) -> Generator[list[Step]]:
        """Collect the steps written inside the `with` apart from those around it."""
        outer, self.steps = self.steps, []
        try:
            yield self.steps
        finally:
            self.steps = outer

    @contextmanager
    def substitute_names(self, renamed: Mapping[str, Expr], *, hidden: tuple[str, ...] = ()) -> Generator[None]:
        """Read names as other expressions inside the `with`; `hidden` names mean themselves again."""
        outer = self.substitutions
        self.substitutions = {name: expr for name, expr in outer.items() if name not in hidden} | dict(renamed)
        try:
            yield
        finally:
            self.substitutions = outer

    def check_name(self, node: ast.AST, name: str) -> str:
        """The name itself, if a plan may use it."""
        if not _PLAN_NAME.fullmatch(name):
            raise self.error(
                node, "plan.bad-name", f"{name!r} cannot be a name", expected="up to 64 of A-Z, a-z, 0-9 and _"
            )
        return name

    def check_text(self, node: ast.AST, text: str) -> str:
        """The text itself, unless it has a lone surrogate, which has no bytes."""
        if has_lone_surrogate(text):
            raise self.error(node, "plan.bad-text", "the text has half a character (a lone surrogate)")
        return text

    def refusal(self, node: ast.AST, what: str, fix: str | None = None) -> PlanError:
        return self.error(node, "plan.not-in-language", f"a plan cannot use {what}", fix=fix)


@dataclass(frozen=True, slots=True)
class AssignmentTarget:
    """The names that a loop or an assignment binds, and for each nested name its part of one of them."""

    names: tuple[str, ...]
    parts: dict[str, Expr]

    def unpack(self, lowering: Lowering, node: ast.AST) -> None:
        """Write the steps that give the nested names their values."""
        for name, value in self.parts.items():
            lowering.add_step(Compute(name=name, value=value), node)


def loop_target(lowering: Lowering, node: ast.expr) -> AssignmentTarget:
    """The names of `for a, (b, c) in …`: `b` and `c` are parts of a fresh name."""
    if isinstance(node, ast.Name):
        return AssignmentTarget((lowering.check_name(node, node.id),), {})
    if not isinstance(node, ast.Tuple | ast.List) or len(node.elts) < 2:
        raise lowering.refusal(node, "this as the name of a loop", "Write `for name in list:`.")
    names: list[str] = []
    parts: dict[str, Expr] = {}
    for item in node.elts:
        if isinstance(item, ast.Name):
            names.append(lowering.check_name(item, item.id))
        else:
            names.append(lowering.fresh_name())
            parts |= target_parts(lowering, item, Ref(name=names[-1]))
    return AssignmentTarget(tuple(names), parts)


def target_parts(lowering: Lowering, node: ast.expr, whole: Expr) -> dict[str, Expr]:
    """Each name in a nested target, with the part of `whole` that it stands for."""
    match node:
        case ast.Name(id=name):
            return {lowering.check_name(node, name): whole}
        case ast.Tuple(elts=items) | ast.List(elts=items):
            parts: dict[str, Expr] = {}
            for number, item in enumerate(items):
                parts |= target_parts(lowering, item, Index(value=whole, at=Const(value=number)))
            return parts
        case ast.Starred():
            raise lowering.refusal(node, "`*` in a target", "Use a slice: `rest = xs[1:]`.")
        case _:
            raise lowering.refusal(node, "this as a target", "Assign to a name.")


_PLAIN_TYPES: dict[str, t.Type] = {
    **{name: t.type_from_json(name) for name in "str int float bool date time datetime timedelta None Any".split()},
    "list": t.ListType(t.ANY),
    "dict": t.DictType(t.ANY),
}
_NAMED_TYPES: dict[str, t.Type] = {
    **_PLAIN_TYPES,
    "number": t.NUMBER,
    "money": t.MONEY,
    **{name: t.StrType(name) for name in t.FORMATS},
}
_EXPECTED_TYPE = 'a type such as str, int, date, email, list[str], {"name": str} or str | None'
MAX_QUOTED_TYPE = 2_000


def read_type(lowering: Lowering, node: ast.expr) -> t.Type:
    """The type that a node writes."""
    lowering.enter(node)
    found = _read_type_node(lowering, node)
    lowering.depth -= 1
    return found


def _read_type_node(lowering: Lowering, node: ast.expr) -> t.Type:
    match node:
        case ast.Name(id=name) if name in _NAMED_TYPES:
            return _NAMED_TYPES[name]
        case ast.Attribute(attr=name) if name in _PLAIN_TYPES:  # datetime.date
            return _PLAIN_TYPES[name]
        case ast.Constant(value=None):
            return t.NULL
        case ast.Constant(value=str() as text):
            return _read_quoted_type(lowering, node, text)
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            return _read_generic_type(lowering, node, name, inner)
        case ast.BinOp(op=ast.BitOr()):
            return _read_union_type(lowering, node)
        case ast.Dict(keys=keys, values=values):
            return _read_record_type(lowering, node, keys, values)
        case ast.List(elts=[item]):
            return t.ListType(read_type(lowering, item))
        case ast.Name(id=name):
            raise _unknown_type_error(lowering, node, name)
        case _:
            raise _bad_type_error(lowering, node)


def _unknown_type_error(lowering: Lowering, node: ast.AST, name: str) -> PlanError:
    near = nearest_name(name, _NAMED_TYPES)
    return lowering.error(node, "plan.bad-type", f"{name!r} is not a type", expected=_EXPECTED_TYPE, nearest=near)


def _bad_type_error(
    lowering: Lowering, node: ast.AST, message: str = "this is not a type", fix: str | None = None
) -> Exception:
    return lowering.error(node, "plan.bad-type", message, expected=_EXPECTED_TYPE, fix=fix)


def _read_quoted_type(lowering: Lowering, node: ast.expr, text: str) -> t.Type:
    if text in _NAMED_TYPES:
        return _NAMED_TYPES[text]
    if len(text) > MAX_QUOTED_TYPE:
        raise _bad_type_error(lowering, node)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inner = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _bad_type_error(lowering, node, f"{text!r} is not a type") from None
    if isinstance(inner, ast.Constant | ast.Name):  # a quoted quote would never end; a name was looked up above
        raise _unknown_type_error(lowering, node, text)
    for part in ast.walk(inner):
        ast.copy_location(part, node)
    return read_type(lowering, inner)


def _read_generic_type(lowering: Lowering, node: ast.expr, name: str, inner: ast.expr) -> t.Type:
    items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    match name, items:
        case (("list" | "List"), [item]):
            return t.ListType(read_type(lowering, item))
        case (("dict" | "Dict"), [ast.Name(id="str") | ast.Constant(value="str"), value]):
            return t.DictType(read_type(lowering, value))
        case (("dict" | "Dict"), [_, _]):
            raise _bad_type_error(lowering, node, "the keys of a dict are text", "Write dict[str, …].")
        case "Optional", [item]:
            return t.optional_type(read_type(lowering, item))
        case (("tuple" | "Tuple"), [item, ast.Constant(value=end)]) if end is ...:
            return t.ListType(read_type(lowering, item))
        case (("tuple" | "Tuple"), _):
            return t.TupleType(tuple(read_type(lowering, item) for item in items))
        case "Literal", [_, *_]:
            return t.LiteralType(tuple(_read_text_literal(lowering, item) for item in items))
        case "str", [item]:
            return t.StrType(_read_text_literal(lowering, item))
        case _:
            raise _bad_type_error(lowering, node)


def _read_union_type(lowering: Lowering, node: ast.BinOp) -> t.Type:
    left, right = read_type(lowering, node.left), read_type(lowering, node.right)
    if right == t.NULL:
        return t.optional_type(left)
    if left == t.NULL:
        return t.optional_type(right)
    raise _bad_type_error(lowering, node, "a value has one type or none", "Write `T | None`.")


def _read_record_type(
    lowering: Lowering, node: ast.expr, keys: list[ast.expr | None], values: list[ast.expr]
) -> t.Type:
    names = [_read_text_literal(lowering, key or node) for key in keys]
    if len(set(names)) < len(names):
        raise _bad_type_error(lowering, node, "a record has two fields of the same name")
    return t.RecordType(tuple(t.Field(name, read_type(lowering, v)) for name, v in zip(names, values, strict=True)))


def _read_text_literal(lowering: Lowering, node: ast.expr) -> str:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        raise _bad_type_error(lowering, node, "only a text in quotes can stand here")
    return lowering.check_text(node, node.value)
