"""The parser process: confines itself, then answers one frame after the other until its input ends.

It is started by `_pool` as an isolated interpreter with an empty environment. Everything that it reads besides the name
of the function may be hostile. Whoever takes it over has a process without files, network or other programs, and little
time.
"""

from __future__ import annotations

import gc
import math
import os
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, cast

from bicameral.errors import BicameralError

from ._confinement import confine
from ._frames import ERROR, FAILED, HELLO, LIMIT, PREFIX, VALUE, Frame

_HARD_MEMORY = 4 << 30
_MAX_REQUEST = 512 << 20


def serve() -> None:
    """Answer frames from standard input on standard output."""
    requests, replies = _private_pipes()
    # What holds for all requests is set before any of them is read; CPU time and memory are set for each.
    for what, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_AS, _HARD_MEMORY),
    ):
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (limit, limit))
    _write(replies, Frame.of(HELLO, confine()))
    # A large table is a million objects and no garbage among them; looking for some takes longer than reading it.
    gc.disable()
    while (request := _read(requests)) is not None:
        _write(replies, _answer(request))
        gc.collect(0)


def _private_pipes() -> tuple[int, int]:
    """The two pipes under other numbers: what a library prints must not get between the frames."""
    requests, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.close(nowhere)
    return requests, replies


def _answer(request: Frame) -> Frame:
    asked = request.value
    _limit(float(asked["cpu"]), int(asked["memory"]))
    _set_zone(asked["zone"])
    try:
        module, _, name = str(asked["function"]).partition(":")
        parse = cast("Callable[..., object]", getattr(import_module(module), name))
        found = parse(request.body, **asked["arguments"])
        value, body = cast("tuple[object, bytes]", found) if isinstance(found, tuple) else (found, b"")
        return Frame.of(VALUE, value, body)
    except BicameralError as error:
        return Frame.of(ERROR, error.to_json())
    except (MemoryError, RecursionError) as error:
        return Frame.of(LIMIT, "memory" if isinstance(error, MemoryError) else "depth")
    except Exception as error:
        # A parser that trips over its input has found no value. Why is said to whoever reads the message.
        return Frame.of(FAILED, f"{type(error).__name__}: {error}"[:300])


def _limit(cpu: float, memory: int) -> None:
    """The limits of one request: soft ones, since CPU time is counted over all requests so far."""
    _, hardest = resource.getrlimit(resource.RLIMIT_CPU)
    until = math.ceil(time.process_time() + cpu)
    resource.setrlimit(resource.RLIMIT_CPU, (until if hardest < 0 else min(until, hardest), hardest))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (memory if most < 0 else min(memory, most), most))


def _set_zone(zone: str | None) -> None:
    """The time zone of the process that asks, since the environment of this one is empty."""
    if zone == os.environ.get("TZ"):
        return
    if zone is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = zone
    time.tzset()


def _read(source: int) -> Frame | None:
    prefix = _exactly(source, PREFIX.size)
    if len(prefix) < PREFIX.size:
        return None
    kind, text, body = PREFIX.unpack(prefix)
    if text + body > _MAX_REQUEST:
        return None
    return Frame(kind, _exactly(source, text), _exactly(source, body))


def _exactly(source: int, size: int) -> bytes:
    parts: list[bytes] = []
    left = size
    while left and (part := os.read(source, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _write(target: int, frame: Frame) -> None:
    view: Any = memoryview(frame.to_bytes())
    while view:
        view = view[os.write(target, view) :]
