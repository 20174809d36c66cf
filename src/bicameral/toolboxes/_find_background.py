"""Background work of an index: what a question does not wait for is done by one thread, a few passages at a time.

The thread belongs to its owner and never keeps it alive: it holds a weak reference, and ends when the owner is gone,
when nothing is left to do, when its time is up, or when the process ends. Nothing depends on it: what it has not done
is done by a later question or by another process.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

_REST_SECONDS = 0.002
"""Between two pieces of work. A lock of Python is not fair: without a rest a question could wait for all of them."""
_JOIN_SECONDS = 5.0


class Workable(Protocol):
    """Something with work that can be done piece by piece."""

    def work(self) -> bool:
        """Do a small piece; False if there is nothing left."""
        ...

    def finish_work(self) -> None:
        """Keep what was done; called once in the thread, before it ends."""
        ...


class BackgroundWork:
    """One thread for the work of an owner.

    Args:
        owner: Has the work. It is not kept alive.
        seconds: How long one thread works at most after it was started.

    Example:
        >>> work = BackgroundWork(index)
        >>> work.start()
    """

    def __init__(self, owner: Workable, seconds: float = 300.0) -> None:
        self._owner = weakref.ref(owner)
        self._seconds = seconds
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        # Also at the end of the process: a thread that is cut off inside native code can take the process with it.
        weakref.finalize(owner, _stop, self._stopping, weakref.ref(self))

    def start(self) -> None:
        """Begin, unless it has begun already."""
        if self._stopping.is_set() or self.is_running:
            return
        arguments = (self._owner, self._stopping, time.monotonic() + self._seconds)
        self._thread = threading.Thread(target=_run, args=arguments, name="bicameral-find", daemon=True)
        self._thread.start()

    @property
    def thread(self) -> threading.Thread | None:
        """The thread that was started last; it may have ended."""
        return self._thread

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """End after the present piece of work, and wait for that."""
        self._stopping.set()
        thread = self._thread
        # The last reference to the owner may have been dropped by the thread itself.
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_SECONDS)


def _stop(stopping: threading.Event, work: Callable[[], BackgroundWork | None]) -> None:
    stopping.set()
    if (found := work()) is not None:
        found.stop()


def _run(owner: Callable[[], Workable | None], stopping: threading.Event, until: float) -> None:
    if sys.platform == "linux":
        # The answer to a question comes first. On Linux each thread has a priority of its own.
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    # An error ends the work and nothing else: the index is a cache, and a question meets the same error and tells it.
    with suppress(Exception):
        while not stopping.is_set() and time.monotonic() < until:
            # Held for one piece only, so that the owner can go away in between.
            found = owner()
            if found is None or not found.work():
                break
            del found
            stopping.wait(_REST_SECONDS)
    with suppress(Exception):
        if (found := owner()) is not None:
            found.finish_work()
