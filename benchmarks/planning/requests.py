"""All requests, and the skeletons that training data must not have."""

from __future__ import annotations

from functools import cache

from . import (
    requests_calendar,
    requests_files,
    requests_home,
    requests_impossible,
    requests_ledgers,
    requests_mail,
    requests_tables,
)
from .request import Request

REQUESTS: tuple[Request, ...] = tuple(
    request
    for room in (
        requests_files,
        requests_tables,
        requests_home,
        requests_ledgers,
        requests_mail,
        requests_calendar,
        requests_impossible,
    )
    for request in room.REQUESTS
)


@cache
def reserved_skeletons() -> frozenset[str]:
    """The skeletons of all unseen requests. A training example with one of them, by `skeleton_of`, is refused.

    Example:
        >>> skeleton_of(example.plan) in reserved_skeletons()
    """
    return frozenset(request.skeleton for request in REQUESTS if request.unseen)


__all__ = ["REQUESTS", "Request", "reserved_skeletons"]
