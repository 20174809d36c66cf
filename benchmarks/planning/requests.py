"""All requests, and which of them stay unseen while prompts are tuned."""

from __future__ import annotations

from dataclasses import replace

from . import requests_calendar, requests_files, requests_mail, requests_tables, requests_web
from .request import Request

# Drawn once, by `random.Random(seed).sample` of a third of the sorted ids, with the first seed (130111) that takes a
# third, give or take one, of every level, subject and feature and of the sloppy ones; never the request that the README
# shows. A request keeps its side for good: what a prompt has once seen cannot become unseen again.
UNSEEN: frozenset[str] = frozenset(
    {
        "answer-complaints",
        "answer-helen",
        "budget-meeting",
        "city-totals",
        "complaint-table",
        "contact-addresses",
        "count-errors",
        "delete-scratch",
        "engineers",
        "events-today",
        "events-tomorrow",
        "invoice-limit",
        "invoice-sum",
        "invoice-table",
        "launch-date",
        "log-sizes",
        "login-check",
        "meeting-hours",
        "move-retro",
        "open-sundays",
        "porto-opening",
        "save-hours",
        "service-down",
        "show-todo",
        "skip-interview",
        "sort-names",
        "top-earner",
        "top-five",
        "total-expenses",
        "week-agenda",
    }
)

REQUESTS: tuple[Request, ...] = tuple(
    replace(request, unseen=request.id in UNSEEN)
    for room in (requests_files, requests_tables, requests_mail, requests_calendar, requests_web)
    for request in room.REQUESTS
)

__all__ = ["REQUESTS", "UNSEEN", "Request"]
