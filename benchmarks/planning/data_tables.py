"""The tables of a world: what a request names keeps its name, the rest is called something else in each world."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from random import Random
from typing import Any, TypeVar

from .data import NOW, Side, Table

T = TypeVar("T")

_VENDORS = ("Rail Office", "Paper House", "City Taxi", "Bean Bar", "Cloud Desk", "Hotel Linde", "Book Barn", "Cab Nine")
_CATEGORIES = ("travel", "office", "food", "software")
_FIRST = ("Ada", "Ben", "Clara", "David", "Eva", "Farid", "Greta", "Hugo", "Irene", "Jonas", "Katja", "Liam", "Mona")
_LAST = ("Abel", "Brandt", "Cole", "Duval", "Engel", "Fuchs", "Garcia", "Holm", "Iversen", "Jansen", "Keller", "Lopez")
_CITIES = ("Porto", "Lyon", "Graz", "Bergen")
_PRODUCTS = ("desk lamp", "bookshelf", "stool", "coat rack", "cabinet", "side table", "mirror", "rug")
_SUPPLIERS = ("Timber & Co", "Lux Light", "Nordic Wool")


def amounts(random: Random, count: int, low: int, high: int) -> list[float]:
    """Different amounts, so that there is one largest; none is round, so that none is found by chance."""
    return [round(cents / 100, 2) for cents in random.sample(range(low * 100 + 1, high * 100, 7), count)]


def person_names(random: Random, count: int) -> list[str]:
    """Different names with different first names."""
    return [
        f"{first} {last}"
        for first, last in zip(random.sample(_FIRST, count), random.sample(_LAST * 2, count), strict=True)
    ]


def make_tables(side: Side, random: Random) -> dict[str, Table]:
    """All tables of a world."""

    def by_side(first: T, second: T) -> T:
        return first if side == "a" else second

    def table(path: str, headers: dict[str, str], rows: list[tuple[Any, ...]]) -> Table:
        return Table(path, headers, [dict(zip(headers, row, strict=True)) for row in rows])

    def fixed(path: str, names: str, rows: list[tuple[Any, ...]]) -> Table:
        return table(path, {name: name for name in names.split()}, rows)

    def day(before: int) -> str:
        return (NOW.date() - timedelta(days=before)).isoformat()

    yes, no = by_side(("yes", "no"), ("ja", "nein"))
    rich = by_side(1, 3)  # world b has a third of the money: sums stay under what conditions ask for

    spent = amounts(random, 14, 60 // rich, 420 // rich)
    kinds = [*_CATEGORIES * 2, *random.choices(_CATEGORIES, k=6)]
    random.shuffle(kinds)
    expenses = [(day(60 - 4 * i), kinds[i], random.choice(_VENDORS), spent[i]) for i in range(14)]

    staff = person_names(random, 9)
    salaries = random.sample(range(41_000, 78_000, 450), 9)
    departments = [*("Engineering", "Sales", "Support") * 2, *random.choices(("Engineering", "Sales", "Support"), k=3)]
    employees = [
        (name, departments[i], salaries[i], day(200 + 131 * i), random.choice(_CITIES)) for i, name in enumerate(staff)
    ]

    buyers = person_names(random, 6)
    tiers = ["gold", "gold", "silver", "silver", "basic", by_side("gold", "basic")]
    cities = [*_CITIES, *random.choices(_CITIES, k=2)]
    customers = [
        (f"C{i + 1}", name, f"{name.split()[0].lower()}@{by_side('mail', 'post')}.example.net", cities[i], tiers[i])
        for i, name in enumerate(buyers)
    ]
    states = ["shipped", "pending", "shipped", "returned", "pending", "shipped"] * 2
    random.shuffle(states)
    totals = amounts(random, 12, 30, 600)
    bought = [
        *(f"C{i + 1}" for i in range(6)),
        *(random.choice(("C1", "C2", "C3", "C4", "C5", "C6")) for _ in range(6)),
    ]
    orders = [(1001 + i, bought[i], totals[i], states[i], day(40 - 3 * i)) for i in range(12)]

    quantities = random.sample(range(2, 60), len(_PRODUCTS))
    levels = [quantity + random.choice((3, 5)) if i < 3 else quantity - 1 for i, quantity in enumerate(quantities)]
    prices = amounts(random, len(_PRODUCTS), 15, 240)
    stock = [
        (product, quantities[i], levels[i], prices[i], _SUPPLIERS[i % 3])
        for i, product in enumerate(random.sample(_PRODUCTS, len(_PRODUCTS)))
    ]
    leads = random.sample(range(3, 25), 3)
    suppliers = [
        (name, f"orders@{name.split()[0].lower()}{by_side('', '-gmbh')}.example.org", leads[i])
        for i, name in enumerate(_SUPPLIERS)
    ]
    team = [(name, random.choice(("lead", "member")), f"{name.split()[0].lower()}@example.org") for name in staff[:4]]

    owed = amounts(random, 8, 20, 260)
    payees = random.sample(
        (
            "Water Works",
            "Green Power",
            "Fibre Net",
            "Oak Insurance",
            "City Tax",
            "Gym Nord",
            "Dr Weiss",
            "Chimney Sweep",
        ),
        8,
    )
    settled = [yes, yes, no, no, no, yes, by_side(no, yes), yes]
    bill_kinds = ["home", "home", "car", "home", "health", "car", "health", "home"]
    bills = [
        (
            payees[i],
            owed[i],
            (date(2026, 2, 20) + timedelta(days=7 * i + random.randrange(6))).isoformat(),
            settled[i],
            bill_kinds[i],
        )
        for i in range(8)
    ]

    litres = amounts(random, 6, 28, 55)
    pump = amounts(random, 6, by_side(50, 20), by_side(98, 45))
    fuel = [(day(70 - 11 * i), 480 + random.randrange(200), litres[i], pump[i]) for i in range(6)]

    club = person_names(random, 8)
    paid_fee = [yes, no, yes, yes, no, yes, yes, no if side == "a" else yes]
    members = [
        (name, f"{name.split()[0].lower()}.{name.split()[1].lower()}@club.example", 40 + 5 * i, paid_fee[i])
        for i, name in enumerate(club)
    ]

    invited = person_names(random, 9)
    coming = [yes, yes, no, yes, by_side(yes, no), yes, no, by_side(yes, no), yes]
    diets = ["none", "vegan", "none", "vegetarian", "vegan", "none", "vegan", "none", by_side("vegan", "vegetarian")]
    guests = [(invited[i], coming[i], diets[i]) for i in range(9)]

    borrowers = person_names(random, 5)
    titles = random.sample(("The Long Tide", "Winter Bread", "Maps of Salt", "A Small Orchard", "Night Ferry"), 5)
    back = [no, yes, no, by_side(yes, no), yes]
    loans = [(titles[i], borrowers[i], day(30 + 41 * i), back[i]) for i in range(5)]

    works = ["Harbour", "Library", "Harbour", "Museum", "Library", "Harbour", "Museum", "Library"]
    worked = random.sample([x / 2 for x in range(3, 19)], 8)
    hours = [(day(9 - i), works[i], worked[i]) for i in range(8)]

    readings = [4000 + by_side(0, 1900)]
    for _ in range(5):
        readings.append(readings[-1] + random.randrange(*by_side((240, 330), (110, 190))))
    meter = [((date(2025, 10, 1) + timedelta(days=31 * i)).replace(day=1).isoformat(), readings[i]) for i in range(6)]

    firms = ["Atelier Sud", "Brook Dental", "Casa Lume", "Delta Yachts"]
    clients = [
        (firm, f"office@{firm.split()[0].lower()}{by_side('', '-hq')}.example.net", _CITIES[(i + by_side(0, 1)) % 4])
        for i, firm in enumerate(firms)
    ]
    charged = amounts(random, 8, 200, 1900)
    jobs = [
        (f"R-{31 + i}", firms[i % 4], charged[i], day(75 - 9 * i), no if i in by_side((1, 3, 6), (0, 5)) else yes)
        for i in range(8)
    ]

    names: dict[str, tuple[Sequence[str], Sequence[str]]] = {
        "bills": (
            ("bills_2026.csv", "payee", "amount", "due_date", "paid", "category"),
            ("household/to_pay.csv", "company", "sum_eur", "deadline", "settled", "area"),
        ),
        "fuel": (
            ("car/fill_ups.csv", "date", "distance_km", "litres", "cost"),
            ("petrol.csv", "day", "km", "l", "price_total"),
        ),
        "members": (
            ("boat_crew.csv", "name", "email", "fee", "fee_paid"),
            ("verein/mitglieder.csv", "member", "mail_address", "contribution", "contribution_paid"),
        ),
        "guests": (
            ("party_guests.csv", "name", "coming", "diet"),
            ("anniversary/rsvp.csv", "guest", "attends", "food"),
        ),
        "loans": (
            ("lent_books.csv", "title", "borrower", "since", "returned"),
            ("library/given_away.csv", "book", "who", "lent_on", "is_back"),
        ),
        "hours": (("timesheet.csv", "date", "project", "hours"), ("work/zeiten.csv", "day", "site", "h")),
        "meter": (("electricity.csv", "date", "reading_kwh"), ("house/power_meter.csv", "read_on", "kwh")),
        "clients": (("clients.csv", "client", "email", "city"), ("business/accounts.csv", "client", "contact", "town")),
        "jobs": (
            ("sent_invoices.csv", "number", "client", "amount", "date", "paid"),
            ("business/billing.csv", "no", "client", "net", "billed_on", "received"),
        ),
    }
    keys = {
        "bills": "payee amount due paid kind",
        "fuel": "day km litres cost",
        "members": "name email fee paid",
        "guests": "name coming diet",
        "loans": "title borrower since back",
        "hours": "day project hours",
        "meter": "day reading",
        "clients": "client email town",
        "jobs": "number client amount day paid",
    }
    contents: dict[str, list[Any]] = {
        "bills": bills,
        "fuel": fuel,
        "members": members,
        "guests": guests,
        "loans": loans,
        "hours": hours,
        "meter": meter,
        "clients": clients,
        "jobs": jobs,
    }
    named = {
        key: table(path, dict(zip(keys[key].split(), headers, strict=True)), contents[key])
        for key, (path, *headers) in ((key, by_side(*pair)) for key, pair in names.items())
    }
    return named | {
        "expenses": fixed("expenses.csv", "date category vendor amount", expenses),
        "employees": fixed("employees.csv", "name department salary start_date office", employees),
        "customers": fixed("customers.csv", "customer_id name email city tier", customers),
        "orders": fixed("orders.csv", "order_id customer_id total status order_date", orders),
        "stock": fixed("stock.csv", "product quantity reorder_at price supplier", stock),
        "suppliers": fixed("vendors.csv", "supplier email lead_days", suppliers),
        "team": fixed("team.json", "name role email", team),
    }
