"""A world's data from a seed and a side."""

from __future__ import annotations

from functools import cache
from random import Random

from .data import SEED, SIDES, Data, Side, Table
from .data_tables import make_tables
from .data_texts import make_entries, make_letters, make_pages, make_prose, make_texts

_NAMES: dict[Side, dict[str, str]] = {
    "a": {
        "kim": "kim.osei@example.org",
        "anna": "anna.wolff@example.net",
        "peter": "peter.lang@example.org",
        "groceries": "lists/groceries.txt",
        "packing": "camping_gear.txt",
        "yes": "yes",
        "no": "no",
    },
    "b": {
        "kim": "k.osei@post.example.net",
        "anna": "wolff@studio.example.org",
        "peter": "plang@post.example.net",
        "groceries": "kitchen_needs.txt",
        "packing": "lists/outdoor.txt",
        "yes": "ja",
        "no": "nein",
    },
}


def _contacts(side: Side) -> Table:
    """The address book. There are two Toms: a mail to Tom is a question."""
    names = _NAMES[side]
    people = {
        "Kim Osei": names["kim"],
        "Anna Wolff": names["anna"],
        "Peter Lang": names["peter"],
        "Tom Reed": "tom.reed@example.org",
        "Tom Aubin": "t.aubin@example.net",
    }
    rows = [{"name": name, "email": address} for name, address in people.items()]
    if side == "a":
        return Table("address_book.csv", {"name": "name", "email": "email"}, rows)
    return Table("private/people.csv", {"name": "person", "email": "e_mail"}, rows)


@cache
def generate(side: Side, seed: int = SEED) -> Data:
    """Everything in the world of this side.

    The side decides which branch conditions take and what things are called, the seed all other contents. Each part
    draws from a generator of its own, so that a change to one leaves the others as they are.

    Example:
        >>> generate("a").tables["bills"].path
        'bills_2026.csv'
    """

    def draw(part: str) -> Random:
        return Random(f"{seed}/{side}/{part}")

    pages, values = make_pages(side, draw("pages"))
    return Data(
        side=side,
        seed=seed,
        tables={**make_tables(side, draw("tables")), "contacts": _contacts(side)},
        texts=make_texts(side, draw("texts")),
        prose=make_prose(side, draw("prose")),
        letters=make_letters(side, draw("letters")),
        entries=make_entries(side, draw("entries")),
        pages=pages,
        values=values,
        names=_NAMES[side],
    )


def world_files(seed: int = SEED) -> frozenset[str]:
    """The names of all files in the worlds, in lower case and without folders: training data must not use them."""
    paths = {path for side in SIDES for data in [generate(side, seed)] for path in [*data.files(), "calendar.ics"]}
    pages = {each.path for side in SIDES for each in generate(side, seed).pages.values()}
    return frozenset(path.rpartition("/")[2].lower() for path in paths | pages)
