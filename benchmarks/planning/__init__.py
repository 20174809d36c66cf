"""Everyday requests over the standard toolbox, each judged in two generated worlds by what is true afterwards.

`generate` makes the data of a world from a seed and a side, `World` lays it out (files, mail, calendar, a small
website, an SMTP sink, a fixed clock), `REQUESTS` are sentences a person would type there. What is right in a world is
computed from its data by an oracle, and never by a plan; a reference plan beside each request proves that it can be
served. Requests marked `unseen` have skeletons that no seen request has: `reserved_skeletons` and `world_files` are
what training data is held against.
"""

from .data import NOW, SEED, SIDES, Data, Side
from .generate import generate, world_files
from .judge import Expected, Outcome, Verdict
from .requests import REQUESTS, Request, reserved_skeletons
from .skeletons import skeleton_of
from .world import World

__all__ = [
    "NOW",
    "REQUESTS",
    "SEED",
    "SIDES",
    "Data",
    "Expected",
    "Outcome",
    "Request",
    "Side",
    "Verdict",
    "World",
    "generate",
    "reserved_skeletons",
    "skeleton_of",
    "world_files",
]
