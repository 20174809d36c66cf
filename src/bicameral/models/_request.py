"""What every provider refuses before it asks a model."""

from __future__ import annotations

import re

from bicameral.errors import ModelError
from bicameral.models._protocol import Message, ModelRequest

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_request(request: ModelRequest) -> None:
    """Raise `models.bad-request` for a request that no model could answer."""
    if request.json_schema is not None and request.grammar is not None:
        raise _bad("it has both a JSON Schema and a grammar", "Keep one of them.")
    if request.max_tokens < 1:
        raise _bad(f"max_tokens is {request.max_tokens}", "Allow at least one token.")
    if request.temperature < 0:
        raise _bad(f"the temperature is {request.temperature}", "Use 0 for the same reply each time.")
    if request.timeout is not None and request.timeout <= 0:
        raise _bad(f"the timeout is {request.timeout} s", "Use None to wait without limit.")
    if "" in request.stop:
        raise _bad("a stop string is empty", "Leave it out.")
    if request.tools:
        _check_tools(request)
    _check_turns(request.messages)


def _check_tools(request: ModelRequest) -> None:
    if request.grammar is not None or request.prefill:
        raise _bad("it has tools, and a grammar or a prefill", "A reply that may be a call has a shape of its own.")
    names = [tool.name for tool in request.tools]
    if wrong := next((name for name in names if not _NAME.fullmatch(name)), None):
        raise _bad(f"a tool is called {wrong!r}", "Use letters, digits, '_' and '-', at most 64 of them.")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise _bad(f"two tools are called {twice!r}", "Give each a name of its own.")


def _check_turns(messages: tuple[Message, ...]) -> None:
    asked: set[str] = set()
    for message in messages:
        if message.calls and message.speaker != "assistant":
            raise _bad(f"the speaker {message.speaker!r} asks for calls", "Only the assistant does.")
        asked |= {call.id for call in message.calls}
        if (message.speaker == "tool") != (message.answers is not None) or not {message.answers} <= asked | {None}:
            raise _bad("a result answers no call that was asked for", "Set `answers` to the id of an earlier call.")


def _bad(message: str, fix: str) -> ModelError:
    return ModelError("models.bad-request", f"the request cannot be answered: {message}", fix=fix)
