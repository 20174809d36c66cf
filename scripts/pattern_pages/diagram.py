"""The picture of a pattern as SVG: its steps in order, and its participants by kind.

Everything in it comes from the catalogue's facts. Steps are the sentences of `how`. No line is drawn between
participants, since the facts do not say who talks to whom.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from bicameral.catalog.facts import Participant, PatternFacts, SessionCost

WIDTH = 960
MARGIN = 20
GAP = 28
LINE = 17
LANE_LABEL = 80
COLUMNS = 4
CHARACTER = {13: 7.2, 12: 6.7}
"""The width of an average character of the font, by its size; a little too wide, so that no text leaves its box."""
LANES: Mapping[str, tuple[str, str, str]] = {
    "person": ("people", "#fff4e0", "#b9770e"),
    "model": ("models", "#e8f0fe", "#4a76c9"),
    "code": ("code", "#f1f3f4", "#6b7280"),
    "tool": ("tools", "#eaf6ec", "#3f8f52"),
    "store": ("stores", "#f4ecfb", "#8452b0"),
}
"""What the lane of each kind of participant is called, its colour, and that of its border."""


def draw_pattern(facts: PatternFacts) -> str:
    """The diagram of a pattern."""
    steps, below = _draw_steps(split_steps(facts.how), facts)
    lanes, height = _draw_lanes(facts, below + 24)
    title = f"{facts.id}, {facts.name}: its steps, and its participants by kind"
    body = "\n".join(f"  {each}" for each in (*steps, *lanes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif"'
        f' font-size="13" role="img" aria-labelledby="t">\n  <title id="t">{escape(title)}</title>\n'
        '  <defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 10 5 0 10z" fill="#555"/></marker></defs>\n'
        f'  <rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>\n{body}\n</svg>\n'
    )


def split_steps(how: str) -> list[str]:
    """The sentences that say how a pattern works, each a step."""
    ended = " ".join(how.split()).replace("? ", "?\n").replace(". ", ".\n")
    return [step.rstrip(".") for step in ended.splitlines()]


def _draw_steps(steps: Sequence[str], facts: PatternFacts) -> tuple[list[str], int]:
    """The steps as boxes from left to right, and where they end."""
    width = (WIDTH - 2 * MARGIN - (len(steps) - 1) * GAP) // len(steps)
    texts = [_wrap(step, width - 24, 13) for step in steps]
    top, height = MARGIN, max(map(len, texts)) * LINE + 44
    drawn: list[str] = []
    for number, lines in enumerate(texts):
        left = MARGIN + number * (width + GAP)
        drawn.append(_box(left, top, width, height, "#fff", "#555"))
        drawn.append(f'<circle cx="{left + 20}" cy="{top + 18}" r="10" fill="#555"/>')
        drawn.append(_text(left + 20, top + 22, str(number + 1), fill="#fff", anchor="middle", size=12))
        drawn.extend(_text(left + 12, top + 48 + LINE * at, line) for at, line in enumerate(lines))
        if number:
            drawn.append(_arrow(f"M{left - GAP} {top + height // 2}h{GAP - 2}"))
    bottom = top + height
    if facts.loops:
        first, last = MARGIN + width // 2, WIDTH - MARGIN - width // 2
        drawn.append(_arrow(f"M{last} {bottom}C{last} {bottom + 32} {first} {bottom + 32} {first} {bottom + 2}", True))
        limits = ", ".join(facts.bounded_by)
        told = f"again, within {limits}" if limits else "again"
        drawn.append(_text(WIDTH // 2, bottom + 42, told, fill="#555", anchor="middle", size=12))
        bottom += 48
    return drawn, bottom


def _draw_lanes(facts: PatternFacts, top: int) -> tuple[list[str], int]:
    """The participants by kind, one lane below the other, and the height of the picture."""
    calls = {each.role: each for each in facts.cost.sessions}
    drawn: list[str] = []
    for kind, (name, fill, stroke) in LANES.items():
        there = [each for each in facts.participants if each.kind == kind]
        if not there:
            continue
        drawn.append(_text(MARGIN, top + 22, name, fill=stroke, bold=True))
        for at in range(0, len(there), COLUMNS):
            row, height = _draw_row(there[at : at + COLUMNS], calls, top, fill, stroke)
            drawn.extend(row)
            top += height + 12
    return drawn, top + MARGIN - 12


def _draw_row(
    there: Sequence[Participant], calls: Mapping[str, SessionCost], top: int, fill: str, stroke: str
) -> tuple[list[str], int]:
    width = (WIDTH - 2 * MARGIN - LANE_LABEL - (COLUMNS - 1) * 12) // COLUMNS
    texts = [_wrap(each.does, width - 20, 12) for each in there]
    notes = [_wrap(note, width - 20, 12) if (note := _calls_of(each, calls)) else [] for each in there]
    height = max(len(lines) + len(note) for lines, note in zip(texts, notes, strict=True)) * LINE + 34
    drawn: list[str] = []
    for column, (each, lines, note) in enumerate(zip(there, texts, notes, strict=True)):
        left = MARGIN + LANE_LABEL + column * (width + 12)
        drawn.append(_box(left, top, width, height, fill, stroke))
        drawn.append(_text(left + 10, top + 20, each.name, bold=True))
        drawn.extend(_text(left + 10, top + 38 + LINE * at, line, size=12) for at, line in enumerate(lines))
        below = top + 38 + LINE * len(lines)
        drawn.extend(_text(left + 10, below + LINE * at, line, fill=stroke, size=12) for at, line in enumerate(note))
    return drawn, height


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


def _box(x: int, y: int, width: int, height: int, fill: str, stroke: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{stroke}"/>'


def _text(
    x: int, y: int, text: str, *, fill: str = "#111", anchor: str = "start", size: int = 13, bold: bool = False
) -> str:
    return f'<text x="{x}" y="{y}"{"".join(_attributes(fill, anchor, size, bold))}>{escape(text, quote=False)}</text>'


def _attributes(fill: str, anchor: str, size: int, bold: bool) -> Iterator[str]:
    yield f' fill="{fill}"'
    if anchor != "start":
        yield f' text-anchor="{anchor}"'
    if size != 13:
        yield f' font-size="{size}"'
    if bold:
        yield ' font-weight="600"'


def _arrow(path: str, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<path d="{path}" stroke="#555" fill="none" marker-end="url(#a)"{dashes}/>'
