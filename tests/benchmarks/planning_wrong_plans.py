"""Plans that are wrong in the ways in which planners are wrong; the judge of `benchmarks.planning` must see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WrongPlan:
    """A plan for a request and what is wrong with it; `stopped`: policy or the person does not let it end well."""

    request: str
    fault: str
    plan: str
    stopped: bool = False


WRONG_PLANS: tuple[WrongPlan, ...] = (
    WrongPlan("errors-alert", "without the condition", """
lines = read_lines("app.log")
errors = grep(lines, "ERROR")
send_mail(["ops@example.com"], "Errors", f"There are {len(errors)} errors.")
answer(len(errors))
"""),
    WrongPlan("errors-alert", "the other branch is missing", """
lines = read_lines("app.log")
errors = grep(lines, "ERROR")
if len(errors) > 3:
    send_mail(["ops@example.com"], "Errors", f"There are {len(errors)} errors.")
answer(len(errors))
"""),
    WrongPlan("errors-alert", "without the number", """
lines = read_lines("app.log")
errors = grep(lines, "ERROR")
if len(errors) > 3:
    send_mail(["ops@example.com"], "Errors", "There are errors.")
else:
    write_text("status.txt", "ok")
answer(len(errors))
"""),
    WrongPlan("login-check", "branches swapped", """
lines = read_lines("logs/auth.log")
failed = grep(lines, "login failed")
if len(failed) > 5:
    write_lines("failed.txt", failed)
else:
    write_text("alert.txt", "ALERT")
answer(len(failed))
""", stopped=True),
    WrongPlan("budget-check", "without the condition", """
rows = read_csv("expenses.csv")
total = sum([row["amount"] for row in rows])
write_text("budget.txt", "over budget")
answer(total)
"""),
    WrongPlan("budget-check", "announced and not written", """
rows = read_csv("expenses.csv")
total = sum([row["amount"] for row in rows])
answer(f"The total is {total:.2f}. I wrote over budget into budget.txt.")
"""),
    WrongPlan("meter-use", "difference swapped", """
rows = read_csv("<meter>")
ordered = sort_rows(rows, "<meter.day>")
answer(ordered[0]["<meter.reading>"] - ordered[-1]["<meter.reading>"])
"""),
    WrongPlan("meter-use", "last reading in place of the difference", """
rows = read_csv("<meter>")
answer(sort_rows(rows, "<meter.day>")[-1]["<meter.reading>"])
"""),
    WrongPlan("salary-gap", "difference swapped", """
rows = read_csv("employees.csv")
one = [row["salary"] for row in rows if row["department"] == "Engineering"]
two = [row["salary"] for row in rows if row["department"] == "Sales"]
answer(round(sum(two) / len(two) - sum(one) / len(one), 2))
"""),
    WrongPlan("quote-anna", "quote shortened", """
send_mail(["<anna>"], "Keys for the summer house", "The keys are under the pot.")
answer("sent")
"""),
    WrongPlan("quote-anna", "subject shortened", """
send_mail(["<anna>"], "Keys", "The keys are under the third pot.")
answer("sent")
"""),
    WrongPlan("quoted-subject", "subject shortened", """
send_mail(["board@example.com"], "Minutes", "See you on Monday.")
answer("sent")
"""),
    WrongPlan("quoted-subject", "announced and not sent", """
answer("The mail to board@example.com was sent.")
"""),
    WrongPlan("lunch-mail", "text changed", """
send_mail(["team@example.com"], "Lunch", "Lunch is at 12:30.")
answer("sent")
"""),
    WrongPlan("lunch-mail", "sent twice", """
send_mail(["team@example.com"], "Lunch", "Lunch is at 12:30 today.")
send_mail(["team@example.com"], "Lunch again", "Lunch is at 12:30 today.")
answer("sent")
"""),
    WrongPlan("lunch-mail", "copy to somebody else", """
send_mail(["team@example.com"], "Lunch", "Lunch is at 12:30 today.", cc=["boss@example.com"])
answer("sent")
"""),
    WrongPlan("tell-kim-friday", "invented address", """
send_mail(["kim@example.com"], "Friday", "Friday works.")
answer("sent")
"""),
    WrongPlan("add-dentist", "announced and not added", """
answer("Dentist check was added to your calendar.")
"""),
    WrongPlan("add-dentist", "wrong year", """
