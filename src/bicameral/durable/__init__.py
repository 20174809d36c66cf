"""Durable runs: submitted by one process, done by another, and not lost when either dies.

A `Submission` comes in and is a row of a database; any number of workers take runs from it, one worker a run at a time.
The journal has every step, so a run whose worker died goes on where the record ends: what was done is not done again.
A run that waits for a person, or for its time, is a row and no process. `Runs` is for whoever submits, watches, answers
and cancels; `Worker` does the work. On one machine a SQLite file is enough; on several it is a PostgreSQL.
"""

from bicameral.durable._runs import Runs
from bicameral.durable._views import ENDED_STATES, RUN_STATES, Approval, RunState, RunView, Submission, WorkerView
from bicameral.durable._worker import Worker

__all__ = [
    "ENDED_STATES",
    "RUN_STATES",
    "Approval",
    "RunState",
    "RunView",
    "Runs",
    "Submission",
    "Worker",
    "WorkerView",
]
