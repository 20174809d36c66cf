"""The plan: its steps, its JSON form, its depth limit, and rewriting.

A plan is the only program that runs. Steps say what they `do`; their order is the order of effects. One limit on
nesting bounds every recursion over a plan. JSON is read strictly, and errors say where they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, cast

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator

from bicameral.errors import Place, PlanError, nearest_name
from bicameral.plans import _expressions as ir
from bicameral.types import Type, type_from_json, type_to_json

PLAN_VERSION = "plan/1"
MAX_STEP_SECONDS = 86_400
PLAN_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}$"
"""The id that another system gave a plan: a name, and never a sentence that somebody could take for one."""


def _is_absent(value: object) -> bool:
    return value is None


# Left out of the JSON where it is not given, so that plans from before it existed keep their bytes and hashes.
StepSeconds = Annotated[float | None, Field(gt=0, le=MAX_STEP_SECONDS, exclude_if=_is_absent)]
"""The seconds that a step may take, its retries included; the tool's own limit holds as well."""


def _normalize_type_json(value: Any) -> Any:
    """The canonical JSON of a type, so that equal plans have equal hashes."""
    return type_to_json(type_from_json(value))


TypeJson = Annotated[Any, AfterValidator(_normalize_type_json)]
"""A type as JSON."""


class Call(ir.Node):
    """Call a tool; `name` is the variable for its result, if anyone wants it."""

    do: Literal["call"] = "call"
    child_fields = ("args",)
    name: ir.Name | None = None
    tool: ir.Name
    args: dict[ir.Name, ir.Expr] = Field(default_factory=dict[str, Any])
    timeout_secs: StepSeconds = None

    @field_validator("tool")
    @classmethod
    def _refuse_surface_words(cls, value: str) -> str:
        if value in ir.SURFACE_WORDS:
            raise ValueError(f"{value!r} is a word of the plan language and cannot be a tool")
        return value


class Extract(ir.Node):
    """Let the quarantined model read `source` and fill a typed blank. `type` is a type as JSON."""

    do: Literal["extract"] = "extract"
    child_fields = ("source", "instruction")
    name: ir.Name
    source: ir.Expr
    instruction: ir.Expr
    type: TypeJson
    timeout_secs: StepSeconds = None

    @property
    def result_type(self) -> Type:
        return type_from_json(self.type)


class Compute(ir.Node):
    """Give a name to the value of a pure expression."""

    do: Literal["compute"] = "compute"
    child_fields = ("value",)
    name: ir.Name
    value: ir.Expr


class Update(ir.Node):
    """Add to a variable: `xs.append(v)`, `n += v`, `d[key] = v`."""

    do: Literal["update"] = "update"
    child_fields = ("key", "value")
    name: ir.Name
    op: Literal["append", "add", "put"]
    key: Annotated[ir.Expr | None, Field(validate_default=True)] = None
    value: ir.Expr

    @field_validator("key")
    @classmethod
    def _key_only_for_put(cls, value: Any, info: ValidationInfo) -> Any:
        if (info.data.get("op") == "put") != (value is not None):
            raise ValueError("an update has a key exactly when its op is 'put'")
        return value


class Each(ir.Node):
    """Do the steps once for each item of a list, in order."""

    do: Literal["each"] = "each"
    child_fields = ("over", "steps")
    names: Annotated[tuple[ir.Name, ...], Field(min_length=1)]
    over: ir.Expr
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]


class When(ir.Node):
    """Do these steps if the condition holds, the others if not."""

    do: Literal["when"] = "when"
    child_fields = ("condition", "steps", "otherwise")
    condition: ir.Expr
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    otherwise: tuple[Step, ...] = ()


class Ask(ir.Node):
    """Ask the person who made the request; `type` is the type of the reply as JSON (default text)."""

    do: Literal["ask"] = "ask"
    child_fields = ("question",)
    name: ir.Name
    question: ir.Expr
    type: TypeJson = "str"

    @property
    def result_type(self) -> Type:
        return type_from_json(self.type)


class Answer(ir.Node):
    """The result of the run; a run that comes here is finished."""

    do: Literal["answer"] = "answer"
    child_fields = ("value",)
    value: ir.Expr


Step = Annotated[Call | Extract | Compute | Update | Each | When | Ask | Answer, Field(discriminator="do")]


class Plan(ir.Node):
    """A versioned list of steps with the goal they serve.

    Example:
        >>> Plan(goal="say hello", steps=(Answer(value=Const(value="hello")),)).hash[:8]
        '…'
    """

    version: Literal["plan/1"] = PLAN_VERSION
    goal: ir.Text = ""
    steps: tuple[Step, ...] = ()
    plan_id: Annotated[str | None, Field(pattern=PLAN_ID_PATTERN, exclude_if=_is_absent)] = None

    def to_json(self) -> str:
        """Canonical JSON: the same plan is always the same bytes."""
        return self.model_dump_json(exclude_defaults=False)

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def walk(steps: tuple[Any, ...], at: str = "") -> Iterator[tuple[str, Any]]:
    """Every step with its path: `1`, `1/0` inside an each, `2/then/0` and `2/else/0` inside a when."""
    for number, step in enumerate(steps):
        path = f"{at}{number}"
        yield path, step
        match step:
            case Each():
                yield from walk(step.steps, f"{path}/")
            case When():
                yield from walk(step.steps, f"{path}/then/")
                yield from walk(step.otherwise, f"{path}/else/")
            case _:
                pass


