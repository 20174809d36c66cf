"""What pydantic found wrong, as one fault that a person can mend: the key, what was expected, the nearest name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from bicameral.errors import nearest


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong under one key."""

    path: tuple[str | int, ...]
    message: str
    expected: str | None = None
    nearest: str | None = None

    @property
    def key(self) -> str:
        """The key as people write it: `tools[0].arguments.path`."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text


def first_fault(error: ValidationError, model: type[BaseModel]) -> Fault:
    """The fault to mend first: a key that does not exist before one that is missing, since a typo causes both."""
    found = error.errors(include_url=False)
    detail = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    path = _real_path(detail["loc"], model)
    match detail["type"]:
        case "extra_forbidden":
            known = _keys_at(model, path[:-1])
            name = str(path[-1])
            return Fault(path, "there is no such key", ", ".join(known), nearest(name, known))
        case "missing":
            return Fault(path, "the key is missing")
        case "literal_error":
            given = detail["input"]
            expected = str(detail.get("ctx", {}).get("expected", ""))
            choices = [choice.strip("' ") for choice in expected.replace(" or ", ", ").split(",")]
            return Fault(path, f"{given!r} will not do", expected, nearest(str(given), choices))
        case _:
            return Fault(path, detail["msg"][:1].lower() + detail["msg"][1:])


def _real_path(location: Sequence[str | int], model: type[BaseModel]) -> tuple[str | int, ...]:
    """The location without the names of union members and aliases that pydantic weaves in."""
    path: list[str | int] = []
    here: list[type[BaseModel]] = [model]
    for part in location:
        if isinstance(part, str) and not here and path:
            # Below a plain value there are no keys: this names a member of a union.
            continue
        if isinstance(part, str) and any(part == each.__name__ for each in here):
            continue
        path.append(part)
        if isinstance(part, str) and any(part in each.model_fields for each in here):
            here = [inner for each in here if part in each.model_fields for inner in _models_in(each, part)]
    return tuple(path)


def _models_in(model: type[BaseModel], field: str) -> list[type[BaseModel]]:
    found: list[type[BaseModel]] = []
    waiting: list[Any] = [model.model_fields[field].annotation]
    while waiting:
        annotation = waiting.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found.append(annotation)
        waiting.extend(get_args(annotation))
    return found


def _keys_at(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    here: list[type[BaseModel]] = [model]
    for part in path:
        if isinstance(part, str) and any(part in each.model_fields for each in here):
            here = [inner for each in here if part in each.model_fields for inner in _models_in(each, part)]
    return [field.alias or name for each in here for name, field in each.model_fields.items()]
