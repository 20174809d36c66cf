"""Plans by hand for the requests about files."""

PLANS: dict[str, str] = {
    "show-todo": """
text = read_text("todo.txt")
answer(text)
""",
    "list-notes": """
files = list_files("notes")
answer([f.name for f in files])
""",
    "copy-report": """
copy_file("report.txt", "backup/report.txt")
answer("copied")
""",
    "delete-scratch": """
delete_file("old/scratch.tmp")
answer("deleted")
""",
    "append-plumber": """
append_text("todo.txt", "[ ] call the plumber\\n")
answer("added")
""",
    "archive-backup-log": """
make_folder("archive")
move_file("logs/backup.log", "archive/backup.log")
answer("moved")
""",
    "open-tasks": """
lines = read_lines("todo.txt")
open_tasks = grep(lines, "[x]", invert=True)
answer(open_tasks)
""",
    "falcon-notes": """
matches = search_files("Project Falcon", "notes")
answer(unique_lines([m.path for m in matches]))
""",
    "contract-terms": """
text = read_text("contract.txt")
terms = extract(text, "the monthly rent and the notice period in months", {"rent": float, "notice_months": int})
answer(terms)
""",
    "dedupe-invoices": """
lines = read_lines("mail.txt")
unique = unique_lines(lines)
found = grep(unique, "invoice")
answer(found)
""",
    "count-errors": """
lines = read_lines("app.log")
errors = grep(lines, "ERROR")
answer(count_lines(errors))
""",
    "sort-names": """
names = read_lines("names.txt")
ordered = sort_lines(names)
write_lines("names_sorted.txt", ordered)
answer("saved")
""",
    "clean-shopping": """
lines = read_lines("shopping.txt")
clean = unique_lines(lines)
write_lines("shopping_clean.txt", clean)
answer(clean)
""",
    "save-warnings": """
lines = read_lines("app.log")
warnings = grep(lines, "WARNING")
write_lines("warnings.txt", warnings)
answer(f"{len(warnings)} warnings saved")
""",
    "replace-acme": """
lines = read_lines("letter_template.txt")
changed = replace_lines(lines, "Acme", "Adatum")
write_lines("letter_adatum.txt", changed)
answer("saved")
""",
    "contact-addresses": """
lines = read_lines("contacts.txt")
addresses = cut(lines, 2, ";")
answer(sort_lines(addresses))
""",
    "launch-date": """
text = read_text("meeting_notes.txt")
launch = extract(text, "the date on which the new shop will launch", {"launch": date})
write_text("launch.txt", f"{launch.launch}")
answer(launch.launch)
""",
    "copy-notes": """
files = list_files("notes")
for f in files:
    copy_file(f.path, f"backup/{f.name}")
answer(f"{len(files)} files copied")
""",
    "recent-404": """
lines = read_lines("logs/web.log")
last = tail(lines, 20)
missing = grep(last, " 404")
answer(len(missing))
""",
    "errors-alert": """
lines = read_lines("app.log")
errors = grep(lines, "ERROR")
if len(errors) > 3:
    send_mail(["ops@example.com"], "Errors in app.log", f"There are {len(errors)} errors in app.log.")
else:
    write_text("status.txt", "ok")
answer(len(errors))
""",
    "login-check": """
lines = read_lines("logs/auth.log")
failed = grep(lines, "login failed")
if len(failed) > 5:
    write_text("alert.txt", "ALERT")
else:
    write_lines("failed.txt", failed)
answer(len(failed))
""",
    "log-sizes": """
rows = []
for f in list_files("logs"):
    lines = read_lines(f.path)
    rows.append({"file": f.name, "lines": len(lines)})
write_csv("log_sizes.csv", rows)
answer(rows)
""",
    "join-notes": """
files = list_files("notes")
texts = []
for f in sorted(files, key=lambda f: f.name):
    text = read_text(f.path)
    texts.append(text)
write_text("all_notes.txt", "\\n".join(texts))
answer("saved")
""",
    "negative-reviews": """
negative = []
for f in list_files("reviews"):
    text = read_text(f.path)
    review = extract(text, "whether the review is negative", {"negative": bool})
    if review.negative:
        negative.append(f.name)
answer(negative)
""",
    "review-table": """
rows = []
for f in list_files("reviews"):
    text = read_text(f.path)
    review = extract(text, "the product that the review is about", {"product": str})
    rows.append({"file": f.name, "product": review.product})
write_csv("reviews.csv", rows)
answer(rows)
""",
}
