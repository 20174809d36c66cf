"""Faults of documents name the key that is to be mended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from bicameral.documents import first_key_fault


class Inner(BaseModel):
    size: int = 0


class Document(BaseModel):
    env: dict[str, str] = {}
    maybe: dict[str, int] | None = None
    nested: dict[str, dict[str, int]] = {}
    lists: dict[str, list[int]] = {}
    pairs: list[dict[str, int]] = []
    tuples: tuple[dict[str, int], ...] = ()
    mixed: Mapping[str, int | bool] = {}
    either: dict[str, int] | list[int] = {}
    short: dict[Annotated[str, Field(max_length=2)], int] = {}
    scalar: int | list[str] = 0
    models: dict[str, Inner] = {}


@dataclass
class Counts:
    servers: dict[str, int] = field(default_factory=dict[str, int])


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"env": {"PATH": "x", "LIMIT": 3}}, "env.LIMIT"),
        ({"maybe": {"a": "x"}}, "maybe.a"),
        ({"nested": {"a": {"b": "x"}}}, "nested.a.b"),
        ({"lists": {"a": [1, "x"]}}, "lists.a[1]"),
        ({"pairs": [{}, {"a": "x"}]}, "pairs[1].a"),
        ({"tuples": [{"a": "x"}]}, "tuples[0].a"),
        ({"mixed": {"a": "x"}}, "mixed.a"),
        ({"either": {"a": "x"}}, "either.a"),
        ({"either": "x"}, "either"),
        ({"short": {"abc": 1}}, "short.abc"),
        ({"scalar": "x"}, "scalar"),
        ({"scalar": [1]}, "scalar"),
        ({"models": {"a": {"size": "x"}}}, "models.a.size"),
    ],
)
def test_a_fault_under_a_plain_mapping_names_its_key(given: dict[str, Any], key: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Document.model_validate(given)
    assert first_key_fault(caught.value, Document).key == key


def test_the_same_holds_for_dataclasses() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Counts).validate_python({"servers": {"a": 1, "b": "x"}})
    assert first_key_fault(caught.value, Counts).key == "servers.b"
