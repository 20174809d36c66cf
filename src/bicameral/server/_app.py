"""The ASGI application: routes, error handlers, and the OpenAPI document."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route
from starlette.types import ASGIApp

from bicameral.errors import BicameralError, Place, ServerError
from bicameral.server._chat import chat_router
from bicameral.server._context import HttpError, SafeJsonResponse, ServerContext, error_response, response_for
from bicameral.server._endpoints import approval_router, health_router, plan_router
from bicameral.server._guard import AdmissionGuard
from bicameral.server._runs import event_router, run_router

_DESCRIPTION = """Submit requests and plans, watch and cancel runs, answer what they ask, and fetch their journals.

Every request but those for health and this document carries a token (`Authorization: Bearer TOKEN`). A token is a
user's, and a user sees his own runs and approvals; those of others are not there. Errors are JSON of one shape, with a
stable code."""
_CODES = {404: "server.not-found", 405: "server.method-not-allowed", 400: "server.bad-json"}


def create_app(context: ServerContext) -> ASGIApp:
    """The application behind its guard."""
    # No documentation pages: they load scripts from other hosts.
    app = FastAPI(
        title="Bicameral",
        version="1",
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.state.context = context
    app.openapi = partial(_openapi_document, app)
    for router in (run_router, event_router, plan_router, approval_router, chat_router, health_router):
        app.include_router(router)
    app.add_exception_handler(RequestValidationError, _handle_invalid)
    app.add_exception_handler(HTTPException, _handle_http_error)
    for kind in (HttpError, BicameralError, Exception):
        app.add_exception_handler(kind, _handle_error)
    return AdmissionGuard(app, context)


def _openapi_document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document. An optional parameter of a URL cannot be null, so `null` is taken out of its schema."""
    if app.openapi_schema is None:
        app.openapi_schema = document = FastAPI.openapi(app)
        operations = (each for methods in document["paths"].values() for each in methods.values())
        for parameter in (each for operation in operations for each in operation.get("parameters", ())):
            schema = parameter["schema"]
            if len(choices := [each for each in schema.pop("anyOf", ()) if each != {"type": "null"}]) == 1:
                schema |= choices[0]
    return app.openapi_schema


async def _handle_error(_: Request, error: Exception) -> SafeJsonResponse:
    return response_for(error)


async def _handle_http_error(request: Request, error: Exception) -> SafeJsonResponse:
    """Errors of the framework itself: unknown paths and methods, and bodies that cannot be read."""
    if not isinstance(error, HTTPException):
        return response_for(error)
    words = {404: "there is nothing here", 405: "this cannot be done here"}.get(error.status_code, "this is no JSON")
    server_error = ServerError(_CODES.get(error.status_code, "server.bad-request"), words)
    headers = {"Allow": _allowed_methods(request)} if error.status_code == 405 else error.headers
    return error_response(error.status_code, server_error, headers)


def _allowed_methods(request: Request) -> str:
    """All methods of a path: the framework names only those of the first route that matches."""
    routes = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    methods = {method for route in routes if isinstance(route, Route) for method in route.methods or ()}
    return ", ".join(sorted(methods))


async def _handle_invalid(_: Request, error: Exception) -> SafeJsonResponse:
    """A request that does not fit the schema. The value itself is not repeated: it may hold anything."""
    faults: list[Any] = list(error.errors()) if isinstance(error, RequestValidationError) else []
    first: dict[str, Any] = faults[0] if faults else {}
    if first.get("type") == "json_invalid":
        return error_response(400, ServerError("server.bad-json", "the body is no JSON"))
    where = ".".join(str(part) for part in first.get("loc", ()))
    # The name of an unknown field is text of the client's, and is not repeated either.
    place = Place(argument=where[:200]) if where and first.get("type") != "extra_forbidden" else None
    message = "a field is not known" if place is None and where else _validation_message(first)
    return error_response(422, ServerError("server.bad-request", message, place=place, fix="See /openapi.json."))


def _validation_message(fault: dict[str, Any]) -> str:
    """Pydantic's message, unless it is of a kind that quotes the input."""
    kind = str(fault.get("type", ""))
    quoting = ("value_error", "union_tag_invalid", "enum", "literal_error")
    if kind in quoting:
        return "the value is not allowed here"
    said = str(fault.get("msg", "")).rstrip(".")
    return said[:1].lower() + said[1:] or "the request is not as it must be"
