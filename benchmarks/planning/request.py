"""What a request is: a sentence, how hard it is, and the judge of its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .judge import Judge

Feature = Literal[
    "calendar",
    "condition",
    "dates",
    "extraction",
    "files",
    "group",
    "join",
    "loop",
    "mail",
    "send",
    "tables",
    "web",
    "write",
]


@dataclass(frozen=True, slots=True)
class Request:
    """One thing a person asks for. `level` is the number of steps it takes; `{site}` in the text is the website."""

    id: str
    text: str
    level: int
    needs: frozenset[Feature]
    judge: Judge
    sloppy: bool = False
    unseen: bool = False


def needs(*features: Feature) -> frozenset[Feature]:
    """The features of the toolbox and of plans that a request calls for."""
    return frozenset(features)
