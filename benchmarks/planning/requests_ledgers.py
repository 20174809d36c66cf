"""Requests in natural words about a person's tables: bills, petrol, guests, hours, clients. Nobody names a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from .data import Data
from .judge import Added, Expected, Mail, Oracle, has_content, has_number, has_rows, names, number, says
from .request import Request, Wording, de, en, es, fr, nat, task


def _no(data: Data) -> str:
    return data.names["no"]


def _open(data: Data, table: str, flag: str = "paid") -> list[Mapping[str, Any]]:
    return [row for row in data.rows(table) if row[flag] == _no(data)]


def _total(values: Iterable[float]) -> float:
    return round(sum(values), 2)


def _per(data: Data, table: str, by: str, column: str) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for row in data.rows(table):
        sums[row[by]] += row[column]
    return {key: round(value, 2) for key, value in sums.items()}


def _meter_use(data: Data) -> int:
    readings = [row["reading"] for row in sorted(data.rows("meter"), key=lambda row: row["day"])]
    return readings[-1] - readings[0]


def _town_owing(data: Data) -> Expected:
    towns = {row["client"]: row["town"] for row in data.rows("clients")}
    sums: dict[str, float] = defaultdict(float)
    for row in _open(data, "jobs"):
        sums[towns[row["client"]]] += row["amount"]
    return Expected(answer=names([max(sums, key=lambda town: sums[town])], sorted(set(towns.values()))))


def _reminders(data: Data) -> Expected:
    address = {row["client"]: row["email"] for row in data.rows("clients")}
    numbers = [row["number"] for row in data.rows("jobs")]
    return Expected(
        mails=tuple(
            Mail(
                address[row["client"]],
                says=(row["number"],),
                lacks=tuple(n for n in numbers if n != row["number"]),
            )
            for row in _open(data, "jobs")
        )
    )


def _first_unpaid(data: Data) -> Expected:
    first = min(_open(data, "bills"), key=lambda row: row["due"])
    return Expected(answer=names([first["payee"]], [row["payee"] for row in data.rows("bills")]))


def _by_flag(table: str, column: str, flag: str, value: str) -> Oracle:
    def oracle(data: Data) -> Expected:
        rows = data.rows(table)
        wanted = [row[column] for row in rows if row[flag] == data.names[value]]
        return Expected(answer=names(wanted, [row[column] for row in rows]))

    return oracle


_FLAGGED = """
rows = read_csv("<{t}>")
found = filter_rows(rows, "<{t}.{flag}>", "==", "<{value}>")
answer([row["<{t}.{column}>"] for row in found])
"""


def _flagged(id: str, t: str, column: str, flag: str, value: str, *wordings: Wording) -> list[Request]:
    plan = _FLAGGED.format(t=t, column=column, flag=flag, value=value)
    return task(id, 2, plan, _by_flag(t, column, flag, value), *wordings)


REQUESTS: list[Request] = [
    *task(
        "still-to-pay",
        3,
        """
rows = read_csv("<bills>")
answer(sum([row["<bills.amount>"] for row in rows if row["<bills.paid>"] == "<no>"]))
""",
        lambda d: Expected(answer=number(_total(row["amount"] for row in _open(d, "bills")))),
        nat("How much do I still have to pay in bills?"),
        de("Wie viel muss ich noch an Rechnungen bezahlen?", True),
        fr("Combien me reste-t-il à payer pour mes factures ?", True),
    ),
    *task(
        "next-bill",
        3,
        """
rows = read_csv("<bills>")
unpaid = filter_rows(rows, "<bills.paid>", "==", "<no>")
answer(sort_rows(unpaid, "<bills.due>")[0]["<bills.payee>"])
""",
        _first_unpaid,
        nat("Which unpaid bill is due first?"),
        es("¿Qué factura pendiente vence primero?", True),
        unseen=True,
    ),
    *_flagged(
        "open-bills",
        "bills",
        "payee",
        "paid",
        "no",
        nat("Whom do I still owe money?"),
        nat("Which of my bills have I not paid yet?"),
    ),
    *task(
        "home-bills",
        3,
        """
