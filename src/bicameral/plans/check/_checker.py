"""The check before a run: every tool, argument, name and type holds, the plan answers, and its cost is bounded.

Steps are checked one after the other; a loop is checked until what is known at the start of a turn no longer changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from bicameral import types as t
from bicameral.errors import Place, PlanError, nearest_name
from bicameral.plans import _plan as ps
from bicameral.plans._expressions import Const, ListOf, Ref, Reference
from bicameral.plans._type_rules import is_compatible, item_type, limit_size, merge, replace_bottom
from bicameral.plans.check._inference import Inference
from bicameral.plans.check._operation_types import a_type, conversion, excerpt, infer_arithmetic, type_text
from bicameral.plans.check._report import Finding, PlanLimits, Report, assigned_names, estimate_cost, list_effects
from bicameral.plans.check._scope import Scope
from bicameral.plans.evaluate._library import FUNCTIONS, dict_value_type
from bicameral.tools import Registry, Tool

_MAX_PRECISE_LOOPS = 3
"""Loops nested deeper are checked once, with nothing assumed about what they change: checking each level twice would
take time exponential in the depth."""


class StepChecker(Inference):
    """Checks steps one after the other; `findings` holds what is wrong with them."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._registry = registry
        self._step_depth = 0
        self._loops = 0

    def check_block(self, steps: tuple[Any, ...], scope: Scope, at: str = "") -> Scope:
        for number, step in enumerate(steps):
            if scope.ended:
                self.path = f"{at}{number}"
                self.add_finding("warning", "plan.unreachable", "this is never done: the answer is given before it")
                break
            scope = self.check_step(step, scope, f"{at}{number}")
        return scope

    def check_step(self, step: Any, scope: Scope, path: str) -> Scope:
        self.path = path
        if self._step_depth > ps.MAX_DEPTH:
            self.add_error("plan.too-deep", "the steps are nested too deep")
            return scope
        self._step_depth += 1
        try:
            return self._check_step_kind(step, scope, path)
        finally:
            self._step_depth -= 1

    def _check_step_kind(self, step: Any, scope: Scope, path: str) -> Scope:
        match step:
            case ps.Call():
                return self._check_call(step, scope)
            case ps.Extract(name=name):
                source = self.infer(step.source, scope)
                if isinstance(source, t.NullType):
                    self.wrong_type("extract has nothing to read: its source is None")
                self.require_text(step.instruction, self.infer(step.instruction, scope), "the instruction of extract")
                return scope.bind(name, step.result_type)
            case ps.Ask(name=name):
                self.require_text(step.question, self.infer(step.question, scope), "the question of ask")
                return scope.bind(name, step.result_type)
            case ps.Compute(name=name, value=value):
                return scope.bind(name, self.infer(value, scope))
            case ps.Update():
                return self._check_update(step, scope)
            case ps.Answer(value=value):
                self.infer(value, scope)
                return scope.with_answer()
            case ps.When():
                return self._check_when(step, scope, path)
            case ps.Each():
                return self._check_each(step, scope, path)
            case _:
                return scope

    def _check_update(self, step: ps.Update, scope: Scope) -> Scope:
        """The scope after an update. The items of a list that began as `[]` get their type here."""
        value = self.infer(step.value, scope)
        key = None if step.key is None else self.infer_not_none(step.key, scope)
        variable = scope.get(step.name)
        if variable is None or variable.maybe_unbound:
            begin = {"append": "[]", "add": "0", "put": "{}"}[step.op]
            self.add_error(
                "plan.unknown-name" if variable is None else "plan.maybe-unbound",
                f"`{step.name}` has no value yet",
                nearest=nearest_name(step.name, scope) if variable is None else None,
                fix=f"Begin with `{step.name} = {begin}`.",
            )
            return scope.bind(step.name, t.ANY)
        current = self.require_not_none(Ref(name=step.name), variable.type)
        if self.expression_types is not None:
            self.expression_types[id(step)] = current
        if isinstance(current, t.AnyType):
            return scope.bind(step.name, t.ANY)
        match step.op:
            case "append":
                after = self._append_type(step, current, value)
            case "add":
                left = (Ref(name=step.name), current)
                after = infer_arithmetic(self, "+", left, (step.value, self.require_not_none(step.value, value)))
            case "put":
                after = self._put_type(step, current, key or t.ANY, value)
        return scope.bind(step.name, limit_size(after))

    def _append_type(self, step: ps.Update, current: t.Type, value: t.Type) -> t.Type:
        if not isinstance(current, t.ListType | t.TupleType):
            fix = f"Begin with `{step.name} = []`."
            return self.add_error("plan.not-a-list", f"cannot append: `{step.name}` is {a_type(current)}", fix=fix)
        item = item_type(current)
        found = merge(item, value)
        if found is None:
            self.wrong_type(
                f"`{step.name}` is {a_type(current)}; cannot append {a_type(value)}",
                fix=conversion(step.value, value, item),
            )
        return t.ListType(t.ANY if found is None else found)

    def _put_type(self, step: ps.Update, current: t.Type, key: t.Type, value: t.Type) -> t.Type:
        match current:
            case t.ListType() | t.TupleType():
                if not isinstance(key, t.AnyType | t.IntType | t.BoolType):
                    self.wrong_type(
                        f"`{step.name}` is a list; its positions are ints, not {type_text(key)}",
                        fix=conversion(step.key, key, t.INT) if step.key is not None else None,
                    )
                return t.ListType(merge(item_type(current), value) or t.ANY)
            case t.RecordType() if isinstance(step.key, Const) and isinstance(step.key.value, str):
                name = step.key.value
                others = tuple(field for field in current.fields if field.name != name)
                return t.RecordType((*others, t.Field(name, value)))
            case t.RecordType() | t.DictType():
                self.require_text(step.key, key, f"a key of `{step.name}`")
                known = dict_value_type(current)
                return t.DictType(merge(known, value) or t.ANY)
            case _:
                fix = f"Begin with `{step.name} = {{}}`."
                return self.wrong_type(f"`{step.name}` is {a_type(current)}, not a dict", fix=fix)

    def _check_when(self, step: ps.When, scope: Scope, path: str) -> Scope:
        self.infer(step.condition, scope)
        then = self.check_block(step.steps, scope.narrow(step.condition, holds=True), f"{path}/then/")
        otherwise = self.check_block(step.otherwise, scope.narrow(step.condition, holds=False), f"{path}/else/")
        return then.merge(otherwise)

    def _check_each(self, step: ps.Each, scope: Scope, path: str) -> Scope:
        item = self.iteration_type(step.over, self.infer(step.over, scope))
        changed = assigned_names(step.steps) | frozenset(step.names)
        scope = scope.forget_tests(changed)
        self._loops += 1
        try:
            return self._check_until_stable(step, scope, item, path) or self._check_turn(
                step, scope.with_unknown_types(changed), item, path, scope
            )
        finally:
            self._loops -= 1

    def _check_until_stable(self, step: ps.Each, scope: Scope, item: t.Type, path: str) -> Scope | None:
        """The scope after the loop, or None if its types do not settle within a few turns."""
        if self._loops > _MAX_PRECISE_LOOPS:
            return None
        before, start = self.findings, scope
        for _ in range(_MAX_PRECISE_LOOPS):
            # A turn may change what the next one begins with: repeat until the types no longer change.
            self.findings = list(before)
            after = self._check_turn(step, start, item, path, scope)
            if all(after.variables[name].type == start.variables[name].type for name in scope):
                return after
            start = scope.with_types({name: after.variables[name].type for name in scope})
        self.findings = list(before)
        return None

    def _check_turn(self, step: ps.Each, start: Scope, item: t.Type, path: str, before: Scope) -> Scope:
        """The scope after no turn or one turn that began with `start`."""
        self.path = path
        inside = self.bind_loop_names(step.names, item, start)
        return before.merge(self.check_block(step.steps, inside, f"{path}/"))

    def _check_call(self, step: ps.Call, scope: Scope) -> Scope:
        types = {name: self.infer(value, scope) for name, value in step.args.items()}
        tool = self._registry.get(step.tool)
        if tool is None:
            self._report_unknown_tool(step)
            return scope if step.name is None else scope.bind(step.name, t.ANY)
        self._check_arguments(tool, step, types)
        self._add_argument_references(tool, step, types)
        self._check_target(tool, step)
        if step.name is None:
            return scope
        void = tool.name if isinstance(tool.result, t.NullType) else None
        return scope.bind(step.name, tool.refined_result(types, literal_arguments(step.args)), void_of=void)

    def _add_argument_references(self, tool: Tool, step: ps.Call, types: Mapping[str, t.Type]) -> None:
        """Note the columns that arguments name, and the cells that are compared with one of them."""
        for argument in tool.arguments:
            rows = types.get(argument.field_of) if argument.field_of else None
            if isinstance(rows, t.ListType) and argument.name in step.args:
                self.add_column_references(step.args[argument.name], rows.item)
            elif not argument.field_of and argument.name in step.args:
                given = step.args[argument.name]
                for each in given.items if isinstance(given, ListOf) else (given,):
                    if isinstance(each, Reference) and each.refers != "value":
                        self.add_reference(each, tool=tool.name)
        columns = [literal_value(step.args.get(each.name)) for each in tool.arguments if each.field_of]
        if len(columns) == 1 and isinstance(columns[0], str):
            for expr in step.args.values():
                if isinstance(expr, Reference) and expr.refers == "value":
                    self.add_reference(expr, column=columns[0], tool=tool.name)

    def _check_target(self, tool: Tool, step: ps.Call) -> None:
        """Refuse a write to a protected file before the run, where the plan names the file."""
        target = tool.write_target(literal_arguments(step.args))
        if target is not None and target.protected is not None:
            self.add_error("tools.protected", target.protected, fix="Choose another name or folder.")

    def _report_unknown_tool(self, step: ps.Call) -> None:
        if step.tool in FUNCTIONS:
            self.add_error(
                "plan.unknown-tool", f"{step.tool!r} is a library function, not a tool", fix="Use it in an expression."
            )
            return
        known = (*self._registry.names, *FUNCTIONS)
        self.add_error("plan.unknown-tool", f"there is no tool {step.tool!r}", nearest=nearest_name(step.tool, known))

    def _check_arguments(self, tool: Tool, step: ps.Call, types: dict[str, t.Type]) -> None:
        known = {argument.name: argument for argument in tool.arguments}
        for name, type_ in types.items():
            if name not in known:
                self.add_error(
                    "plan.unknown-argument",
                    f"{tool.name}() has no argument {name!r}",
                    nearest=nearest_name(name, known),
                    expected=tool.signature,
                )
                continue
            self._check_argument(tool, name, step.args[name], type_, known[name].type)
            if table := known[name].field_of:
                self._check_columns(step.args[name], types.get(table))
            elif isinstance(known[name].type, t.AnyType):
                self._check_not_a_column(tool, step.args[name], types)
        for argument in tool.arguments:
            if argument.required and argument.name not in step.args:
                self.add_error(
                    "plan.missing-argument", f"{tool.name}() needs {argument.name!r}", expected=tool.signature
                )

    def _check_not_a_column(self, tool: Tool, expr: Any, types: dict[str, t.Type]) -> None:
        """Refuse the name of a column where a value is wanted: it would be compared as a text."""
        tables = {argument.field_of for argument in tool.arguments if argument.field_of}
        row = next((each.item for name, each in types.items() if name in tables and isinstance(each, t.ListType)), None)
        if isinstance(row, t.RecordType) and isinstance(expr, Const) and expr.value in row.names:
            self.add_error(
                "plan.column-as-text",
                f"{expr.value!r} is the name of a column, and {tool.name}() would compare with that word",
                fix='Compare two columns with [row for row in rows if row["a"] < row["b"]].',
            )

    def _check_columns(self, expr: Any, rows: t.Type | None) -> None:
        """Refuse columns that the table does not have, where its columns are known."""
        row = rows.item if isinstance(rows, t.ListType) else None
        if not isinstance(row, t.RecordType):
            return
        named = literal_value(expr)
        for name in cast("list[object]", named) if isinstance(named, list) else [named]:
            if isinstance(name, str) and name not in row.names:
                self.add_error(
                    "plan.unknown-column",
                    f"the table has no column {name!r}",
                    nearest=nearest_name(name, row.names),
                    expected=" or ".join(map(repr, row.names)),
                )

    def _check_argument(self, tool: Tool, name: str, expr: Any, given: t.Type, wanted: t.Type) -> None:
        if is_compatible(given, wanted):
            return
        if isinstance(given, t.OptionalType) and is_compatible(given.item, wanted):
            self.require_not_none(expr, given)
            return
        if isinstance(wanted, t.LiteralType) and isinstance(expr, Const) and isinstance(expr.value, str):
            self.wrong_type(
                f"{name!r} of {tool.name}() cannot be {expr.value!r}",
                expected=" or ".join(map(repr, wanted.values)),
                nearest=nearest_name(expr.value, wanted.values),
            )
            return
        self.wrong_type(
            f"{name!r} of {tool.name}() must be {a_type(wanted)}; `{excerpt(expr)}` is {a_type(given)}",
            fix=conversion(expr, given, wanted, name),
        )


