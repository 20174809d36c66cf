"""Telemetry: spans and counters in the conventions of OpenTelemetry.

Rooms report with `span`, `count` and `measure`. Nothing leaves the process unless the process has set up OpenTelemetry;
then it goes to that provider. Only names, numbers and summaries of labels are reported: never an argument, a result, a
prompt or untrusted text. OpenTelemetry is imported only by `export_from_environment`, which the command line calls.
This room imports only labels, errors, display and secrets.
"""

from bicameral.telemetry._export import ExportStatus as ExportStatus, export_from_environment as export_from_environment
from bicameral.telemetry._signals import (
    Fact as Fact,
    Span as Span,
    SpanKind as SpanKind,
    add_event as add_event,
    count as count,
    label_summary as label_summary,
    measure as measure,
    safe_text as safe_text,
    scrubbed_text as scrubbed_text,
    span as span,
)