rows = read_csv("<bills>")
home = filter_rows(rows, "<bills.kind>", "==", "home")
answer(sum([row["<bills.amount>"] for row in home]))
""",
        lambda d: Expected(answer=number(_total(row["amount"] for row in d.rows("bills") if row["kind"] == "home"))),
        nat("What do the bills for home add up to?"),
    ),
    *task(
        "many-bills",
        4,
        """
rows = read_csv("<bills>")
unpaid = [row for row in rows if row["<bills.paid>"] == "<no>"]
if len(unpaid) > 3:
    add_event("Pay bills", datetime(2026, 3, 12, 18, 0), 30)
answer(len(unpaid))
""",
        lambda d: Expected(
            added=(Added("Pay bills", datetime(2026, 3, 12, 18), 30),) if len(_open(d, "bills")) > 3 else ()
        ),
        nat(
            'If more than three of my bills are still open, put "Pay bills" into the calendar for tomorrow at 18:00, '
            "half an hour."
        ),
        de(
            'Wenn noch mehr als drei Rechnungen offen sind, trag für morgen um 18 Uhr "Pay bills" in den Kalender ein, '
            "eine halbe Stunde.",
            True,
        ),
        condition=True,
    ),
    *task(
        "petrol-total",
        2,
        'rows = read_csv("<fuel>")\nanswer(sum([row["<fuel.cost>"] for row in rows]))',
        lambda d: Expected(answer=number(_total(row["cost"] for row in d.rows("fuel")))),
        nat("How much money went into petrol so far?"),
        de("Was habe ich bisher für Benzin ausgegeben?", True),
        es("¿Cuánto he gastado en gasolina hasta ahora?", True),
    ),
    *task(
        "consumption",
        4,
        """
rows = read_csv("<fuel>")
litres = sum([row["<fuel.litres>"] for row in rows])
km = sum([row["<fuel.km>"] for row in rows])
answer(round(litres / km * 100, 2))
""",
        lambda d: Expected(
            answer=number(
                round(sum(r["litres"] for r in d.rows("fuel")) / sum(r["km"] for r in d.rows("fuel")) * 100, 2)
            )
        ),
        nat("How many litres does the car need for 100 km? Two decimals, over all the times I filled it up."),
        unseen=True,
    ),
    *task(
        "petrol-note",
        4,
        """
rows = read_csv("<fuel>")
total = sum([row["<fuel.cost>"] for row in rows])
if total > 280:
    write_text("petrol_note.txt", "too much")
else:
    write_text("petrol_note.txt", "fine")
answer(total)
""",
        lambda d: Expected(
            files={
                "petrol_note.txt": has_content("too much" if sum(r["cost"] for r in d.rows("fuel")) > 280 else "fine")
            }
        ),
        en('Write "too much" into petrol_note.txt if I spent more than 280 on petrol, otherwise "fine".'),
        fr("Écris « too much » dans petrol_note.txt si j'ai dépensé plus de 280 en essence, sinon « fine »."),
        unseen=True,
        condition=True,
    ),
    *_flagged(
        "fee-missing",
        "members",
        "name",
        "paid",
        "no",
        nat("Who in the rowing club hasn't paid the fee?"),
        fr("Qui n'a pas encore payé sa cotisation au club d'aviron ?", True),
        es("¿Quién del club de remo no ha pagado la cuota?", True),
    ),
    *task(
        "fee-reminders",
        4,
        """
rows = read_csv("<members>")
late = filter_rows(rows, "<members.paid>", "==", "<no>")
for row in late:
    send_mail([row["<members.email>"]], "Club fee", f"Please pay your fee of {row['<members.fee>']} EUR.")
answer(f"{len(late)} reminders sent")
""",
        lambda d: Expected(mails=tuple(Mail(row["email"], says=(row["fee"],)) for row in _open(d, "members"))),
        nat("Remind everybody in the rowing club who hasn't paid that the fee is due; tell each how much it is."),
        de(
            "Erinnere alle im Ruderverein, die noch nicht bezahlt haben, an ihren Beitrag und nenn jedem den Betrag.",
            True,
        ),
        unseen=True,
    ),
    *task(
        "coming",
        2,
        """
