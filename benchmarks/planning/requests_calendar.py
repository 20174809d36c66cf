"""Requests about the calendar and the website, with what is right and a reference plan for each."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from .data import NOW, Data, Entry
from .judge import (
    Added,
    Changed,
    Expected,
    Mail,
    has_lines,
    has_number,
    has_text,
    names,
    number,
    says,
    yes_or_no,
)
from .request import Request, de, en, es, fr, nat, task

TODAY = NOW.date()
FRIDAY = date(2026, 3, 13)


def _on(data: Data, first: date, last: date | None = None) -> list[Entry]:
    found = [entry for entry in data.entries if first <= entry.start.date() <= (last or first)]
    return sorted(found, key=lambda entry: entry.start)


def _titles(data: Data) -> list[str]:
    return sorted({entry.title for entry in data.entries})


def _slot(data: Data, day: date, minutes: int) -> datetime:
    """The first free stretch between 9 and 17."""
    free = datetime(day.year, day.month, day.day, 9)
    for entry in _on(data, day):
        if entry.start - free >= timedelta(minutes=minutes):
            return free
        free = max(free, entry.end)
    return free


def _busy_friday(data: Data) -> bool:
    start, end = datetime(2026, 3, 13, 14), datetime(2026, 3, 13, 15)
    return any(entry.start < end and entry.end > start for entry in _on(data, FRIDAY))


def _accept(data: Data) -> Expected:
    word, other = ("declined", "accepted") if _busy_friday(data) else ("accepted", "declined")
    return Expected(mails=(Mail("dana.cole@example.com", says=(word,), lacks=(other,)),))


def _hold(data: Data) -> Expected:
    if _busy_friday(data):
        return Expected(answer=None)
    return Expected(added=(Added("Focus time", datetime(2026, 3, 13, 14), 60),))


def _down(data: Data) -> list[str]:
    return [each["name"] for each in data.values["status"]["services"] if each["state"] == "down"]


def _service(data: Data) -> Expected:
    services = [each["name"] for each in data.values["status"]["services"]]
    down = _down(data)
    mails = (Mail("ops@example.com", says=tuple(down), lacks=tuple(s for s in services if s not in down)),)
    return Expected(mails=mails if down else ())


def _rain(data: Data) -> list[str]:
    return [each["day"] for each in data.values["weather"]["days"] if each["rain"]]


def _umbrella(data: Data) -> Expected:
    rainy = "2026-03-12" in _rain(data)
    return Expected(added=(Added("Umbrella", datetime(2026, 3, 12, 7, 30)),) if rainy else ())


CALENDAR: list[Request] = [
    *task(
        "events-today",
        1,
        "events = list_events(today())\nanswer([e.title for e in events])",
        lambda d: Expected(answer=names([e.title for e in _on(d, TODAY)], _titles(d))),
        nat("What's on today?"),
        de("Was steht heute an?", True),
        fr("Qu'est-ce que j'ai de prévu aujourd'hui ?", True),
        unseen=True,
    ),
    *task(
        "add-dentist",
        1,
        'add_event("Dentist check", datetime(2026, 3, 19, 9, 15), 30)\nanswer("added")',
        lambda d: Expected(added=(Added("Dentist check", datetime(2026, 3, 19, 9, 15), 30),)),
        nat('Put "Dentist check" into my calendar for 19 March 2026 at 9:15, 30 minutes.'),
        es('Apunta "Dentist check" en mi calendario el 19 de marzo de 2026 a las 9:15, 30 minutos.', True),
    ),
    *task(
        "dinner-kim",
        2,
        'events = search_events("Dinner with Kim")\nanswer(events[0].start)',
        lambda d: Expected(answer=says(d.entry("Dinner with Kim").start)),
        nat("When am I having dinner with Kim?"),
        de("Wann bin ich mit Kim zum Essen verabredet?", True),
    ),
    *task(
        "dentist-when",
        2,
        'events = search_events("Dentist")\nanswer(events[0].start)',
        lambda d: Expected(answer=says(d.entry("Dentist").start)),
        nat("At what time and on which day is my dentist appointment?"),
        es("¿Qué día y a qué hora tengo cita con el dentista?", True),
    ),
    *task(
        "dinner-where",
        2,
        'events = search_events("Flat viewing")\nanswer(events[0].location)',
        lambda d: Expected(answer=says(d.entry("Flat viewing").location)),
        nat("What's the address of the flat viewing?"),
        fr("À quelle adresse est la flat viewing ?", True),
    ),
    *task(
        "free-tomorrow",
        2,
        "slots = find_free_time(today() + timedelta(days=1), 60)\nanswer(slots[0].start)",
        lambda d: Expected(answer=says(_slot(d, TODAY + timedelta(days=1), 60).time())),
        nat("When is the first free hour I have tomorrow between 9 and 17?"),
        es("¿Cuál es la primera hora libre que tengo mañana entre las 9 y las 17?", True),
        unseen=True,
    ),
    *task(
        "move-retro",
        2,
        """
