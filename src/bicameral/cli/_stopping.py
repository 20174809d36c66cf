"""SIGTERM stops a command as Ctrl-C does: what was begun is ended and written down."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from ._exits import Terminated

T = TypeVar("T")


async def until_terminated(work: Coroutine[Any, Any, T]) -> T:
    """The work's result. A SIGTERM cancels it, and once it has come to its end raises `Terminated`."""
    loop, task, asked = asyncio.get_running_loop(), asyncio.current_task(), False

    def stop() -> None:
        nonlocal asked
        asked = True
        if task is not None:
            task.cancel()

    # Not everywhere can signals be heard: in a thread, or on Windows.
    with suppress(NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        result = await work
    except asyncio.CancelledError:
        if asked:
            raise Terminated from None
        raise
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGTERM)
    if asked:
        raise Terminated
    return result
