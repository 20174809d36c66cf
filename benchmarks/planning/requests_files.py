"""Requests about text files, logs and notes."""

from __future__ import annotations

from datetime import date

from .judge import (
    answer_lines,
    answer_mentions,
    answer_names,
    answer_number,
    expect,
    file_gone,
    file_like,
    file_lines,
    file_rows,
    file_says,
    mailed,
)
from .judge_files import file_holds_in_order, unchanged_or_lines
from .request import Request, needs

UNIQUE_MAIL = (
    "2026-03-02 Invoice 4471 received from Northwind",
    "2026-03-02 Team lunch moved to Friday",
    "2026-03-03 Newsletter: the spring catalogue is out",
    "2026-03-03 Reminder: two invoices from Contoso are still open",
    "2026-03-04 Parking garage closed on Monday",
    "2026-03-04 Please approve invoice FP-208 from Fabrikam",
    "2026-03-05 Lost umbrella at the reception",
    "2026-03-05 Parking garage closed on Monday",
    "2026-03-06 Corrected invoice 4471-B received from Northwind",
    "2026-03-06 Fire drill at 11:00",
    "2026-03-09 Welcome to our new colleagues",
)
TASKS = ("Renew passport", "Book hotel in Lyon", "Send slides to Dana", "Return library book")
DONE = ("Order new badge", "Pay electricity bill", "Water the plants")
NOTES = ("falcon.txt", "garden.txt", "retro.txt", "travel.txt")
WARNINGS = (
    "2026-03-11 08:04:17 WARNING slow query took 2300 ms",
    "2026-03-11 08:20:30 WARNING cache is 90 percent full",
    "2026-03-11 09:07:31 WARNING slow query took 3100 ms",
)
FAILED_LOGINS = (
    "2026-03-10 08:03:44 login failed user=admin from 10.0.0.66",
    "2026-03-10 08:03:51 login failed user=admin from 10.0.0.66",
    "2026-03-10 09:41:30 login failed user=rita from 10.0.0.21",
    "2026-03-10 13:15:09 login failed user=root from 10.0.0.66",
)

ONE_AND_TWO_STEPS = (
    Request(
        "show-todo",
        "Show me what is in todo.txt.",
        1,
        needs("files"),
        expect(answer_mentions(*TASKS, *DONE, at_most=300)),
    ),
    Request(
        "list-notes",
        "Which files are in the notes folder?",
        1,
        needs("files"),
        expect(answer_names(*NOTES, among=(*NOTES, "todo.txt", "auth.log", "review1.txt"))),
    ),
    Request(
        "copy-report",
        "Copy report.txt into the backup folder.",
        1,
        needs("files", "write"),
        expect(file_like("backup/report.txt", "report.txt"), writes=["backup/report.txt"]),
    ),
    Request(
        "delete-scratch",
        "pls delete old/scratch.tmp, dont need it anymore",
        1,
        needs("files", "write"),
        expect(file_gone("old/scratch.tmp"), writes=["old/scratch.tmp"]),
        sloppy=True,
    ),
    Request(
        "append-plumber",
        "add call the plumber to the end of my todo.txt",
        1,
        needs("files", "write"),
        expect(
            file_says("todo.txt", *TASKS, *DONE, "call the plumber", at_most=260),
            file_holds_in_order("todo.txt", "Return library book\n", "call the plumber"),
            writes=["todo.txt"],
        ),
        sloppy=True,
    ),
    Request(
        "archive-backup-log",
        "Make a folder called archive and move logs/backup.log into it.",
        2,
        needs("files", "write"),
        expect(
            file_like("archive/backup.log", "logs/backup.log"),
            file_gone("logs/backup.log"),
            writes=["archive/backup.log", "logs/backup.log"],
        ),
    ),
    Request(
        "open-tasks",
        "What do I still have to do according to todo.txt? Done tasks are marked with an x.",
        2,
        needs("files"),
        expect(answer_names(*TASKS, among=(*TASKS, *DONE))),
    ),
    Request(
        "falcon-notes",
        "Which of the files in the notes folder mention Project Falcon?",
        2,
        needs("files"),
        expect(answer_mentions("falcon.txt", "retro.txt", lacks=["garden.txt", "travel.txt"], at_most=1000)),
    ),
    Request(
        "contract-terms",
        "How much is the monthly rent in contract.txt, and how many months is the notice period?",
        2,
        needs("files", "extraction"),
        expect(answer_mentions(1850, (6, "six"), lacks=[5550], at_most=300)),
    ),
)

