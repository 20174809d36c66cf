"""A wire between a browser and the server, which can be cut and mended."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress


class Wire:
    """Forwards connections from a port of its own to the server's.

    Args:
        port: The port of the server.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Break all connections, and refuse new ones."""
        self._is_cut = True
        with self._lock:
            broken, self._open = self._open, set()
        for each in broken:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Let connections through again."""
        self._is_cut = False

    def close(self) -> None:
        self.cut()
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                if self._is_cut:
                    near.close()
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self._to))
                except OSError:
                    near.close()
                    continue
                with self._lock:
                    self._open |= {near, far}
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with closing(source), suppress(OSError):
            while content := source.recv(65_536):
                target.sendall(content)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(source)
