"""The tools of the runs: what reads, what may be repeated with its key, and what may not be repeated at all."""

from __future__ import annotations

from typing import TypedDict

from benchmarks.chaos.world import World
from bicameral.tools import Origin, Participants, Registry, Tool, call_key, tool

STRANGERS = Origin("third_party")


class Page(TypedDict):
    title: str
    text: str
    count: int


class Row(TypedDict):
    id: str
    sender: str
    amount: int
    note: str


def registry_over(world: World) -> Registry:
    """The same tools, by fingerprint too, over any world."""
    return Registry([*_reading(world), *_changing(world)])


def _reading(world: World) -> list[Tool]:
    @tool(effect="read", origins={"": STRANGERS, "count": Origin("system")}, outbound=False)
    def read_page(number: int) -> Page:
        """A page that anybody may have written; how often it was read is the server's own word."""
        found = world.read(f"page/{number}")
        return Page(title=found["title"], text=found["text"], count=found["count"])

    @tool(
        effect="read",
        origins={
            "": Origin("system"),
            "[]": Origin("third_party", Participants(("sender",))),
            "[].id": Origin("system"),
        },
        outbound=False,
    )
    def read_rows(number: int, limit: int) -> list[Row]:
        """Rows that people sent; how many there are, and their ids, is the server's own word."""
        return [Row(**row) for row in world.read(f"rows/{number}/{limit}")["rows"]]

    @tool(effect="read", origins=STRANGERS, outbound=False)
    def read_large(number: int, size: int) -> str:
        """A long text."""
        return world.read(f"large/{number}/{size}")["text"]

    return [read_page, read_rows, read_large]


def _changing(world: World) -> list[Tool]:
    own = Origin("system")

    @tool(effect="write", keyed=True, purpose={"what": "directs", "text": "carries"}, origins=own, outbound=False)
    def note(what: str, text: str) -> str:
        """Write something down, once for one key."""
        return world.act("note", what, {"text": text}, key=call_key() or "", keyed=True)

    @tool(
        effect="send",
        keyed=True,
        purpose={"what": "directs", "to": "directs", "amount": "directs"},
        receivers=("to",),
        origins=own,
    )
    def pay(what: str, to: str, amount: int) -> str:
        """Pay somebody, once for one key."""
        return world.act("pay", what, {"to": to, "amount": amount}, key=call_key() or "", keyed=True)

    @tool(effect="irreversible", purpose={"what": "directs", "text": "carries"}, origins=own, outbound=False)
    def stamp(what: str, text: str) -> str:
        """Stamp a sheet of paper: each time it is done there is one more stamp."""
        return world.act("stamp", what, {"text": text}, key=call_key() or "", keyed=False)

    return [note, pay, stamp]
