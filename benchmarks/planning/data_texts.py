"""The texts of a world: plain files, prose with facts in it, mails, events and web pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from .data import NOW, Entry, Letter, Prose, Side
from .data_tables import amounts, person_names

BySide = Callable[[Any, Any], Any]


def _by_side(side: Side) -> BySide:
    return lambda first, second: first if side == "a" else second


def make_texts(side: Side, random: Random) -> dict[str, str]:
    """Plain files by path. Requests that name one find it under the same name in every world."""
    pick = _by_side(side)
    who = person_names(random, 8)
    invoices = [f"Invoice {random.randrange(3000, 9000)} from {name}" for name in random.sample(who, 4)]
    mail = [
        *invoices[:3],
        f"Lunch with {who[0]} on Friday",
        invoices[0],
        f"please pay the invoice of {who[3]} soon",
        "Newsletter: spring sale",
        invoices[3],
        "Newsletter: spring sale",
        invoices[1],
        f"Call {who[2]} back",
    ]
    random.shuffle(mail)
    chores = random.sample(
        (
            "call the plumber",
            "renew passport",
            "water the plants",
            "book the campsite",
            "return the drill",
            "buy stamps",
            "fix the bell",
        ),
        6,
    )
    todo = [f"[{'x' if i % 2 == pick(0, 1) or i == 5 else ' '}] {chore}" for i, chore in enumerate(chores)]
    errors, warnings = pick(5, 2), random.randrange(3, 6)
    levels = ["ERROR"] * errors + ["WARNING"] * warnings + ["INFO"] * 8
    random.shuffle(levels)
    log = [
        f"2026-03-10 0{i % 10}:{i:02}:11 {level} task {random.randrange(100, 999)}" for i, level in enumerate(levels)
    ]
    failures = pick(7, 3)
    auth = ["login failed"] * failures + ["login ok"] * 6
    random.shuffle(auth)
    auth = [f"2026-03-09 1{i % 10}:00 {what} user{random.randrange(20, 90)}" for i, what in enumerate(auth)]
    codes = [random.choice((200, 200, 404, 500)) for _ in range(30)]
    codes[-5:-2] = [404, 200, 404]
    web = [f"10.0.0.{i} GET /page{i} {code}" for i, code in enumerate(codes)]
    names = random.sample([*who, "Zoe Quist", "Åsa Berg"], 9)
    shopping = ["milk", "bread", "eggs", *random.sample(("rice", "soap", "pears", "beans", "tea"), 3)]
    shopping += random.sample(shopping, 3)
    random.shuffle(shopping)
    contacts = [
        f"{name};{name.split()[0].lower()}@{pick('example.org', 'example.net')};{random.choice(('work', 'home'))}"
        for name in who[:5]
    ]
    topics = random.sample(("budget", "garden", "travel", "retro", "choir", "roof"), 4)
    falcon = random.sample(topics, 2)
    notes = {
        f"notes/{topic}.txt": f"Notes of {who[7]} about the {topic}.\n"
        + ("Project Falcon needs two more weeks.\n" if topic in falcon else "Nothing is decided.\n")
        for topic in topics
    }
    groceries = random.sample(("oats", "lentils", "olive oil", "yeast", "apples", "coffee", "butter"), 5)
    packing = random.sample(("tent", "torch", "rope", "stove", "sleeping bag", "map", "boots", "whistle"), 6)
    lists = {
        pick("lists/groceries.txt", "kitchen_needs.txt"): groceries,
        pick("camping_gear.txt", "lists/outdoor.txt"): packing,
    }
    return {
        "mail.txt": "\n".join(mail) + "\n",
        "todo.txt": "\n".join(todo) + "\n",
        "app.log": "\n".join(log) + "\n",
        "logs/auth.log": "\n".join(auth) + "\n",
        "logs/web.log": "\n".join(web) + "\n",
        "logs/backup.log": "".join(f"backup {i} ok\n" for i in range(pick(4, 6))),
        "names.txt": "\n".join(names) + "\n",
        "shopping.txt": "\n".join(shopping) + "\n",
        "contacts.txt": "\n".join(contacts) + "\n",
        "letter_template.txt": f"Dear {who[0]},\nAcme thanks you for your order.\nThe team of Acme\n",
        "report.txt": f"Report of {who[1]}\nSales went {pick('up', 'down')} by {random.randrange(2, 19)} percent.\n",
        "draft.txt": f"A first draft by {who[2]}.\n",
        "old/scratch.tmp": "scratch\n",
        "config.json": json.dumps({"host": "db.local", "timeout": random.randrange(10, 90), "retries": pick(3, 8)}),
        **notes,
        **{path: "\n".join(items) + "\n" for path, items in lists.items()},
    }


def make_prose(side: Side, random: Random) -> dict[str, Prose]:
    """Texts with facts in them, each called something else in the other world."""
    pick = _by_side(side)
    code, wifi = (
        str(random.randrange(1000, 9999)),
        f"{random.choice(('maple', 'otter', 'cedar'))}{random.randrange(100, 999)}",
    )
    vet, landlord = f"030 55{random.randrange(10000, 99999)}", person_names(random, 1)[0]
    ferry = datetime(2026, 3, 21, random.randrange(6, 20), random.choice((5, 25, 50)))
    policy, expires = (
        f"HX-{random.randrange(10000, 99999)}",
        date(2026, 4, 1) + timedelta(days=random.randrange(20, 200)),
    )
    eggs, minutes = random.randrange(2, 7), random.randrange(25, 70)
    serviced = date(2025, pick(5, 8), 1) + timedelta(days=random.randrange(60))
    rent, notice = random.randrange(800, 1500, 10) + 0.5, random.randrange(2, 7)
    launch = date(2026, 4, 2) + timedelta(days=random.randrange(40))
    shoe = random.randrange(36, 46)
    products = random.sample(("desk lamp", "chair", "cabinet", "rug", "mirror"), 5)
    bad = random.sample(range(5), pick(2, 3))
    reviews = {
        f"review{i + 1}": Prose(
            f"reviews/{pick('review', 'r')}{i + 1}.txt",
            f"{'I regret buying the' if i in bad else 'I am very happy with the'} {product}, number {i + 1}. "
            f"{'It broke after a week.' if i in bad else 'Well made.'}\n",
            {"negative": i in bad, "product": product},
        )
        for i, product in enumerate(products)
    }
    return reviews | {
        "garage": Prose(
            pick("notes_home.txt", "house/doors.md"),
            f"Keys are with the neighbour. The code of the garage is {code}. The shed has no lock.\n",
            {"code": code},
        ),
        "wifi": Prose(
            pick("internet.txt", "house/router.md"),
            f"Router in the hall. The wifi password is {wifi}; the guest network has none.\n",
            {"password": wifi},
        ),
        "vet": Prose(
            pick("cat.md", "pets/luna.txt"),
            f"Luna eats twice a day. The vet can be reached at {vet}.\n",
            {"phone": vet},
        ),
        "ferry": Prose(
            pick("island_trip.txt", "travel/crossing.md"),
            f"We take the ferry on {ferry:%d %B %Y}. It leaves at {ferry:%H:%M} from pier 4.\n",
            {"leaves": ferry},
        ),
        "insurance": Prose(
            pick("insurance.txt", "papers/cover.md"),
            f"The bike is insured. Policy number {policy}. The cover ends on {expires:%d %B %Y}.\n",
            {"number": policy, "ends": expires},
        ),
        "recipe": Prose(
            pick("recipes/cake.txt", "grandma.md"),
            f"Plum cake: {eggs} eggs, flour, plums. Bake it for {minutes} minutes.\n",
            {"eggs": eggs, "minutes": minutes},
        ),
        "boiler": Prose(
            pick("heating.txt", "house/boiler.md"),
            f"The boiler was last serviced on {serviced:%d %B %Y} by Mr Ortner.\n",
            {"serviced": serviced},
        ),
        "landlord": Prose(
            pick("flat.txt", "papers/rental.md"),
            f"The landlord is {landlord}. Rent is due on the third of the month.\n",
            {"name": landlord},
        ),
        "sizes": Prose(pick("family/sizes.txt", "kids.md"), f"Nora wears shoes in size {shoe} now.\n", {"size": shoe}),
        "contract": Prose(
            "contract.txt",
            f"LEASE AGREEMENT. The monthly rent is {rent:.2f} EUR. The notice period is {notice} months.\n",
            {"rent": rent, "notice_months": notice},
        ),
        "meeting": Prose(
            "meeting_notes.txt",
            f"Meeting notes, product team. The new shop launches on {launch:%d %B %Y}.\n",
            {"launch": launch},
        ),
    }


def make_letters(side: Side, random: Random) -> tuple[Letter, ...]:
    """The mail in the inbox, oldest first."""
    pick = _by_side(side)

    def at(days: int, hour: int = 9) -> datetime:
        return (NOW - timedelta(days=days)).replace(hour=hour, minute=random.randrange(0, 59))

    letters: list[Letter] = []
    firms = ["Litware Cleaning", "Northwind Supplies", "Contoso Hosting", "Fabrikam Print"][: pick(4, 3)]
    for i, (firm, amount) in enumerate(
        zip(firms, amounts(random, len(firms), *pick((350, 900), (60, 380))), strict=True)
    ):
        due = date(2026, 3, 20) + timedelta(days=5 * i + random.randrange(4))
        letters.append(
            Letter(
                "invoice",
                f"billing@{firm.split()[0].lower()}.example.com",
                firm,
                at(15 - i),
                f"Invoice {random.randrange(100, 999)}",
                f"Hello, this is the invoice of {firm}. The amount is {amount:.2f} EUR, due on {due:%d %B %Y}.",
                facts={"vendor": firm, "amount": amount, "due": due},
            )
        )
    for i, name in enumerate(person_names(random, pick(3, 2))):
        order = random.randrange(1001, 1013)
        letters.append(
            Letter(
                "complaint",
                f"{name.split()[0].lower()}@buyers.example.net",
                name,
                at(10 - i, 11),
                "Complaint",
                f"Complaint of {name}: order {order} arrived with a crack in it.",
                facts={"order": order},
            )
        )
    for i in range(2):
        number, day = (
            f"PX-{random.randrange(50000, 59999)}",
            date(2026, 3, 12) + timedelta(days=3 * i + random.randrange(2)),
        )
        letters.append(
            Letter(
                "parcel",
                "track@parcel.example.com",
                "Parcel Service",
                at(5 - i, 8),
                "Your parcel is on its way",
                f"Your parcel {number} will arrive on {day:%d %B %Y}.",
                facts={"number": number, "arrives": day},
            )
        )
    costs, disk = random.randrange(1200, 4800), pick(94, 71)
    start = datetime(2026, 3, 17 + random.randrange(3), pick(10, 15), 30)
    train = datetime(2026, 3, 24, random.randrange(6, 18), random.choice((12, 38, 52)))
    size = random.randrange(4, 9)
    table = pick(date(2026, 3, 26) + timedelta(days=random.randrange(4)), date(2026, 3, 25))
    letters += [
        Letter(
            "costs",
            "lee.park@example.com",
            "Lee Park",
            at(4, 14),
            "Server costs",
            f"Hi, the server costs in February were {costs} EUR. Best, Lee",
            facts={"february": costs},
        ),
        Letter(
            "review",
            "dana.cole@example.com",
            "Dana Cole",
            at(3, 13),
            "Budget review",
            f"Can we meet for the budget review on {start:%d %B %Y} at {start:%H:%M}? It takes 45 minutes. Dana",
            facts={"start": start, "minutes": 45},
        ),
        Letter(
            "disk",
            "alerts@monitor.example.com",
            "Monitor",
            at(1, 6),
            "Disk of db-2",
            f"Monitor: the disk of db-2 is {disk} percent full.",
            unread=side == "a",
            facts={"percent": disk},
        ),
        Letter(
            "helen",
            "helen.ward@example.org",
            "Helen Ward",
            at(2, 15),
            pick("My refund", "Money back"),
            "Helen Ward here: where is my money? I sent the lamp back two weeks ago.",
            unread=side == "b",
        ),
        Letter(
            "train",
            "tickets@rail.example.com",
            "Rail Tickets",
            at(6, 10),
            "Your train to Lyon",
            f"Your train to Lyon leaves on {train:%d %B %Y} at {train:%H:%M}.",
            facts={"leaves": train},
        ),
        Letter(
            "maria",
            "maria.santos@example.org",
            "Maria Santos",
            at(2, 19),
            "Dinner",
            f"Hi, it is Maria. We will be {size} people for dinner on {table:%d %B %Y}.",
            facts={"people": size, "day": table},
        ),
        Letter(
            "holidays",
            "hr@example.com",
            "People Team",
            at(8, 9),
            "The holiday calendar",
            "The holiday calendar is attached.",
            attachments=(
                ("holidays.csv", f"date,holiday\n2026-04-03,Good Friday\n2026-05-0{pick(1, 4)},Spring Day\n"),
            ),
        ),
        Letter(
            "today",
            "noreply@bank.example.com",
            "Meadow Bank",
            NOW.replace(hour=7),
            "Your statement is ready",
            "Your statement is ready.",
            unread=True,
        ),
        *(
            [
                Letter(
                    "today",
                    "news@garden.example.com",
                    "Garden News",
                    NOW.replace(hour=8),
                    "Tulips",
                    "Tulips are back.",
                    unread=True,
                )
            ]
            if side == "a"
            else []
        ),
    ]
    return tuple(sorted(letters, key=lambda letter: letter.date))


def make_entries(side: Side, random: Random) -> tuple[Entry, ...]:
    """The calendar. On Friday afternoon one world is free and the other is not."""
    pick = _by_side(side)

    def at(day: int, hour: int, minute: int = 0, month: int = 3) -> datetime:
        return datetime(2026, month, day, hour, minute)

    doctor = random.randrange(9, 16)
    return (
        Entry("Stand-up", at(11, 9), 30),
        Entry("Planning with Lee", at(11, pick(13, 15)), pick(60, 90), pick("Room Birch", "Room Oak")),
        *([Entry("Choir", at(11, 19), 120)] if side == "a" else []),
        Entry("Stand-up", at(12, 9), 30),
        Entry("Vendor demo", at(12, pick(11, 14)), 60, "Room Oak"),
        *([Entry("Parents evening", at(12, 18), 60)] if side == "b" else []),
        Entry("Team retrospective", at(13, pick(10, 11)), 60, "Room Birch"),
        *([Entry("Interview", at(13, 14), 60)] if side == "b" else []),
        Entry("Budget planning", at(16, pick(10, 13)), 90, "Room Elm"),
        Entry("Dentist", at(18, doctor, 15), 30, "Mill Street"),
        Entry("Dinner with Kim", at(random.randrange(19, 23), 19, 30), 120, random.choice(("Osteria Blu", "Taverna"))),
        Entry("Swimming", at(14, 8), pick(60, 75)),
        Entry("Swimming", at(21, 8), pick(60, 75)),
        Entry("Flat viewing", at(25, pick(12, 17), 20), 40, f"{random.randrange(3, 90)} Harbour Road"),
    )


def make_pages(side: Side, random: Random) -> tuple[dict[str, Prose], dict[str, Any]]:
    """The website: pages of prose, and JSON by name."""
    pick = _by_side(side)
    founded, lamp = random.randrange(1950, 2015), random.randrange(2500, 7900, 7) / 100
    opens = date(2026, 3, 28) + timedelta(days=random.randrange(30))
    deadline = date(2026, 3, 16) + timedelta(days=random.randrange(12))
    sunday = side == "b"
    values = {
        "rates": {
            "base": "EUR",
            "rates": {"USD": round(1.05 + random.randrange(12) / 100, 2), "GBP": 0.84 + pick(0, 0.02)},
        },
        "status": {
            "services": [
                {"name": name, "state": "down" if name in pick(("mail", "search"), ()) else "up"}
                for name in ("shop", "mail", "search", "login")
            ]
        },
        "weather": {
            "days": [
                {"day": f"2026-03-{12 + i}", "high": random.randrange(4, 19), "rain": i in pick((0, 2), (1, 3))}
                for i in range(5)
            ]
        },
    }

    def page(name: str, title: str, text: str, **facts: Any) -> tuple[str, Prose]:
        return name, Prose(
            f"{name}.html", f"<html><head><title>{title}</title></head><body><p>{text}</p></body></html>", facts
        )

    pages = dict(
        [
            page("about", "About us", f"Two carpenters founded the company in {founded}.", founded=founded),
            page(
                "opening",
                pick("Opening hours", "When we are open"),
                f"Our shops {'open at noon' if sunday else 'are closed'} on Sundays.",
                open_on_sundays=sunday,
            ),
            page("products", "Products", f"The desk lamp costs {lamp:.2f} EUR.", lamp_price=lamp),
            page("news", pick("News", "What is new"), f"Our shop in Porto opens on {opens:%d %B %Y}.", opens=opens),
            page("careers", "Jobs", f"We look for a joiner. Apply by {deadline:%d %B %Y}.", deadline=deadline),
        ]
    )
    links = "".join(f'<a href="{each.path}">{name}</a> ' for name, each in pages.items())
    pages["index"] = Prose("index.html", f"<html><head><title>Welcome</title></head><body>{links}</body></html>")
    return pages, values
