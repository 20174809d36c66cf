"""The two servers of the world, both real and both on the loopback address: a website and an SMTP sink."""

from __future__ import annotations

import socket
import threading
from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = "127.0.0.1"
Ending = type[BaseException] | BaseException | TracebackType | None


class _QuietFiles(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """A benchmark's output is no place for access logs."""


class Website:
    """A folder served over HTTP."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        handler = partial(_QuietFiles, directory=str(folder))
        try:
            self._server = ThreadingHTTPServer((HERE, port), handler)
        except OSError:
            # Somebody took the port between two worlds: another one serves as well, the plan is then made anew.
            self._server = ThreadingHTTPServer((HERE, 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def address(self) -> str:
        return f"http://{HERE}:{self.port}"

    @property
    def port(self) -> int:
        return self._server.server_port

    def __enter__(self) -> Website:
        self._thread.start()
        return self

    def __exit__(self, *_: Ending) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class MailSink:
    """An SMTP server that delivers nothing and keeps everything."""

    def __init__(self) -> None:
        from aiosmtpd.controller import Controller

        self.port = _free_port()
        self._received: list[tuple[bytes, tuple[str, ...]]] = []
        self._controller = Controller(self, hostname=HERE, port=self.port)

    async def handle_DATA(self, _server: object, _session: object, envelope: Any) -> str:
        self._received.append((bytes(envelope.content), tuple(envelope.rcpt_tos)))
        return "250 kept"

    def messages(self) -> list[EmailMessage]:
        """The mails in order. `X-Envelope-To` has who really gets one: blind copies stand in no other header."""
        found: list[EmailMessage] = []
        for content, receivers in self._received:
            message = message_from_bytes(content, policy=policy.default)
            message["X-Envelope-To"] = ", ".join(receivers)
            found.append(message)
        return found

    def __enter__(self) -> MailSink:
        self._controller.start()
        return self

    def __exit__(self, *_: Ending) -> None:
        self._controller.stop()


def _free_port() -> int:
    # The controller cannot be given port 0: it connects to the port it was told to see whether it is up.
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        return probe.getsockname()[1]
