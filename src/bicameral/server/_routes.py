"""What all routes share: who asks, and the errors that every operation may answer with."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Request, Security
from fastapi.security import HTTPBearer

from ._desk import Desk
from ._shapes import ErrorAnswer
from ._tokens import Token

_scheme = HTTPBearer(
    auto_error=False, scheme_name="token", description="A token that `bicameral serve token add USER` made."
)

_TOLD = {
    400: "The body is no JSON.",
    401: "There is no token, or it does not hold.",
    404: "There is no such thing, or it belongs to somebody else.",
    408: "The body took too long to arrive.",
    409: "It does not fit what is there: it was answered or ended already, or the plan does not pass the check.",
    413: "The body is too large.",
    415: "The body is of another kind than `application/json`.",
    422: "The request is not as this document says.",
    429: "Too many requests, or too many watches at once.",
    500: "A mistake of ours; the message names what to look for in the log.",
    502: "A model could not answer.",
    503: "The server has too much to do, is being stopped, or its database cannot be reached.",
}
_RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}}
_HEADERS = {
    401: {"WWW-Authenticate": {"description": "How to ask.", "schema": {"type": "string"}}},
    429: _RETRY,
}
_ALWAYS = (401, 422, 429, 500, 503)
_WITH_BODY = (400, 408, 413, 415)


def errors(*more: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """The errors of an operation for the OpenAPI document."""
    statuses = sorted({*_ALWAYS, *more, *(_WITH_BODY if body else ())})
    return {
        status: {"model": ErrorAnswer, "description": _TOLD[status]}
        | ({"headers": _HEADERS[status]} if status in _HEADERS else {})
        for status in statuses
    }


def _token(request: Request, _: Annotated[object, Security(_scheme)]) -> Token:
    """The token that the guard has seen; without one nothing gets this far."""
    return request.state.token


def _desk(request: Request) -> Desk:
    return request.app.state.desk


Caller = Annotated[Token, Depends(_token)]
AtDesk = Annotated[Desk, Depends(_desk)]
RunId = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="The id of the run.")]
ApprovalId = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="The id of the approval.")]
