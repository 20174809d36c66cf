"""The application: its routes, its errors, and the document that describes both."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route
from starlette.types import ASGIApp

from bicameral.errors import BicameralError, Place, ServerError

from ._approvals import approvals
from ._chat import chat
from ._desk import Desk
from ._errors import Answered, Json, answer_for, error_response
from ._events import events
from ._guard import Guard
from ._health import health
from ._plans import plans
from ._runs import runs

_STORY = """Submit requests and plans, watch and cancel runs, answer what they ask, and fetch their journals.

Every request but those for health and this document carries a token (`Authorization: Bearer TOKEN`). A token is a
user's, and a user sees his own runs and approvals; those of others are not there. Errors are JSON of one shape, with a
stable code."""
_CODES = {404: "server.not-found", 405: "server.method-not-allowed", 400: "server.bad-json"}


def create_app(desk: Desk) -> ASGIApp:
    """The application behind its guard."""
    # The pages that show a document load their code from elsewhere: there are none.
    app = FastAPI(
        title="Bicameral",
        version="1",
        description=_STORY,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.state.desk = desk
    app.openapi = partial(_document, app)
    for router in (runs, events, plans, approvals, chat, health):
        app.include_router(router)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    for kind in (Answered, BicameralError, Exception):
        app.add_exception_handler(kind, _failed)
    return Guard(app, desk)


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document. A parameter that may be left out is not one that may be null, which no URL can say."""
    if app.openapi_schema is None:
        app.openapi_schema = document = FastAPI.openapi(app)
        operations = (each for methods in document["paths"].values() for each in methods.values())
        for parameter in (each for operation in operations for each in operation.get("parameters", ())):
            schema = parameter["schema"]
            if len(choices := [each for each in schema.pop("anyOf", ()) if each != {"type": "null"}]) == 1:
                schema |= choices[0]
    return app.openapi_schema


async def _failed(_: Request, error: Exception) -> Json:
    return answer_for(error)


async def _http(request: Request, error: Exception) -> Json:
    """What the framework itself refuses: unknown paths and methods, and bodies that cannot be read."""
    if not isinstance(error, HTTPException):
        return answer_for(error)
    words = {404: "there is nothing here", 405: "this cannot be done here"}.get(error.status_code, "this is no JSON")
    told = ServerError(_CODES.get(error.status_code, "server.bad-request"), words)
    headers = {"Allow": _methods(request)} if error.status_code == 405 else error.headers
    return error_response(error.status_code, told, headers)


def _methods(request: Request) -> str:
    """Everything that can be done at a path: the framework names only what its first route can do."""
    routes = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    methods = {method for route in routes if isinstance(route, Route) for method in route.methods or ()}
    return ", ".join(sorted(methods))


async def _invalid(_: Request, error: Exception) -> Json:
    """What does not fit the document. The value itself is not repeated: it may be anything."""
    found: list[Any] = list(error.errors()) if isinstance(error, RequestValidationError) else []
    first: dict[str, Any] = found[0] if found else {}
    if first.get("type") == "json_invalid":
        return error_response(400, ServerError("server.bad-json", "the body is no JSON"))
    where = ".".join(str(part) for part in first.get("loc", ()))
    # Names of fields that we do not know are the client's words.
    place = Place(argument=where[:200]) if where and first.get("type") != "extra_forbidden" else None
    message = "a field is not known" if place is None and where else _message(first)
    return error_response(422, ServerError("server.bad-request", message, place=place, fix="See /openapi.json."))


def _message(fault: dict[str, Any]) -> str:
    """What pydantic says, unless it quotes what it was given."""
    kind = str(fault.get("type", ""))
    quoting = ("value_error", "union_tag_invalid", "enum", "literal_error")
    if kind in quoting:
        return "the value is not allowed here"
    said = str(fault.get("msg", "")).rstrip(".")
    return said[:1].lower() + said[1:] or "the request is not as it must be"
