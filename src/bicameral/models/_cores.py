"""How many threads an engine gets."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bicameral.errors import ConfigError

_MOST = 8


def engine_threads() -> int:
    """`$BICAMERAL_THREADS`, else the cores that this program may use, at most eight."""
    if chosen := os.environ.get("BICAMERAL_THREADS"):
        if chosen.isdecimal() and 1 <= int(chosen) <= 512:
            return int(chosen)
        raise ConfigError(
            "config.threads",
            f"BICAMERAL_THREADS is {chosen!r}",
            expected="a number of threads, 1 or more",
            fix="Unset it to use the cores that are there.",
        )
    return max(1, min(_MOST, _cores()))


def _cores() -> int:
    affine = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    quota = _container_cores()
    return affine if quota is None else min(affine, quota)


def _container_cores() -> int | None:
    # A container may show every core of its host and be allowed the time of two; more threads only wait.
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return None
