"""What is written down about the labels of a step: those of what goes in, of what comes out, and what was decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from bicameral.labels import Label, Shade, Source, shade_to_json


@lru_cache(maxsize=2048)
def shade_json(shade: Shade) -> Any:
    """A shade as the journal holds it."""
    return shade_to_json(shade)


class Note:
    """The labels of one step. Those of its result are known only when the result is."""

    __slots__ = ("_decision", "_found", "_pc", "_result", "_shades")

    def __init__(
        self,
        shades: Mapping[str, Shade],
        pc: Label,
        result: Callable[[Any], Shade],
        decision: dict[str, Any] | None = None,
    ) -> None:
        self._shades = shades
        self._pc = pc
        self._result = result
        self._decision = decision
        self._found: Shade | None = None

    def started(self) -> dict[str, Any]:
        """What is recorded when the step begins."""
        facts: dict[str, Any] = {
            "shades": {name: shade_json(shade) for name, shade in self._shades.items()},
            "control": shade_json(self._pc),
        }
        return facts if self._decision is None else facts | {"decision": self._decision}

    def strangers(self, name: str) -> tuple[Source, ...]:
        """The third parties' places that something which goes in came from."""
        shade = self._shades.get(name)
        return () if shade is None else tuple(each for each in shade.flat.sources if each.trust == "third_party")

    def shade(self, value: Any) -> Shade:
        """The labels of the result."""
        if self._found is None:
            self._found = self._result(value)
        return self._found
