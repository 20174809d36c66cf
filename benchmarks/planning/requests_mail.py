"""Requests about mail, with what is right and a reference plan for each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .data import NOW, Data
from .judge import (
    Added,
    Expected,
    Mail,
    Oracle,
    has_content,
    has_lines,
    has_number,
    has_rows,
    names,
    number,
    says,
    yes_or_no,
)
from .request import Request, de, en, es, fr, nat, task


def _fact(key: str, field: str) -> Oracle:
    return lambda d: Expected(answer=says(d.letters_of(key)[0].facts[field], at_most=120))


def _subjects(data: Data) -> list[str]:
    return [letter.subject for letter in data.letters]


def _invoices(data: Data) -> list[Mapping[str, Any]]:
    return [letter.facts for letter in data.letters_of("invoice")]


def _sum(data: Data) -> float:
    return round(sum(each["amount"] for each in _invoices(data)), 2)


def _limit(data: Data) -> Expected:
    if _sum(data) > 1300:
        return Expected(mails=(Mail("finance@example.com", says=(_sum(data),)),))
    return Expected(files={"invoice_sum.txt": has_number(_sum(data))})


def _full_disk(data: Data) -> Expected:
    full = data.letters_of("disk")[0].facts["percent"] > 90
    return Expected(
        files={"todo.txt": has_lines(*data.lines("todo.txt"), "[ ] clean up db-2")} if full else {},
    )


def _alert(data: Data) -> Expected:
    letter = data.letters_of("disk")[0]
    sent = (Mail("oncall@example.com", quotes=(letter.body,)),) if letter.unread else ()
    return Expected(mails=sent)


def _large(data: Data) -> Expected:
    return Expected(
        mails=tuple(
            Mail("approval@example.com", says=(each["vendor"], each["amount"]))
            for each in _invoices(data)
            if each["amount"] > 340
        )
    )


def _first_due(data: Data) -> Expected:
    first = min(_invoices(data), key=lambda each: each["due"])
    return Expected(answer=names([first["vendor"]], [each["vendor"] for each in _invoices(data)]))


REQUESTS: list[Request] = [
    *task(
        "lunch-mail",
        1,
        'send_mail(["team@example.com"], "Lunch", "Lunch is at 12:30 today.")\nanswer("sent")',
        lambda d: Expected(mails=(Mail("team@example.com", quotes=("Lunch is at 12:30 today.",)),)),
        en('Write a mail to team@example.com: "Lunch is at 12:30 today."'),
        de('Schreib eine Mail an team@example.com: "Lunch is at 12:30 today."'),
    ),
    *task(
        "quoted-subject",
        1,
        'send_mail(["board@example.com"], "Minutes of the meeting of 9 March", "See you on Monday.")\nanswer("sent")',
        lambda d: Expected(
            mails=(
                Mail("board@example.com", subject="Minutes of the meeting of 9 March", quotes=("See you on Monday.",)),
            )
        ),
        en(
            'Send board@example.com a mail with the subject "Minutes of the meeting of 9 March" and the '
            'text "See you on '
            'Monday."'
        ),
    ),
    *task(
        "attach-report",
        2,
        'send_mail(["boss@example.com"], "Report", "Here is the report.", attachments=["report.txt"])\nanswer("sent")',
        lambda d: Expected(mails=(Mail("boss@example.com", attachments=("report.txt",)),)),
        en("Mail report.txt to boss@example.com as an attachment."),
        fr("Envoie report.txt en pièce jointe à boss@example.com."),
        unseen=True,
    ),
    *task(
        "unread-subjects",
        1,
        "mails = search_mail(unread=True)\nanswer([m.subject for m in mails])",
        lambda d: Expected(answer=names([each.subject for each in d.letters if each.unread], _subjects(d))),
        en("Which messages in my mailbox have I not opened yet? Just their subject lines."),
        nat("What's new in my inbox that I haven't read?"),
        es("¿Qué asuntos tienen mis correos sin leer?"),
        unseen=True,
    ),
    *task(
        "invoice-northwind",
        2,
        """
mails = search_mail(sender="Northwind", text="invoice")
invoice = extract(mails[0].body, "the amount and the due date of the invoice", {"amount": float, "due": date})
answer(invoice)
""",
        lambda d: (lambda facts: Expected(answer=says(facts["amount"], facts["due"])))(
            next(each for each in _invoices(d) if each["vendor"] == "Northwind Supplies")
        ),
        nat("How much does Northwind want and until when?"),
        en("What is the amount and the due date in the mail from Northwind with the invoice?"),
    ),
    *task(
        "train-leaves",
        2,
        """