def step_time_limits(plan: Plan) -> dict[str, float]:
    """The seconds of each step that has a limit of its own, by its path."""
    timed = (pair for pair in walk(plan.steps) if isinstance(pair[1], Call | Extract))
    return {path: step.timeout_secs for path, step in timed if step.timeout_secs is not None}


def step_expressions(step: Any) -> list[Any]:
    """The expressions of a step itself, without those of the steps inside it."""
    nested = {id(inner) for name in ("steps", "otherwise") for inner in getattr(step, name, ())}
    return [child for child in ir.children(step) if id(child) not in nested]


def insert_steps(plan: Plan, after: Mapping[str, Sequence[Any]]) -> Plan:
    """The plan with further steps behind those with these paths, which are the paths of the plan as it comes in.

    Example:
        >>> insert_steps(plan, {"0": [step]}).steps[1] is step
        True
    """
    steps = _change_steps(plan.steps, "", lambda path, step: (step, *after.get(path, ())))
    return plan.model_copy(update={"steps": steps}) if after else plan


def replace_step(plan: Plan, at: str, by: Any) -> Plan:
    """The plan with another step at a path."""
    steps = _change_steps(plan.steps, "", lambda path, step: (by if path == at else step,))
    return plan.model_copy(update={"steps": steps})


def _change_steps(steps: tuple[Any, ...], at: str, change: Callable[[str, Any], tuple[Any, ...]]) -> tuple[Any, ...]:
    """The steps with what each of them becomes, those inside a step first."""
    found: list[Any] = []
    for number, step in enumerate(steps):
        path = f"{at}{number}"
        match step:
            case Each():
                step = step.model_copy(update={"steps": _change_steps(step.steps, f"{path}/", change)})
            case When():
                then = _change_steps(step.steps, f"{path}/then/", change)
                otherwise = _change_steps(step.otherwise, f"{path}/else/", change)
                step = step.model_copy(update={"steps": then, "otherwise": otherwise})
            case _:
                pass
        found += change(path, step)
    return tuple(found)


MAX_DEPTH = 50


def check_depth(plan: Plan) -> None:
    """Refuse a plan that is nested more than 50 levels deep; plans made in Python were not parsed and may be."""
    number = first_too_deep_step(plan)
    if number is not None:
        raise too_deep_error(Place(step=str(number)))


def first_too_deep_step(plan: Plan) -> int | None:
    """The first step that is nested too deep, if any is."""
    return next((number for number, step in enumerate(plan.steps) if is_too_deep(step)), None)


def too_deep_error(place: Place) -> PlanError:
    return PlanError(
        "plan.too-deep",
        "the plan is nested too deep",
        place=place,
        expected=f"at most {MAX_DEPTH} levels",
        fix="Give names to parts of it in steps of their own.",
    )


@ir.memoize_by_identity
def is_too_deep(step: Any) -> bool:
    """Whether a step or an expression is nested more than 50 levels deep."""
    level, depth = [step], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return True
        level = [inner for part in level for inner in _nested_parts(part)]
    return False


def _nested_parts(part: Any) -> tuple[Any, ...]:
    kind = cast("object", type(part))
    if kind is dict or kind is list:  # a composite type as JSON
        return tuple(part.values() if kind is dict else part)
    found = ir.children(part)
    return (*found, part.type) if kind is Extract or kind is Ask else found


MAX_JSON_BYTES = 4_000_000


def load_plan(source: str | Path, *, file: str | None = None, keep_bindings: bool = False) -> Plan:
    """The plan in a JSON text or, given a Path, in a JSON file.

    What its references are bound to is dropped: a binding has a label, and only the runtime makes labels. Whoever
    submits a plan could write a binding to a value of their own and call it trusted.

    Args:
        source: The text, or the path of a file.
        file: The name of the file, for messages.
        keep_bindings: Whether the text comes from the runtime itself, such as from a journal, and keeps its bindings.

    Example:
        >>> load_plan('{"version": "plan/1", "steps": []}').goal
        ''
    """
    if isinstance(source, Path):
        file = file or str(source)
        source = _read_file(source)
    text = source.removeprefix("\ufeff")
    if len(text) > MAX_JSON_BYTES:
        raise PlanError("plan.too-long", "the plan is too long", place=Place(file=file), expected="at most 4 MB")
    document = _parse_document(text, file)
    _check_version(document, file)
    try:
        plan = Plan.model_validate_json(text)
    except ValidationError as error:
        raise _validation_error(document, error, file) from None
    check_depth(plan)
    return plan if keep_bindings else drop_bindings(plan)


def drop_bindings(plan: Plan) -> Plan:
    """The plan with its references open, as it was before it was bound.

    Example:
        >>> drop_bindings(bound) == plan
        True
    """
    steps = tuple(map(_drop_bound, plan.steps))
    return plan if steps == plan.steps else plan.model_copy(update={"steps": steps})


