"""What can be configured of runs that survive their process."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bicameral.errors import ConfigError
from bicameral.user_folders import user_folder

Count = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]

_PERIODS = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}
_RATE = re.compile(r"([1-9]\d{0,8})\s*/\s*([a-z]+)")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def rate_of(text: str) -> tuple[int, float]:
    """How many in how many seconds.

    Example:
        >>> rate_of("10/min")
        (10, 60.0)
    """
    found = _RATE.fullmatch(text.strip())
    if found is None or found[2] not in _PERIODS:
        raise ValueError("a rate is a number and a time, such as '10/min' (s, min, h, d)")
    return int(found[1]), _PERIODS[found[2]]


def _rate(text: str) -> str:
    rate_of(text)
    return text


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


class QuotaSettings(_Table):
    """How much of something all workers together may use at once, and in a time."""

    concurrency: Count | None = None
    """How many at the same time."""
    rate: Annotated[str, AfterValidator(_rate)] | None = None
    """How many in a time, such as `10/min`."""


class QuotaTable(_Table):
    """What holds across all workers. Whoever would exceed it waits."""

    user: QuotaSettings = QuotaSettings()
    """The runs of one user."""
    tools: dict[str, QuotaSettings] = Field(default_factory=dict[str, QuotaSettings])
    """The calls of a tool, by its name."""
    models: dict[str, QuotaSettings] = Field(default_factory=dict[str, QuotaSettings])
    """The calls of a model, by its name or `privileged` and `quarantined`."""


class DurableSettings(_Table):
    """Where submitted runs are kept, and how workers share them."""

    database: str | None = None
    """A SQLite file, or `postgresql://…`; `${NAME}` is a variable. Without it, a file in the user's state folder."""
    concurrency: Count = 8
    """How many runs a worker has under way at the same time."""
    lease: Annotated[float, Field(ge=1, le=3600)] = 3.0
    """Seconds after which a worker that is not heard of has lost its runs to others."""
    answer_within: Seconds = 604_800.0
    """Seconds that a question waits for an answer; then the answer is no."""
    deaths: Count = 10
    """How often in a row workers may die with a run that gets no further, until it counts as failed."""
    keep: Seconds | None = None
    """Seconds after which runs that have ended are forgotten; without it, they are kept."""
    limits: QuotaTable = QuotaTable()


def durable_address(settings: DurableSettings, base: Path, environment: Mapping[str, str] | None = None) -> str:
    """The database that counts: an address of PostgreSQL, or the path of a SQLite file."""
    if settings.database is None:
        # Not in the folder: whoever gives one away could put submitted runs with their approvals into it.
        real = os.path.realpath(base)
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", os.path.basename(real))[:40]
        own = f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:16]}.db"
        return str(user_folder("state") / "durable" / own)
    variables = os.environ if environment is None else environment

    def value(found: re.Match[str]) -> str:
        if not (text := variables.get(found[1])):
            raise ConfigError(
                "config.no-variable",
                f"durable.database names the environment variable {found[1]!r}, and it is not set",
                fix=f"Set {found[1]}, or write the address into the file.",
            )
        return text

    address = _VARIABLE.sub(value, settings.database)
    return address if "://" in address else str(base / os.path.expanduser(address))
