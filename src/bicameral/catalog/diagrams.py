"""The diagram of a pattern: its steps in order, and its participants by kind, as shapes with their places.

Everything in it comes from the catalogue's facts. Steps are the sentences of `how`. No line is drawn between
participants, since the facts do not say who talks to whom. Whoever draws the shapes chooses colours.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from bicameral.catalog.facts._records import Participant, ParticipantKind, PatternFacts, SessionCost

WIDTH = 960
MARGIN = 20
GAP = 28
LINE = 17
LANE_LABEL = 80
COLUMNS = 4
CHARACTER = {13: 7.2, 12: 6.7}
"""The width of an average character of the font, by its size; a little too wide, so that no text leaves its box."""
LANES: Mapping[ParticipantKind, str] = {
    "person": "people",
    "model": "models",
    "code": "code",
    "tool": "tools",
    "store": "stores",
}
"""What the lane of each kind of participant is called."""

PartKind: TypeAlias = Literal["step", "person", "model", "code", "tool", "store"]
TextRole: TypeAlias = Literal["plain", "number", "again", "lane", "name", "does", "calls"]


@dataclass(frozen=True, slots=True)
class DiagramBox:
    """A step, or a participant."""

    x: int
    y: int
    width: int
    height: int
    kind: PartKind = "step"
    shape: Literal["box"] = "box"


@dataclass(frozen=True, slots=True)
class DiagramDot:
    """The disc behind the number of a step."""

    x: int
    y: int
    shape: Literal["dot"] = "dot"


@dataclass(frozen=True, slots=True)
class DiagramText:
    """A line of text: what it says decides how it is set."""

    x: int
    y: int
    text: str
    role: TextRole = "plain"
    kind: PartKind = "step"
    shape: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class DiagramArrow:
    """An arrow, as the path of SVG; `again` for the one that leads back."""

    path: str
    again: bool = False
    shape: Literal["arrow"] = "arrow"


DiagramShape: TypeAlias = DiagramBox | DiagramDot | DiagramText | DiagramArrow


@dataclass(frozen=True, slots=True)
class PatternDiagram:
    """The shapes of a diagram in the order in which they are drawn."""

    title: str
    height: int
    shapes: tuple[DiagramShape, ...]
    width: int = WIDTH


def pattern_diagram(facts: PatternFacts) -> PatternDiagram:
    """The diagram of a pattern."""
    steps, below = _lay_out_steps(split_steps(facts.how), facts)
    lanes, height = _lay_out_lanes(facts, below + 24)
    title = f"{facts.id}, {facts.name}: its steps, and its participants by kind"
    return PatternDiagram(title, height, (*steps, *lanes))


def split_steps(how: str) -> list[str]:
    """The sentences that say how a pattern works, each a step."""
    ended = " ".join(how.split()).replace("? ", "?\n").replace(". ", ".\n")
    return [step.rstrip(".") for step in ended.splitlines()]


def _lay_out_steps(steps: Sequence[str], facts: PatternFacts) -> tuple[list[DiagramShape], int]:
    """The steps as boxes from left to right, and where they end."""
    width = (WIDTH - 2 * MARGIN - (len(steps) - 1) * GAP) // len(steps)
    texts = [_wrap(step, width - 24, 13) for step in steps]
    top, height = MARGIN, max(map(len, texts)) * LINE + 44
    shapes: list[DiagramShape] = []
    for number, lines in enumerate(texts):
        left = MARGIN + number * (width + GAP)
        shapes.append(DiagramBox(left, top, width, height))
        shapes.append(DiagramDot(left + 20, top + 18))
        shapes.append(DiagramText(left + 20, top + 22, str(number + 1), "number"))
        shapes.extend(DiagramText(left + 12, top + 48 + LINE * at, line) for at, line in enumerate(lines))
        if number:
            shapes.append(DiagramArrow(f"M{left - GAP} {top + height // 2}h{GAP - 2}"))
    bottom = top + height
    if facts.loops:
        first, last = MARGIN + width // 2, WIDTH - MARGIN - width // 2
        back = f"M{last} {bottom}C{last} {bottom + 32} {first} {bottom + 32} {first} {bottom + 2}"
        shapes.append(DiagramArrow(back, again=True))
        limits = ", ".join(facts.bounded_by)
        shapes.append(DiagramText(WIDTH // 2, bottom + 42, f"again, within {limits}" if limits else "again", "again"))
        bottom += 48
    return shapes, bottom


def _lay_out_lanes(facts: PatternFacts, top: int) -> tuple[list[DiagramShape], int]:
    """The participants by kind, one lane below the other, and the height of the picture."""
    calls = {each.role: each for each in facts.cost.sessions}
    shapes: list[DiagramShape] = []
    for kind, name in LANES.items():
        there = [each for each in facts.participants if each.kind == kind]
        if not there:
            continue
        shapes.append(DiagramText(MARGIN, top + 22, name, "lane", kind))
        for at in range(0, len(there), COLUMNS):
            row, height = _lay_out_row(there[at : at + COLUMNS], calls, top, kind)
            shapes.extend(row)
            top += height + 12
    return shapes, top + MARGIN - 12


def _lay_out_row(
    there: Sequence[Participant], calls: Mapping[str, SessionCost], top: int, kind: ParticipantKind
) -> tuple[list[DiagramShape], int]:
    width = (WIDTH - 2 * MARGIN - LANE_LABEL - (COLUMNS - 1) * 12) // COLUMNS
    texts = [_wrap(each.does, width - 20, 12) for each in there]
    notes = [_wrap(note, width - 20, 12) if (note := _calls_of(each, calls)) else [] for each in there]
    height = max(len(lines) + len(note) for lines, note in zip(texts, notes, strict=True)) * LINE + 34
    shapes: list[DiagramShape] = []
    for column, (each, lines, note) in enumerate(zip(there, texts, notes, strict=True)):
        left = MARGIN + LANE_LABEL + column * (width + 12)
        shapes.append(DiagramBox(left, top, width, height, kind))
        shapes.append(DiagramText(left + 10, top + 20, each.name, "name", kind))
        shapes.extend(_lines(left + 10, top + 38, lines, "does", kind))
        shapes.extend(_lines(left + 10, top + 38 + LINE * len(lines), note, "calls", kind))
    return shapes, height


def _lines(x: int, y: int, lines: Sequence[str], role: TextRole, kind: PartKind) -> Iterator[DiagramText]:
    return (DiagramText(x, y + LINE * at, line, role, kind) for at, line in enumerate(lines))


def _calls_of(participant: Participant, calls: Mapping[str, SessionCost]) -> str:
    """How often a model is asked, where the cost of the pattern says so."""
    if participant.kind != "model":
        return ""
    found = calls.get(participant.name)
    tier = f"{participant.tier} model" if participant.tier and participant.tier != "any" else ""
    asked = f"calls: {found.calls}" if found else ""
    return "; ".join(filter(None, (tier, asked)))


def _wrap(text: str, width: int, size: int) -> list[str]:
    return textwrap.wrap(text, int(width / CHARACTER[size]), break_on_hyphens=False)
