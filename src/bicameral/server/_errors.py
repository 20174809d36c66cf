"""Errors as answers: a status, and the same facts that the command line tells, without what is nobody's business."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from bicameral.display import escaped_json
from bicameral.errors import (
    BicameralError,
    IntentError,
    ModelError,
    PlanError,
    ServerError,
)
from bicameral.secrets import masked, masked_value

log = logging.getLogger("bicameral.server")

_NOT_FOUND = frozenset(
    {
        *("durable.unknown-run", "durable.ambiguous-run", "durable.no-runs"),
        *("durable.unknown-approval", "durable.ambiguous-approval", "journal.unknown-run"),
    }
)
_CONFLICT = frozenset({"durable.answered", "durable.expired", "durable.wrong-answer", "durable.not-ended"})
_WRONG = frozenset({"durable.bad-submission", "durable.bad-state"})


class Answered(Exception):
    """An error with the status and the headers that it is answered with."""

    def __init__(self, status: int, error: BicameralError, *, retry_after: int | None = None) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = {} if retry_after is None else {"Retry-After": str(max(1, retry_after))}
        if status in (408, 413):
            # The rest of the body is not waited for.
            self.headers["Connection"] = "close"
        if status == 401:
            self.headers["WWW-Authenticate"] = 'Bearer realm="bicameral"'


def json_text(content: Any) -> bytes:
    """JSON as it goes over the wire, without known secrets; half of a character is replaced."""
    text = json.dumps(masked_value(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # What nobody sees is escaped: the same value, and inert in logs and terminals that print the answer.
    return escaped_json(text.encode("utf-8", "replace").decode()).encode()


class Json(Response):
    """A JSON answer that always can be written."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json_text(content)


def error_response(status: int, error: BicameralError, headers: Mapping[str, str] | None = None) -> Json:
    """An error as an answer."""
    return Json({"error": error.to_json()}, status, headers=dict(headers or {}))


def answer_for(error: Exception) -> Json:
    """The answer for whatever was raised. What is none of our errors is told to the log and not to the client."""
    match error:
        case Answered():
            return error_response(error.status, error.error, error.headers)
        case ModelError():
            # What a model or its server said may hold the prompt, and the prompt may hold anything.
            log.error("a model failed: %s", error.code)
            told = ModelError(error.code, "a model could not answer", fix="See the log of the server.")
            return error_response(502, told)
        case BicameralError():
            status = status_of(error)
            return _trouble(error) if status == 503 else error_response(status, error)
        case _:
            return unexpected(error)


def status_of(error: BicameralError) -> int:
    """The status that says what an error means for whoever asked."""
    if error.code in _NOT_FOUND:
        return 404
    if error.code in _CONFLICT:
        return 409
    if error.code in _WRONG or isinstance(error, IntentError | PlanError):
        return 422
    # The rest is between the server and what it works with.
    return 503


def _trouble(error: BicameralError) -> Json:
    """What the operator has to mend: paths and addresses of the machine are told to the log alone."""
    log.error("%s", masked(str(error)))
    told = ServerError(error.code, "the server cannot do this just now", fix="See the log of the server.")
    return error_response(503, told, {"Retry-After": "5"})


def unexpected(error: Exception) -> Json:
    """A mistake of ours: a number to look for in the log, and nothing else."""
    number = uuid.uuid4().hex[:12]
    # The kind and the place, not the words: an exception of foreign code may quote what it was given.
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place is not None else "?"
    log.error("unexpected %s at %s (reference %s)", type(error).__name__, where, number)
    told = ServerError("server.internal", f"something went wrong here (reference {number})", fix="See the log.")
    return error_response(500, told)
