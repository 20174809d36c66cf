"""What a model provider is: one request type, one reply type, one protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

Speaker = Literal["system", "user", "assistant", "tool"]
Chamber = Literal["privileged", "quarantined"]
"""Which of the two sides a model serves: the one that plans, or the one that reads what strangers wrote."""
Finish = Literal["stop", "length", "calls"]
"""Why a reply ended: by itself, since it was long enough, or since the model wants tools to be called."""


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as a model is told of it; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asks for. Nothing is called because of it until policy has decided."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    An assistant's turn may ask for `calls`; a turn of the speaker `tool` answers one of them, the one with the id
    `answers`.
    """

    speaker: Speaker
    text: str
    calls: tuple[ToolCall, ...] = ()
    answers: str | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything a provider needs for one reply; equal requests get equal replies at temperature 0.

    `prefill` is the beginning of the assistant's own reply: the model continues it, and the reply's text does
    not repeat it. At most one of `json_schema` and `grammar` constrains the reply. `adapter` is one of the provider's.
    `model` is an alias, or a hint for whoever chooses among models; `tools` are those that the model may ask for.
    `confidence` asks how sure the model was of each token; a provider that cannot say leaves it out of the reply.
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
    model: str | None = None
    tools: tuple[ToolSchema, ...] = ()
    confidence: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a reply, and how likely the model held it to be among what it was allowed to write there.

    `overruled` is how likely it held the pieces that it would rather have written and that its constraint forbade.
    """

    text: str
    probability: float
    overruled: float = 0.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply; `cached` of the `prompt` tokens were reused from an earlier call."""

    prompt: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt + other.prompt, self.cached + other.cached, self.output + other.output)


@dataclass(frozen=True, slots=True)
class Route:
    """How a model was chosen for a call: its alias, what chose it (`call`, `rule`, `phase`, `role`, `default`), why.

    `rule` is the number of the rule that matched, from 0. `attempts` are those that were asked before and did not
    serve, each with the reason.
    """

    alias: str
    by: str
    why: str
    rule: int | None = None
    attempts: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "alias": self.alias,
            "by": self.by,
            "why": self.why,
            **({"rule": self.rule} if self.rule is not None else {}),
            **({"attempts": [list(each) for each in self.attempts]} if self.attempts else {}),
        }


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model wrote or wants called, why it stopped, and what it cost.

    `model` is the name of the provider that answered, `route` how it was chosen, and `degraded` says in what way this
    is less than what was asked for. `confidence` has the reply's tokens, if the request asked for them and the provider
    can say how sure it was.
    """

    text: str
    finish: Finish = "stop"
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    calls: tuple[ToolCall, ...] = ()
    model: str = ""
    route: Route | None = None
    degraded: str | None = None
    confidence: tuple[Token, ...] = ()


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