events = search_events("Team retrospective", date(2026, 3, 13), date(2026, 3, 13))
change_event(events[0].id, start=datetime(2026, 3, 13, 16, 0))
answer("moved")
""",
        lambda d: Expected(changed=(Changed(d.entry("Team retrospective"), start=datetime(2026, 3, 13, 16)),)),
        nat("Move Friday's retrospective to 4 pm."),
        de("Verschieb die Retrospective am Freitag auf 16 Uhr.", True),
        unseen=True,
    ),
    *task(
        "cancel-demo",
        2,
        'events = search_events("Vendor demo")\ndelete_event(events[0].id)\nanswer("cancelled")',
        lambda d: Expected(removed=(d.entry("Vendor demo"),)),
        nat("Cancel the vendor demo in my calendar."),
        fr("Supprime la vendor demo de mon agenda.", True),
    ),
    *task(
        "budget-room",
        2,
        """
events = search_events("Budget planning")
change_event(events[0].id, location="Room Oak")
answer("changed")
""",
        lambda d: Expected(changed=(Changed(d.entry("Budget planning"), location="Room Oak"),)),
        nat("Budget planning takes place in Room Oak now. Change that in my calendar."),
    ),
    *task(
        "friday-call",
        3,
        """
slots = find_free_time(date(2026, 3, 13), 60)
add_event("Call with Adatum", slots[0].start, 60)
answer(slots[0].start)
""",
        lambda d: Expected(added=(Added("Call with Adatum", _slot(d, FRIDAY, 60), 60),)),
        nat('Find the first free hour this Friday between 9 and 17 and enter "Call with Adatum" there.'),
        unseen=True,
    ),
    *task(
        "meeting-hours",
        3,
        """
events = list_events(today())
minutes = sum([(e.end - e.start).total_seconds() / 60 for e in events])
answer(minutes / 60)
""",
        lambda d: Expected(answer=number(sum(e.minutes for e in _on(d, TODAY)) / 60)),
        nat("How many hours of appointments do I have today in all?"),
        unseen=True,
    ),
    *task(
        "week-agenda",
        3,
        """
events = list_events(date(2026, 3, 9), date(2026, 3, 13))
write_lines("agenda.txt", [e.title for e in events])
answer(len(events))
""",
        lambda d: Expected(
            files={"agenda.txt": has_lines(*[e.title for e in _on(d, date(2026, 3, 9), FRIDAY)], ordered=False)}
        ),
        en("Write the titles of my events from 9 to 13 March 2026 into agenda.txt, one per line."),
        unseen=True,
    ),
    *task(
        "tomorrow-mail",
        4,
        """
events = list_events(today() + timedelta(days=1))
lines = [f"{e.start:%H:%M} {e.title}" for e in events]
send_mail(["assistant@example.com"], "Tomorrow", "\\n".join(lines))
answer("sent")
""",
        lambda d: (
            lambda there: Expected(
                mails=(
                    Mail(
                        "assistant@example.com",
                        says=tuple(f for e in there for f in (e.title, e.start.time())),
                        lacks=tuple(t for t in _titles(d) if t not in {e.title for e in there}),
                    ),
                )
            )
        )(_on(d, TODAY + timedelta(days=1))),
        nat("Mail my appointments of tomorrow with their times to assistant@example.com."),
    ),
    *task(
        "free-for-dana",
        5,
        """
