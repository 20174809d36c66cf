"""Requests about files and lines, with what is right and a reference plan for each."""

from __future__ import annotations

from .data import Data
from .judge import (
    Expected,
    Mail,
    has_content,
    has_lines,
    has_rows,
    has_text,
    is_gone,
    lines,
    names,
    number,
    says,
)
from .request import Request, de, en, es, fr, nat, task


def _grep(data: Data, path: str, word: str) -> list[str]:
    return [line for line in data.lines(path) if word.casefold() in line.casefold()]


def _notes(data: Data) -> dict[str, str]:
    return {path: text for path, text in sorted(data.texts.items()) if path.startswith("notes/")}


def _reviews(data: Data) -> list[tuple[str, str, bool]]:
    """File name, product, and whether it is negative."""
    found = [each for key, each in data.prose.items() if key.startswith("review")]
    return [(each.path.rpartition("/")[2], each.facts["product"], each.facts["negative"]) for each in found]


def _errors_alert(data: Data) -> Expected:
    count = len(_grep(data, "app.log", "error"))
    if count > 3:
        return Expected(mails=(Mail("ops@example.com", says=(count,)),))
    return Expected(files={"status.txt": has_content("ok")})


def _login_check(data: Data) -> Expected:
    failed = _grep(data, "logs/auth.log", "login failed")
    if len(failed) > 5:
        return Expected(files={"alert.txt": has_content("ALERT")})
    return Expected(files={"failed.txt": has_lines(*failed)})


def _log_sizes(data: Data) -> Expected:
    rows = [
        {"file": path.rpartition("/")[2], "lines": len(data.lines(path))}
        for path in data.texts
        if path.startswith("logs/")
    ]
    return Expected(files={"log_sizes.csv": has_rows(*rows)})


def _falcon(data: Data) -> Expected:
    stems = {path: path.removeprefix("notes/").removesuffix(".txt") for path in _notes(data)}
    found = [stems[path] for path, text in _notes(data).items() if "Project Falcon" in text]
    return Expected(answer=names(found, list(stems.values())))