def _drop_bound(node: Any) -> Any:
    if isinstance(node, ir.Reference):
        return node if node.bound is None else node.model_copy(update={"bound": None})
    return ir.map_children(node, _drop_bound)


def _read_file(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_JSON_BYTES + 1)
        return content.decode()
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except UnicodeDecodeError:
        reason = "it is not text in UTF-8"
    raise PlanError("plan.cannot-read", f"the plan cannot be read: {reason}", place=Place(file=str(path)))


def _parse_document(text: str, file: str | None) -> dict[str, Any]:
    def refuse(reason: str) -> NoReturn:
        raise PlanError("plan.bad-json", f"the plan is not JSON: {reason}", place=Place(file=file))

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            refuse(f"the key {next(name for name in names if names.count(name) > 1)!r} occurs twice")
        return found

    try:
        document = json.loads(
            text, object_pairs_hook=unique_keys, parse_constant=lambda word: refuse(f"{word} is not a number")
        )
    except json.JSONDecodeError as error:
        place = Place(file=file, line=error.lineno, column=error.colno)
        raise PlanError("plan.bad-json", f"the plan is not JSON: {error.msg}", place=place) from None
    except RecursionError:
        raise too_deep_error(Place(file=file)) from None
    except ValueError as error:  # a number of thousands of digits
        refuse(str(error))
    if not isinstance(document, dict):
        raise PlanError("plan.invalid", "a plan is a JSON object", place=Place(file=file), expected='{"version": …}')
    return cast("dict[str, Any]", document)


def _check_version(document: dict[str, Any], file: str | None) -> None:
    version = document.get("version")
    if version == PLAN_VERSION:
        return
    unknown = f"the version {version!r} of plans is not known"
    raise PlanError(
        "plan.unknown-version",
        unknown if "version" in document else "the plan does not say its version",
        place=Place(file=file),
        expected=repr(PLAN_VERSION),
        nearest=nearest_name(version, [PLAN_VERSION]) if isinstance(version, str) else None,
        fix="It looks like a list of tasks: import it with `import_tasks`." if "tasks" in document else None,
    )


def _validation_error(document: dict[str, Any], error: ValidationError, file: str | None) -> PlanError:
    # Where several alternatives failed, the one that got furthest is the one that was meant.
    found = max(error.errors(), key=lambda one: len(one["loc"]))
    message = found["msg"].removeprefix("Value error, ")
    if found["type"] == "json_invalid":
        if "recursion" in message:
            return too_deep_error(Place(file=file))
        return PlanError("plan.bad-json", f"the plan is not JSON: {message}", place=Place(file=file))
    path, step = _error_location(document, found["loc"])
    expected, near = None, None
    match found["type"]:
        case "missing":
            message = f"the key {found['loc'][-1]!r} is missing"
        case "extra_forbidden":
            message = "no such key is known here"
        case "union_tag_invalid":
            context = cast("dict[str, str]", found.get("ctx", {}))
            expected = context["expected_tags"]
            message = f"there is no {context['discriminator']} {context['tag']!r}"
            near = nearest_name(context["tag"], [tag.strip("'") for tag in expected.split(", ")])
        case _:
            pass
    where = f"at {path}: " if path else ""
    return PlanError(
        "plan.invalid", f"{where}{message}", place=Place(file=file, step=step), expected=expected, nearest=near
    )


def _error_location(document: Any, location: tuple[int | str, ...]) -> tuple[str, str | None]:
    """Where in the document an error is, and in which step (as `walk` names them).

    pydantic's location also names the alternatives it tried; those are no keys of the document and are left out.
    """
    path, step, here = "", "", document
    for part in location:
        match here:
            case dict() if part in here:
                entries = cast("dict[Any, Any]", here)
                step += _branch_segment(entries, part)
                path, here = f"{path}.{part}" if path else str(part), entries[part]
            case list() if isinstance(part, int):
                step += str(part) if step.endswith("/") or path == "steps" else ""
                path, here = f"{path}[{part}]", cast("list[Any]", here)[part]
            case _:
                pass
    return path, step or None


def _branch_segment(entries: dict[Any, Any], key: object) -> str:
    match entries.get("do"), key:
        case "each", "steps":
            return "/"
        case "when", "steps":
            return "/then/"
        case "when", "otherwise":
            return "/else/"
        case _:
            return ""


NodeRewriter = Callable[[Any], Any]
STEP_TYPES = (Call, Extract, Compute, Update, Each, When, Ask, Answer)


def rewrite_steps(steps: tuple[Any, ...], change_step: NodeRewriter, change_expr: NodeRewriter) -> tuple[Any, ...]:
    """The steps with each step and each expression changed, and then what is inside it.

    Example:
        >>> rewrite_steps(plan.steps, lambda step: step, lambda expr: expr) == plan.steps
        True
    """

    def rewrite(node: Any) -> Any:
        change = change_step if isinstance(node, STEP_TYPES) else change_expr
        return ir.map_children(change(node), rewrite)

    return tuple(map(rewrite, steps))
