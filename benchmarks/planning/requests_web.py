"""Requests about the pages of a small website."""

from __future__ import annotations

from datetime import date

from .judge import answer_is_no, answer_mentions, answer_number, event_added, expect, file_lines, file_says, mailed
from .request import Request, needs

PAGES = ("about.html", "products.html", "news.html", "opening.html", "careers.html")

ONE_AND_TWO_STEPS = (
    Request(
        "usd-rate",
        "What is the USD rate in {site}/api/rates.json?",
        1,
        needs("web"),
        expect(answer_number(1.08)),
    ),
    Request(
        "founding-year",
        "In which year was the company on {site}/about.html founded?",
        2,
        needs("web", "extraction"),
        expect(answer_mentions(1987, lacks=[23], at_most=200)),
    ),
    Request(
        "save-hours",
        "Save the text of {site}/opening.html as opening.txt.",
        2,
        needs("web", "write"),
        expect(
            file_says(
                "opening.txt", "Monday to Friday", "10:00 to 16:00", "holidays the shops are closed", lacks=["<p>"]
            ),
            writes=["opening.txt"],
        ),
    ),
    Request(
        "open-sundays",
        "r they open on sundays? look at {site}/opening.html",
        2,
        needs("web", "extraction"),
        expect(answer_is_no()),
        sloppy=True,
    ),
)

THREE_STEPS = (
    Request(
        "porto-opening",
        "According to {site}/news.html, when does the shop in Porto open? Write the date to porto.txt.",
        3,
        needs("web", "extraction", "dates", "write"),
        expect(
            file_says("porto.txt", date(2026, 3, 28), lacks=[date(2026, 3, 5), "design prize"], at_most=120),
            writes=["porto.txt"],
        ),
    ),
    Request(
        "application-deadline",
        "Add the application deadline from {site}/careers.html to my calendar, called Application deadline, at 09:00.",
        3,
        needs("web", "calendar", "extraction", "dates", "write"),
        expect(
            event_added(
                "application deadline",
                lambda event: (
                    event.start.date() == date(2026, 3, 27) and (event.start.hour, event.start.minute) == (9, 0)
                ),
            ),
            calendar=True,
        ),
    ),
)

FOUR_AND_FIVE_STEPS = (
    Request(
        "service-down",
        "is anything down? see {site}/api/status.json, mail the name of the service to ops@example.com if so",
        4,
        needs("web", "condition", "send"),
        expect(mailed("ops@example.com", "payments", lacks=["search"], at_most=400), mails=1),
        sloppy=True,
    ),
    Request(
        "page-titles",
        "Open every page that {site}/index.html links to and write the titles of the pages to titles.txt, one "
        "on each line.",
        4,
        needs("web", "loop", "write"),
        expect(
            file_lines(
                "titles.txt",
                "About Oak and Lamp",
                "Products and prices",
                "News from the workshop",
                "Opening hours",
                "Work with us",
                ordered=False,
            ),
            writes=["titles.txt"],
        ),
    ),
    Request(
        "lamp-in-pounds",
        "How much is the desk lamp on {site}/products.html in GBP? Use the rate in {site}/api/rates.json.",
        4,
        needs("web", "extraction"),
        expect(answer_number(31.025)),
    ),
    Request(
        "stock-in-dollars",
        "Work out what everything in stock.csv is worth (quantity times price, in EUR), convert it to USD with "
        "the rate in {site}/api/rates.json and write the amount, rounded to whole dollars, to worth.txt.",
        5,
        needs("web", "tables", "write"),
        expect(file_says("worth.txt", 8304, at_most=100), writes=["worth.txt"]),
    ),
)

REQUESTS = ONE_AND_TWO_STEPS + THREE_STEPS + FOUR_AND_FIVE_STEPS