rows = read_csv("<guests>")
answer(len([row for row in rows if row["<guests.coming>"] == "<yes>"]))
""",
        lambda d: Expected(answer=number(sum(row["coming"] == d.names["yes"] for row in d.rows("guests")))),
        nat("How many guests are coming to the party?"),
        es("¿Cuántos invitados vienen a la fiesta?", True),
    ),
    *_flagged("not-coming", "guests", "name", "coming", "no", nat("Who can't come to our party?")),
    *task(
        "vegans",
        3,
        """
rows = read_csv("<guests>")
found = [row["<guests.name>"] for row in rows if row["<guests.coming>"] == "<yes>" and row["<guests.diet>"] == "vegan"]
answer(found)
""",
        lambda d: Expected(
            answer=names(
                [r["name"] for r in d.rows("guests") if r["coming"] == d.names["yes"] and r["diet"] == "vegan"],
                [r["name"] for r in d.rows("guests")],
            )
        ),
        nat("Which of the guests who are coming eat vegan?"),
        de("Welche Gäste, die kommen, essen vegan?", True),
        unseen=True,
    ),
    *task(
        "diet-counts",
        4,
        """
rows = read_csv("<guests>")
coming = filter_rows(rows, "<guests.coming>", "==", "<yes>")
counts = group_rows(coming, "<guests.diet>", "<guests.name>", "count")
write_csv("diets.csv", counts)
answer(counts)
""",
        lambda d: (
            lambda diets: Expected(
                files={
                    "diets.csv": has_rows(*[{"diet": diet, "count": diets.count(diet)} for diet in sorted(set(diets))])
                }
            )
        )([r["diet"] for r in d.rows("guests") if r["coming"] == d.names["yes"]]),
        en("Count the party guests who come by diet and save that as diets.csv."),
        unseen=True,
    ),
    *_flagged(
        "books-out",
        "loans",
        "title",
        "back",
        "no",
        nat("Which of my books are still lent out?"),
        fr("Lesquels de mes livres sont encore prêtés ?", True),
    ),
    *task(
        "longest-loan",
        4,
        """
rows = read_csv("<loans>")
out = [row for row in rows if row["<loans.back>"] == "<no>"]
first = sort_rows(out, "<loans.since>")[0]
answer(f"{first['<loans.borrower>']} has {first['<loans.title>']}")
""",
        lambda d: (
            lambda row: Expected(
                answer=names(
                    [row["borrower"], row["title"]],
                    [each[key] for each in d.rows("loans") for key in ("borrower", "title")],
                )
            )
        )(min(_open(d, "loans", "back"), key=lambda row: row["since"])),
        nat("Who has had one of my books the longest without giving it back, and which one?"),
        unseen=True,
    ),
    *task(
        "harbour-hours",
        3,
        """
rows = read_csv("<hours>")
mine = filter_rows(rows, "<hours.project>", "==", "Harbour")
answer(sum([row["<hours.hours>"] for row in mine]))
""",
        lambda d: Expected(answer=number(_per(d, "hours", "project", "hours")["Harbour"])),
        nat("How many hours have I put into Harbour?"),
        fr("Combien d'heures ai-je passées sur Harbour ?", True),
    ),
    *task(
        "hours-to-anna",
        4,
        """
rows = read_csv("<hours>")
totals = group_rows(rows, "<hours.project>", "<hours.hours>", "sum")
lines = [f"{row['<hours.project>']}: {row['<hours.hours>']}" for row in totals]
send_mail(["<anna>"], "Hours", "\\n".join(lines))
answer("sent")
""",
        lambda d: Expected(
            mails=(
                Mail(
                    d.names["anna"],
                    says=tuple(fact for pair in _per(d, "hours", "project", "hours").items() for fact in pair),
                ),
            )
        ),
        nat("Send Anna my hours per project."),
        es("Envíale a Anna mis horas por proyecto.", True),
        unseen=True,
        sheet=(("anna", "<anna>"), ("address", "<anna>"), ("correo", "<anna>")),
    ),
    *task(
        "meter-use",
        3,
        """
