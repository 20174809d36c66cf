"""Language models: the provider protocol, its implementations, and the store of local weights.

A provider takes a `ModelRequest` (messages, a prefill, a JSON Schema or grammar, limits) and returns a `ModelReply`
(text, tool calls, why it ended, token usage). `LocalProvider` runs a weights file inside this process,
`RemoteProvider` asks a server, and `ScriptedProvider` replies from a script; `Client` is a small front end to any of
them. `ModelStore` keeps weights on disk, addressed by SHA-256. Nothing is loaded before the first request.
"""

from bicameral.models._local import LocalProvider as LocalProvider, engine_threads as engine_threads
from bicameral.models._model_stages import LOG_SECONDS as LOG_SECONDS, ModelStages as ModelStages
from bicameral.models._own_models import (
    HubFile as HubFile,
    is_model_reference as is_model_reference,
    own_files as own_files,
    parse_reference as parse_reference,
    parse_source as parse_source,
    probe_grammar as probe_grammar,
)
from bicameral.models._prefix_states import KeptPrefixes as KeptPrefixes
from bicameral.models._progress import ModelProgress as ModelProgress, watch_model as watch_model
from bicameral.models._protocol import (
    CallChunk as CallChunk,
    Chamber as Chamber,
    Client as Client,
    EndChunk as EndChunk,
    FailureCode as FailureCode,
    FinishReason as FinishReason,
    Message as Message,
    ModelFailure as ModelFailure,
    ModelReply as ModelReply,
    ModelRequest as ModelRequest,
    Provider as Provider,
    ReplyChunk as ReplyChunk,
    ReplyToken as ReplyToken,
    RequestOptions as RequestOptions,
    Route as Route,
    Speaker as Speaker,
    StreamingProvider as StreamingProvider,
    TextChunk as TextChunk,
    ToolCall as ToolCall,
    ToolSchema as ToolSchema,
    Usage as Usage,
    UsageChunk as UsageChunk,
    reply_chunks as reply_chunks,
    stream_chunks as stream_chunks,
    stream_texts as stream_texts,
)
from bicameral.models._schema import check_schema as check_schema, schema_violation as schema_violation
from bicameral.models._scripted import ScriptedProvider as ScriptedProvider
from bicameral.models._sources import (
    HubSource as HubSource,
    WeightsSource as WeightsSource,
    WheelSource as WheelSource,
    default_sources as default_sources,
)
from bicameral.models._store import (
    AddedModel as AddedModel,
    ModelStore as ModelStore,
    StoreEntry as StoreEntry,
    VerifyResult as VerifyResult,
)
from bicameral.models._store_files import (
    ProgressReporter as ProgressReporter,
    SilentProgress as SilentProgress,
    terminal_progress as terminal_progress,
)
from bicameral.models._weights import (
    Adapter as Adapter,
    FilePin as FilePin,
    Weights as Weights,
    WeightsKind as WeightsKind,
    WheelPin as WheelPin,
    adapters_of as adapters_of,
    find_weights as find_weights,
    known_weights as known_weights,
)
from bicameral.models.remote import FAMILIES as FAMILIES, RemoteProvider as RemoteProvider
from bicameral.models.remote._servers import Key as Key