mails = search_mail(text="train to Lyon")
trip = extract(mails[0].body, "when the train leaves", {"leaves": datetime})
answer(trip.leaves)
""",
        _fact("train", "leaves"),
        nat("When does my train to Lyon leave?"),
        de("Wann fährt mein Zug nach Lyon?", True),
        fr("À quelle heure et quel jour part mon train pour Lyon ?", True),
        unseen=True,
    ),
    *task(
        "dinner-people",
        2,
        """
mails = search_mail(sender="Maria")
plan = extract(mails[0].body, "how many people come to dinner", {"people": int})
answer(plan.people)
""",
        lambda d: Expected(answer=number(d.letters_of("maria")[0].facts["people"])),
        nat("How many of us are there for Maria's dinner?"),
        es("¿Cuántos seremos en la cena de Maria?", True),
        unseen=True,
    ),
    *task(
        "forward-costs",
        2,
        """
mails = search_mail(sender="Lee", subject="Server costs")
send_mail(["finance@example.com"], f"Fwd: {mails[0].subject}", mails[0].body)
answer("forwarded")
""",
        lambda d: Expected(mails=(Mail("finance@example.com", quotes=(d.letters_of("costs")[0].body,)),)),
        en("Forward the mail from Lee about server costs to finance@example.com."),
        de("Leite die Mail von Lee über die Serverkosten (server costs) an finance@example.com weiter."),
        sheet=(("which", "the one with the subject Server costs"),),
    ),
    *task(
        "save-holidays",
        2,
        """
mails = search_mail(subject="holiday calendar")
path = save_attachment(mails[0].id, mails[0].attachments[0])
answer(path)
""",
        lambda d: Expected(files={"holidays.csv": has_content(d.letters_of("holidays")[0].attachments[0][1])}),
        en("Save the attachment of the mail about the holiday calendar."),
        unseen=True,
    ),
    *task(
        "answer-helen",
        2,
        """
mails = search_mail(sender="Helen Ward")
send_mail([mails[0].sender], f"Re: {mails[0].subject}", "We will send your money back.")
answer("sent")
""",
        lambda d: Expected(mails=(Mail("helen.ward@example.org", quotes=("We will send your money back.",)),)),
        en('Answer Helen Ward\'s mail with "We will send your money back."'),
        nat('Reply to Helen Ward: "We will send your money back."'),
    ),
    *task(
        "server-costs",
        3,
        """
mails = search_mail(sender="Lee", subject="Server costs")
costs = extract(mails[0].body, "the server costs in February", {"february": float})
send_mail(["finance@example.com"], "Server costs in February", f"{costs.february} EUR")
answer(costs.february)
""",
        lambda d: Expected(
            mails=(
                Mail("finance@example.com", says=(d.letters_of("costs")[0].facts["february"],), lacks=("Best, Lee",)),
            )
        ),
        nat(
            "Tell finance@example.com what the servers cost in February; Lee wrote me the figure. Just the "
            "figure please."
        ),
        unseen=True,
    ),
    *task(
        "invoice-sum",
        4,
        """
amounts = []
for m in search_mail(text="invoice"):
    invoice = extract(m.body, "the amount of the invoice", {"amount": float})
    amounts.append(invoice.amount)
answer(round(sum(amounts), 2))
""",
        lambda d: Expected(answer=number(_sum(d))),
        nat("What do the invoices in my inbox come to altogether?"),
        de("Was machen die Rechnungen (invoices) in meinem Posteingang zusammen aus?", True),
    ),
    *task(
        "tracking-numbers",
        4,
        """
found = []
for m in search_mail(sender="parcel"):
    parcel = extract(m.body, "the tracking number of the parcel", {"number": str})
    found.append(parcel.number)
answer(found)
""",
        lambda d: (lambda found: Expected(answer=names(found, found)))(
            [letter.facts["number"] for letter in d.letters_of("parcel")]
        ),
        nat("Which tracking numbers do my parcels have?"),
        fr("Quels sont les numéros de suivi de mes colis ?", True),
        unseen=True,
    ),
    *task(
        "week-subjects",
        3,
        """
