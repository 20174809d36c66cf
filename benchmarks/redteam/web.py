"""A web server on this machine for attacks that a page makes, and what the product fetches from it."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bicameral.plans import parse
from bicameral.runs import Failed, Finished, run_plan
from bicameral.toolboxes.web import toolbox
from bicameral.tools import Registry, Surroundings

from .case import World


class Site(dict[str, bytes]):
    """What is served under each path; `headers` go with every answer."""

    def __init__(self, registry: Registry, port: int) -> None:
        super().__init__()
        self.registry = registry
        self.port = port
        self.headers: Mapping[str, str] = {"Content-Type": "text/html"}


@asynccontextmanager
async def serving(world: World, **settings: Any) -> AsyncGenerator[Site]:
    """A site that the web tools may reach."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = site.get(self.path)
            self.send_response(200 if body is not None else 404)
            for name, value in site.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            with suppress(OSError):  # whoever asked has seen enough
                self.wfile.write(body or b"")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    port = server.server_address[1]
    tools = toolbox.open(Surroundings.here(world.folder), {"hosts": [f"127.0.0.1:{port}"], **settings})
    site = Site(Registry(tools), port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def fetched(site: Site, path: str, tool: str = "fetch_page") -> Any:
    """What a plan gets that fetches a path of the site."""
    plan = parse(f'answer({tool}("http://127.0.0.1:{site.port}{path}"))', site.registry).plan
    outcome = await run_plan(plan, site.registry)
    if isinstance(outcome, Failed):
        raise outcome.error
    assert isinstance(outcome, Finished)
    return outcome.answer
