"""Python for a stack: a module with `build()`, typed, in which everything that the stack does not say is a parameter.

The linter comes first: a stack with errors is refused. What the module builds describes itself as the same stack.
"""

from __future__ import annotations

import ast
import keyword
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from importlib import import_module
from itertools import pairwise
from typing import Any, cast, get_args, get_origin

from bicameral.catalog.facts import catalog
from bicameral.catalog.lint import LintReport, lint
from bicameral.catalog.stacks import Stack, runtime_guarantees
from bicameral.errors import CatalogError
from bicameral.patterns._arrangement import BuildNode, Slot, arrange_stack
from bicameral.patterns.kernel import Labelled, Pattern
from bicameral.patterns.orchestration.chain import Chain

WIDTH = 120
_INDENT = "    "


def lint_for_build(stack: Stack) -> LintReport:
    """The findings on a stack as it runs here, whatever runtime it names."""
    return lint(replace(stack, runtime="bicameral"))


def stack_to_python(stack: Stack) -> str:
    """The source of a module whose `build` makes the pattern that a stack describes.

    Raises `stack.refused` if the linter finds errors in it, `stack.no-place` for a pattern that is nowhere inside of
    another, and `stack.types-differ` for a step that cannot read what the one before gives.

    Example:
        >>> print(stack_to_python(stack_of(ReWOO() | OutputTemplate.of(City))))
    """
    if not (report := lint_for_build(stack)).ok:
        first, *more = report.of_severity("error")
        raise CatalogError(
            "stack.refused",
            f"the linter finds {1 + len(more)} error{'s' if more else ''}; the first: {first.message}",
            place=first.place,
            fix=first.fix,
        )
    root = arrange_stack(stack)
    _check_steps(stack, root)
    return _Module(stack).source(root)


# Types between steps ------------------------------------------------------------------------------------------------


def _check_steps(stack: Stack, node: BuildNode) -> None:
    """Every step of a chain can read what the one before it gives."""
    inner = [each for _, each in node.inner if each is not None]
    for each in inner:
        _check_steps(stack, each)
    if node.id != Chain.id:
        return
    for before, after in pairwise(inner):
        gives = _result_type(before)
        if _takes_text(after) and gives is not str and gives is not Any:
            raise CatalogError(
                "stack.types-differ",
                f"{after.id} reads a text, and {before.id} before it gives none",
                place=stack.place(()),
                expected="a step that gives a text",
                fix=f"Let {before.id} be the last step, or put a step between them that makes a text of it.",
            )


def _result_type(node: BuildNode) -> Any:
    """What a pattern gives: the type in its class, or that of what is inside of it."""
    found = _pattern_arguments(node)[1]
    if type(found).__name__ != "TypeVar":
        return found
    inner = [each for _, each in node.inner if each is not None]
    return _result_type(inner[-1]) if inner else Any


def _takes_text(node: BuildNode) -> bool:
    """Whether it is given one labelled text."""
    given = _pattern_arguments(node)[0]
    if type(given).__name__ == "ParamSpec":
        inner = [each for _, each in node.inner if each is not None]
        return bool(inner) and _takes_text(inner[0])
    listed = cast("Sequence[Any]", given) if isinstance(given, list | tuple) else ()
    accepted = [each for first in listed[:1] for each in (get_args(first) if _is_union(first) else (first,))]
    return len(listed) == 1 and Labelled[str] in accepted


def _is_union(hint: Any) -> bool:
    return get_origin(hint) is not None and get_origin(hint) is not Labelled


def _pattern_arguments(node: BuildNode) -> tuple[Any, Any]:
    for base in getattr(node.kind, "__orig_bases__", ()):
        if get_origin(base) is Pattern:
            given, result = get_args(base)
            return given, result
    return (), Any


