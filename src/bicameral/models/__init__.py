"""Models: one protocol, and the providers that speak it.

In comes a `ModelRequest` (messages, a prefill, a JSON Schema or grammar, bounds), out comes a `ModelReply` (text,
the calls it wants, why it ended, what it cost). `LocalProvider` runs a weights file inside this process,
`RemoteProvider` asks a server, `ScriptedProvider` replies from a script; `Client` asks any of them. `ModelStore` keeps
weights on disk, addressed by SHA-256. Nothing is loaded at import or before the first request.
"""

from bicameral.models._adapters import Adapter, adapters_of
from bicameral.models._chunks import (
    CallChunk,
    Chunk,
    ChunkedProvider,
    EndChunk,
    TextChunk,
    UsageChunk,
    chunks_of,
    texts_of,
    whole,
)
from bicameral.models._client import Bounds, Client
from bicameral.models._cores import engine_threads
from bicameral.models._failures import FailureCode, ModelFailure
from bicameral.models._keys import Key
from bicameral.models._known import FilePin, Kind, Weights, WheelPin, find_weights, known_weights
from bicameral.models._litellm import LiteLLMProvider
from bicameral.models._local import LocalProvider
from bicameral.models._protocol import (
    Chamber,
    Finish,
    Message,
    ModelReply,
    ModelRequest,
    Provider,
    Route,
    Speaker,
    Token,
    ToolCall,
    ToolSchema,
    Usage,
)
from bicameral.models._schema import check_schema, unfit
from bicameral.models._scripted import ScriptedProvider
from bicameral.models._sources import HubSource, Source, WheelSource, default_sources
from bicameral.models._store import ModelStore, StoreEntry, VerifyResult
from bicameral.models._store_progress import Progress, SilentProgress, terminal_progress
from bicameral.models.remote import FAMILIES, RemoteProvider

__all__ = [
    "FAMILIES",
    "Adapter",
    "Bounds",
    "CallChunk",
    "Chamber",
    "Chunk",
    "ChunkedProvider",
    "Client",
    "EndChunk",
    "FailureCode",
    "FilePin",
    "Finish",
    "HubSource",
    "Key",
    "Kind",
    "LiteLLMProvider",
    "LocalProvider",
    "Message",
    "ModelFailure",
    "ModelReply",
    "ModelRequest",
    "ModelStore",
    "Progress",
    "Provider",
    "RemoteProvider",
    "Route",
    "ScriptedProvider",
    "SilentProgress",
    "Source",
    "Speaker",
    "StoreEntry",
    "TextChunk",
    "Token",
    "ToolCall",
    "ToolSchema",
    "Usage",
    "UsageChunk",
    "VerifyResult",
    "Weights",
    "WheelPin",
    "WheelSource",
    "adapters_of",
    "check_schema",
    "chunks_of",
    "default_sources",
    "engine_threads",
    "find_weights",
    "known_weights",
    "terminal_progress",
    "texts_of",
    "unfit",
    "whole",
]
