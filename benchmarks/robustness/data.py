"""The small world of the benchmark: a bicycle workshop with files, mails, a calendar and a website."""

from __future__ import annotations

from datetime import date, datetime

from ..planning.data import Data, Entry, Letter, Prose, Table

STATUTES = """Statutes of the workshop

Everybody who pays the yearly fee is a member. The yearly fee is 48 euros; pupils pay half of it.
A member may leave with six weeks of notice. The committee has five members and is elected every second year.
"""
HIRE_TERMS = """Terms of hire

A deposit of 75 euros is paid when a bike is taken. The bike is brought back by half past seven in the evening.
Whoever loses the key pays 20 euros for a new one.
"""
VISIT = """<html><head><title>Visit us</title></head><body><h1>Visit us</h1>
<p>The workshop is at 14 Mill Lane. A locker costs 3 euros a month, a workbench 9 euros a day.</p>
<p>Children under twelve come with an adult.</p></body></html>
"""

DATA = Data(
    side="a",
    seed=0,
    tables={
        "repairs": Table(
            "repairs.csv",
            {key: key for key in ("ticket", "bike", "owner", "state", "hours", "cost")},
            [
                dict(zip(("ticket", "bike", "owner", "state", "hours", "cost"), row, strict=True))
                for row in (
                    (401, "city bike", "Priya Nair", "done", 1.5, 45.0),
                    (402, "racing bike", "Owen Hale", "open", 3.0, 120.0),
                    (403, "cargo bike", "Lena Fuchs", "open", 4.5, 210.0),
                    (404, "city bike", "Marco Bini", "waiting", 0.5, 15.0),
                    (405, "folding bike", "Sara Lund", "done", 2.0, 70.0),
                    (406, "racing bike", "Tariq Aziz", "open", 1.0, 38.0),
                    (407, "cargo bike", "Edda Vogt", "done", 5.0, 260.0),
                )
            ],
        ),
        "parts": Table(
            "spare_parts.csv",
            {key: key for key in ("item", "shelf", "stock", "price")},
            [
                dict(zip(("item", "shelf", "stock", "price"), row, strict=True))
                for row in (
                    ("chain", "A2", 14, 18.5),
                    ("brake pad", "B1", 6, 7.9),
                    ("inner tube", "A1", 31, 5.5),
                    ("spoke", "C3", 120, 0.8),
                    ("pedal", "B4", 3, 24.0),
                    ("saddle", "C1", 2, 39.9),
                )
            ],
        ),
        "tours": Table(
            "tours.csv",
            {key: key for key in ("tour", "day", "km", "riders")},
            [
                dict(zip(("tour", "day", "km", "riders"), row, strict=True))
                for row in (
                    ("Lake loop", "2026-03-14", 42, 9),
                    ("Castle hill", "2026-03-21", 58, 5),
                    ("River path", "2026-03-28", 31, 14),
                    ("Forest ring", "2026-04-11", 66, 4),
                )
            ],
        ),
    },
    texts={
        "helpers.txt": "Priya Nair\nOwen Hale\nPriya Nair\nLena Fuchs\nMarco Bini\nOwen Hale\nSara Lund\n",
        "door_log.txt": (
            "front opened by Owen\nalarm test passed\nback opened by Lena\nback closed\nalarm battery low\n"
            "front closed\nfront opened by Sara\nalarm off\nfront closed\n"
        ),
        "wishlist.txt": "truing stand\nchain whip\ntorque wrench\nbearing press\n",
        "leaflets/spring.md": "# Spring\n\nBring your bike. Insurance is part of the fee.\n",
        "leaflets/autumn.md": "# Autumn\n\nLights are checked for free.\n",
        "leaflets/joining.md": "# Joining\n\nAsk at the desk about insurance.\n",
        "rates.json": '{"weekday": 22, "weekend": 35}\n',
        "old_flyer.txt": "Summer party in the yard.\n",
    },
    prose={
        "statutes": Prose("statutes.md", STATUTES, {"fee": 48.0}),
        "hire": Prose("hire_terms.txt", HIRE_TERMS, {"deposit": 75.0}),
    },
    letters=[
        Letter(
            "pads",
            "farid.noor@wheels.example.net",
            "Farid Noor",
            datetime(2026, 2, 20, 8, 15),
            "Bill for brake pads",
            "Hello, the bill for the brake pads is attached. Farid",
            attachments=(("pads.csv", "item,count\nbrake pad,40\n"),),
        ),
        Letter(
            "glove",
            "noah.beck@example.com",
            "Noah Beck",
            datetime(2026, 3, 8, 17, 40),
            "A lost glove",
            "Hi, I left a blue glove on the bench. Noah",
        ),
        Letter(
            "tyres",
            "farid.noor@wheels.example.net",
            "Farid Noor",
            datetime(2026, 3, 9, 9, 5),
            "Tyre delivery",
            "Hello, the tyres arrive on 17 March 2026. The total is 612.40 euros. Best wishes, Farid",
            unread=True,
            facts={"total": 612.4, "day": date(2026, 3, 17)},
        ),
        Letter(
            "interview",
            "ines@citypaper.example.org",
            "Ines Duarte",
            datetime(2026, 3, 10, 11, 30),
            "Interview about the workshop",
            "Dear all, may we visit you for a short article? Ines Duarte",
            unread=True,
        ),
        Letter(
            "shed",
            "ruth.okafor@example.com",
            "Ruth Okafor",
            datetime(2026, 3, 10, 20, 10),
            "Key to the shed",
            "The key to the shed is under the blue pot. Ruth",
            unread=True,
        ),
    ],
    entries=[
        Entry("Brake course", datetime(2026, 3, 12, 18, 0), 90, "Back room"),
        Entry("Committee meeting", datetime(2026, 3, 16, 19, 0), 60, "Library"),
        Entry("Tyre unloading", datetime(2026, 3, 17, 9, 0), 120, "Yard"),
        Entry("Repair evening", datetime(2026, 3, 20, 17, 0), 180, "Main hall"),
        Entry("Tool inventory", datetime(2026, 3, 25, 17, 30), 120, "Cellar"),
    ],
    pages={"visit": Prose("visit.html", VISIT, {"locker": 3.0})},
    values={"club": {"active": 87, "waiting": 12}},
    names={},
)
"""Names, files and contents that occur in no other benchmark's world."""