# The module ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    annotation: str
    about: str
    default: str = ""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call in the source; it is broken over lines where it is too long for one."""

    name: str
    arguments: tuple[tuple[str, _Expression], ...]
    brackets: str = "()"

    def inline(self) -> str:
        inside = ", ".join(f"{key}{_inline(value)}" for key, value in self.arguments)
        only = "," if self.brackets == "()" and not self.name and len(self.arguments) == 1 else ""
        return f"{self.name}{self.brackets[0]}{inside}{only}{self.brackets[1]}"

    def lines(self, indent: str, before: str = "", after: str = "") -> Iterator[str]:
        if len(indent) + len(before) + len(self.inline()) + len(after) <= WIDTH or not self.arguments:
            yield f"{indent}{before}{self.inline()}{after}"
            return
        yield f"{indent}{before}{self.name}{self.brackets[0]}"
        for key, value in self.arguments:
            if isinstance(value, _Call):
                yield from value.lines(indent + _INDENT, key, ",")
            else:
                yield f"{indent}{_INDENT}{key}{value},"
        yield f"{indent}{self.brackets[1]}{after}"


_Expression = str | _Call


def _inline(value: _Expression) -> str:
    return value if isinstance(value, str) else value.inline()


@dataclass(slots=True)
class _Module:
    """The module while it is written: its imports, and the parameters of `build`."""

    stack: Stack
    imports: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    parameters: dict[str, _Parameter] = field(default_factory=dict[str, _Parameter])

    def source(self, root: BuildNode) -> str:
        returned = self._pattern(root)
        text = _takes_text(root)
        for module, name in (
            ("typing", "Any"),
            ("bicameral.patterns", "Pattern"),
            *((("bicameral.patterns", "Labelled"),) * text),
        ):
            self.imports.setdefault(module, set()).add(name)
        result = f"Pattern[{'[Labelled[str]]' if text else '...'}, Any]"
        lines = [*self._head(root), "", "from __future__ import annotations", "", *self._import_lines(), "", ""]
        lines += [*self._signature(result), *self._documentation()]
        body = [f"{_INDENT}return {returned}"]
        if isinstance(returned, _Call):
            body = list(returned.lines(_INDENT, "return "))
        return "\n".join([*lines, *body]) + "\n"

    def _head(self, root: BuildNode) -> Iterator[str]:
        """The docstring. The name of a stack is a text of its file, and no code."""
        name = " ".join(re.sub(r"[^\w .,:()+-]", " ", self.stack.name, flags=re.ASCII).split()) or "A stack"
        brought = [id for id in root.brought if id in runtime_guarantees()]
        part = [id for id in root.brought if id not in brought]
        facts = [f"The runtime brings {', '.join(brought)}."] * bool(brought)
        facts += [f"{', '.join(part)} is part of the pattern that calls the tools."] * bool(part)
        first = f'"""{name}, made from its stack by `bicameral build`.'
        if not facts:
            yield f'{first}"""'
            return
        yield from (first, "", *facts, '"""')

    def _import_lines(self) -> Iterator[str]:
        own = {module: names for module, names in self.imports.items() if module.startswith("bicameral")}
        others = {module: names for module, names in self.imports.items() if module not in own}
        for number, group in enumerate(each for each in (others, own) if each):
            if number:
                yield ""
            for module in sorted(group):
                names = sorted(group[module], key=lambda name: (not name.isupper(), name))
                line = f"from {module} import {', '.join(names)}"
                if len(line) <= WIDTH:
                    yield line
                else:
                    yield from (f"from {module} import (", *(f"{_INDENT}{name}," for name in names), ")")

    def _signature(self, result: str) -> Iterator[str]:
        required = [each for each in self.parameters.values() if not each.default]
        ordered = [*required, *(each for each in self.parameters.values() if each.default)]
        shown = [f"{each.name}: {each.annotation}{f' = {each.default}' if each.default else ''}" for each in ordered]
        whole = f"def build({'*, ' if shown else ''}{', '.join(shown)}) -> {result}:"
        if len(whole) <= WIDTH:
            yield whole
            return
        yield "def build("
        yield f"{_INDENT}*,"
        yield from (f"{_INDENT}{each}," for each in shown)
        yield f") -> {result}:"

    def _documentation(self) -> Iterator[str]:
        if not self.parameters:
            yield f'{_INDENT}"""The pattern, ready to run."""'
            return
        yield f'{_INDENT}"""The pattern, ready to run.'
        yield ""
        yield f"{_INDENT}Args:"
        yield from (f"{_INDENT * 2}{each.name}: {each.about}" for each in self.parameters.values())
        yield f'{_INDENT}"""'

    # Expressions ----------------------------------------------------------------------------------------------------

    def _pattern(self, node: BuildNode) -> _Expression:
        """The call that makes a pattern."""
        slot = node.slot
        arguments: list[tuple[str, _Expression]] = []
        if node.id == Chain.id:
            return self._chain(node)
        for each in fields(cast("Any", node.kind)):
            if slot is not None and each.name == slot.name and node.inner:
                arguments.append((f"{each.name}=", self._slot(node, slot)))
            elif each.name in node.knobs:
                if node.knobs[each.name] != each.default:
                    arguments.append((f"{each.name}=", _literal(node.knobs[each.name])))
            elif not _has_default(each):
                arguments.append((f"{each.name}=", self._parameter(node, each)))
        self._import_class(node.kind)
        return _Call(node.kind.__name__, tuple(arguments))

    def _chain(self, node: BuildNode) -> _Expression:
        """Steps with bars between them, whose types a checker compares; with other retries, the class."""
        steps = [self._pattern(each) for _, each in node.inner if each is not None]
        retries = node.knobs.get("max_retries", Chain.max_retries)
        if len(steps) == len(node.inner) >= 2 and retries == Chain.max_retries:
            inline = " | ".join(map(_inline, steps))
            if len(inline) <= WIDTH - len(f"{_INDENT}return "):
                return inline
        self.imports.setdefault(Chain.__module__, set()).add("Chain")
        listed = _Call("", tuple(("", each) for each in steps))
        more: tuple[tuple[str, _Expression], ...] = ()
        if retries != Chain.max_retries:
            more = (("max_retries=", _literal(retries)),)
        return _Call("Chain", (("", listed), *more))

    def _slot(self, node: BuildNode, slot: Slot) -> _Expression:
        names = _unique_names(node)
        values = [
            self._role(name, node) if each is None else self._pattern(each)
            for name, (_, each) in zip(names, node.inner, strict=True)
        ]
        match slot.kind:
            case "one":
                return values[0]
            case "sequence":
                return _Call("", tuple(("", each) for each in values))
            case "mapping":
                return _Call(
                    "", tuple((f"{_literal(name)}: ", each) for name, each in zip(names, values, strict=True)), "{}"
                )
            case "records":
                roles = [each is None for _, each in node.inner]
                named = zip(names, values, roles, strict=True)
                records = [self._record(slot, name, each, is_role=is_role) for name, each, is_role in named]
                return _Call("", tuple(("", each) for each in records))

    def _record(self, slot: Slot, name: str, value: _Expression, *, is_role: bool) -> _Expression:
        """A record around a pattern: its name is known, and what has no default is a parameter.

        So are the tools of a pattern: without any it could only think.
        """
        assert slot.record is not None
        self._import_class(slot.record)
        arguments: list[tuple[str, _Expression]] = []
        for each in fields(slot.record):
            if each.name == slot.by:
                arguments.append((f"{each.name}=", value))
            elif each.name == "name":
                arguments.append(("name=", _literal(name)))
            elif not _has_default(each) or (each.name == "tools" and not is_role):
                about = f"{each.name} of this {slot.record.__name__}"
                default = "()" if each.name == "tools" else ""
                annotation = self._annotation(slot.record, each)
                parameter = self._add_parameter(f"{name}_{each.name}", annotation, about, default)
                arguments.append((f"{each.name}=", parameter))
        return _Call(slot.record.__name__, tuple(arguments))

    def _role(self, name: str, node: BuildNode) -> str:
        self.imports.setdefault("bicameral.patterns", set()).add("Role")
        return self._add_parameter(name, "Role", f"the role that is asked once inside of {node.id}")

    def _parameter(self, node: BuildNode, each: Field[Any]) -> str:
        return self._add_parameter(
            each.name,
            self._annotation(node.kind, each),
            f"{each.name} of {node.id} ({catalog().pattern(node.id).name})",
        )

    def _add_parameter(self, wanted: str, annotation: str, about: str, default: str = "") -> str:
        # ASCII alone: a name of a stack must not look like another in the source.
        base = re.sub(r"\W+", "_", wanted.lower(), flags=re.ASCII).strip("_") or "part"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"the_{base}"
        name, number = base, 1
        while name in self.parameters:
            number += 1
            name = f"{base}_{number}"
        self.parameters[name] = _Parameter(name, annotation, about, default)
        return name

    def _import_class(self, kind: type[Any]) -> None:
        module = _public_module(kind.__name__, kind, kind.__module__)
        if module is None:
            raise AssertionError(f"{kind.__name__} is nowhere public")
        self.imports.setdefault(module, set()).add(kind.__name__)

    def _annotation(self, kind: type[Any], each: Field[Any]) -> str:
        """The type of a field as its class writes it, with all names in it imported; `Any` if one is private."""
        home = vars(sys.modules[kind.__module__])
        text = each.type if isinstance(each.type, str) else "Any"
        needed: dict[str, str] = {}
        for node in ast.walk(ast.parse(text, mode="eval")):
            if isinstance(node, ast.Name) and node.id not in _BUILTINS:
                module = _public_module(node.id, home.get(node.id), kind.__module__)
                if module is None:
                    text, needed = "Any", {"Any": "typing"}
                    break
                needed[node.id] = module
        for name, module in needed.items():
            self.imports.setdefault(module, set()).add(name)
        return text


