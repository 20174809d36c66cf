"""Attacks on the record: someone who can write to its file, or a process that was overtaken, wants it to tell a lie."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from bicameral import parse, tool
from bicameral.errors import JournalError
from bicameral.journal import Anchor, Journal
from bicameral.journal._events import COLUMNS, EventRow, row_from_values, seal_event
from bicameral.policy import Policy
from bicameral.runs import run_plan
from bicameral.secrets import Secret
from bicameral.tools import Origin, Registry

from ..case import Family, World

attacks = Family("journal")

RUN = "run-1"
FORGED = '{"result":"paid 9000 to eve"}'
LARGE = "a bill of many lines, " * 400


def write(file: Path, run: str = RUN, result: str = "paid 10 to kim") -> Anchor:
    """Record a run, and give what a careful owner keeps elsewhere."""
    with Journal(file) as journal:
        journal.append(run, "run-started", "", {"request": "pay the bill"})
        journal.append(run, "step-started", "0", {"tool": "pay", "arguments": {"note": LARGE}})
        journal.append(run, "step-finished", "0", {"result": result})
        journal.append(run, "run-finished", "", {"answer": result})
        return journal.anchor(run)


def rewrite(file: Path, change: Callable[[list[EventRow]], list[EventRow]]) -> None:
    """Put other events in the place of a run's, without the triggers: the attacker owns the file."""
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        query = f"SELECT {COLUMNS} FROM events WHERE run = ? ORDER BY number"
        rows = change([row_from_values(row) for row in db.execute(query, (RUN,))])
        db.execute("DELETE FROM events WHERE run = ?", (RUN,))
        db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def reseal(row: EventRow, before: str, body: str | None = None) -> EventRow:
    return seal_event(before, row.run, row.number, row.at, row.kind, row.step, row.body if body is None else body)


def believed(file: Path, *known: Anchor) -> str | None:
    """What the attacker got: the record passes for what was written."""
    with Journal(file) as journal:
        return None if journal.verify(RUN, known=known) else "the forged record passes the verification"


def intact(file: Path, *known: Anchor) -> bool:
    with Journal(file) as journal:
        told = [event.body for event in journal.events(RUN)]
        return not journal.verify(known=known) and told[2] == {"result": "paid 10 to kim"}


@attacks.case("one event is changed and its own seal is made anew, rightly")
async def one_event(world: World) -> str | None:
    write(world.folder / "j.db")
    rewrite(world.folder / "j.db", lambda rows: [*rows[:2], reseal(rows[2], rows[1].seal, FORGED), rows[3]])
    return believed(world.folder / "j.db")


@one_event.twin()
async def genuine(world: World) -> bool:
    write(world.folder / "j.db")
    rewrite(world.folder / "j.db", lambda rows: rows)
    return intact(world.folder / "j.db")


@attacks.case("an event and all after it are sealed anew")
async def whole_tail(world: World) -> str | None:
    anchor = write(world.folder / "j.db")

    def forge(rows: list[EventRow]) -> list[EventRow]:
        paid = reseal(rows[2], rows[1].seal, FORGED)
        return [*rows[:2], paid, reseal(rows[3], paid.seal)]

    rewrite(world.folder / "j.db", forge)
    return believed(world.folder / "j.db", anchor)


@whole_tail.twin()
async def genuine_with_anchor(world: World) -> bool:
    return intact(world.folder / "j.db", write(world.folder / "j.db"))


@attacks.case("the last events of a run are cut off")
async def cut_off(world: World) -> str | None:
    anchor = write(world.folder / "j.db")
    rewrite(world.folder / "j.db", lambda rows: rows[:2])
    return believed(world.folder / "j.db", anchor)


@cut_off.twin()
async def longer(world: World) -> bool:
    """A run that went on after its anchor was taken is the same run."""
    with Journal(world.folder / "j.db") as journal:
        journal.append(RUN, "run-started", "", {})
        anchor = journal.anchor(RUN)
        journal.append(RUN, "run-finished", "", {"answer": 1})
        return not journal.verify(known=[anchor])


@attacks.case("an event is emptied as if it had been erased")
async def emptied(world: World) -> str | None:
    write(world.folder / "j.db")
    rewrite(world.folder / "j.db", lambda rows: [*rows[:2], rows[2]._replace(body="", salt=b""), rows[3]])
    return believed(world.folder / "j.db")