REQUESTS: list[Request] = [
    *task(
        "show-todo",
        1,
        'text = read_text("todo.txt")\nanswer(text)',
        lambda d: Expected(answer=lines(*d.lines("todo.txt"), ordered=True)),
        en("Show me what's in todo.txt."),
        de("Zeig mir bitte todo.txt."),
    ),
    *task(
        "groceries",
        1,
        'items = read_lines("<groceries>")\nanswer(items)',
        lambda d: Expected(answer=lines(*d.lines(d.names["groceries"]))),
        nat("What do I need to buy for the kitchen?"),
        fr("Qu'est-ce qu'il me faut acheter pour la cuisine ?", True),
        es("¿Qué tengo que comprar para la cocina?", True),
        unseen=True,
    ),
    *task(
        "pack-count",
        2,
        'items = read_lines("<packing>")\nanswer(count_lines(items))',
        lambda d: Expected(answer=number(len(d.lines(d.names["packing"])))),
        nat("How many things do I have to pack for camping?"),
    ),
    *task(
        "list-notes",
        1,
        'files = list_files("notes")\nanswer([f.name for f in files])',
        lambda d: Expected(answer=names([path.removeprefix("notes/") for path in _notes(d)], list(d.files()))),
        en("Which files are in the notes folder?"),
        es("¿Qué archivos hay en la carpeta notes?"),
        unseen=True,
    ),
    *task(
        "copy-report",
        1,
        'copy_file("report.txt", "backup/report.txt")\nanswer("copied")',
        lambda d: Expected(files={"backup/report.txt": has_content(d.texts["report.txt"])}),
        en("Put a copy of report.txt into the folder backup."),
        fr("Copie report.txt dans le dossier backup."),
    ),
    *task(
        "delete-scratch",
        1,
        'delete_file("old/scratch.tmp")\nanswer("deleted")',
        lambda d: Expected(files={"old/scratch.tmp": is_gone}),
        en("delete old/scratch.tmp please"),
        de("Lösch old/scratch.tmp."),
        unseen=True,
    ),
    *task(
        "append-piano",
        1,
        'append_text("todo.txt", "[ ] sell the piano\\n")\nanswer("added")',
        lambda d: Expected(files={"todo.txt": has_lines(*d.lines("todo.txt"), "[ ] sell the piano")}),
        en('Add the line "[ ] sell the piano" at the end of todo.txt.'),
        de('Häng die Zeile "[ ] sell the piano" an todo.txt an.'),
    ),
    *task(
        "archive-log",
        2,
        'make_folder("archive")\nmove_file("logs/backup.log", "archive/backup.log")\nanswer("moved")',
        lambda d: Expected(
            files={"logs/backup.log": is_gone, "archive/backup.log": has_content(d.texts["logs/backup.log"])}
        ),
        en("Make a folder called archive and move logs/backup.log there."),
        unseen=True,
    ),
    *task(
        "open-tasks",
        2,
        'lines = read_lines("todo.txt")\nleft = grep(lines, "[x]", invert=True)\nanswer(left)',
        lambda d: Expected(answer=lines(*[line for line in d.lines("todo.txt") if "[x]" not in line])),
        en("Which lines of todo.txt are not ticked with [x] yet?"),
        es("¿Qué líneas de todo.txt no están marcadas con [x]?"),
    ),
    *task(
        "falcon-notes",
        2,
        'matches = search_files("Project Falcon", "notes")\nanswer(unique_lines([m.path for m in matches]))',
        _falcon,
        en("Which of the files in notes mention Project Falcon?"),
        unseen=True,
    ),
    *task(
        "contract-terms",
        2,
        """
text = read_text("contract.txt")
terms = extract(text, "the monthly rent and the notice period in months", {"rent": float, "notice_months": int})
answer(terms)
""",
        lambda d: Expected(answer=says(d.prose["contract"].facts["rent"], d.prose["contract"].facts["notice_months"])),
        en("What are the monthly rent and the notice period in contract.txt?"),
        fr("Quel est le loyer mensuel et quel est le préavis dans contract.txt ?"),
    ),
    *task(
        "dedupe-invoices",
        3,
        """
lines = read_lines("mail.txt")
unique = unique_lines(lines)
found = grep(unique, "invoice")
answer(found)
""",
        lambda d: Expected(answer=lines(*dict.fromkeys(_grep(d, "mail.txt", "invoice")))),
        en("Remove duplicates from mail.txt and find all lines mentioning invoices."),
        de("Entferne doppelte Zeilen aus mail.txt und zeig mir alle, in denen invoice vorkommt."),
    ),
    *task(
        "count-errors",
        2,
        'lines = read_lines("app.log")\nerrors = grep(lines, "ERROR")\nanswer(count_lines(errors))',
        lambda d: Expected(answer=number(len(_grep(d, "app.log", "error")))),
        en("how many ERROR lines does app.log have?"),
        de("Wie viele Zeilen mit ERROR stehen in app.log?"),
    ),
    *task(
        "sort-names",
        3,
        """
names = read_lines("names.txt")
ordered = sort_lines(names)
write_lines("names_sorted.txt", ordered)
answer("saved")
""",
        lambda d: Expected(files={"names_sorted.txt": has_lines(*sorted(d.lines("names.txt"), key=str.casefold))}),
        en("Sort names.txt by the alphabet and save that as names_sorted.txt."),
        unseen=True,
    ),
    *task(
        "clean-shopping",
        3,
        """
lines = read_lines("shopping.txt")
clean = unique_lines(lines)
write_lines("shopping_clean.txt", clean)
answer(clean)
""",
        lambda d: Expected(files={"shopping_clean.txt": has_lines(*dict.fromkeys(d.lines("shopping.txt")))}),
        en("shopping.txt has things twice. Write it without duplicates to shopping_clean.txt"),
        es("shopping.txt tiene líneas repetidas: guárdalo sin duplicados en shopping_clean.txt."),
    ),
    *task(
        "save-warnings",
        3,
        """
lines = read_lines("app.log")
warnings = grep(lines, "WARNING")
write_lines("warnings.txt", warnings)
answer(f"{len(warnings)} warnings saved")
""",
        lambda d: Expected(files={"warnings.txt": has_lines(*_grep(d, "app.log", "warning"))}),
        en("Save all WARNING lines of app.log in warnings.txt."),
        fr("Enregistre toutes les lignes WARNING de app.log dans warnings.txt."),
        unseen=True,
    ),
    *task(
        "replace-acme",
        3,
        """
lines = read_lines("letter_template.txt")
changed = replace_lines(lines, "Acme", "Adatum")
write_lines("letter_adatum.txt", changed)
answer("saved")
""",
        lambda d: Expected(
            files={"letter_adatum.txt": has_content(d.texts["letter_template.txt"].replace("Acme", "Adatum"))}
        ),
        en("Write letter_template.txt with Adatum in place of Acme to letter_adatum.txt."),
    ),
    *task(
        "contact-addresses",
        3,
        """
lines = read_lines("contacts.txt")
addresses = cut(lines, 2, ";")
answer(sort_lines(addresses))
""",
        lambda d: Expected(answer=lines(*[line.split(";")[1] for line in d.lines("contacts.txt")])),
        en("The second field of contacts.txt (separated by ;) is an address. List the addresses, sorted."),
        unseen=True,
    ),
    *task(
        "launch-date",
        3,
        """
text = read_text("meeting_notes.txt")
launch = extract(text, "the date on which the new shop will launch", {"launch": date})
write_text("launch.txt", f"{launch.launch}")
answer(launch.launch)
""",
        lambda d: Expected(
            answer=says(d.prose["meeting"].facts["launch"]),
            files={"launch.txt": has_text(d.prose["meeting"].facts["launch"], at_most=80)},
        ),
        en("Find the day the new shop launches in meeting_notes.txt, write it to launch.txt and tell me."),
        unseen=True,
    ),
    *task(
        "copy-notes",
        3,
        """
files = list_files("notes")
for f in files:
    copy_file(f.path, f"backup/{f.name}")
answer(f"{len(files)} files copied")
""",
        lambda d: Expected(
            files={path.replace("notes/", "backup/"): has_content(text) for path, text in _notes(d).items()}
        ),
        en("Copy every file of the notes folder into backup."),
        fr("Copie tous les fichiers du dossier notes dans backup."),
    ),
    *task(
        "recent-404",
        3,
        """
lines = read_lines("logs/web.log")
last = tail(lines, 20)
missing = grep(last, " 404")
answer(len(missing))
""",
        lambda d: Expected(answer=number(sum(line.endswith(" 404") for line in d.lines("logs/web.log")[-20:]))),
        en("How many of the last 20 lines in logs/web.log are 404s?"),
        unseen=True,
    ),
    *task(
        "errors-alert",
        4,
        """
lines = read_lines("app.log")
errors = grep(lines, "ERROR")
if len(errors) > 3:
    send_mail(["ops@example.com"], "Errors in app.log", f"There are {len(errors)} errors in app.log.")
else:
    write_text("status.txt", "ok")
answer(len(errors))
""",
        _errors_alert,
        en(
            "If app.log has more than 3 ERROR lines, mail their number to ops@example.com, otherwise write "
            "ok to status.txt."
        ),
        de(
            "Falls app.log mehr als 3 Zeilen mit ERROR hat, schick die Anzahl an ops@example.com, sonst schreib ok in "
            "status.txt."
        ),
        condition=True,
    ),
    *task(
        "login-check",
        4,
        """
lines = read_lines("logs/auth.log")
failed = grep(lines, "login failed")
if len(failed) > 5:
    write_text("alert.txt", "ALERT")
else:
    write_lines("failed.txt", failed)
answer(len(failed))
""",
        _login_check,
        en(
            "Count 'login failed' in logs/auth.log: with more than 5, write ALERT into alert.txt, else save "
            "those lines to "
            "failed.txt."
        ),
        unseen=True,
        condition=True,
    ),
    *task(
        "log-sizes",
        4,
        """
rows = []
for f in list_files("logs"):
    lines = read_lines(f.path)
    rows.append({"file": f.name, "lines": len(lines)})
write_csv("log_sizes.csv", rows)
answer(rows)
""",
        _log_sizes,
        en("Make log_sizes.csv with the name and the number of lines of each file in logs."),
        es("Crea log_sizes.csv con el nombre y el número de líneas de cada archivo de la carpeta logs."),
        unseen=True,
    ),
    *task(
        "join-notes",
        4,
        """
texts = []
for f in sorted(list_files("notes"), key=lambda f: f.name):
    text = read_text(f.path)
    texts.append(text)
write_text("all_notes.txt", "\\n".join(texts))
answer("saved")
""",
        lambda d: Expected(
            files={"all_notes.txt": has_lines(*[line for text in _notes(d).values() for line in text.splitlines()])}
        ),
        en("Put all files of notes together in one file all_notes.txt, in order of their names."),
    ),
    *task(
        "negative-reviews",
        4,
        """
negative = []
for f in list_files("reviews"):
    text = read_text(f.path)
    review = extract(text, "whether the review is negative", {"negative": bool})
    if review.negative:
        negative.append(f.name)
answer(negative)
""",
        lambda d: Expected(answer=names([name for name, _, bad in _reviews(d) if bad], [n for n, _, _ in _reviews(d)])),
        en("Which files in reviews hold a negative review?"),
        de("Welche Dateien in reviews enthalten eine schlechte Bewertung?"),
    ),
    *task(
        "review-table",
        5,
        """
rows = []
for f in list_files("reviews"):
    text = read_text(f.path)
    review = extract(text, "the product that the review is about", {"product": str})
    rows.append({"file": f.name, "product": review.product})
write_csv("reviews.csv", rows)
answer(rows)
""",
        lambda d: Expected(
            files={"reviews.csv": has_rows(*[{"file": name, "product": product} for name, product, _ in _reviews(d)])}
        ),
        en("For each file in reviews find the product it is about, and save file and product as reviews.csv."),
        unseen=True,
    ),
    *task(
        "bad-products",
        5,
        """
bad = []
for f in list_files("reviews"):
    text = read_text(f.path)
    review = extract(text, "the product, and whether the review is negative", {"product": str, "negative": bool})
    if review.negative:
        bad.append(review.product)
if len(bad) > 2:
    send_mail(["quality@example.com"], "Bad reviews", ", ".join(bad))
answer(bad)
""",
        lambda d: (
            lambda bad, good: Expected(
                answer=names(bad, bad + good),
                mails=(Mail("quality@example.com", says=tuple(bad), lacks=tuple(good)),) if len(bad) > 2 else (),
            )
        )([p for _, p, neg in _reviews(d) if neg], [p for _, p, neg in _reviews(d) if not neg]),
        en(
            "Which products got a negative review in the reviews folder? If there are more than two, mail the list to "
            "quality@example.com as well."
        ),
        unseen=True,
        condition=True,
    ),
]
