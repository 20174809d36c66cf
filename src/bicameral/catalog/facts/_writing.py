"""Facts as plain values, with the keys that they have in the files: for JSON, and to read them back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

from ._expressions import Expression


def plain(value: object) -> Any:
    """A fact as dictionaries, lists, texts and numbers; what may be left unsaid and is, is left out.

    Example:
        >>> plain(Knob(default=5, what="workers in a run", most=10))
        {'default': 5, 'what': 'workers in a run', 'most': 10, 'choices': []}
    """
    match value:
        case Expression():
            return value.text
        case tuple() | list():
            return [plain(each) for each in cast("tuple[object, ...]", value)]
        case Mapping():
            return {str(key): plain(each) for key, each in cast("Mapping[object, object]", value).items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {
                str(each.metadata.get("key", each.name)): plain(getattr(value, each.name))
                for each in fields(value)
                if getattr(value, each.name) not in _UNSAID or each.name == "default"
            }
        case _:
            return value


_UNSAID: tuple[object, ...] = (None, "")
