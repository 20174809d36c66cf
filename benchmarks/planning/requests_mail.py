"""Requests about the mail in the inbox, and mail to send."""

from __future__ import annotations

from datetime import date

from .content.mails import HOLIDAYS, LETTERS
from .judge import answer_mentions, answer_names, answer_number, expect, file_lines, file_rows, file_says, mailed
from .request import Request, needs

SUBJECTS = tuple(letter.subject for letter in LETTERS)
UNREAD = tuple(letter.subject for letter in LETTERS if letter.unread)
THIS_WEEK = tuple(letter.subject for letter in LETTERS if letter.date.date() >= date(2026, 3, 9))
SENDERS = tuple(dict.fromkeys((letter.name, letter.sender) for letter in LETTERS))
TODAY = tuple(
    dict.fromkeys((letter.name, letter.sender) for letter in LETTERS if letter.date.date() == date(2026, 3, 11))
)
CANNOT = ("can't", "can’t", "cant", "cannot", "can not", "unable", "not able", "won't", "won’t", "not be able")
VENDORS = ("Northwind", "Contoso", "Fabrikam", "Litware")

ONE_AND_TWO_STEPS = (
    Request(
        "lunch-mail",
        "Send a mail to team@example.com with the subject Lunch saying that lunch is at 12:30 today.",
        1,
        needs("mail", "send"),
        expect(mailed("team@example.com", "12:30", subject="lunch", at_most=400), mails=1),
    ),
    Request(
        "skip-interview",
        "tell lee.park@example.com i cant make it to the interview tmrw",
        1,
        needs("mail", "send"),
        expect(mailed("lee.park@example.com", "interview", CANNOT, at_most=500), mails=1),
        sloppy=True,
    ),
    Request(
        "mail-from-maria",
        "show me what maria mailed me",
        1,
        needs("mail"),
        expect(answer_names("Photos from the trip", "Lunch next week", among=SUBJECTS)),
        sloppy=True,
    ),
    Request(
        "unread-subjects",
        "List the subjects of my unread mails.",
        2,
        needs("mail"),
        expect(answer_names(*UNREAD, among=SUBJECTS)),
    ),
    Request(
        "northwind-invoice",
        "What is the total of the invoice in the mail from Northwind, and when is it due?",
        2,
        needs("mail", "extraction"),
        expect(answer_mentions(1284.5, date(2026, 3, 27), lacks=[89.9, 230], at_most=200)),
    ),
    Request(
        "parcel-arrival",
        "when does my parcel PX-55120 come",
        2,
        needs("mail", "extraction"),
        expect(answer_mentions(date(2026, 3, 12), lacks=[date(2026, 3, 16)], at_most=150)),
        sloppy=True,
    ),
    Request(
        "forward-costs",
        "Forward Lee's mail about the server costs to finance@example.com.",
        2,
        needs("mail", "send"),
        expect(mailed("finance@example.com", 3150, 2800), mails=1),
    ),
    Request(
        "save-holidays",
        "Save the attachment of the mail with the holiday calendar into my folder.",
        2,
        needs("mail", "write"),
        expect(file_lines("holidays.csv", *HOLIDAYS.splitlines()), writes=["holidays.csv"]),
    ),
    Request(
        "answer-helen",
        "Write to Helen Ward, who complained about a lamp, that we will send her money back.",
        2,
        needs("mail", "send"),
        expect(mailed("helen.ward@example.org", ("money", "refund", "34.90"), at_most=800), mails=1),
    ),
)