_BUILTINS = frozenset(
    {"str", "int", "float", "bool", "bytes", "dict", "list", "tuple", "set", "frozenset", "type", "None"}
)
_PUBLIC_MODULES = (
    "typing",
    "collections.abc",
    "pathlib",
    "bicameral.patterns",
    "bicameral.patterns.kernel",
    "bicameral.types",
    "bicameral.labels",
    "bicameral.tools",
    "bicameral.limits",
    "bicameral.models",
    "bicameral.retrieval",
)


def _public_module(name: str, value: object, home: str) -> str | None:
    """The public module that exports this object under this name; the one that it is written in comes last."""
    if name.startswith("_"):
        return None
    for module in (*_PUBLIC_MODULES, home):
        if any(part.startswith("_") for part in module.split(".")):
            continue
        found = getattr(import_module(module), name, None)
        # A name that is imported for type checkers only has no value there.
        if found is not None and (found is value or value is None):
            return module
    return None


def _has_default(each: Field[Any]) -> bool:
    return each.default is not MISSING or each.default_factory is not MISSING


def _unique_names(node: BuildNode) -> list[str]:
    """A name for each part or worker; those that the stack does not name are numbered."""
    found: list[str] = []
    for number, (given, _) in enumerate(node.inner, 1):
        name = given or f"{'worker' if node.slot and node.slot.kind == 'records' else 'part'}_{number}"
        found.append(name if name not in found else f"{name}_{number}")
    return found


def _literal(value: object) -> str:
    """A value of a stack as Python. Only plain values are in a stack, so that no text of it becomes code."""
    if isinstance(value, list | tuple):
        items = [_literal(each) for each in cast("Sequence[object]", value)]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if isinstance(value, str):
        # Escaped: characters that change the direction of text would hide what the source says.
        return ascii(value) if {"'", '"', "\\"} & {*value} else f'"{ascii(value)[1:-1]}"'
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    raise CatalogError("stack.bad-value", f"{type(value).__name__} cannot stand here", expected="a plain value")
