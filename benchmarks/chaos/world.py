"""The world of the runs: pages and rows to read, and a ledger of effects.

The server runs in a process of its own, as a payment provider or a mail server does, and is never killed. It takes its
time both before and after it does something, so that a caller may die between an effect and its answer. A keyed call
with a key that it knows gets the answer of the first one; a call without a key is done as often as it is asked for.

What a page holds, and what an effect answers, follows from the request alone: so the inline engine can tell beforehand
what each run must come to.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, cast

SLOWEST = 0.4
"""How long an answer takes at most, in seconds; half of it before the thing is done and half of it after."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One request for an effect: which one (`what`, named by the plan), with which key, and whether it was accepted.

    `what` is the same for two requests that ask for the same thing of the same run, whatever their keys are: two
    accepted entries of one `what` are an effect that happened twice.
    """

    what: str
    tool: str
    key: str
    accepted: bool
    at: float


class World(Protocol):
    """What the tools stand on."""

    def read(self, what: str) -> dict[str, Any]: ...

    def act(self, tool: str, what: str, arguments: Mapping[str, Any], *, key: str, keyed: bool) -> str: ...


class Ledger:
    """The books: every request for an effect, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}
        self.entries: list[Entry] = []

    def take(self, tool: str, what: str, arguments: Mapping[str, Any], *, key: str, keyed: bool) -> str:
        """Do it, unless it is keyed and was done for this key before; the receipt is the same both times."""
        with self._lock:
            known = self._known.get(key) if keyed else None
            self.entries.append(Entry(what, tool, key, known is None, time.time()))
            if known is not None:
                return known
            receipt = receipt_for(tool, what, arguments)
            if keyed:
                self._known[key] = receipt
            return receipt

    def happened(self, what: str) -> bool:
        with self._lock:
            return any(entry.accepted and entry.what == what for entry in self.entries)

    def copied(self) -> list[Entry]:
        with self._lock:
            return list(self.entries)


class PaperWorld:
    """The same world in memory, for the inline engine."""

    def __init__(self) -> None:
        self.ledger = Ledger()

    def read(self, what: str) -> dict[str, Any]:
        return contents(what)

    def act(self, tool: str, what: str, arguments: Mapping[str, Any], *, key: str, keyed: bool) -> str:
        return self.ledger.take(tool, what, arguments, key=key, keyed=False)


class ServedWorld:
    """The world at an address."""

    def __init__(self, url: str) -> None:
        from httpx import Client, Limits, Timeout

        self._http = Client(base_url=url, timeout=Timeout(30), limits=Limits(max_connections=None))

    def read(self, what: str) -> dict[str, Any]:
        return self._asked("/read", {"what": what})

    def act(self, tool: str, what: str, arguments: Mapping[str, Any], *, key: str, keyed: bool) -> str:
        body = {"tool": tool, "what": what, "arguments": dict(arguments), "key": key, "keyed": keyed}
        return str(self._asked("/act", body)["receipt"])

    def happened(self, what: str) -> bool:
        return bool(self._asked("/happened", {"what": what})["happened"])

    def entries(self) -> list[Entry]:
        return [Entry(**each) for each in self._asked("/ledger", {})["entries"]]

    def close(self) -> None:
        self._http.close()

    def _asked(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        reply = self._http.post(path, json=body)
        reply.raise_for_status()
        return cast("dict[str, Any]", reply.json())


def receipt_for(tool: str, what: str, arguments: Mapping[str, Any]) -> str:
    text = json.dumps([tool, what, dict(arguments)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def contents(what: str) -> dict[str, Any]:
    """What there is to read under a name such as `page/7`, `rows/7/3` (three rows) or `large/7/50000` (that long)."""
    kind, number, *more = what.split("/")
    choose = random.Random(f"{kind} {number}")
    match kind:
        case "page":
            title = f"Page {number}: {choose.choice(['invoices', 'weather', 'tickets'])}"
            return {"title": title, "text": _words(choose, 30), "count": choose.randint(0, 20)}
        case "rows":
            return {"rows": [_row(choose, number, place) for place in range(int(more[0]))]}
        case _:
            line = f"line of {number} {_words(choose, 8)}\n"
            return {"text": (line * (int(more[0]) // len(line) + 1))[: int(more[0])]}


def _row(choose: random.Random, number: str, place: int) -> dict[str, Any]:
    return {
        "id": f"r{number}-{place}",
        "sender": f"{choose.choice(['ann', 'bo', 'cy'])}@example.com",
        "amount": choose.randint(1, 90),
        "note": _words(choose, 6),
    }


def _words(choose: random.Random, many: int) -> str:
    return " ".join(
        choose.choice(["red", "blue", "late", "paid", "open", "north", "small", "old"]) for _ in range(many)
    )


class _Handler(BaseHTTPRequestHandler):
    """One connection to the server."""

    protocol_version = "HTTP/1.1"
    # The head and the body of an answer go out together; otherwise each waits for the other end's acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride] (it is always ours)

    def do_POST(self) -> None:
        asked = cast("dict[str, Any]", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        written = json.dumps(self.server.answer(self.path, asked)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(written)))
        self.end_headers()
        self.wfile.write(written)

    def handle(self) -> None:
        with suppress(OSError):  # its caller was killed
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, slowest: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._slowest = slowest
        self.ledger = Ledger()

    def answer(self, path: str, asked: dict[str, Any]) -> dict[str, Any]:
        match path:
            case "/read":
                self._pause()
                return contents(asked["what"])
            case "/act":
                self._pause()
                receipt = self.ledger.take(**asked)
                self._pause()
                return {"receipt": receipt}
            case "/happened":
                return {"happened": self.ledger.happened(asked["what"])}
            case _:
                return {"entries": [asdict(entry) for entry in self.ledger.copied()]}

    def _pause(self) -> None:
        time.sleep(random.random() * self._slowest / 2)


def main() -> None:
    """Serve until standard input ends, which it does when whoever started this is gone."""
    server = _Server(float(sys.argv[1]) if len(sys.argv) > 1 else SLOWEST)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
