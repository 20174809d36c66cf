"""A plan by hand for every request, and what a perfect reader finds in the world's prose.

A plan with braces of its own cannot go through `str.format`: put the website in with `plan_for`.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from . import oracle_calendar, oracle_files, oracle_mail, oracle_tables, oracle_web

ORACLE: dict[str, str] = {
    **oracle_files.PLANS,
    **oracle_tables.PLANS,
    **oracle_mail.PLANS,
    **oracle_calendar.PLANS,
    **oracle_web.PLANS,
}


def plan_for(id: str, site: str) -> str:
    """The oracle's plan for a request, with the address of the website in it."""
    return ORACLE[id].replace("{site}", site).strip() + "\n"


_PROSE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("LEASE AGREEMENT", {"rent": 1850.0, "notice_months": 6}),
    ("Meeting notes, product team", {"launch": date(2026, 4, 21)}),
    ("I love this desk lamp", {"negative": False, "product": "desk lamp"}),
    ("Terrible chair", {"negative": True, "product": "chair"}),
    ("happy with the bookshelf", {"negative": False, "product": "bookshelf"}),
    ("The cabinet came scratched", {"negative": True, "product": "cabinet"}),
    ("What a great desk", {"negative": False, "product": "desk"}),
    ("invoice for cleaning", {"vendor": "Litware Cleaning", "amount": 230.0, "due": date(2026, 3, 10)}),
    ("Invoice 4471", {"vendor": "Northwind Supplies", "amount": 1284.5, "due": date(2026, 3, 27)}),
    ("your web hosting in March", {"vendor": "Contoso Hosting", "amount": 89.9, "due": date(2026, 3, 19)}),
    ("invoice FP-208", {"vendor": "Fabrikam Print", "amount": 412.5, "due": date(2026, 4, 2)}),
    ("PX-54088", {"number": "PX-54088", "arrives": date(2026, 3, 4)}),
    ("PX-55120", {"number": "PX-55120", "arrives": date(2026, 3, 12)}),
    ("PX-55093", {"number": "PX-55093", "arrives": date(2026, 3, 16)}),
    ("the server costs in February", {"february": 3150.0}),
    ("the disk of db-2", {"percent": 94}),
    ("a cracked base", {"order": 1007}),
    ("waiting for order 1012", {"order": 1012}),
    ("a coat rack was in the box", {"order": 1015}),
    ("for the budget review", {"start": datetime(2026, 3, 13, 14), "minutes": 60}),
    ("Your train to Lyon", {"leaves": datetime(2026, 3, 24, 7, 52)}),
    ("two carpenters", {"founded": 1987}),
    ("On Sundays and public holidays", {"open_on_sundays": False}),
    ("Our new shop in Porto", {"opens": date(2026, 3, 28)}),
    ("looking for a joiner", {"deadline": date(2026, 3, 27)}),
    ("Our best known pieces", {"lamp_price": 36.5}),
)


def read_blank(source: str, field: str) -> Any:
    """What a perfect reader puts into this field after reading the text; a KeyError if nobody has written it down."""
    for mark, facts in _PROSE:
        if mark in source and field in facts:
            return facts[field]
    raise KeyError(f"nothing is known about {field!r} in {source[:60]!r}")
