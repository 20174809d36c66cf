"""What every part of the server shares: error responses, rate and concurrency limits, metrics, and the context.

Errors carry the same facts as at the command line, without paths, addresses or foreign words. Metrics have routes and
statuses as labels, and nothing anybody wrote.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bicameral.display import escape_json
from bicameral.errors import (
    BicameralError,
    IntentError,
    ModelError,
    PlanError,
    ServerError,
)
from bicameral.secrets import mask, mask_value
from bicameral.server._tokens import TokenFile

if TYPE_CHECKING:
    from bicameral.agent import Agent
    from bicameral.config import Config
    from bicameral.durable import Runs


log = logging.getLogger("bicameral.server")

_NOT_FOUND = frozenset(
    {
        *("durable.unknown-run", "durable.ambiguous-run", "durable.no-runs"),
        *("durable.unknown-approval", "durable.ambiguous-approval", "journal.unknown-run"),
    }
)
_CONFLICT = frozenset({"durable.answered", "durable.expired", "durable.wrong-answer", "durable.not-ended"})
_INVALID = frozenset({"durable.bad-submission", "durable.bad-state"})


class HttpError(Exception):
    """An error with the status and the headers that it is answered with."""

    def __init__(self, status: int, error: BicameralError, *, retry_after: int | None = None) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = {} if retry_after is None else {"Retry-After": str(max(1, retry_after))}
        if status in (408, 413):
            # The rest of the body is not waited for.
            self.headers["Connection"] = "close"
        if status == 401:
            self.headers["WWW-Authenticate"] = 'Bearer realm="bicameral"'


def json_bytes(content: Any) -> bytes:
    """JSON as it goes over the wire, without known secrets; half of a character is replaced."""
    text = json.dumps(mask_value(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # What nobody sees is escaped: the same value, and inert in logs and terminals that print the answer.
    return escape_json(text.encode("utf-8", "replace").decode()).encode()


class SafeJsonResponse(Response):
    """A JSON answer that always can be written."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json_bytes(content)


def error_response(status: int, error: BicameralError, headers: Mapping[str, str] | None = None) -> SafeJsonResponse:
    """An error as an answer."""
    return SafeJsonResponse({"error": error.to_json()}, status, headers=dict(headers or {}))


def response_for(error: Exception) -> SafeJsonResponse:
    """The answer for whatever was raised. What is none of our errors is told to the log and not to the client."""
    match error:
        case HttpError():
            return error_response(error.status, error.error, error.headers)
        case ModelError():
            # What a model or its server said may hold the prompt, and the prompt may hold anything.
            log.error("a model failed: %s", error.code)
            told = ModelError(error.code, "a model could not answer", fix="See the log of the server.")
            return error_response(502, told)
        case BicameralError():
            status = status_for(error)
            return _unavailable_response(error) if status == 503 else error_response(status, error)
        case _:
            return unexpected_response(error)


def status_for(error: BicameralError) -> int:
    """The status that says what an error means for whoever asked."""
    if error.code in _NOT_FOUND:
        return 404
    if error.code in _CONFLICT:
        return 409
    if error.code in _INVALID or isinstance(error, IntentError | PlanError):
        return 422
    # The rest is between the server and what it works with.
    return 503


def _unavailable_response(error: BicameralError) -> SafeJsonResponse:
    """What the operator has to mend: paths and addresses of the machine are told to the log alone."""
    log.error("%s", mask(str(error)))
    told = ServerError(error.code, "the server cannot do this just now", fix="See the log of the server.")
    return error_response(503, told, {"Retry-After": "5"})


def unexpected_response(error: Exception) -> SafeJsonResponse:
    """A mistake of ours: a number to look for in the log, and nothing else."""
    number = uuid.uuid4().hex[:12]
    # The kind and the place, not the words: an exception of foreign code may quote what it was given.
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place is not None else "?"
    log.error("unexpected %s at %s (reference %s)", type(error).__name__, where, number)
    told = ServerError("server.internal", f"something went wrong here (reference {number})", fix="See the log.")
    return error_response(500, told)


RETRY_AFTER_SECONDS = 5
"""When to come again if all places are taken."""


class RateLimiter:
    """So many requests a minute for each user; a quarter of them may come at once.

    A bucket that is full again is forgotten, so that this holds no more users than asked in the last minute.
    """

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._each_second = a_minute / 60
        self._burst = max(1.0, a_minute / 4)
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}
        self._swept = clock()

    def count_request(self, user: str) -> None:
        """Count one request; `server.too-many-requests` says when to come again."""
        now = self._clock()
        self._sweep(now)
        left, then = self._left.get(user, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._each_second)
        if left < 1:
            wait = math.ceil((1 - left) / self._each_second)
            raise HttpError(429, ServerError("server.too-many-requests", "too many requests"), retry_after=wait)
        self._left[user] = (left - 1, now)

    def _sweep(self, now: float) -> None:
        if now - self._swept < 60:
            return
        full = self._burst / self._each_second
        self._left = {user: kept for user, kept in self._left.items() if now - kept[1] < full}
        self._swept = now


