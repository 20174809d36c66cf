"""The models that take part in a pattern: who each is, what it is told for good, and what it may read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bicameral.labels import own_value
from bicameral.sessions import Planning
from bicameral.strategies import PhaseName

Tier = Literal["small", "mid", "large"]


@dataclass(frozen=True, slots=True)
class Role:
    """One participant that is a model, by the name it has in the catalogue.

    `setup` is what it is told first in every call, always the same, so that its beginning can be cached. With `reads`
    "trusted" a stranger's text is refused instead of being given to the quarantined model: the participant must never
    see one. `job` and `phase` are what routers choose a model by. Above a `temperature` of 0 each sample is a reply of
    its own.
    """

    name: str
    setup: str
    reads: Literal["anything", "trusted"] = "anything"
    tier: Tier = "mid"
    job: Planning = "reasoning"
    phase: PhaseName | None = None
    max_tokens: int = 512
    temperature: float = 0.0

    def __post_init__(self) -> None:
        # A setup opens every prompt as the program's own words, in the privileged chamber, too.
        own_value(self.setup)
