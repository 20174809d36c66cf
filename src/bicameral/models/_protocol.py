"""What a model provider is: one request type, one reply type, one protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

Speaker = Literal["system", "user", "assistant"]
Chamber = Literal["privileged", "quarantined"]
"""Which of the two sides a model serves: the one that plans, or the one that reads what strangers wrote."""
Finish = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything a provider needs for one reply; equal requests get equal replies at temperature 0.

    `prefill` is the beginning of the assistant's own reply: the model continues it, and the reply's text does
    not repeat it. At most one of `json_schema` and `grammar` constrains the reply. `adapter` is one of the provider's.
    """

    messages: tuple[Message, ...]
    prefill: str = ""
    json_schema: dict[str, Any] | None = None
    grammar: str | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    adapter: str | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply; `cached` of the `prompt` tokens were reused from an earlier call."""

    prompt: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt + other.prompt, self.cached + other.cached, self.output + other.output)


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model wrote, why it stopped, and what it cost."""

    text: str
    finish: Finish = "stop"
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


@runtime_checkable
class Provider(Protocol):
    """A model that can be asked. `name` identifies model and weights exactly, since caches are keyed by it."""

    @property
    def name(self) -> str: ...

    @property
    def grammars(self) -> bool:
        """Whether `ModelRequest.grammar` is honoured."""
        ...

    @property
    def chamber(self) -> Chamber | None:
        """The side that it was made for; None says that it holds neither tools nor a key, and may serve either."""
        ...

    @property
    def adapters(self) -> Mapping[str, str]:
        """The jobs that the model was trained for, each with what identifies that training exactly."""
        ...

    async def generate(self, request: ModelRequest) -> ModelReply: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        """The reply's text as it is written."""
        ...

    async def aclose(self) -> None: ...