mails = search_mail(since=date(2026, 3, 9))
write_lines("week.txt", [m.subject for m in mails])
answer(len(mails))
""",
        lambda d: Expected(
            files={
                "week.txt": has_lines(
                    *[letter.subject for letter in d.letters if letter.date >= datetime(2026, 3, 9)], ordered=False
                )
            }
        ),
        en("Save the subjects of all mails since Monday, 9 March 2026, in week.txt, one per line."),
        unseen=True,
    ),
    *task(
        "today-senders",
        2,
        "mails = search_mail(since=today())\nanswer(unique_lines([m.sender_name for m in mails]))",
        lambda d: Expected(
            answer=names(
                [each.name for each in d.letters if each.date.date() == NOW.date()], [each.name for each in d.letters]
            )
        ),
        nat("Who wrote to me today?"),
        de("Wer hat mir heute geschrieben?", True),
        es("¿Quién me ha escrito hoy?", True),
    ),
    *task(
        "pass-on-alert",
        4,
        """
mails = search_mail(sender="monitor.example.com", unread=True)
if len(mails) > 0:
    send_mail(["oncall@example.com"], f"Fwd: {mails[0].subject}", mails[0].body)
answer(len(mails))
""",
        _alert,
        en("If there is an unread mail from monitor.example.com, forward it to oncall@example.com, else do nothing."),
        unseen=True,
        condition=True,
    ),
    *task(
        "invoice-table",
        5,
        """
rows = []
for m in search_mail(text="invoice"):
    invoice = extract(m.body, "the vendor and the amount of the invoice", {"vendor": str, "amount": float})
    rows.append({"vendor": invoice.vendor, "amount": invoice.amount})
write_csv("invoices.csv", rows)
answer(rows)
""",
        lambda d: Expected(
            files={
                "invoices.csv": has_rows(
                    *[{"vendor": each["vendor"], "amount": each["amount"]} for each in _invoices(d)]
                )
            }
        ),
        en("Make a table invoices.csv of the invoices in my mail, with vendor and amount."),
    ),
    *task(
        "first-due",
        5,
        """
rows = []
for m in search_mail(text="invoice"):
    invoice = extract(m.body, "the due date of the invoice", {"due": date})
    rows.append({"vendor": m.sender_name, "due": invoice.due})
answer(sort_rows(rows, "due")[0]["vendor"])
""",
        _first_due,
        nat("Of the invoices that came by mail, whose is due first?"),
        unseen=True,
    ),
    *task(
        "full-disk",
        4,
        """
mails = search_mail(text="db-2")
disk = extract(mails[0].body, "how full the disk is, in percent", {"percent": int})
if disk.percent > 90:
    append_text("todo.txt", "[ ] clean up db-2\\n")
answer(disk.percent)
""",
        _full_disk,
        en(
            'Look at the mail about the disk of db-2. If it is more than 90 percent full, add the line "[ ] '
            'clean up db-2" '
            "to todo.txt."
        ),
        condition=True,
    ),
    *task(
        "complaint-table",
        5,
        """
rows = []
for m in search_mail(subject="complaint"):
    complaint = extract(m.body, "the order number", {"order": int})
    rows.append({"sender": m.sender_name, "order": complaint.order})
write_json("complaints.json", rows)
answer(rows)
""",
        lambda d: Expected(
            files={
                "complaints.json": has_rows(
                    *[{"sender": each.name, "order": each.facts["order"]} for each in d.letters_of("complaint")]
                )
            }
        ),
        en("Put the name of the sender and the order number of every complaint mail into complaints.json."),
        unseen=True,
    ),
    *task(
        "large-invoices",
        5,
        """
for m in search_mail(text="invoice"):
    invoice = extract(m.body, "the vendor and the amount of the invoice", {"vendor": str, "amount": float})
    if invoice.amount > 340:
        send_mail(["approval@example.com"], "Invoice to approve", f"{invoice.vendor}: {invoice.amount:.2f} EUR")
answer("done")
""",
        _large,
        en("For every invoice in my mail above 340 EUR send a mail with vendor and amount to approval@example.com."),
        fr(
            "Pour chaque facture (invoice) de plus de 340 EUR dans mes mails, envoie le fournisseur et le montant à "
            "approval@example.com, un message par facture."
        ),
        condition=True,
    ),
    *task(
        "invoice-limit",
        5,
        """