add_event("Dentist check", datetime(2025, 3, 19, 9, 15), 30)
answer("added")
"""),
    WrongPlan("add-dentist", "wrong length", """
add_event("Dentist check", datetime(2026, 3, 19, 9, 15))
answer("added")
"""),
    WrongPlan("sort-names", "announced and not written", """
names = sort_lines(read_lines("names.txt"))
answer("Wrote the sorted names to names_sorted.txt")
"""),
    WrongPlan("sort-names", "written over the source", """
names = sort_lines(read_lines("names.txt"))
write_lines("names.txt", names)
write_lines("names_sorted.txt", names)
answer("saved")
""", stopped=True),
    WrongPlan("sort-names", "descending", """
names = sort_lines(read_lines("names.txt"), reverse=True)
write_lines("names_sorted.txt", names)
answer("saved")
"""),
    WrongPlan("dedupe-invoices", "duplicates left", """
answer(grep(read_lines("mail.txt"), "invoice"))
"""),
    WrongPlan("dedupe-invoices", "case matters", """
answer(grep(unique_lines(read_lines("mail.txt")), "Invoice", ignore_case=False))
"""),
    WrongPlan("count-errors", "all lines", """
answer(len(read_lines("app.log")))
"""),
    WrongPlan("still-to-pay", "paid ones too", """
rows = read_csv("<bills>")
answer(sum([row["<bills.amount>"] for row in rows]))
"""),
    WrongPlan("still-to-pay", "the other half", """
rows = read_csv("<bills>")
answer(sum([row["<bills.amount>"] for row in rows if row["<bills.paid>"] == "true"]))
"""),
    WrongPlan("still-to-pay", "several numbers to choose from", """
rows = read_csv("<bills>")
open_ = sum([row["<bills.amount>"] for row in rows if row["<bills.paid>"] == "<no>"])
paid = sum([row["<bills.amount>"] for row in rows if row["<bills.paid>"] == "<yes>"])
answer(f"{open_:.2f} or {paid:.2f}")
"""),
    WrongPlan("open-bills", "all of them", """
rows = read_csv("<bills>")
answer([row["<bills.payee>"] for row in rows])
"""),
    WrongPlan("open-bills", "one left out", """
rows = read_csv("<bills>")
found = filter_rows(rows, "<bills.paid>", "==", "<no>")
answer([row["<bills.payee>"] for row in found[1:]])
"""),
    WrongPlan("next-bill", "paid ones too", """
rows = read_csv("<bills>")
answer(sort_rows(rows, "<bills.due>")[0]["<bills.payee>"])
"""),
    WrongPlan("many-bills", "without the condition", """
add_event("Pay bills", datetime(2026, 3, 12, 18, 0), 30)
answer("added")
"""),
    WrongPlan("many-bills", "announced in both worlds", """
rows = read_csv("<bills>")
unpaid = [row for row in rows if row["<bills.paid>"] == "<no>"]
if len(unpaid) > 3:
    add_event("Pay bills", datetime(2026, 3, 12, 18, 0), 30)
answer("Pay bills was added to your calendar.")
"""),
    WrongPlan("petrol-note", "without the condition", """
write_text("petrol_note.txt", "too much")
answer("written")
"""),
    WrongPlan("fee-reminders", "to everybody", """
rows = read_csv("<members>")
for row in rows:
    send_mail([row["<members.email>"]], "Club fee", f"Please pay your fee of {row['<members.fee>']} EUR.")
answer("sent")
""", stopped=True),
    WrongPlan("fee-reminders", "only the first", """
rows = filter_rows(read_csv("<members>"), "<members.paid>", "==", "<no>")
send_mail([rows[0]["<members.email>"]], "Club fee", f"Please pay your fee of {rows[0]['<members.fee>']} EUR.")
answer("sent")
"""),
    WrongPlan("vegans", "also those who do not come", """
rows = read_csv("<guests>")
answer([row["<guests.name>"] for row in rows if row["<guests.diet>"] == "vegan"])
"""),
    WrongPlan("meter-warning", "always a mail", """
rows = sort_rows(read_csv("<meter>"), "<meter.day>")
used = rows[-1]["<meter.reading>"] - rows[0]["<meter.reading>"]
send_mail(["<peter>"], "Electricity", f"We used {used} kWh.")
answer(used)
""", stopped=False),
    WrongPlan("town-owing", "paid ones too", """