def check_step(step: Any, scope: Scope, registry: Registry, path: str = "") -> tuple[list[Finding], Scope]:
    """What is wrong with one step (and the steps in it), and what is known after it."""
    checker = StepChecker(registry)
    after = checker.check_step(step, scope, path)
    return checker.findings, after


def literal_value(expr: Any) -> Any:
    """The value of a literal or of a list of literals; None stands for everything that is not one."""
    match expr:
        case Const(value=value):
            return value
        case Reference(bound=bound):
            return None if bound is None else bound.value
        case ListOf(items=items) if all(isinstance(item, Const) for item in items):
            return [literal_value(item) for item in items]
        case _:
            return None


def literal_arguments(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call that are literals."""
    found = {name: literal_value(expr) for name, expr in args.items()}
    return {name: value for name, value in found.items() if value is not None}


def check(
    plan: ps.Plan,
    registry: Registry,
    *,
    places: Mapping[str, Place] | None = None,
    limits: PlanLimits | None = None,
    scope: Mapping[str, t.Type] | None = None,
    unbound: bool = False,
) -> Report:
    """Check a plan before it runs: its mistakes, its effects, and its worst-case cost.

    Args:
        plan: The plan.
        registry: The tools it may call.
        places: Where each step is written, by its path (as `parse` gives them).
        limits: How many calls it may make.
        scope: The types of the variables before the first step.
        unbound: Whether references may be open, as in a plan that was written and is not bound yet.

    Example:
        >>> report = check(plan, registry)
        >>> report.ok, [str(finding) for finding in report.errors]
    """
    try:
        ps.check_depth(plan)
    except PlanError as error:
        where = error.place.step if error.place else None
        finding = Finding("error", error.code, error.message, where or "", expected=error.expected, fix=error.fix)
        return Report(_add_places([finding], places or {}))
    checker = StepChecker(registry)
    after = checker.check_block(plan.steps, Scope.from_types(scope or {}))
    findings = list(dict.fromkeys(checker.findings))
    findings += [] if unbound else _find_open_references(checker)
    findings += _find_missing_answer(plan, after)
    cost, too_much = estimate_cost(plan, registry, limits or PlanLimits())
    findings += too_much
    findings += _find_unused_names(plan, checker.names_read)
    types = {name: replace_bottom(variable.type) for name, variable in after.variables.items()}
    return Report(_add_places(findings, places or {}), list_effects(plan, registry), cost, types)


def _find_open_references(checker: StepChecker) -> list[Finding]:
    """An error for each open reference: what it means must be known, and shown, before anything is done."""
    open_ = dict.fromkeys((site.path, site.refers, site.words) for site in checker.reference_sites)
    return [
        Finding(
            "error",
            "plan.unbound-reference",
            f"{refers}({words!r}) is not bound to anything",
            path,
            fix="Bind the plan first: `agent.bind(plan)`, or `bicameral run`, which does it.",
        )
        for path, refers, words in open_
    ]


def _find_missing_answer(plan: ps.Plan, scope: Scope) -> list[Finding]:
    if scope.ended:
        return []
    last = str(len(plan.steps) - 1) if plan.steps else ""
    message = "the plan may end without an answer" if plan.steps else "the plan is empty"
    return [Finding("error", "plan.missing-answer", message, last, fix="End with answer(…).")]


def _find_unused_names(plan: ps.Plan, reads: set[str]) -> list[Finding]:
    """Notes about names that nothing reads; a name that begins with '_' is unused on purpose."""
    found: dict[str, str] = {}
    for path, step in ps.walk(plan.steps):
        if isinstance(step, ps.Call | ps.Compute | ps.Extract | ps.Ask) and step.name is not None:
            found.setdefault(step.name, path)
    return [
        Finding("note", "plan.unused", f"`{name}` is never used", path)
        for name, path in found.items()
        if name not in reads and not name.startswith("_")
    ]


def _add_places(findings: list[Finding], places: Mapping[str, Place]) -> tuple[Finding, ...]:
    """The findings with the places of their steps."""
    return tuple(replace(finding, place=_find_place(finding.path, places)) for finding in findings)


def _find_place(path: str, places: Mapping[str, Place]) -> Place | None:
    """The place of a step, or of the nearest step around it."""
    while path and path not in places:
        path = path.rpartition("/")[0]
    return places.get(path)