THREE_STEPS = (
    Request(
        "server-costs",
        "lee wrote smth about server costs. mail just the february number to finance@example.com pls",
        3,
        needs("mail", "extraction", "send"),
        expect(mailed("finance@example.com", 3150, lacks=[2800], at_most=300), mails=1),
        sloppy=True,
    ),
    Request(
        "invoice-sum",
        "Add up the amounts of all the invoices in my mail. What is the total?",
        3,
        needs("mail", "loop", "extraction"),
        expect(answer_number(2016.9)),
    ),
    Request(
        "tracking-numbers",
        "Which tracking numbers are in the mails from the parcel service?",
        3,
        needs("mail", "loop", "extraction"),
        expect(answer_mentions("PX-54088", "PX-55120", "PX-55093", at_most=250)),
    ),
    Request(
        "week-subjects",
        "Write the subjects of all mails since Monday, 9 March 2026 to week.txt, one on each line.",
        3,
        needs("mail", "dates", "write"),
        expect(file_lines("week.txt", *THIS_WEEK, ordered=False), writes=["week.txt"]),
    ),
    Request(
        "today-senders",
        "who wrote me today",
        3,
        needs("mail", "dates"),
        expect(answer_names(*TODAY, among=SENDERS)),
        sloppy=True,
    ),
    Request(
        "pass-on-alert",
        "If there is an unread mail from monitor.example.com, forward it to oncall@example.com.",
        3,
        needs("mail", "condition", "send"),
        expect(mailed("oncall@example.com", "db-2", 94), mails=1),
    ),
)

FOUR_AND_FIVE_STEPS = (
    Request(
        "invoice-table",
        "For every mail about an invoice extract the vendor and the amount and write them to invoices.csv, with the "
        "columns vendor and amount.",
        4,
        needs("mail", "tables", "loop", "extraction", "write"),
        expect(
            file_rows(
                "invoices.csv",
                {"vendor": "Northwind", "amount": 1284.5},
                {"vendor": "Contoso", "amount": 89.9},
                {"vendor": "Fabrikam", "amount": 412.5},
                {"vendor": "Litware", "amount": 230},
            ),
            writes=["invoices.csv"],
        ),
    ),
    Request(
        "first-due",
        "Look at the due dates of the invoices in my mail. Which vendor has to be paid first?",
        4,
        needs("mail", "loop", "extraction", "dates"),
        expect(answer_names("Litware", among=VENDORS)),
    ),
    Request(
        "full-disk",
        "check the mail about the disk of db-2, if its more than 90 percent full add clean up db-2 to my todo.txt",
        4,
        needs("mail", "files", "extraction", "condition", "write"),
        expect(
            file_says("todo.txt", "Renew passport", "Return library book", "clean up db-2", at_most=260),
            writes=["todo.txt"],
        ),
        sloppy=True,
    ),
    Request(
        "complaint-table",
        "make me a list of the complaints in my mail pls: complaints.csv w/ columns sender and order (the order "
        "number)",
        4,
        needs("mail", "tables", "loop", "extraction", "write"),
        expect(
            file_rows(
                "complaints.csv",
                {"sender": ("helen", "ward"), "order": 1007},
                {"sender": ("omar", "haddad"), "order": 1012},
                {"sender": ("ivy", "chen"), "order": 1015},
            ),
            writes=["complaints.csv"],
        ),
        sloppy=True,
    ),
    Request(
        "large-invoices",
        "For every invoice in my mail over 300 EUR send a mail with the vendor and the amount to approval@example.com.",
        5,
        needs("mail", "loop", "extraction", "condition", "send"),
        expect(
            mailed("approval@example.com", "Northwind", 1284.5, lacks=["Fabrikam"]),
            mailed("approval@example.com", "Fabrikam", 412.5, lacks=["Northwind"]),
            mails=2,
        ),
    ),
    Request(
        "invoice-limit",
        "Find all invoices in my mail and add up their amounts. If the sum is over 2000 EUR, mail the sum to "
        "finance@example.com, otherwise write the sum to invoice_sum.txt.",
        5,
        needs("mail", "loop", "extraction", "condition", "send"),
        expect(mailed("finance@example.com", 2016.9, at_most=400), mails=1),
    ),
    Request(
        "answer-complaints",
        "write everyone who sent a complaint that we look into their order, w/ the order number in the mail",
        5,
        needs("mail", "loop", "extraction", "send"),
        expect(
            mailed("helen.ward@example.org", 1007, at_most=600),
            mailed("omar.haddad@example.org", 1012, at_most=600),
            mailed("ivy.chen@example.org", 1015, at_most=600),
            mails=3,
        ),
        sloppy=True,
    ),
)

REQUESTS = ONE_AND_TWO_STEPS + THREE_STEPS + FOUR_AND_FIVE_STEPS