jobs = read_csv("<jobs>")
joined = join_rows(jobs, read_csv("<clients>"), "<jobs.client>")
totals = group_rows(joined, "<clients.town>", "<jobs.amount>", "sum")
answer(sort_rows(totals, "<jobs.amount>", descending=True)[0:2])
"""),
    WrongPlan("client-reminders", "one number for all", """
jobs = filter_rows(read_csv("<jobs>"), "<jobs.paid>", "==", "<no>")
joined = join_rows(jobs, read_csv("<clients>"), "<jobs.client>")
for row in joined:
    send_mail([row["<clients.email>"]], "Reminder", f"Your invoice {joined[0]['<jobs.number>']} is still open.")
answer("sent")
"""),
    WrongPlan("top-five", "four rows", """
ordered = sort_rows(read_csv("expenses.csv"), "amount", descending=True)
write_csv("top5.csv", ordered[:4])
answer("saved")
"""),
    WrongPlan("by-category", "counted and not summed", """
totals = group_rows(read_csv("expenses.csv"), "category", "amount", "count")
write_csv("by_category.csv", totals)
answer(totals)
"""),
    WrongPlan("invoice-sum", "one invoice alone", """
mails = search_mail(text="invoice")
invoice = extract(mails[0].body, "the amount", {"amount": float})
answer(invoice.amount)
"""),
    WrongPlan("large-invoices", "without the condition", """
for m in search_mail(text="invoice"):
    invoice = extract(m.body, "the vendor and the amount", {"vendor": str, "amount": float})
    send_mail(["approval@example.com"], "Invoice to approve", f"{invoice.vendor}: {invoice.amount:.2f} EUR")
answer("done")
"""),
    WrongPlan("full-disk", "without the condition", """
append_text("todo.txt", "[ ] clean up db-2\\n")
answer("added")
"""),
    WrongPlan("pass-on-alert", "read ones too", """
mails = search_mail(sender="monitor.example.com")
if len(mails) > 0:
    send_mail(["oncall@example.com"], f"Fwd: {mails[0].subject}", mails[0].body)
answer(len(mails))
""", stopped=True),
    WrongPlan("forward-costs", "summary in place of the mail", """
mails = search_mail(sender="Lee", subject="Server costs")
send_mail(["finance@example.com"], "Fwd", "Lee wrote about server costs.")
answer("forwarded")
"""),
    WrongPlan("move-retro", "a second event", """
add_event("Team retrospective", datetime(2026, 3, 13, 16, 0), 60)
answer("moved")
"""),
    WrongPlan("cancel-demo", "the wrong event", """
events = search_events("Team retrospective")
delete_event(events[0].id)
answer("cancelled")
"""),
    WrongPlan("free-for-dana", "always accepted", """
send_mail(["dana.cole@example.com"], "Friday", "accepted")
answer("sent")
"""),
    WrongPlan("focus-time", "without the condition", """
add_event("Focus time", datetime(2026, 3, 13, 14, 0), 60)
answer("added")
"""),
    WrongPlan("open-sundays", "guessed", """
answer("No, they are closed on Sundays.")
"""),
    WrongPlan("service-down", "without the condition", """
status = fetch_json("{site}/api/status.json")
down = [service["name"] for service in status["services"] if service["state"] == "down"]
send_mail(["ops@example.com"], "Service down", ", ".join(down))
answer(down)
"""),
    WrongPlan("lamp-in-pounds", "divided and not multiplied", """
page = fetch_page("{site}/products.html")
lamp = extract(page.text, "the price of the desk lamp in EUR", {"lamp_price": float})
rates = fetch_json("{site}/api/rates.json")
answer(round(lamp.lamp_price / rates["rates"]["GBP"], 2))
"""),
    WrongPlan("know-garage-code", "the whole text", """
home = read_text("<garage>") + read_text("<wifi>") + read_text("<landlord>")
answer(home + read_text("<recipe>") + read_text("<vet>"))
"""),
    WrongPlan("copy-report", "moved in place of copied", """
move_file("report.txt", "backup/report.txt")
answer("copied")
"""),
    WrongPlan("append-piano", "written over", """
write_text("todo.txt", "[ ] sell the piano\\n")
answer("added")
"""),
)  # fmt: skip