events = list_events(date(2026, 3, 13))
start = datetime(2026, 3, 13, 14, 0)
end = datetime(2026, 3, 13, 15, 0)
busy = [e for e in events if e.start < end and e.end > start]
if len(busy) == 0:
    send_mail(["dana.cole@example.com"], "Friday", "accepted")
else:
    send_mail(["dana.cole@example.com"], "Friday", "declined")
answer(len(busy) == 0)
""",
        _accept,
        nat(
            'If I have nothing this Friday from 14:00 to 15:00, write "accepted" to dana.cole@example.com, '
            'else "declined".'
        ),
        de(
            'Wenn ich diesen Freitag von 14 bis 15 Uhr nichts habe, schreib "accepted" an dana.cole@example.com, sonst '
            '"declined".',
            True,
        ),
        unseen=True,
    ),
    *task(
        "focus-time",
        4,
        """
events = list_events(date(2026, 3, 13))
start = datetime(2026, 3, 13, 14, 0)
busy = [e for e in events if e.start <= start and e.end > start]
if len(busy) == 0:
    add_event("Focus time", start, 60)
answer(len(busy))
""",
        _hold,
        nat('Enter "Focus time" for this Friday from 14:00 to 15:00, but only if nothing is there yet.'),
        condition=True,
    ),
    *task(
        "swim-count",
        2,
        'events = search_events("Swimming")\nanswer(len(events))',
        lambda d: Expected(answer=number(sum(e.title == "Swimming" for e in d.entries))),
        nat("How many times is swimming in my calendar?"),
        unseen=True,
    ),
]

WEB: list[Request] = [
    *task(
        "usd-rate",
        1,
        'rates = fetch_json("{site}/api/rates.json")\nanswer(rates["rates"]["USD"])',
        lambda d: Expected(answer=number(d.values["rates"]["rates"]["USD"])),
        en("What is the rate of USD in {site}/api/rates.json?"),
        fr("Quel est le taux USD dans {site}/api/rates.json ?"),
    ),
    *task(
        "founding-year",
        2,
        """
page = fetch_page("{site}/about.html")
about = extract(page.text, "the year in which the company was founded", {"founded": int})
answer(about.founded)
""",
        lambda d: Expected(answer=number(d.pages["about"].facts["founded"])),
        en("In which year was the company on {site}/about.html founded?"),
        de("In welchem Jahr wurde die Firma auf {site}/about.html gegründet?"),
    ),
    *task(
        "save-hours",
        2,
        'page = fetch_page("{site}/opening.html")\nwrite_text("opening.txt", page.text)\nanswer("saved")',
        lambda d: Expected(
            files={
                "opening.txt": has_text(
                    "Our shops",
                    "on Sundays",
                    "open at noon" if d.pages["opening"].facts["open_on_sundays"] else "are closed",
                )
            }
        ),
        en("Save the text of {site}/opening.html in opening.txt."),
        unseen=True,
    ),
    *task(
        "open-sundays",
        2,
        """
page = fetch_page("{site}/opening.html")
hours = extract(page.text, "whether the shops are open on Sundays", {"open_on_sundays": bool})
answer(hours.open_on_sundays)
""",
        lambda d: Expected(answer=yes_or_no(d.pages["opening"].facts["open_on_sundays"])),
        en("Are the shops open on Sundays according to {site}/opening.html?"),
    ),
    *task(
        "porto-opening",
        3,
        """
page = fetch_page("{site}/news.html")
news = extract(page.text, "the date on which the shop in Porto opens", {"opens": date})
write_text("porto.txt", f"{news.opens}")
answer(news.opens)
""",
        lambda d: Expected(files={"porto.txt": has_text(d.pages["news"].facts["opens"], at_most=80)}),
        en("When does the shop in Porto open? It's on {site}/news.html. Write the date to porto.txt."),
        unseen=True,
    ),
    *task(
        "job-deadline",
        3,
        """
