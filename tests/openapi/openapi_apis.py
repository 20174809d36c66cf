"""Real APIs on loopback: one with a generated document, one that does what no server should."""

from __future__ import annotations

import asyncio
import datetime as dt
import gzip
import json
import socket
import threading
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import uvicorn
from fastapi import Cookie, Depends, FastAPI, Form, Header, HTTPException, Query
from fastapi.security import APIKeyHeader, APIKeyQuery, HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

BEARER = HTTPBearer()
KEY = "correct-horse-battery"


class Pet(BaseModel):
    name: str
    kind: Literal["cat", "dog"]
    born: dt.date | None = None
    tags: list[str] = []


class StoredPet(Pet):
    id: int


def pets_api() -> FastAPI:
    """An API as people write them; `GET /openapi.json` has its document."""
    app = FastAPI(title="Pets")
    pets: dict[int, StoredPet] = {1: StoredPet(id=1, name="Ada", kind="cat", tags=["old"])}

    @app.get("/pets")
    def list_pets(kind: str | None = None, tag: Annotated[list[str] | None, Query()] = None) -> list[StoredPet]:
        wanted = set(tag or [])
        return [pet for pet in pets.values() if kind in (None, pet.kind) and wanted <= set(pet.tags)]

    @app.get("/pets/{pet_id}")
    def get_pet(pet_id: int) -> StoredPet:
        if pet_id not in pets:
            raise HTTPException(404, "there is no such pet")
        return pets[pet_id]

    @app.post("/pets", status_code=201)
    def add_pet(pet: Pet) -> StoredPet:
        stored = StoredPet(id=max(pets) + 1, **pet.model_dump())
        pets[stored.id] = stored
        return stored

    @app.delete("/pets/{pet_id}", status_code=204)
    def delete_pet(pet_id: int) -> None:
        del pets[pet_id]

    @app.post("/notes")
    def add_note(text: Annotated[str, Form()], stars: Annotated[int, Form()] = 0) -> dict[str, Any]:
        return {"text": text, "stars": stars}

    @app.get("/who")
    def who(
        x_request_id: Annotated[str | None, Header()] = None, session: Annotated[str | None, Cookie()] = None
    ) -> dict[str, str | None]:
        return {"request": x_request_id, "session": session}

    @app.get("/secret/bearer")
    def by_bearer(given: Annotated[HTTPAuthorizationCredentials, Depends(BEARER)]) -> dict[str, Any]:
        return {"ok": given.credentials == KEY, "echo": f"you sent {given.credentials}"}

    @app.get("/secret/header")
    def by_header(given: Annotated[str, Depends(APIKeyHeader(name="X-Key"))]) -> dict[str, Any]:
        return {"ok": given == KEY}

    @app.get("/secret/query")
    def by_query(given: Annotated[str, Depends(APIKeyQuery(name="api_key"))]) -> dict[str, Any]:
        return {"ok": given == KEY}

    return app


def users_api(seen: list[str]) -> Starlette:
    """An API where a path decides what is read; it notes which handler was reached, and with what."""

    def handler(name: str) -> Any:
        async def answer(request: Request) -> Response:
            given = request.path_params.get("user", "")
            seen.append(f"{name}:{given}")
            return JSONResponse({"handler": name, "user": given, "query": request.url.query})

        return answer

    return Starlette(
        routes=[
            Route("/users/{user}", handler("user")),
            Route("/users/{user}/secret", handler("secret")),
            Route("/users/", handler("all")),
            Route("/admin", handler("admin")),
            Route("/files/{user:path}", handler("file")),
            Route("/{user:path}", handler("other")),
        ]
    )


def odd_api() -> Starlette:
    """Answers that a client has to survive."""

    async def echo(request: Request) -> Response:
        headers = [[name.decode(), value.decode("latin-1")] for name, value in request.headers.raw]
        body = (await request.body()).decode("utf-8", "replace")
        path = request.scope["raw_path"].decode()
        return JSONResponse({"path": path, "query": request.url.query, "headers": headers, "body": body})

    async def endless(_: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 65_536
                # Lets the server notice that nobody reads any more.
                await asyncio.sleep(0)

        return StreamingResponse(pieces(), media_type="text/plain")

    async def bomb(_: Request) -> Response:
        packed = gzip.compress(b'"' + b"0" * 8_000_000 + b'"')
        return Response(packed, media_type="application/json", headers={"Content-Encoding": "gzip"})

    async def trailing(_: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            yield gzip.compress(b'"ok"')
            while True:
                yield b"x" * 65_536
                await asyncio.sleep(0)

        return StreamingResponse(pieces(), media_type="application/json", headers={"Content-Encoding": "gzip"})

    async def nowhere(request: Request) -> Response:
        return Response(status_code=302, headers={"Location": request.query_params["location"]})

    async def slow(_: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            while True:
                yield b" "
                await asyncio.sleep(0.05)

        return StreamingResponse(pieces(), media_type="text/plain")

    async def redirect(request: Request) -> Response:
        return RedirectResponse(request.query_params["to"], status_code=307)

    async def body(request: Request) -> Response:
        given = request.query_params
        return Response(
            given["text"].encode(),
            int(given.get("status", "200")),
            media_type=given["kind"],
            headers=dict(json.loads(given.get("more", "{}"))),
        )

    async def cookie(request: Request) -> Response:
        answer = JSONResponse({"cookie": request.headers.get("cookie", "")})
        answer.set_cookie("tracked", "yes")
        return answer

    methods = ["GET", "POST"]
    return Starlette(
        routes=[
            Route("/echo/{rest:path}", echo, methods=["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]),
            Route("/endless", endless),
            Route("/bomb", bomb),
            Route("/slow", slow),
            Route("/trailing", trailing),
            Route("/nowhere", nowhere),
            Route("/redirect", redirect, methods=methods),
            Route("/body", body),
            Route("/cookie", cookie),
        ]
    )


@contextmanager
def serving(app: Any) -> Generator[str]:
    """Serve an application on a free port of this machine; gives its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1, ws="none")
    server = uvicorn.Server(config)
    # It accepts from here on, so that nobody waits for it to start.
    listener.listen(16)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(timeout=20)
        listener.close()


def document(paths: dict[str, Any], *, version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    """A document with these paths."""
    return {"openapi": version, "info": {"title": "Test", "version": "1"}, "paths": paths, **more}


def operation(*parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An operation with these parameters whose answer is any JSON."""
    answers: dict[str, Any] = {"200": {"description": "ok", "content": {"application/json": {}}}}
    return {"operationId": "call", "parameters": list(parameters), "responses": answers, **more}


def parameter(name: str, place: str, schema: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    required = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, "schema": {"type": "string"} if schema is None else schema, **required, **more}


def path_parameter(name: str, schema: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return parameter(name, "path", schema, **more)