class ConcurrencyLimiter:
    """A bounded number of places for each name; whoever finds none is told to come again."""

    def __init__(self, each: int, status: int, code: str, message: str) -> None:
        self._each, self._status = each, status
        self._code, self._message = code, message
        self._taken: Counter[str] = Counter()

    @property
    def in_use(self) -> int:
        return self._taken.total()

    @contextmanager
    def slot(self, name: str = "") -> Generator[None]:
        """A place until the block ends."""
        if self._taken[name] >= self._each:
            raise HttpError(self._status, ServerError(self._code, self._message), retry_after=RETRY_AFTER_SECONDS)
        self._taken[name] += 1
        try:
            yield
        finally:
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]


BUCKET_SECONDS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Seconds up to which answers are counted together."""
HTTP_METHODS = frozenset({"GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"})


class HttpMetrics:
    """What was asked and how it was answered, by the route's pattern: no id and no user is a label."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._sum: dict[str, float] = {}
        self._submitted = 0

    def count_answer(self, method: str, route: str, status: int, seconds: float) -> None:
        # A method is whatever a client writes there.
        self._answers[method if method in HTTP_METHODS else "other", route, status] += 1
        self._seconds[route] += 1
        self._sum[route] = self._sum.get(route, 0.0) + seconds
        for bound in BUCKET_SECONDS:
            if seconds <= bound:
                self._buckets[route, bound] += 1

    def count_submission(self) -> None:
        self._submitted += 1

    def render(self, gauges: Mapping[str, tuple[str, Iterable[tuple[str, float]]]]) -> str:
        """Everything, with `gauges`: name, help, and pairs of labels and value."""
        lines = [*_metric_header("bicameral_http_requests_total", "counter", "Answers by method, route and status.")]
        lines += [
            f'bicameral_http_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
            for (method, route, status), count in sorted(self._answers.items())
        ]
        lines += _metric_header("bicameral_http_request_seconds", "histogram", "Seconds until an answer began.")
        for route in sorted(self._seconds):
            name, count = "bicameral_http_request_seconds", self._seconds[route]
            lines += [f'{name}_bucket{{route="{route}",le="{b}"}} {self._buckets[route, b]}' for b in BUCKET_SECONDS]
            lines.append(f'{name}_bucket{{route="{route}",le="+Inf"}} {count}')
            lines.append(f'{name}_sum{{route="{route}"}} {self._sum[route]:.6f}')
            lines.append(f'{name}_count{{route="{route}"}} {count}')
        lines += _metric_header("bicameral_runs_submitted_total", "counter", "Runs that were submitted here.")
        lines.append(f"bicameral_runs_submitted_total {self._submitted}")
        for name, (told, values) in gauges.items():
            lines += _metric_header(name, "gauge", told)
            lines += [f"{name}{labels} {value:g}" for labels, value in values]
        return "\n".join(lines) + "\n"


def _metric_header(name: str, kind: str, told: str) -> list[str]:
    return [f"# HELP {name} {told}", f"# TYPE {name} {kind}"]


MAX_CONCURRENT_PLANS = 4


class ServerContext:
    """The runs, the tokens, the limits, and the agent, which is made when it is first needed."""

    def __init__(self, config: Config, runs: Runs, tokens: TokenFile, make_agent: Callable[[], Agent]) -> None:
        self.config, self.runs, self.tokens = config, runs, tokens
        self._make_agent = make_agent
        self._agent: Agent | None = None
        self.stopping = asyncio.Event()
        self.metrics = HttpMetrics()
        settings = config.server
        self.caps = config.caps
        """The most that anybody may ask for."""
        self.rate = RateLimiter(settings.rate)
        self.requests = ConcurrencyLimiter(settings.requests, 503, "server.busy", "the server has too much to do")
        self.watches = ConcurrencyLimiter(
            settings.watches, 429, "server.too-many-watches", "too many runs are being watched"
        )
        self.plans = ConcurrencyLimiter(MAX_CONCURRENT_PLANS, 503, "server.busy", "too many plans are being written")

    @property
    def agent(self) -> Agent:
        """The agent that plans and checks here; its models are loaded when they are first asked."""
        if self._agent is None:
            self._agent = self._make_agent()
        return self._agent