amounts = []
for m in search_mail(text="invoice"):
    invoice = extract(m.body, "the amount of the invoice", {"amount": float})
    amounts.append(invoice.amount)
total = sum(amounts)
if total > 1300:
    send_mail(["finance@example.com"], "Sum of the invoices", f"The invoices add up to {total:.2f} EUR.")
else:
    write_text("invoice_sum.txt", f"{total:.2f}")
answer(total)
""",
        _limit,
        en(
            "Add up the invoices in my mail. Above 1300 EUR mail the sum to finance@example.com, otherwise write it to "
            "invoice_sum.txt."
        ),
        es(
            "Suma las facturas (invoices) de mi correo. Si pasan de 1300 EUR, manda la suma a "
            "finance@example.com; si no, "
            "escríbela en invoice_sum.txt."
        ),
        unseen=True,
        condition=True,
    ),
    *task(
        "answer-complaints",
        5,
        """
mails = search_mail(subject="complaint")
for m in mails:
    complaint = extract(m.body, "the order number", {"order": int})
    send_mail([m.sender], f"Re: {m.subject}", f"We are looking into your order {complaint.order}.")
answer(len(mails))
""",
        lambda d: Expected(
            mails=tuple(Mail(each.sender, says=(each.facts["order"],)) for each in d.letters_of("complaint"))
        ),
        nat("Answer everybody who sent a complaint that we are looking into their order, with its number."),
        de(
            "Antworte allen, die eine Beschwerde (complaint) geschickt haben, dass wir uns um ihre "
            "Bestellung kümmern, mit "
            "der Nummer.",
            True,
        ),
        unseen=True,
    ),
    *task(
        "parcel-events",
        5,
        """
for m in search_mail(sender="parcel"):
    parcel = extract(m.body, "the tracking number and the delivery date", {"number": str, "arrives": date})
    add_event(f"Parcel {parcel.number}", datetime(parcel.arrives.year, parcel.arrives.month, parcel.arrives.day, 9, 0))
answer("added")
""",
        lambda d: Expected(
            added=tuple(
                Added(
                    each.facts["number"], datetime.combine(each.facts["arrives"], datetime.min.time()).replace(hour=9)
                )
                for each in d.letters_of("parcel")
            )
        ),
        nat("For each parcel that is on its way, put its tracking number into my calendar on the day it comes, at 9."),
        unseen=True,
    ),
    *task(
        "budget-meeting",
        3,
        """
mails = search_mail(sender="Dana", text="budget review")
meeting = extract(mails[0].body, "when the meeting starts and how long it takes", {"start": datetime, "minutes": int})
add_event("Budget review", meeting.start, meeting.minutes)
answer(meeting)
""",
        lambda d: (lambda facts: Expected(added=(Added("Budget review", facts["start"], facts["minutes"]),)))(
            d.letters_of("review")[0].facts
        ),
        nat('Dana wrote when the budget review is. Put it into my calendar as "Budget review".'),
        es('Dana me escribió cuándo es la budget review. Apúntala en mi calendario como "Budget review".', True),
    ),
    *task(
        "train-trip",
        4,
        """
mails = search_mail(text="train to Lyon")
trip = extract(mails[0].body, "when the train leaves", {"leaves": datetime})
add_event("Train to Lyon", trip.leaves)
send_mail(["maria.santos@example.org"], "My train to Lyon", f"My train leaves at {trip.leaves:%Y-%m-%d %H:%M}.")
answer(trip.leaves)
""",
        lambda d: (
            lambda leaves: Expected(
                added=(Added("Train to Lyon", leaves),), mails=(Mail("maria.santos@example.org", says=(leaves,)),)
            )
        )(d.letters_of("train")[0].facts["leaves"]),
        nat(
            'Put my train to Lyon into the calendar ("Train to Lyon") and tell maria.santos@example.org when it leaves.'
        ),
        unseen=True,
    ),
    *task(
        "dinner-day",
        3,
        """
mails = search_mail(sender="Maria")
dinner = extract(mails[0].body, "the day of the dinner", {"day": date})
events = list_events(dinner.day)
answer(len(events) == 0)
""",
        lambda d: (lambda day: Expected(answer=yes_or_no(not [e for e in d.entries if e.start.date() == day])))(
            d.letters_of("maria")[0].facts["day"]
        ),
        nat("Is my calendar empty on the day of Maria's dinner?"),
        unseen=True,
    ),
]
