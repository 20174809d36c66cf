"""The few things we ask of Cedar, with their types."""

from __future__ import annotations

from dataclasses import dataclass

from cedarpy import Entities, PolicySet, Schema
from cedarpy import is_authorized as _is_authorized  # pyright: ignore[reportUnknownVariableType]
from cedarpy import validate_policies as _validate_policies  # pyright: ignore[reportUnknownVariableType]

_REQUEST = {
    "principal": {"type": "Person", "id": "user"},
    "action": {"type": "Action", "id": "call"},
    "resource": {"type": "Call", "id": "call"},
}
"""Who does what to what, in every request: the facts are in the call and in the context."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a request is allowed, by which policies, and what went wrong in the evaluation."""

    allowed: bool
    policies: tuple[str, ...]
    errors: tuple[str, ...]


def evaluate(policies: PolicySet, entities: Entities, context: str) -> Answer:
    """A full evaluation of every policy.

    The request is always of the same form, and so is the context, so that the schema need not be asked again.
    """
    found = _is_authorized({**_REQUEST, "context": context}, policies, entities)
    return Answer(found.allowed, tuple(found.diagnostics.reasons), tuple(found.diagnostics.errors))


def entities(text: str) -> Entities:
    """Entities from Cedar's JSON, parsed once."""
    return Entities.from_json_str(text)  # pyright: ignore[reportUnknownMemberType]


def validation_errors(text: str, schema: Schema) -> list[str]:
    """What the validator has against a policy."""
    return [found.error for found in _validate_policies(text, schema).errors]
