"""Models that fail, dawdle and lie, and an event loop whose time passes only where everybody waits."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bicameral.errors import ModelError
from bicameral.models import Chamber, Message, ModelFailure, ModelReply, ModelRequest, Usage

T = TypeVar("T")

ASK = ModelRequest((Message("user", "Say something of about forty characters."),))
READS = len(ASK.messages[0].text) // 4


class _Selector(selectors.DefaultSelector):
    """Instead of waiting it lets the time pass."""

    def __init__(self, passed: Callable[[float], None]) -> None:
        super().__init__()
        self._passed = passed

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everybody waits for something that never comes")
        self._passed(timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time goes on exactly to when something is due, and nobody really waits."""

    def __init__(self) -> None:
        self.at = 1000.0
        super().__init__(_Selector(self._pass))

    def _pass(self, seconds: float) -> None:
        self.at += max(0.0, seconds)

    def time(self) -> float:
        return self.at


def virtually(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run this in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Turn:
    """What a model does when it is asked: after so many seconds it says something, or fails."""

    text: str = "yes"
    after: float = 0.0
    error: Callable[[], BaseException] | None = None
    output: int = 5


def fails(code: Any, after: float = 0.0, retry_after: float | None = None) -> Turn:
    return Turn(after=after, error=lambda: ModelFailure(code, "it", retry_after=retry_after))


@dataclass
class Model:
    """A model that does what it is told, turn by turn (the last again and again), and remembers when it was asked."""

    name: str = "model"
    turns: list[Turn] = field(default_factory=lambda: [Turn()])
    chamber: Chamber | None = None
    credential: str | None = None
    grammars: bool = True
    adapters: Mapping[str, str] = field(default_factory=dict[str, str])
    asked: list[float] = field(default_factory=list[float])
    given: list[ModelRequest] = field(default_factory=list[ModelRequest])
    ended: int = 0
    cancelled: int = 0
    closed: bool = False

    async def generate(self, request: ModelRequest) -> ModelReply:
        turn = self.turns[min(len(self.asked), len(self.turns) - 1)]
        self.asked.append(now())
        self.given.append(request)
        try:
            await asyncio.sleep(turn.after)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.ended += 1
        if turn.error is not None:
            raise turn.error()
        return ModelReply(turn.text, usage=Usage(prompt=READS, output=turn.output))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        for word in (await self.generate(request)).text.split():
            yield f"{word} "

    async def aclose(self) -> None:
        self.closed = True


def model(name: str, *turns: Turn, **rest: Any) -> Model:
    return Model(name, list(turns) or [Turn(text=name)], **rest)


async def caught(work: Coroutine[Any, Any, Any]) -> ModelError:
    """The error with which this ends."""
    try:
        await work
    except ModelError as error:
        return error
    raise AssertionError("it did not fail")
