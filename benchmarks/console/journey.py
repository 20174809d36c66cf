"""What a journey is: something that a person does, step by step, with what they must see."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.console.browser import Chromium, Visitor
from benchmarks.console.world import ConsoleServer


@dataclass
class Stage:
    """Where journeys happen: the server, the browser, and figures that they have measured."""

    server: ConsoleServer
    chromium: Chromium
    figures: dict[str, float] = field(default_factory=dict[str, float])


Play = Callable[[Stage], None]


@dataclass(frozen=True, slots=True)
class Journey:
    """A journey by its name."""

    name: str
    play: Play

    @property
    def words(self) -> str:
        """What the person does."""
        return (self.play.__doc__ or "").strip().splitlines()[0]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a journey, or of an attack: empty words if all was as it must be."""

    name: str
    fault: str
    seconds: float

    @property
    def ok(self) -> bool:
        return not self.fault


JOURNEYS: dict[str, Journey] = {}


def journey(play: Play) -> Play:
    """Count a function among the journeys; its name is the name of the journey, its docstring what a person does."""
    name = play.__name__.replace("_", "-")
    JOURNEYS[name] = Journey(name, play)
    return play


def try_journey(each: Journey, stage: Stage) -> Result:
    """Play it; errors of scripts and broken rules count as faults of the journey."""
    before = _faults(stage)
    began = time.monotonic()
    try:
        each.play(stage)
        fault = "\n".join(_faults(stage)[len(before) :])
    except Exception as error:
        frames = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
        ours = [frame for frame in frames if frame.split(":")[0] == each.play.__name__] or frames[-1:]
        fault = f"{type(error).__name__} at {ours[-1]}: {str(error)[:800]}"
    return Result(each.name, fault, time.monotonic() - began)


def _faults(stage: Stage) -> list[str]:
    watch = stage.chromium.watch
    return [*watch.violations, *watch.executed, *watch.outside, *watch.errors]


def texts(visitor: Visitor, selector: str) -> Sequence[str]:
    """The texts of all elements that a selector finds, as they are seen."""
    return [text.strip() for text in visitor.page.locator(selector).all_inner_texts()]


def expect_no_sideways_scrolling(visitor: Visitor) -> None:
    """The page is no wider than the window."""
    widths: list[int] = visitor.page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert widths[0] <= widths[1], f"{visitor.path} is {widths[0]} px wide in a window of {widths[1]} px"
