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
    OpenQuestions as OpenQuestions,
    RunState as RunState,
    RunView as RunView,
    Submission as Submission,
    WorkerView as WorkerView,
    require_durable_packages,
    runs_of_rounds as runs_of_rounds,
)

if TYPE_CHECKING:
    from bicameral.durable._queue_health import (
        QueueView as QueueView,
        check_workers as check_workers,
        queue_problems as queue_problems,
    )
    from bicameral.durable._run_costs import CostLog as CostLog, rounds_of_runs as rounds_of_runs
    from bicameral.durable._runs import Runs as Runs
    from bicameral.durable._worker import Worker as Worker

# Loaded on first use, so that `--help` stays fast.
_LATER = {
    "_queue_health": ("QueueView", "check_workers", "queue_problems"),
    "_run_costs": ("CostLog", "rounds_of_runs"),
    "_runs": ("Runs",),
    "_worker": ("Worker",),
}


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _LATER.items() if name in names), None)
    if module is None:
        raise AttributeError(name)
    if name in ("Runs", "Worker"):
        # Both need SQLAlchemy; a missing extra is a clear error.
        require_durable_packages()
    return getattr(import_module(f"bicameral.durable.{module}"), name)
