"""What all parts of the server share: error responses, rate and concurrency limits, metrics, and the context.

Errors have the same facts as on the command line, without paths, addresses or text from elsewhere. The labels of
metrics are routes and statuses, never text of a client.
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
from bicameral.errors import BicameralError, BindError, IntentError, ModelError, PlanError, ServerError
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
_CONFLICT = frozenset(
    {
        *("durable.answered", "durable.expired", "durable.wrong-answer", "durable.not-ended"),
        *("run.undone", "run.undo-conflict", "run.nothing-to-undo", "run.not-ended"),
    }
)
_INVALID = frozenset({"durable.bad-submission", "durable.bad-state"})


class HttpError(Exception):
    """An error with the status and the headers of its response."""

    def __init__(self, status: int, error: BicameralError, *, retry_after: int | None = None) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = {} if retry_after is None else {"Retry-After": str(max(1, retry_after))}
        if status in (408, 413):
            # The rest of the body was not read, so the connection cannot be used for another request.
            self.headers["Connection"] = "close"
        if status == 401:
            self.headers["WWW-Authenticate"] = 'Bearer realm="bicameral"'


def json_bytes(content: Any) -> bytes:
    """JSON for the wire, without known secrets; lone surrogates are replaced."""
    text = json.dumps(mask_value(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Invisible characters are escaped: the same value, and harmless in logs and terminals that print it.
    return escape_json(text.encode("utf-8", "replace").decode()).encode()


class SafeJsonResponse(Response):
    """A JSON response without secrets that can always be encoded."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json_bytes(content)


def error_response(status: int, error: BicameralError, headers: Mapping[str, str] | None = None) -> SafeJsonResponse:
    """The response for an error."""
    return SafeJsonResponse({"error": error.to_json()}, status, headers=dict(headers or {}))


def response_for(error: Exception) -> SafeJsonResponse:
    """The response for any exception."""
    public = public_error(error)
    return error_response(public.status, public.error, public.headers)


def public_error(error: Exception) -> HttpError:
    """Any exception as a client is told of it. Details of unexpected ones go to the log and not to the client."""
    match error:
        case HttpError():
            return error
        case ModelError():
            # The message of a model or its server may quote the prompt, and with it private data.
            log.error("a model failed: %s", error.code)
            return HttpError(502, ModelError(error.code, "a model could not answer", fix="See the log of the server."))
        case BicameralError():
            status = status_for(error)
            return _unavailable_error(error) if status == 503 else HttpError(status, error)
        case _:
            return _unexpected_error(error)


def status_for(error: BicameralError) -> int:
    """The HTTP status of an error."""
    if error.code in _NOT_FOUND:
        return 404
    if error.code in _CONFLICT:
        return 409
    if error.code in _INVALID or isinstance(error, IntentError | BindError | PlanError):
        return 422
    # Everything else is a problem of the server and not of the request.
    return 503


def _unavailable_error(error: BicameralError) -> HttpError:
    """A problem of the operator's: paths and addresses of the machine go only to the log."""
    log.error("%s", mask(str(error)))
    public = ServerError(error.code, "the server cannot do this just now", fix="See the log of the server.")
    return HttpError(503, public, retry_after=5)


def _unexpected_error(error: Exception) -> HttpError:
    """A bug: a reference number to look for in the log, and nothing else."""
    number = uuid.uuid4().hex[:12]
    # The type and the place, not the message: an exception of other code may quote its input.
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place is not None else "?"
    log.error("unexpected %s at %s (reference %s)", type(error).__name__, where, number)
    public = ServerError("server.internal", f"something went wrong here (reference {number})", fix="See the log.")
    return HttpError(500, public)


RETRY_AFTER_SECONDS = 5
"""`Retry-After` when all slots are in use."""


