"""The intent: what a person wants, as a structure that a planner can be held against."""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from bicameral.tools import Effect

VERSION = "intent/1"


class IntentNode(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class IntentStep(IntentNode):
    """One thing to do, in a few words: `remove duplicates`, from or about what."""

    action: str
    about: str = ""


class NamedDate(IntentNode):
    """A phrase of the request that means a day or a range of days, and which."""

    phrase: str
    start: dt.date
    end: dt.date


class Intent(IntentNode):
    """A request, understood: versioned, readable, the only thing Delta plans from.

    `effects` are the changes to the world that the request speaks of, `required` those without which it is not served;
    `questions` are what must be answered first.
    """

    version: Literal["intent/1"] = VERSION
    request: str
    task: str = ""
    steps: tuple[IntentStep, ...] = ()
    constraints: tuple[str, ...] = ()
    output: Literal["answer", "file", "mail", "calendar"] = "answer"
    effects: tuple[Effect, ...] = ()
    required: tuple[Effect, ...] = ()
    dates: tuple[NamedDate, ...] = ()
    questions: tuple[str, ...] = ()
    by: Literal["echo", "fast-path", "deterministic"] = "deterministic"

    def to_json(self) -> str:
        """Canonical JSON: the same intent is always the same bytes."""
        return self.model_dump_json()

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def intent_schema() -> dict[str, Any]:
    """The published JSON Schema of the intent."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Intent.model_json_schema()}
