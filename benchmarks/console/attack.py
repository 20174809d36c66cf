"""Pages of strangers against the browser of somebody who is signed in, each attack with a benign twin.

The stranger has sites of their own on other ports of the same machine, which browsers call the same site, and under
another name, and may know all addresses and everything that a question says. They do not have a cookie or a token of
the person.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from benchmarks.console.browser import Visitor
from benchmarks.console.journey import Result, Stage
from benchmarks.console.world import FORWARD, ConsoleServer


@dataclass
class Site:
    """A site of a stranger: pages by their paths, and what was asked of it."""

    pages: dict[str, str] = field(default_factory=dict[str, str])
    asked: list[str] = field(default_factory=list[str])
    port: int = 0

    def put(self, html: str) -> str:
        """A page; returns its path."""
        path = f"/page{len(self.pages)}"
        self.pages[path] = f"<!doctype html><title>a stranger's page</title>{html}"
        return path

    def at(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@contextmanager
def serving_site() -> Generator[Site]:
    """The site of a stranger, until the block ends."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            content = site.pages.get(self.path.partition("?")[0], "").encode()
            self.send_response(200 if content else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Attempt:
    """One attack as it is tried: the victim at their browser, and the stranger."""

    stage: Stage
    site: Site
    user: str

    @property
    def server(self) -> ConsoleServer:
        return self.stage.server

    @contextmanager
    def victim(self) -> Generator[Visitor]:
        """The person, signed in; what the pages of strangers do is not counted with ours."""
        with self.stage.chromium.visit(self.server, self.user, counted=False) as visitor:
            yield visitor

    def question(self) -> str:
        """A question of the person that waits."""
        return self.server.waiting(self.user, plan=FORWARD)[1]

    def question_state(self, question: str) -> str:
        return self.server.question(question, self.user)["state"]


Attack = Callable[[Attempt], None]
ATTACKS: dict[str, tuple[Attack, Attack]] = {}


def attack(twin: Attack) -> Callable[[Attack], Attack]:
    """Count a function among the attacks; it asserts that nothing came of it. Its twin asserts that the same works."""

    def add(act: Attack) -> Attack:
        ATTACKS[act.__name__.replace("_", "-")] = (act, twin)
        return act

    return add


def try_attacks(stage: Stage, only: tuple[str, ...] = ()) -> list[tuple[Result, Result]]:
    """Every attack, and its twin."""
    found: list[tuple[Result, Result]] = []
    with serving_site() as site:
        for name, pair in ATTACKS.items():
            if not only or name in only:
                first, second = (
                    _try(f"{name}{more}", act, stage, site) for act, more in zip(pair, ("", " (twin)"), strict=True)
                )
                found.append((first, second))
    return found


def _try(name: str, act: Attack, stage: Stage, site: Site) -> Result:
    began = time.monotonic()
    try:
        act(Attempt(stage, site, stage.server.new_user("victim")))
        fault = ""
    except Exception as error:
        fault = f"{type(error).__name__}: {str(error)[:500]}"
    return Result(name, fault, time.monotonic() - began)
