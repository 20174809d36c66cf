"""A provider with scripted replies, for tests, examples and documentation."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from bicameral.errors import ModelError
from bicameral.models._protocol import (
    Chamber,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ReplyChunk,
    TextChunk,
    ToolCall,
    Usage,
    check_request,
    reply_chunks,
)

ScriptedReply: TypeAlias = str | ToolCall | ModelReply | ModelError
"""A text, a tool call, a whole reply, or the error that is raised instead of a reply."""
ScriptEntry: TypeAlias = ScriptedReply | Callable[[ModelRequest], ScriptedReply]
ScriptRule: TypeAlias = tuple[str | Callable[[ModelRequest], bool], ScriptEntry]
Script: TypeAlias = Sequence[ScriptedReply] | Sequence[ScriptRule] | Callable[[ModelRequest], ScriptedReply]

_CHARACTERS_PER_TOKEN = 4


class ScriptedProvider:
    """Replies from a script and records what it was asked in `requests`.

    A text that begins with the request's prefill loses it, and is cut at the first stop string and at `max_tokens`.
    Usage is a quarter of the characters, rounded down; no token is ever cached.

    Args:
        script: A list of replies, each used once and in order; or a list of rules, of which the first that matches
            replies; or a function. A rule is a pair of a text to find in the prompt (or a predicate) and the reply.
        credential: What stands for the identity of its key in checks that two chambers do not share one.

    Example:
        >>> model = ScriptedProvider([("weather", "Sunny."), ("", "I do not know.")])
        >>> (await model.generate(ModelRequest((Message("user", "What is the weather?"),)))).text
        'Sunny.'
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        grammars: bool = True,
        chamber: Chamber | None = None,
        credential: str | None = None,
    ) -> None:
        self._script: Callable[[ModelRequest], ScriptedReply] | tuple[ScriptedReply | ScriptRule, ...] = (
            script if callable(script) else tuple(script)
        )
        self.name: Final = name
        self.grammars: Final = grammars
        self.chamber: Final[Chamber | None] = chamber
        self.adapters: Final[Mapping[str, str]] = {}
        self.credential = credential
        self._used = 0
        self.requests: list[ModelRequest] = []

    async def generate(self, request: ModelRequest) -> ModelReply:
        """The scripted reply, or `models.script-exhausted` if there is none for this request."""
        check_request(request)
        self.requests.append(request)
        return _build_reply(request, self._next_reply(request), self.name)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        """The scripted reply, a line at a time."""
        for line in (await self.generate(request)).text.splitlines(keepends=True):
            yield line

    async def chunks(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """Like `stream`, with the calls, the usage and the end."""
        reply = await self.generate(request)
        for line in reply.text.splitlines(keepends=True):
            yield TextChunk(line)
        for chunk in reply_chunks(reply, text_sent=True):
            yield chunk

    async def aclose(self) -> None:
        """Does nothing; `requests` stays readable."""

    def _next_reply(self, request: ModelRequest) -> ScriptedReply:
        if callable(self._script):
            return self._script(request)
        for entry in self._script[self._used :]:
            match entry:
                case str() | ToolCall() | ModelReply() | ModelError():
                    self._used += 1
                    return entry
                case (wanted, reply) if wanted in _prompt_text(request) if isinstance(wanted, str) else wanted(request):
                    return reply(request) if callable(reply) else reply
                case _:
                    continue
        raise _script_exhausted(self.name, request, len(self.requests))


def _prompt_text(request: ModelRequest) -> str:
    return "\n".join([message.text for message in request.messages] + [request.prefill])


def _build_reply(request: ModelRequest, written: ScriptedReply, name: str) -> ModelReply:
    match written:
        case ModelError():
            raise written
        case ModelReply():
            reply = replace(written, model=written.model or name)
        case ToolCall():
            output = len(str(written.arguments)) // _CHARACTERS_PER_TOKEN
            reply = ModelReply("", "calls", Usage(_prompt_tokens(request), 0, output), calls=(written,), model=name)
        case str():
            reply = _text_reply(request, written, name)
    if not {call.name for call in reply.calls} <= {tool.name for tool in request.tools}:
        raise ModelFailure("models.bad-reply", name, "it asks for a tool that there is not", usage=reply.usage)
    return reply


def _prompt_tokens(request: ModelRequest) -> int:
    return len(_prompt_text(request)) // _CHARACTERS_PER_TOKEN


def _text_reply(request: ModelRequest, written: str, name: str) -> ModelReply:
    text = written.removeprefix(request.prefill)
    ends = [at for stop in request.stop if (at := text.find(stop)) >= 0]
    text = text[: min(ends, default=len(text))]
    most = request.max_tokens * _CHARACTERS_PER_TOKEN
    return ModelReply(
        text=text[:most],
        finish="length" if len(text) > most else "stop",
        usage=Usage(_prompt_tokens(request), output=len(text[:most]) // _CHARACTERS_PER_TOKEN),
        model=name,
    )


def _script_exhausted(name: str, request: ModelRequest, count: int) -> ModelError:
    prompt = request.messages[-1].text if request.messages else request.prefill
    shown = prompt if len(prompt) <= 200 else f"{prompt[:200]}…"
    return ModelError(
        "models.script-exhausted",
        f"{name} has no reply for request {count}, which ends in {shown!r}",
        fix="Add a reply or a rule to the script.",
    )
