"""What every provider refuses before it asks a model."""

from __future__ import annotations

from bicameral.errors import ModelError
from bicameral.models._protocol import ModelRequest


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


def _bad(message: str, fix: str) -> ModelError:
    return ModelError("models.bad-request", f"the request cannot be answered: {message}", fix=fix)
