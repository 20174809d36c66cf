"""Counters for Prometheus, in its text form. Names of routes and statuses stand in it, and nothing anybody wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

BOUNDS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Seconds up to which answers are counted together."""
METHODS = frozenset({"GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"})


class Metrics:
    """What was asked and how it was answered, by the route's pattern: no id and no user is a label."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._sum: dict[str, float] = {}
        self._submitted = 0

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        # A method is whatever a client writes there.
        self._answers[method if method in METHODS else "other", route, status] += 1
        self._seconds[route] += 1
        self._sum[route] = self._sum.get(route, 0.0) + seconds
        for bound in BOUNDS:
            if seconds <= bound:
                self._buckets[route, bound] += 1

    def submitted(self) -> None:
        self._submitted += 1

    def text(self, gauges: Mapping[str, tuple[str, Iterable[tuple[str, float]]]]) -> str:
        """Everything, with `gauges`: name, help, and pairs of labels and value."""
        lines = [*_head("bicameral_http_requests_total", "counter", "Answers by method, route and status.")]
        lines += [
            f'bicameral_http_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
            for (method, route, status), count in sorted(self._answers.items())
        ]
        lines += _head("bicameral_http_request_seconds", "histogram", "Seconds until an answer began.")
        for route in sorted(self._seconds):
            name, count = "bicameral_http_request_seconds", self._seconds[route]
            lines += [f'{name}_bucket{{route="{route}",le="{b}"}} {self._buckets[route, b]}' for b in BOUNDS]
            lines.append(f'{name}_bucket{{route="{route}",le="+Inf"}} {count}')
            lines.append(f'{name}_sum{{route="{route}"}} {self._sum[route]:.6f}')
            lines.append(f'{name}_count{{route="{route}"}} {count}')
        lines += _head("bicameral_runs_submitted_total", "counter", "Runs that were submitted here.")
        lines.append(f"bicameral_runs_submitted_total {self._submitted}")
        for name, (told, values) in gauges.items():
            lines += _head(name, "gauge", told)
            lines += [f"{name}{labels} {value:g}" for labels, value in values]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, told: str) -> list[str]:
    return [f"# HELP {name} {told}", f"# TYPE {name} {kind}"]
