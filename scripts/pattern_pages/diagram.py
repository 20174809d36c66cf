"""The picture of a pattern as SVG: the shapes of its diagram, in the colours of the pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from bicameral.catalog.diagrams import (
    DiagramArrow,
    DiagramBox,
    DiagramDot,
    DiagramShape,
    DiagramText,
    PartKind,
    pattern_diagram,
)
from bicameral.catalog.facts import PatternFacts

COLOURS: Mapping[PartKind, tuple[str, str]] = {
    "step": ("#fff", "#555"),
    "person": ("#fff4e0", "#b9770e"),
    "model": ("#e8f0fe", "#4a76c9"),
    "code": ("#f1f3f4", "#6b7280"),
    "tool": ("#eaf6ec", "#3f8f52"),
    "store": ("#f4ecfb", "#8452b0"),
}
"""The colour of a box and that of its border, by what it stands for."""


def draw_pattern(facts: PatternFacts) -> str:
    """The diagram of a pattern."""
    diagram = pattern_diagram(facts)
    body = "\n".join(f"  {_draw_shape(each)}" for each in diagram.shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {diagram.width} {diagram.height}"'
        ' font-family="system-ui, sans-serif" font-size="13" role="img" aria-labelledby="t">\n'
        f'  <title id="t">{escape(diagram.title)}</title>\n'
        '  <defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 10 5 0 10z" fill="#555"/></marker></defs>\n'
        f'  <rect width="{diagram.width}" height="{diagram.height}" rx="8" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _draw_shape(shape: DiagramShape) -> str:
    match shape:
        case DiagramBox(x=x, y=y, width=width, height=height, kind=kind):
            fill, stroke = COLOURS[kind]
            return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{stroke}"/>'
        case DiagramDot(x=x, y=y):
            return f'<circle cx="{x}" cy="{y}" r="10" fill="#555"/>'
        case DiagramArrow(path=path, again=again):
            dashes = ' stroke-dasharray="5 4"' if again else ""
            return f'<path d="{path}" stroke="#555" fill="none" marker-end="url(#a)"{dashes}/>'
        case DiagramText(x=x, y=y, text=text):
            return f'<text x="{x}" y="{y}"{"".join(_text_attributes(shape))}>{escape(text, quote=False)}</text>'


def _text_attributes(text: DiagramText) -> Iterator[str]:
    fills = {"number": "#fff", "again": "#555", "lane": COLOURS[text.kind][1], "calls": COLOURS[text.kind][1]}
    yield f' fill="{fills.get(text.role, "#111")}"'
    if text.role in ("number", "again"):
        yield ' text-anchor="middle"'
    if text.role in ("number", "again", "does", "calls"):
        yield ' font-size="12"'
    if text.role in ("lane", "name"):
        yield ' font-weight="600"'