THREE_STEPS = (
    Request(
        "dedupe-invoices",
        "Remove duplicates from mail.txt and find lines mentioning invoices",
        3,
        needs("files"),
        expect(
            answer_lines(*(line for line in UNIQUE_MAIL if "invoice" in line.lower())),
            unchanged_or_lines("mail.txt", *UNIQUE_MAIL),
            writes=["mail.txt"],
        ),
    ),
    Request(
        "count-errors",
        "hw many ERROR lines r in app.log?? just the number",
        3,
        needs("files"),
        expect(answer_number(5)),
        sloppy=True,
    ),
    Request(
        "sort-names",
        "Sort the names in names.txt alphabetically and save them as names_sorted.txt.",
        3,
        needs("files", "write"),
        expect(
            file_lines("names_sorted.txt", "Ahmed", "Beth", "Clara", "Grace", "Mina", "Oscar", "Tomas", "Yusuf"),
            writes=["names_sorted.txt"],
        ),
    ),
    Request(
        "clean-shopping",
        "can u clean up shopping.txt for me, some things r in there twice. put the clean list in shopping_clean.txt",
        3,
        needs("files", "write"),
        expect(
            file_lines(
                "shopping_clean.txt", "milk", "bread", "apples", "coffee", "rice", "olive oil", "soap", ordered=False
            ),
            writes=["shopping_clean.txt"],
        ),
        sloppy=True,
    ),
    Request(
        "save-warnings",
        "look for the warnings in app.log n dump them into warnings.txt",
        3,
        needs("files", "write"),
        expect(file_lines("warnings.txt", *WARNINGS), writes=["warnings.txt"]),
        sloppy=True,
    ),
    Request(
        "replace-acme",
        "Replace Acme with Adatum everywhere in letter_template.txt and save the result as letter_adatum.txt.",
        3,
        needs("files", "write"),
        expect(
            file_lines(
                "letter_adatum.txt",
                "Dear Adatum team,",
                "thank you for visiting us last week.",
                "We believe that Adatum and our workshop fit well together.",
                "Please find our offer enclosed.",
                "Kind regards",
            ),
            writes=["letter_adatum.txt"],
        ),
    ),
    Request(
        "contact-addresses",
        "Each line of contacts.txt is a name, an e-mail address and a phone number with semicolons between them. "
        "Give me the e-mail addresses in alphabetical order.",
        3,
        needs("files"),
        expect(
            answer_lines(
                "aiko.tanaka@example.org",
                "bruno.keller@example.org",
                "dana.cole@example.com",
                "lee.park@example.com",
                "maria.santos@example.org",
            )
        ),
    ),
    Request(
        "launch-date",
        "when did we agree to launch the new shop? its somewhere in meeting_notes.txt. put the date in launch.txt",
        3,
        needs("files", "extraction", "write"),
        expect(
            file_says("launch.txt", date(2026, 4, 21), lacks=[date(2026, 3, 19), "printer"], at_most=120),
            writes=["launch.txt"],
        ),
        sloppy=True,
    ),
    Request(
        "copy-notes",
        "Put a copy of every file in the notes folder into the backup folder.",
        3,
        needs("files", "loop", "write"),
        expect(
            *(file_like(f"backup/{name}", f"notes/{name}") for name in NOTES),
            writes=[f"backup/{name}" for name in NOTES],
        ),
    ),
)

FOUR_AND_FIVE_STEPS = (
    Request(
        "recent-404",
        "How many of the last 20 lines in logs/web.log are 404s?",
        4,
        needs("files"),
        expect(answer_number(4)),
    ),
    Request(
        "errors-alert",
        "If there are more than 3 errors in app.log, mail the count to ops@example.com, otherwise write ok to "
        "status.txt.",
        4,
        needs("files", "condition", "send"),
        expect(mailed("ops@example.com", 5, at_most=300), mails=1),
    ),
    Request(
        "login-check",
        "check logs/auth.log for failed logins. more than 5? then write ALERT to alert.txt, else save those lines in "
        "failed.txt",
        4,
        needs("files", "condition", "write"),
        expect(file_lines("failed.txt", *FAILED_LOGINS), writes=["failed.txt"]),
        sloppy=True,
    ),
    Request(
        "log-sizes",
        "For each file in the logs folder count its lines, and write log_sizes.csv with the columns file and lines.",
        4,
        needs("files", "tables", "loop", "write"),
        expect(
            file_rows(
                "log_sizes.csv",
                {"file": "auth.log", "lines": 7},
                {"file": "backup.log", "lines": 4},
                {"file": "web.log", "lines": 26},
            ),
            writes=["log_sizes.csv"],
        ),
    ),
    Request(
        "join-notes",
        "Put the texts of all files in the notes folder together into one file all_notes.txt, in the order of "
        "their names.",
        4,
        needs("files", "loop", "write"),
        expect(
            file_holds_in_order("all_notes.txt", *(f"<notes/{name}>" for name in NOTES), at_most=600),
            writes=["all_notes.txt"],
        ),
    ),
    Request(
        "negative-reviews",
        "Read the reviews in the reviews folder and tell me which of them are negative.",
        4,
        needs("files", "loop", "extraction", "condition"),
        expect(
            answer_names(
                ("review2", "Terrible chair"),
                ("review4", "cabinet came scratched"),
                among=(
                    ("review1", "love this desk lamp"),
                    ("review2", "Terrible chair"),
                    ("review3", "happy with the bookshelf"),
                    ("review4", "cabinet came scratched"),
                    ("review5", "What a great desk"),
                ),
            )
        ),
    ),
    Request(
        "review-table",
        "go thru the reviews folder n make a table reviews.csv, columns file and product, so i know which product each "
        "review is about",
        5,
        needs("files", "tables", "loop", "extraction", "write"),
        expect(
            file_rows(
                "reviews.csv",
                {"file": "review1", "product": "lamp"},
                {"file": "review2", "product": "chair"},
                {"file": "review3", "product": ("bookshelf", "shelf")},
                {"file": "review4", "product": "cabinet"},
                {"file": "review5", "product": "desk"},
            ),
            writes=["reviews.csv"],
        ),
        sloppy=True,
    ),
)

REQUESTS = ONE_AND_TWO_STEPS + THREE_STEPS + FOUR_AND_FIVE_STEPS
