"""What a run begins with, when it goes on from earlier ones: their variables, what they wrote, and what was read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from bicameral.boundary import Held
from bicameral.errors import BicameralError, JournalError
from bicameral.labels import NOTHING, Label, Shade, shade_from_json, shade_to_json
from bicameral.plans import Assembled, Plan, assembled_values
from bicameral.tools import Registry
from bicameral.types import Type, from_json, plain, to_json, value_from_json, value_to_json

_KEYS = {"variables", "written", "read"}
_ASSEMBLED = "assembled"


@dataclass(frozen=True, slots=True)
class Start:
    """Where a run takes up: values that a plan finds under these names, each with its type and its labels.

    `written` are the labels of the places that earlier runs wrote to, and `read` is what whoever wrote the plan had
    read of their results: everything in the run carries it. `assembled` are the variables that a plan of a model has
    put together.
    """

    variables: Mapping[str, Held] = field(default_factory=dict[str, Held])
    written: Mapping[str, Shade] = field(default_factory=dict[str, Shade])
    read: Label = NOTHING
    assembled: frozenset[str] = frozenset()

    def assembled_values(
        self, plan: Plan, registry: Registry, request: str | None, own: Collection[str] = ()
    ) -> Assembled:
        """What a plan that begins here puts together of that which directs its calls."""
        before = {name: name in self.assembled for name in self.variables}
        return assembled_values(plan, registry, request, own=own, variables=before)

    @property
    def types(self) -> dict[str, Type]:
        return {name: held.type for name, held in self.variables.items()}

    @property
    def values(self) -> dict[str, Any]:
        """Copies: what a run does with them stays in the run."""
        return {name: plain(held.value) for name, held in self.variables.items()}

    @property
    def shades(self) -> dict[str, Shade]:
        """The labels of the variables, and of the places that were written to."""
        return {name: held.shade for name, held in self.variables.items()} | dict(self.written)

    def to_json(self) -> dict[str, Any]:
        """Everything, for the record of the run."""
        variables = {
            name: {
                "value": value_to_json(held.value),
                "type": to_json(held.type),
                "shade": shade_to_json(held.shade),
            }
            for name, held in self.variables.items()
        }
        written = {place: shade_to_json(shade) for place, shade in self.written.items()}
        facts: dict[str, Any] = {"variables": variables, "written": written, "read": shade_to_json(self.read)}
        return facts | ({_ASSEMBLED: sorted(self.assembled)} if self.assembled else {})

    @classmethod
    def from_json(cls, value: object) -> Start:
        """What `to_json` wrote; anything else is refused."""
        try:
            facts = cast("dict[str, Any]", value)
            if not isinstance(value, dict) or set(facts) - {_ASSEMBLED} != _KEYS:
                raise ValueError("it has other keys")
            variables = {
                name: Held(value_from_json(each["value"]), from_json(each["type"]), shade_from_json(each["shade"]))
                for name, each in facts["variables"].items()
            }
            written = {place: shade_from_json(each) for place, each in facts["written"].items()}
            assembled = frozenset(map(str, facts.get(_ASSEMBLED, ())))
            return cls(variables, written, shade_from_json(facts["read"]).flat, assembled)
        except (BicameralError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise JournalError("journal.damaged", f"what a run began with cannot be read: {error}") from None