rows = read_csv("<meter>")
ordered = sort_rows(rows, "<meter.day>")
answer(ordered[-1]["<meter.reading>"] - ordered[0]["<meter.reading>"])
""",
        lambda d: Expected(answer=number(_meter_use(d))),
        nat("How much electricity have we used between the first and the last reading?"),
        de("Wie viel Strom haben wir zwischen der ersten und der letzten Ablesung verbraucht?", True),
        unseen=True,
    ),
    *task(
        "meter-warning",
        5,
        """
rows = read_csv("<meter>")
ordered = sort_rows(rows, "<meter.day>")
used = ordered[-1]["<meter.reading>"] - ordered[0]["<meter.reading>"]
if used > 1000:
    send_mail(["<peter>"], "Electricity", f"We used {used} kWh.")
else:
    write_text("power.txt", f"{used}")
answer(used)
""",
        lambda d: (
            Expected(mails=(Mail(d.names["peter"], says=(_meter_use(d),)),))
            if _meter_use(d) > 1000
            else Expected(files={"power.txt": has_number(_meter_use(d))})
        ),
        en(
            "Work out our electricity use from the first to the last reading. Over 1000 kWh: mail Peter the figure. "
            "Otherwise write it to power.txt."
        ),
        unseen=True,
        condition=True,
        sheet=(("peter", "<peter>"), ("address", "<peter>")),
    ),
    *task(
        "client-sums",
        3,
        """
rows = read_csv("<jobs>")
totals = group_rows(rows, "<jobs.client>", "<jobs.amount>", "sum")
answer(totals)
""",
        lambda d: Expected(
            answer=says(*[fact for pair in _per(d, "jobs", "client", "amount").items() for fact in pair])
        ),
        nat("What have I billed to each client?"),
        es("¿Cuánto he facturado a cada cliente?", True),
    ),
    *task(
        "best-client",
        4,
        """
rows = read_csv("<jobs>")
totals = group_rows(rows, "<jobs.client>", "<jobs.amount>", "sum")
answer(sort_rows(totals, "<jobs.amount>", descending=True)[0]["<jobs.client>"])
""",
        lambda d: (lambda sums: Expected(answer=names([max(sums, key=lambda key: sums[key])], list(sums))))(
            _per(d, "jobs", "client", "amount")
        ),
        nat("Which client brought in the most?"),
        de("Welcher Kunde hat am meisten eingebracht?", True),
        unseen=True,
    ),
    *task(
        "town-owing",
        5,
        """
jobs = read_csv("<jobs>")
clients = read_csv("<clients>")
unpaid = filter_rows(jobs, "<jobs.paid>", "==", "<no>")
joined = join_rows(unpaid, clients, "<jobs.client>")
totals = group_rows(joined, "<clients.town>", "<jobs.amount>", "sum")
answer(sort_rows(totals, "<jobs.amount>", descending=True)[0]["<clients.town>"])
""",
        _town_owing,
        nat("In which town do my clients owe me the most?"),
        unseen=True,
    ),
    *task(
        "client-reminders",
        5,
        """
jobs = read_csv("<jobs>")
clients = read_csv("<clients>")
unpaid = filter_rows(jobs, "<jobs.paid>", "==", "<no>")
joined = join_rows(unpaid, clients, "<jobs.client>")
for row in joined:
    send_mail([row["<clients.email>"]], "Reminder", f"Your invoice {row['<jobs.number>']} is still open.")
answer(f"{len(joined)} reminders sent")
""",
        _reminders,
        nat("Write to every client with an open invoice and remind them of its number, one mail per invoice."),
        fr(
            "Écris à chaque client qui a une facture impayée pour lui rappeler le numéro, un message par facture.", True
        ),
    ),
]
