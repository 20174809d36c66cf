"""Calls that a model asks for again and again."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from bicameral.models import ToolCall
from bicameral.tools import Registry
from bicameral.types import plain


@dataclass(slots=True)
class Repeats:
    """The calls that were asked for. A look at the world may be taken again when something was changed in between."""

    registry: Registry
    looks: Counter[str] = field(default_factory=Counter[str])
    changes: Counter[str] = field(default_factory=Counter[str])

    def count(self, call: ToolCall) -> int:
        """How often this very call has come, this time included."""
        key = f"{call.name} {_written(call)}"
        found = self.registry.get(str(call.name))
        if found is None or not found.changes:
            self.looks[key] += 1
            return self.looks[key]
        self.looks.clear()
        self.changes[key] += 1
        return self.changes[key]


def _written(call: ToolCall) -> str:
    try:
        return json.dumps(plain(call.arguments), sort_keys=True, default=str)
    except (TypeError, ValueError):
        return "(no arguments)"
