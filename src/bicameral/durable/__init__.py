"""Durable runs: submitted by one process, executed by another, and not lost when either dies.

A `Submission` becomes a row of a database. Any number of workers claim runs from it; a run belongs to one worker at a
time. The journal has every step, so a run whose worker died continues after its last recorded step, and no effect is
repeated. A run that waits for a person or for its time is a row and needs no process. `Runs` is the client that
submits, watches, answers and cancels; `Worker` executes. One machine needs a SQLite file, several need PostgreSQL.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.durable._views import (
    ENDED_STATES as ENDED_STATES,
    RUN_STATES as RUN_STATES,
    Approval as Approval,
    RunState as RunState,
    RunView as RunView,
    Submission as Submission,
    WorkerView as WorkerView,
    require_durable_packages,
    runs_of_rounds as runs_of_rounds,
)

if TYPE_CHECKING:
    from bicameral.durable._runs import Runs as Runs
    from bicameral.durable._worker import Worker as Worker


def __getattr__(name: str) -> Any:
    if name not in ("Runs", "Worker"):
        raise AttributeError(name)
    # Both need SQLAlchemy. Loaded on first use, so that a missing extra is a clear error and `--help` stays fast.
    require_durable_packages()
    return getattr(import_module(f"bicameral.durable._{name.lower()}"), name)
