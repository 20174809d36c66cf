"""Spans of trace files: OTLP JSON (an export, or a line for each) and the JSON of the console exporter.

Attributes are read by the semantic conventions of OpenTelemetry GenAI, OpenInference and OpenLLMetry (Traceloop), older
names included. Everything in a trace is untrusted: sizes are limited, and what cannot be read is counted.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from bicameral.errors import CatalogError, Place

MAX_BYTES = 50_000_000
MAX_SPANS = 100_000
MAX_UNREADABLE = 1_000
"""Lines that are no JSON; after so many the rest is not tried."""
SpanKind: TypeAlias = Literal[
    "model", "tool", "agent", "workflow", "retrieval", "guard", "judge", "embedding", "approval", "other"
]


@dataclass(slots=True)
class Span:
    """One operation of a trace. Names are untrusted text."""

    id: str
    parent: str | None
    trace: str
    name: str
    start: int
    end: int
    failed: bool
    attributes: Mapping[str, Any]
    place: Place
    kind: SpanKind = "other"
    subject: str = ""
    """The name of the agent or tool."""
    children: list[Span] = field(default_factory=list["Span"])
    delegates: bool = False
    """Whether an agent ran inside the call of this tool."""

    @property
    def model(self) -> str | None:
        """The model that was called."""
        return _text(self.attributes, "gen_ai.request.model", "gen_ai.response.model", "llm.model_name")

    @property
    def input_tokens(self) -> int:
        names = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
        return _count(self.attributes, *names)

    @property
    def output_tokens(self) -> int:
        return _count(
            self.attributes,
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.token_count.completion",
        )

    @property
    def is_mcp(self) -> bool:
        """Whether a server of the Model Context Protocol ran the tool."""
        return "mcp.method.name" in self.attributes or self.attributes.get("gen_ai.tool.type") == "extension"

    def walk(self) -> Iterator[Span]:
        """The span and all below it, in the order of their start."""
        waiting: list[Span] = [self]
        while waiting:
            span = waiting.pop()
            yield span
            waiting.extend(reversed(span.children))


def _text(attributes: Mapping[str, Any], *names: str) -> str | None:
    return next((value for name in names if isinstance(value := attributes.get(name), str) and value), None)


def _count(attributes: Mapping[str, Any], *names: str) -> int:
    for name in names:
        value = attributes.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
            return int(value)
    return 0


_OPERATIONS: Mapping[str, SpanKind] = {
    "chat": "model",
    "generate_content": "model",
    "text_completion": "model",
    "call_llm": "model",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "create_agent": "other",
    "invoke_workflow": "workflow",
    "retrieval": "retrieval",
    "embeddings": "embedding",
}
_OPENINFERENCE: Mapping[str, SpanKind] = {
    "LLM": "model",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "workflow",
    "RETRIEVER": "retrieval",
    "GUARDRAIL": "guard",
    "EVALUATOR": "judge",
    "EMBEDDING": "embedding",
}
_TRACELOOP: Mapping[str, SpanKind] = {"workflow": "workflow", "task": "other", "agent": "agent", "tool": "tool"}
_LLM_REQUESTS = ("chat", "completion")
_APPROVAL = re.compile(r"\b(?:human|person)?[ _-]?(?:approval|approve|interrupt|confirmation)\b", re.IGNORECASE)
_PREFIX = re.compile(r"(?:invoke_agent|execute_tool|agent run|running tool:?|agent)\s+|\.(?:agent|tool|workflow|task)$")


def span_kind(name: str, attributes: Mapping[str, Any]) -> SpanKind:
    """What a span is, by the conventions that its attributes follow."""
    operation = str(attributes.get("gen_ai.operation.name", ""))
    if operation in _OPERATIONS:
        return _OPERATIONS[operation]
    kind = str(attributes.get("openinference.span.kind", "")).upper()
    if kind in _OPENINFERENCE:
        return _OPENINFERENCE[kind]
    kind = str(attributes.get("traceloop.span.kind", "")).lower()
    if kind in _TRACELOOP:
        return _TRACELOOP[kind]
    if str(attributes.get("llm.request.type", "")) in _LLM_REQUESTS:
        return "model"
    if "gen_ai.tool.name" in attributes:
        return "tool"
    if any(each in attributes for each in ("gen_ai.request.model", "gen_ai.usage.input_tokens", "llm.model_name")):
        # An agent span of an older convention has the model and the usage of the whole, too.
        return "agent" if "gen_ai.agent.name" in attributes or "agent_name" in attributes else "model"
    if "gen_ai.agent.name" in attributes or "agent_name" in attributes:
        return "agent"
    return "approval" if _APPROVAL.search(name[:200]) else "other"


def _span_subject(name: str, kind: SpanKind, attributes: Mapping[str, Any]) -> str:
    names = {
        "tool": ("gen_ai.tool.name", "tool.name", "traceloop.entity.name"),
        "agent": ("gen_ai.agent.name", "agent_name", "agent.name", "traceloop.entity.name", "gen_ai.agent.id"),
    }.get(kind, ("traceloop.entity.name", "gen_ai.workflow.name"))
    return _text(attributes, *names) or _PREFIX.sub("", name[:500]) or name


@dataclass(frozen=True, slots=True)
class TraceFile:
    """The spans of a file, and how much of it could not be read."""

    spans: Sequence[Span]
    unreadable: Sequence[Place]


def read_trace_file(path: Path) -> TraceFile:
    """The spans of a file; `stack.cannot-read` if it cannot be read, `stack.not-a-trace` if it has no spans."""
    place = Place(file=str(path))
    try:
        if not path.is_file():
            what = "this is a folder" if path.is_dir() else "there is no such file"
            raise CatalogError("stack.cannot-read", what, place=place, fix="Check the path and its permissions.")
        if path.stat().st_size > MAX_BYTES:
            raise CatalogError(
                "stack.too-large", f"the file has more than {MAX_BYTES:,} bytes", place=place, fix="Check fewer traces."
            )
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CatalogError("stack.cannot-read", "the file is not text in UTF-8", place=place) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CatalogError("stack.cannot-read", f"the file cannot be read: {reason}", place=place) from None
    return parse_trace(text, str(path))


def parse_trace(text: str, file: str) -> TraceFile:
    """The spans of a text in one of the formats."""
    documents, bad = _parse_documents(text, file)
    lines = _SpanLines(text, file)
    spans: dict[tuple[str, str], Span] = {}
    for document in documents:
        for found in _document_spans(document):
            span = _make_span(found, lines)
            if span is not None and spans.setdefault((span.trace, span.id), span) is span and len(spans) > MAX_SPANS:
                message = f"there are more than {MAX_SPANS:,} spans"
                raise CatalogError("stack.too-large", message, place=Place(file=file), fix="Check fewer traces.")
    if not spans:
        raise CatalogError(
            "stack.not-a-trace",
            "there are no spans in it",
            place=bad[0] if bad and not documents else Place(file=file),
            expected="OTLP JSON, or what the console exporter of OpenTelemetry writes",
        )
    return TraceFile(_link_spans(spans), bad)


def _parse_documents(text: str, file: str) -> tuple[list[Any], list[Place]]:
    """Every JSON document of a text, one after another, and the lines at which there is none."""
    decoder = json.JSONDecoder()
    documents: list[Any] = []
    bad: list[Place] = []
    at, line, counted = 0, 1, 0
    blank = re.compile(r"[\s,]*")
    while True:
        begin = blank.match(text, at)
        at = begin.end() if begin is not None else at
        if at >= len(text) or len(bad) >= MAX_UNREADABLE:
            return documents, bad
        line, counted = line + text.count("\n", counted, at), at
        try:
            document, at = decoder.raw_decode(text, at)
            documents.append(document)
        except (ValueError, RecursionError):
            # The rest of a broken line is left out; the next line may be a document again.
            bad.append(Place(file=file, line=line))
            end = text.find("\n", at)
            at = len(text) if end < 0 else end


class _SpanLines:
    """The line of each span in a file."""

    _ID = re.compile(r'"(?:spanId|span_id)"\s*:\s*"(?:0x)?([0-9A-Za-z+/=]{1,64})"')

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        starts = [found.start() + 1 for found in re.finditer("\n", text)]
        self._lines: dict[str, int] = {}
        for found in self._ID.finditer(text):
            self._lines.setdefault(found[1], bisect_right(starts, found.start()) + 1)

    def place(self, id: str) -> Place:
        return Place(file=self._file, line=self._lines.get(id), step=f"span {id}")


def _document_spans(document: Any) -> Iterator[Mapping[str, Any]]:
    """The spans in a document, each a mapping of its own format."""
    waiting: list[Any] = [document]
    while waiting:
        found = waiting.pop()
        if isinstance(found, list):
            waiting.extend(reversed(cast("list[Any]", found)))
        elif isinstance(found, dict):
            each = cast("dict[str, Any]", found)
            inner = next((each[key] for key in _CONTAINERS if isinstance(each.get(key), list)), None)
            if inner is not None:
                waiting.append(inner)
            elif "spanId" in each or isinstance(each.get("context"), dict):
                yield each


_CONTAINERS = ("resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "spans", "resource_spans", "scope_spans")


def _make_span(found: Mapping[str, Any], lines: _SpanLines) -> Span | None:
    if "spanId" in found:
        id, trace, parent = found.get("spanId"), found.get("traceId"), found.get("parentSpanId")
        attributes = _otlp_attributes(found.get("attributes"))
        start, end = (_nanoseconds(found.get(key)) for key in ("startTimeUnixNano", "endTimeUnixNano"))
        status = _mapping(found.get("status")).get("code")
    else:
        context = _mapping(found.get("context"))
        id, trace, parent = context.get("span_id"), context.get("trace_id"), found.get("parent_id")
        attributes = _mapping(found.get("attributes"))
        start, end = (_nanoseconds(found.get(key)) for key in ("start_time", "end_time"))
        status = _mapping(found.get("status")).get("status_code")
    if not isinstance(id, str) or not (id := _plain_id(id)):
        return None
    name = found.get("name")
    name = name if isinstance(name, str) else ""
    kind = span_kind(name, attributes)
    failed = status in (2, "STATUS_CODE_ERROR", "ERROR") or "error.type" in attributes
    return Span(
        id,
        _plain_id(parent) if isinstance(parent, str) and parent else None,
        _plain_id(trace) if isinstance(trace, str) else "",
        name,
        start,
        max(start, end),
        failed,
        attributes,
        lines.place(id),
        kind,
        _span_subject(name, kind, attributes),
    )


def _plain_id(text: str) -> str:
    """An id without its prefix; letters, digits and the signs of base64 only, so that it can be shown."""
    return re.sub(r"[^0-9A-Za-z+/=]", "", text.removeprefix("0x"))[:64]


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _otlp_attributes(given: Any) -> Mapping[str, Any]:
    if isinstance(given, dict):
        return cast("Mapping[str, Any]", given)
    found: dict[str, Any] = {}
    for each in cast("list[Any]", given) if isinstance(given, list) else []:
        pair = _mapping(each)
        if isinstance(key := pair.get("key"), str):
            found[key] = _otlp_value(_mapping(pair.get("value")))
    return found


def _otlp_value(value: Mapping[str, Any]) -> Any:
    """A value of OTLP: one key says its type, and whole numbers may be texts."""
    for key, held in value.items():
        match key:
            case "intValue":
                return _whole_number(held)
            case "stringValue" | "boolValue" | "doubleValue":
                return held
            case "arrayValue":
                return held
            case _:
                pass
    return None


def _whole_number(value: Any) -> int | None:
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value) else None


def _nanoseconds(value: Any) -> int:
    """A time of either format; 0 if there is none."""
    if isinstance(value, str) and not value.isdigit():
        try:
            return int(datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp() * 1e9)
        except (ValueError, OverflowError, OSError):
            return 0
    return _whole_number(value) or 0


def _link_spans(spans: Mapping[tuple[str, str], Span]) -> list[Span]:
    """The spans without a parent, each with its children; a circle of parents is cut where it is closed."""
    roots: list[Span] = []
    rooted: set[int] = set()
    ordered = sorted(spans.values(), key=lambda each: (each.start, each.id))
    for span in ordered:
        way: dict[int, Span] = {}
        each: Span | None = span
        while each is not None and id(each) not in rooted:
            way[id(each)] = each
            parent = spans.get((each.trace, each.parent)) if each.parent is not None else None
            if parent is None or id(parent) in way:
                each.parent = None
            each = parent if each.parent is not None else None
        rooted.update(way)
    for span in ordered:
        if span.parent is None:
            roots.append(span)
        else:
            spans[span.trace, span.parent].children.append(span)
    return roots