class RateLimiter:
    """A token bucket per user: so many requests a minute, a quarter of them at once.

    A bucket that is full again is deleted, so memory is bounded by the users of about the last minute.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_minute / 60
        self._burst = max(1.0, per_minute / 4)
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}
        self._swept = clock()

    def count_request(self, user: str) -> None:
        """Count one request; `server.too-many-requests` with `Retry-After` if the bucket is empty."""
        now = self._clock()
        self._sweep(now)
        left, then = self._left.get(user, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._per_second)
        if left < 1:
            wait = math.ceil((1 - left) / self._per_second)
            raise HttpError(429, ServerError("server.too-many-requests", "too many requests"), retry_after=wait)
        self._left[user] = (left - 1, now)

    def _sweep(self, now: float) -> None:
        if now - self._swept < 60:
            return
        full = self._burst / self._per_second
        self._left = {user: kept for user, kept in self._left.items() if now - kept[1] < full}
        self._swept = now


class ConcurrencyLimiter:
    """A bounded number of slots per name; without a free one the request is refused with `Retry-After`."""

    def __init__(self, per_name: int, status: int, code: str, message: str) -> None:
        self._per_name, self._status = per_name, status
        self._code, self._message = code, message
        self._taken: Counter[str] = Counter()

    @property
    def in_use(self) -> int:
        return self._taken.total()

    @contextmanager
    def slot(self, name: str = "") -> Generator[None]:
        """Hold a slot until the block ends."""
        if self._taken[name] >= self._per_name:
            raise HttpError(self._status, ServerError(self._code, self._message), retry_after=RETRY_AFTER_SECONDS)
        self._taken[name] += 1
        try:
            yield
        finally:
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]


BUCKET_SECONDS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Upper bounds of the histogram of response times."""
HTTP_METHODS = frozenset({"GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"})


class HttpMetrics:
    """Request counts and times by the pattern of the route: no id and no user is a label."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._sum: dict[str, float] = {}
        self._submitted = 0

    def count_answer(self, method: str, route: str, status: int, seconds: float) -> None:
        # A client may send any method: unknown ones share a label, so that it cannot create labels at will.
        self._answers[method if method in HTTP_METHODS else "other", route, status] += 1
        self._seconds[route] += 1
        self._sum[route] = self._sum.get(route, 0.0) + seconds
        for bound in BUCKET_SECONDS:
            if seconds <= bound:
                self._buckets[route, bound] += 1

    def count_submission(self) -> None:
        self._submitted += 1

    def render(self, gauges: Mapping[str, tuple[str, Iterable[tuple[str, float]]]]) -> str:
        """All metrics in Prometheus' text format; `gauges` are names with a help text and pairs of labels and value."""
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
        for name, (help_text, values) in gauges.items():
            lines += _metric_header(name, "gauge", help_text)
            lines += [f"{name}{labels} {value:g}" for labels, value in values]
        return "\n".join(lines) + "\n"


def _metric_header(name: str, kind: str, help_text: str) -> list[str]:
    return [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]


MAX_CONCURRENT_PLANS = 4
MAX_OPEN_FORMS = 8
"""Forms that wait for the same person at once."""


class ServerContext:
    """What the routes share: runs, tokens, limits, and the agent that plans and checks here."""

    def __init__(self, config: Config, runs: Runs, tokens: TokenFile, agent: Agent) -> None:
        self.config, self.runs, self.tokens, self.agent = config, runs, tokens, agent
        self.stopping = asyncio.Event()
        self.metrics = HttpMetrics()
        settings = config.server
        self.caps = config.caps
        """The upper limit of the caps of a submission."""
        self.rate = RateLimiter(settings.rate)
        self.requests = ConcurrencyLimiter(settings.requests, 503, "server.busy", "the server has too much to do")
        self.watches = ConcurrencyLimiter(
            settings.watches, 429, "server.too-many-watches", "too many runs are being watched"
        )
        self.forms = ConcurrencyLimiter(
            MAX_OPEN_FORMS, 429, "server.too-many-questions", "too many questions wait for an answer of this user"
        )
        self.plans = ConcurrencyLimiter(MAX_CONCURRENT_PLANS, 503, "server.busy", "too many plans are being written")
