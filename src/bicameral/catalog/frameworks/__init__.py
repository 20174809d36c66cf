"""Agents of other frameworks: their architecture, recovered from source code or from traces, for the linter.

In comes a folder of Python code (pydantic-ai, LangGraph, OpenAI Agents SDK), which is parsed and never run, or a file
of OpenTelemetry spans; out comes a `RecoveredStack` with the evidence for each part, and what could not be followed.
"""

from bicameral.catalog.frameworks._code import read_code as read_code
from bicameral.catalog.frameworks._recovery import (
    Counts as Counts,
    Evidence as Evidence,
    RecoveredStack as RecoveredStack,
    Unresolved as Unresolved,
    lint_recovered as lint_recovered,
)
from bicameral.catalog.frameworks._trace import read_trace as read_trace
