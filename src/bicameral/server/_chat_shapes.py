"""Chat completions as OpenAI's clients send and read them, as far as an agent has use for them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ._shapes import SAID, Given, Id, Told, Whole

MODEL = "bicameral"
MAX_MESSAGES = 200
MAX_SAID = 5_000
"""More than a request may have, so that one that is too long gets the answer that says so."""


class _Open(Given):
    # Clients send much that an agent has no use for; what is left out is named in the answer.
    model_config = ConfigDict(extra="allow")


class TextPart(_Open):
    """A part of a message; only text can be a request."""

    type: Literal["text"]
    text: Annotated[str, Field(max_length=MAX_SAID, pattern=SAID)]


class UserMessage(_Open):
    """What the user says. The last one is the request."""

    role: Literal["user"]
    content: (
        Annotated[str, Field(max_length=MAX_SAID, pattern=SAID)]
        | Annotated[list[TextPart], Field(min_length=1, max_length=16)]
    )


class OtherMessage(_Open):
    """What others said, or are said to have said. It is never read."""

    role: Literal["system", "developer", "assistant", "tool", "function"]


class ChatWanted(_Open):
    """A request in the form of a chat."""

    model: Annotated[str, Field(max_length=200, json_schema_extra={"enum": [MODEL]})]
    messages: Annotated[
        list[Annotated[UserMessage | OtherMessage, Field(discriminator="role")]],
        Field(
            min_length=1,
            max_length=MAX_MESSAGES,
            json_schema_extra={"contains": {"properties": {"role": {"const": "user"}}}},
        ),
    ]
    stream: bool | None = None
    n: Annotated[int, Field(ge=1, le=1), Whole] | None = None


class ChatMessage(Told):
    """What is answered: `content`, or why there is none in `refusal`."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None = None


class ChatChoice(Told):
    index: int
    message: ChatMessage
    finish_reason: Literal["stop"]
    logprobs: None = None


class ChatUsage(Told):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatFacts(Told):
    """What an ordinary client does not know of."""

    run: Id
    state: str
    approvals: list[str]
    """What the run waits for."""
    ignored: list[str]
    """What was sent and not used."""


class ChatTold(Told):
    """The answer of a run in the form of a chat."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage
    bicameral: ChatFacts


class ModelTold(Told):
    """The agent, as a model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(Told):
    """All there are: the agent."""

    object: Literal["list"]
    data: list[ModelTold]
