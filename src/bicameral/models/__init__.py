"""Models: one protocol, and the providers that speak it.

In comes a `ModelRequest` (messages, a prefill, a JSON Schema or grammar, bounds), out comes a `ModelReply` (text,
why it ended, what it cost). `LocalProvider` runs a weights file inside this process, `ScriptedProvider` replies from
a script. `ModelStore` keeps weights on disk, addressed by SHA-256. Nothing is loaded at import or before the first
request.
"""

from bicameral.models._adapters import Adapter, adapters_of
from bicameral.models._known import Weights, WheelPin, find_weights, known_weights
from bicameral.models._local import LocalProvider
from bicameral.models._protocol import Chamber, Finish, Message, ModelReply, ModelRequest, Provider, Speaker, Usage
from bicameral.models._scripted import ScriptedProvider
from bicameral.models._sources import HubSource, Source, WheelSource, default_sources
from bicameral.models._store import ModelStore, StoreEntry, VerifyResult
from bicameral.models._store_progress import Progress, SilentProgress, terminal_progress

__all__ = [
    "Adapter",
    "Chamber",
    "Finish",
    "HubSource",
    "LocalProvider",
    "Message",
    "ModelReply",
    "ModelRequest",
    "ModelStore",
    "Progress",
    "Provider",
    "ScriptedProvider",
    "SilentProgress",
    "Source",
    "Speaker",
    "StoreEntry",
    "Usage",
    "VerifyResult",
    "Weights",
    "WheelPin",
    "WheelSource",
    "adapters_of",
    "default_sources",
    "find_weights",
    "known_weights",
    "terminal_progress",
]