page = fetch_page("{site}/careers.html")
job = extract(page.text, "the deadline for applications", {"deadline": date})
add_event("Application", datetime(job.deadline.year, job.deadline.month, job.deadline.day, 9, 0))
answer(job.deadline)
""",
        lambda d: Expected(
            added=(
                Added(
                    "Application",
                    datetime.combine(d.pages["careers"].facts["deadline"], datetime.min.time()).replace(hour=9),
                ),
            )
        ),
        en('Enter the deadline on {site}/careers.html into my calendar as "Application", at 9:00 of that day.'),
    ),
    *task(
        "service-down",
        4,
        """
status = fetch_json("{site}/api/status.json")
down = [service["name"] for service in status["services"] if service["state"] == "down"]
if len(down) > 0:
    send_mail(["ops@example.com"], "Service down", ", ".join(down))
answer(down)
""",
        _service,
        en("Check {site}/api/status.json; if services are down, mail their names to ops@example.com."),
        es("Mira {site}/api/status.json; si hay servicios en estado down, manda sus nombres a ops@example.com."),
        unseen=True,
        condition=True,
    ),
    *task(
        "page-titles",
        4,
        """
index = fetch_page("{site}/index.html")
titles = []
for link in index.links:
    page = fetch_page(link.url)
    titles.append(page.title)
write_lines("titles.txt", titles)
answer(titles)
""",
        lambda d: Expected(
            files={
                "titles.txt": has_lines(
                    *[page.text.split("<title>")[1].split("<")[0] for name, page in d.pages.items() if name != "index"],
                    ordered=False,
                )
            }
        ),
        en("Write the titles of all pages that {site}/index.html links to into titles.txt, one per line."),
        unseen=True,
    ),
    *task(
        "lamp-in-pounds",
        4,
        """
page = fetch_page("{site}/products.html")
lamp = extract(page.text, "the price of the desk lamp in EUR", {"lamp_price": float})
rates = fetch_json("{site}/api/rates.json")
answer(round(lamp.lamp_price * rates["rates"]["GBP"], 2))
""",
        lambda d: Expected(
            answer=number(round(d.pages["products"].facts["lamp_price"] * d.values["rates"]["rates"]["GBP"], 2))
        ),
        en(
            "What does the desk lamp on {site}/products.html cost in GBP, with the rate in {site}/api/rates.json? Two "
            "decimals."
        ),
    ),
    *task(
        "stock-in-dollars",
        5,
        """
rows = read_csv("stock.csv")
worth = sum([row["quantity"] * row["price"] for row in rows])
rates = fetch_json("{site}/api/rates.json")
dollars = round(worth * rates["rates"]["USD"])
write_text("worth.txt", f"{dollars}")
answer(dollars)
""",
        lambda d: Expected(
            files={
                "worth.txt": has_number(
                    round(sum(r["quantity"] * r["price"] for r in d.rows("stock")) * d.values["rates"]["rates"]["USD"])
                )
            }
        ),
        en(
            "What is stock.csv worth in USD (quantity times price, rate from {site}/api/rates.json)? Write "
            "it, rounded to "
            "whole dollars, into worth.txt."
        ),
        unseen=True,
    ),
    *task(
        "rain-days",
        3,
        """
weather = fetch_json("{site}/api/weather.json")
answer([day["day"] for day in weather["days"] if day["rain"]])
""",
        lambda d: Expected(
            answer=names(
                [date.fromisoformat(day) for day in _rain(d)],
                [date.fromisoformat(each["day"]) for each in d.values["weather"]["days"]],
            )
        ),
        en("On which days does it rain according to {site}/api/weather.json?"),
    ),
    *task(
        "umbrella",
        5,
        """
weather = fetch_json("{site}/api/weather.json")
wet = [day["rain"] for day in weather["days"] if day["day"] == "2026-03-12"]
if wet[0]:
    add_event("Umbrella", datetime(2026, 3, 12, 7, 30))
answer(wet[0])
""",
        _umbrella,
        en('If {site}/api/weather.json says it rains tomorrow, add "Umbrella" to my calendar tomorrow at 7:30.'),
        unseen=True,
        condition=True,
    ),
]

REQUESTS: list[Request] = [*CALENDAR, *WEB]
