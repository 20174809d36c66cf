"""Products of matrices on one core each.

The library below numpy splits a product over all cores and lets them wait for each other. On a machine that does
something else too, that made a question take twenty times as long; so each product keeps to one core, and several texts
are embedded side by side instead.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_lock = Lock()
_inside = 0
_limit: AbstractContextManager[object] | None = None


@cache
def _controller() -> ThreadpoolController:
    import numpy as np

    del np  # Only to have its library loaded before it is looked for.
    return ThreadpoolController()


@contextmanager
def one_core_each() -> Generator[None]:
    """While anybody is inside, in whichever thread, a product takes one core; afterwards it is as it was before."""
    global _inside, _limit
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
            _limit.__enter__()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _limit is not None:
                _limit.__exit__(None, None, None)
                _limit = None
