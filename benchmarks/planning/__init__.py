"""Requests over the standard toolbox, each judged by what is true in a temporary world afterwards.

`World` is the place (files, mail, calendar, a small website, an SMTP sink, a fixed clock), `REQUESTS` are sentences a
person would say there, each with a judge that looks only at the outcome, and `ORACLE` holds a plan by hand for each.
The requests were written before any prompt; those marked `unseen` stay away from every prompt and example.
"""

from .judge import Outcome, Verdict
from .oracle import ORACLE, read_blank
from .requests import REQUESTS, Request
from .world import World

__all__ = ["ORACLE", "REQUESTS", "Outcome", "Request", "Verdict", "World", "read_blank"]
