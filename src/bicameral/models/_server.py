"""llama.cpp's server in this process: its set-up, its private socket, and the few calls that only the socket offers."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bicameral.errors import ModelError, Place
from bicameral.models import _canonical
from bicameral.models._slots import Slots

if TYPE_CHECKING:
    from xllamacpp import CommonParams, Server

_SECONDS = 120
_SOCKET = "engine.sock"


class EngineServer:
    """One weights file, loaded.

    Token numbers and the state of a slot can be had over HTTP only, so the socket stays while the weights are loaded.
    It lies in a folder that only this user can enter, and every call needs a key that never leaves this process.
    """

    def __init__(self, path: Path, context: int, threads: int, slots: Slots) -> None:
        from xllamacpp import Server

        for adapter in slots.adapters:
            adapter.check()
        self._path = path
        # Made by `mkdtemp`, for this user alone. A `TemporaryDirectory` would be removed at exit before the engine is
        # closed, which is where this folder goes.
        self._folder = Path(tempfile.mkdtemp(prefix="bicameral-"))
        self._key = secrets.token_urlsafe(32)
        self.states = self._folder / "states"
        self.states.mkdir(mode=0o700)
        params = engine_params(path, context, threads, slots, self._folder, self._key)
        try:
            self._server: Server | None = Server(params)
        except RuntimeError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise ModelError(
                "models.load-failed",
                f"the engine could not load these weights with a context of {context} tokens",
                place=Place(file=str(path)),
                fix="Run `bicameral models verify` to check the file, and see that enough memory is free.",
            ) from error
        # The server is there before its loop runs, and a loop that begins after it was told to end never ends: `close`
        # would wait for ever. What goes through its queue comes back only when it runs.
        self.erase(0)

    def close(self) -> None:
        """Free the weights, and remove the socket and every saved state."""
        self._server = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def complete(self, body: dict[str, Any], take: Callable[[dict[str, Any]], bool]) -> None:
        """One streamed completion; `take` gets its pieces and ends it by returning True."""
        assert self._server is not None
        try:
            self._server.handle_completions(body, take)
        except RuntimeError as error:
            raise self._failure(error) from error

    def tokenize(self, pieces: list[str], separator: int) -> list[tuple[int, ...]]:
        """The tokens of each piece by itself; `separator` is a control token that no piece can spell."""
        content = [part for piece in pieces for part in (piece, separator)]
        found: list[tuple[int, ...]] = []
        current: list[int] = []
        for token in self._post("/tokenize", {"content": content})["tokens"]:
            if token == separator:
                found.append(tuple(current))
                current = []
            else:
                current.append(token)
        return found

    def erase(self, slot: int) -> None:
        """Empty a slot."""
        self._post(f"/slots/{slot}?action=erase", {})

    def save(self, slot: int, name: str) -> int:
        """Write a slot's state to a file of this name in `states`; how many bytes that were."""
        return int(self._post(f"/slots/{slot}?action=save", {"filename": name})["n_written"])

    def restore(self, slot: int, name: str) -> int:
        """Read a slot's state back; how many tokens that were. The engine aborts on a damaged file: check it first."""
        return int(self._post(f"/slots/{slot}?action=restore", {"filename": name})["n_restored"])

    def _post(self, target: str, body: dict[str, Any]) -> dict[str, Any]:
        # One connection a call: the only HTTP thread would wait on an idle one.
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json", "Connection": "close"}
        connection = http.client.HTTPConnection("engine", timeout=_SECONDS)
        try:
            connection.sock = self._connect()
            connection.request("POST", target, json.dumps(body), headers)
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._failure(error) from error
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise self._failure(answer.get("error", {}).get("message", f"status {response.status}"))
        return answer

    def _connect(self) -> socket.socket:
        if sys.platform == "win32":
            assert self._server is not None
            address = urlsplit(self._server.listening_address)
            return socket.create_connection(("127.0.0.1", address.port or 0), _SECONDS)
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(_SECONDS)
        connected.connect(str(self._folder / _SOCKET))
        return connected

    def _failure(self, reason: object) -> ModelError:
        return ModelError(
            "models.engine-failed",
            f"the engine failed: {reason}",
            place=Place(file=str(self._path)),
            fix="Ask again; if it repeats, run `bicameral models verify`.",
        )


def engine_params(path: Path, context: int, threads: int, slots: Slots, folder: Path, key: str) -> CommonParams:
    """The set-up of an engine: deterministic, silent and shut to the outside."""
    from xllamacpp import CommonAdapterLoraInfo, CommonParams, ggml_type, llama_flash_attn_type

    params = CommonParams()
    params.model.path = str(path)
    params.n_ctx = context * slots.count
    # A stop is seen between batches: small ones cost little on a CPU and bound the wait.
    params.n_batch = params.n_ubatch = _canonical.BLOCK
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_parallel = slots.count
    params.lora_adapters = [CommonAdapterLoraInfo(str(adapter.path), 1.0) for adapter in slots.adapters]
    params.lora_init_without_apply = True
    params.cache_type_k = params.cache_type_v = ggml_type.GGML_TYPE_BF16
    params.flash_attn_type = llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    # What is reused is decided by `_canonical` alone. Everything by which the engine would keep, move or cut evaluated
    # tokens on its own is off, and slots share no cells, so that where a token lies depends on its own slot only.
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.n_cache_reuse = 0
    params.n_ctx_checkpoints = 0
    params.slot_prompt_similarity = 0.0
    params.ctx_shift = False
    params.kv_unified = False
    params.slot_save_path = os.path.join(folder, "states", "")
    # The embedded HTTP server cannot be left out: a socket in a folder of this user's own, and a key for every call.
    params.hostnames = ["127.0.0.1" if sys.platform == "win32" else os.path.join(folder, _SOCKET)]
    params.api_keys = [key]
    params.n_threads_http = 1
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    params.verbosity = -1
    return params
