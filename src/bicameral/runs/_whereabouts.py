"""Where a run is: which steps of which blocks have ended, and which turns of which loops are still to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bicameral.labels import Shade
from bicameral.plans import Step

from ._frame import Frame
from ._pure import Flow


@dataclass(slots=True, eq=False)
class Block:
    """A block of steps that is being run, and the numbers of the steps that have ended."""

    steps: Sequence[Step]
    frame: Frame
    flow: Flow
    ended: set[int] = field(default_factory=set[int])


@dataclass(slots=True, eq=False)
class Turning:
    """A loop that is being run: `begun` turns have begun, and those that go on have a block. `apart`: side by side."""

    items: list[Any]
    over: Shade
    inside: Flow
    apart: bool
    begun: int = 0


class Whereabouts:
    """The blocks and loops of a run that have begun and not ended, by their path. What fails stays where it is."""

    __slots__ = ("blocks", "loops")

    def __init__(self) -> None:
        self.blocks: dict[str, Block] = {}
        self.loops: dict[str, Turning] = {}
