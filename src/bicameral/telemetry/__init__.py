"""Telemetry: spans and counters for whoever watches over many runs, in OpenTelemetry's words.

What a room does is told with `span`, `count` and `measure`; nothing of it leaves the process unless someone in it has
set up OpenTelemetry, and then it goes where they say. Only names, numbers and summaries of labels are told: never an
argument, a result, a prompt or a word that a stranger wrote. OpenTelemetry is never imported here but by
`export_from_environment`, which the command line calls. This room imports nothing but labels and errors.
"""

from bicameral.telemetry._export import ExportStatus, export_from_environment
from bicameral.telemetry._signals import Fact, Span, SpanKind, count, label_summary, measure, safe_text, span

__all__ = [
    "ExportStatus",
    "Fact",
    "Span",
    "SpanKind",
    "count",
    "export_from_environment",
    "label_summary",
    "measure",
    "safe_text",
    "span",
]
