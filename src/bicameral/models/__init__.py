"""Language models: the provider protocol, its implementations, and the store of local weights.

A provider takes a `ModelRequest` (messages, a prefill, a JSON Schema or grammar, limits) and returns a `ModelReply`
(text, tool calls, why it ended, token usage). `LocalProvider` runs a weights file inside this process,
`RemoteProvider` asks a server, and `ScriptedProvider` replies from a script; `Client` is a small front end to any of
them. `ModelStore` keeps weights on disk, addressed by SHA-256. Nothing is loaded before the first request.
"""

from bicameral.models._local import LocalProvider, engine_threads
from bicameral.models._protocol import (
    CallChunk,
    Chamber,
    Client,
    EndChunk,
    FailureCode,
    FinishReason,
    Message,
    ModelFailure,
    ModelReply,
    ModelRequest,
    Provider,
    ReplyChunk,
    ReplyToken,
    RequestOptions,
    Route,
    Speaker,
    StreamingProvider,
    TextChunk,
    ToolCall,
    ToolSchema,
    Usage,
    UsageChunk,
    reply_chunks,
    stream_chunks,
    stream_texts,
)
from bicameral.models._schema import check_schema, schema_violation
from bicameral.models._scripted import ScriptedProvider
from bicameral.models._sources import HubSource, WeightsSource, WheelSource, default_sources
from bicameral.models._store import ModelStore, StoreEntry, VerifyResult
from bicameral.models._store_files import ProgressReporter, SilentProgress, terminal_progress
from bicameral.models._weights import (
    Adapter,
    FilePin,
    Weights,
    WeightsKind,
    WheelPin,
    adapters_of,
    find_weights,
    known_weights,
)
from bicameral.models.remote import FAMILIES, RemoteProvider
from bicameral.models.remote._servers import Key

__all__ = [
    "FAMILIES",
    "Adapter",
    "CallChunk",
    "Chamber",
    "Client",
    "EndChunk",
    "FailureCode",
    "FilePin",
    "FinishReason",
    "HubSource",
    "Key",
    "LocalProvider",
    "Message",
    "ModelFailure",
    "ModelReply",
    "ModelRequest",
    "ModelStore",
    "ProgressReporter",
    "Provider",
    "RemoteProvider",
    "ReplyChunk",
    "ReplyToken",
    "RequestOptions",
    "Route",
    "ScriptedProvider",
    "SilentProgress",
    "Speaker",
    "StoreEntry",
    "StreamingProvider",
    "TextChunk",
    "ToolCall",
    "ToolSchema",
    "Usage",
    "UsageChunk",
    "VerifyResult",
    "Weights",
    "WeightsKind",
    "WeightsSource",
    "WheelPin",
    "WheelSource",
    "adapters_of",
    "check_schema",
    "default_sources",
    "engine_threads",
    "find_weights",
    "known_weights",
    "reply_chunks",
    "schema_violation",
    "stream_chunks",
    "stream_texts",
    "terminal_progress",
]
