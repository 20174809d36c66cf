"""Telemetry: spans and counters for whoever watches over many runs, in OpenTelemetry's words.

What a room does is told with `span`, `count` and `measure`; nothing of it leaves the process unless someone in it has
set up OpenTelemetry, and then it goes where they say. Only names, numbers and summaries of labels are told: never an
argument, a result, a prompt or a word that a stranger wrote. OpenTelemetry is never imported here but by
`from_environment`, which the command line calls. This room imports nothing but labels and errors.
"""

from ._export import Exporting, from_environment
from ._meters import count, measure
from ._safe import Fact, safe
from ._spans import Span, SpanKind, span
from ._summary import summary

__all__ = [
    "Exporting",
    "Fact",
    "Span",
    "SpanKind",
    "count",
    "from_environment",
    "measure",
    "safe",
    "span",
    "summary",
]
