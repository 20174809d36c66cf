"""Progress of a local model: loading weights, reading a prompt, writing a reply.

A listener is set for everything that is asked within a context, however many layers lie between it and the provider.
It is told numbers only, and never a text of the prompt or the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

ModelStage: TypeAlias = Literal["loading", "reading", "writing"]
LOADING: Final = "loading"
READING: Final = "reading"
WRITING: Final = "writing"


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """Where a local model is in one request.

    Args:
        stage: What it does.
        job: The job whose adapter is used, such as `delta`; empty without one.
        done: Tokens of the prompt that were read, or of the reply that were written.
        total: Tokens of the prompt; 0 where it is not known.
        reused: Tokens of the prompt that did not have to be read.
        seconds: Since the request began.
        model: The name of the model.
        kept: Whether what it reads of fixed messages is kept for later processes.
        threads: The threads that it uses.
    """

    stage: ModelStage
    job: str = ""
    done: int = 0
    total: int = 0
    reused: int = 0
    seconds: float = 0.0
    model: str = ""
    kept: bool = False
    threads: int = 0


ProgressListener: TypeAlias = Callable[[ModelProgress], None]

_listener: ContextVar[ProgressListener | None] = ContextVar("model_progress", default=None)


@contextmanager
def watch_model(listener: ProgressListener) -> Generator[None]:
    """Tell a listener the progress of every local model that is asked within this context.

    It is called in the event loop of whoever asks. What it raises is dropped: it must not change a reply.

    Example:
        >>> with watch_model(print):
        ...     await agent.plan("Count the lines of notes.txt")
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def current_listener() -> ProgressListener | None:
    """The listener of this context."""
    return _listener.get()