@emptied.twin()
async def erased(world: World) -> bool:
    write(world.folder / "j.db")
    with Journal(world.folder / "j.db") as journal:
        journal.erase(RUN, "asked for")
        return not journal.verify() and journal.events(RUN, erased=True)[-1].body == {"why": "asked for"}


@attacks.case("a large value is exchanged under its hash")
async def value_exchanged(world: World) -> str | None:
    import zlib

    write(world.folder / "j.db")
    with closing(sqlite3.connect(world.folder / "j.db", isolation_level=None)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        forged = zlib.compress(f'"{LARGE.replace("bill", "gift")}"'.encode())
        db.execute("UPDATE blobs SET content = ?", (forged,))
    return believed(world.folder / "j.db")


@value_exchanged.twin()
async def value_kept(world: World) -> bool:
    write(world.folder / "j.db")
    with Journal(world.folder / "j.db") as journal:
        return journal.events(RUN)[1].body["arguments"]["note"] == LARGE


@attacks.case("the record is changed through a connection of the program itself")
async def by_the_program(world: World) -> str | None:
    """A mistake or an injected statement of ours meets the triggers."""
    write(world.folder / "j.db")
    statements = (
        f"UPDATE events SET body = '{FORGED}' WHERE number = 2",
        "DELETE FROM events WHERE number = 3",
        f"INSERT OR REPLACE INTO events SELECT run, number, at, kind, step, '{FORGED}', salt, digest, seal FROM events",
        "UPDATE events SET body = '', salt = x'' WHERE number = 2",
        "DELETE FROM blobs",
        "UPDATE blobs SET content = x'00'",
        "DELETE FROM uses",
    )
    with closing(sqlite3.connect(world.folder / "j.db", isolation_level=None)) as db:
        for statement in statements:
            with suppress(sqlite3.IntegrityError):
                if db.execute(statement).rowcount:
                    return f"this went through: {statement[:40]}"
    return None if intact(world.folder / "j.db") else "the record was changed"


@by_the_program.twin()
async def appended(world: World) -> bool:
    write(world.folder / "j.db")
    write(world.folder / "j.db", "run-2")
    return intact(world.folder / "j.db")


@attacks.case("a process that was overtaken does the effect once more")
async def overtaken(world: World) -> str | None:
    paid: list[str] = []

    @tool(effect="read", outbound=False, origins=Origin("system"))
    def look() -> str:
        """Look; meanwhile another process takes the run over."""
        with Journal(world.folder / "j.db") as other:
            run = other.find("last")
            other.append(run, "run-resumed", "", {"attempt": 2}, first=len(other.events(run)))
        return "kim"

    outcome = await _paying(world, look, paid)
    return "it paid though the run was another's by then" if paid or outcome else None


@overtaken.twin()
async def not_overtaken(world: World) -> bool:
    paid: list[str] = []

    @tool(effect="read", outbound=False, origins=Origin("system"))
    def look() -> str:
        """Look."""
        return "kim"

    return await _paying(world, look, paid) and paid == ["kim"]


async def _paying(world: World, look: object, paid: list[str]) -> bool:
    from bicameral.tools import Tool

    @tool(effect="write", origins=Origin("system"), purpose={"to": "directs"})
    def mark(to: str) -> None:
        """Begin, so that the run is in the record."""

    @tool(effect="write", origins=Origin("system"), purpose={"to": "directs"})
    def pay(to: str) -> None:
        """Pay somebody."""
        paid.append(to)

    assert isinstance(look, Tool)
    registry = Registry([look, mark, pay])
    plan = parse('mark("x")\nwho = look()\npay(who)\nanswer("paid")', registry).plan
    with Journal(world.folder / "j.db") as journal, suppress(JournalError):
        return (await run_plan(plan, registry, journal=journal, policy=Policy((), registry))).ok
    return False


@attacks.case("a key is read out of the file of the record")
async def secret_in_the_file(world: World) -> str | None:
    key = "k3y-of-the-mail-server-0123"
    Secret("MAIL_KEY", key)
    write(world.folder / "j.db", result=f"the server said: bad key {key}")
    stored = b"".join(file.read_bytes() for file in world.folder.glob("j.db*"))
    return "the key is in the file" if key.encode() in stored else None


@secret_in_the_file.twin()
async def words_in_the_file(world: World) -> bool:
    write(world.folder / "j.db", result="the server said: bad key")
    with Journal(world.folder / "j.db") as journal:
        return journal.events(RUN)[2].body == {"result": "the server said: bad key"}
