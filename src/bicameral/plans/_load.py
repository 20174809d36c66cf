"""Plans from JSON, with errors that say where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn, cast

from pydantic import ValidationError

from bicameral.errors import Place, PlanError, nearest

from ._depth import bound_depth, too_deep
from ._plan import VERSION, Plan

MAX_BYTES = 4_000_000


def load_plan(source: str | Path, *, file: str | None = None) -> Plan:
    """The plan in a JSON text or, given a Path, in a JSON file.

    Example:
        >>> load_plan('{"version": "plan/1", "steps": []}').goal
        ''
    """
    if isinstance(source, Path):
        file = file or str(source)
        source = _read(source)
    text = source.removeprefix("\ufeff")
    if len(text) > MAX_BYTES:
        raise PlanError("plan.too-long", "the plan is too long", place=Place(file=file), expected="at most 4 MB")
    document = _document(text, file)
    _known_version(document, file)
    try:
        plan = Plan.model_validate_json(text)
    except ValidationError as error:
        raise _invalid(document, error, file) from None
    bound_depth(plan)
    return plan


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        return content.decode()
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except UnicodeDecodeError:
        reason = "it is not text in UTF-8"
    raise PlanError("plan.cannot-read", f"the plan cannot be read: {reason}", place=Place(file=str(path)))


def _document(text: str, file: str | None) -> dict[str, Any]:
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
        raise too_deep(Place(file=file)) from None
    except ValueError as error:  # a number of thousands of digits
        refuse(str(error))
    if not isinstance(document, dict):
        raise PlanError("plan.invalid", "a plan is a JSON object", place=Place(file=file), expected='{"version": …}')
    return cast("dict[str, Any]", document)


def _known_version(document: dict[str, Any], file: str | None) -> None:
    version = document.get("version")
    if version == VERSION:
        return
    fix = None
    if "tasks" in document:
        fix = "It looks like a list of tasks: import it with `import_tasks`."
    raise PlanError(
        "plan.unknown-version",
        f"the version {version!r} of plans is not known"
        if "version" in document
        else "the plan does not say its version",
        place=Place(file=file),
        expected=repr(VERSION),
        nearest=nearest(version, [VERSION]) if isinstance(version, str) else None,
        fix=fix,
    )


def _invalid(document: dict[str, Any], error: ValidationError, file: str | None) -> PlanError:
    # Where several alternatives failed, the one that got furthest is the one that was meant.
    found = max(error.errors(), key=lambda one: len(one["loc"]))
    message = found["msg"].removeprefix("Value error, ")
    if found["type"] == "json_invalid":
        if "recursion" in message:
            return too_deep(Place(file=file))
        return PlanError("plan.bad-json", f"the plan is not JSON: {message}", place=Place(file=file))
    path, step = _path(document, found["loc"])
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
            near = nearest(context["tag"], [tag.strip("'") for tag in expected.split(", ")])
        case _:
            pass
    where = f"at {path}: " if path else ""
    return PlanError(
        "plan.invalid", f"{where}{message}", place=Place(file=file, step=step), expected=expected, nearest=near
    )


def _path(document: Any, location: tuple[int | str, ...]) -> tuple[str, str | None]:
    """Where in the document an error is, and in which step (as `walk` names them).

    pydantic's location also names the alternatives it tried; those are no keys of the document and are left out.
    """
    path, step, here = "", "", document
    for part in location:
        match here:
            case dict() if part in here:
                entries = cast("dict[Any, Any]", here)
                step += _branch(entries, part)
                path, here = f"{path}.{part}" if path else str(part), entries[part]
            case list() if isinstance(part, int):
                step += str(part) if step.endswith("/") or path == "steps" else ""
                path, here = f"{path}[{part}]", cast("list[Any]", here)[part]
            case _:
                pass
    return path, step or None


def _branch(entries: dict[Any, Any], key: object) -> str:
    match entries.get("do"), key:
        case "each", "steps":
            return "/"
        case "when", "steps":
            return "/then/"
        case "when", "otherwise":
            return "/else/"
        case _:
            return ""
