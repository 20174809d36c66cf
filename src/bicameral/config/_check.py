"""One thing that `doctor` looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from bicameral.errors import BicameralError

T = TypeVar("T")

Health = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, how it stands, and how to mend it. A warning stops nothing that was not asked for."""

    name: str
    status: Health
    detail: str
    fix: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "status": self.status, "detail": self.detail} | (
            {"fix": self.fix} if self.fix else {}
        )


def failed(name: str, error: BicameralError, *, status: Health = "bad") -> Check:
    """A check that met an error, in the error's own words."""
    where = f"{error.place}: " if error.place and str(error.place) else ""
    wanted = f"; expected {error.expected}" if error.expected else ""
    meant = f"Did you mean {error.nearest!r}? " if error.nearest else ""
    return Check(name, status, f"{where}{error.message}{wanted} [{error.code}]", f"{meant}{error.fix or ''}".strip())


def settled(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives. It gets a loop and a thread of its own, so that a doctor can be called from anywhere."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
