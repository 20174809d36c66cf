"""Plans by hand for the requests about mail."""

PLANS: dict[str, str] = {
    "lunch-mail": """
send_mail(["team@example.com"], "Lunch", "Lunch is at 12:30 today.")
answer("sent")
""",
    "skip-interview": """
send_mail(["lee.park@example.com"], "Interview tomorrow", "I can't make it to the interview tomorrow.")
answer("sent")
""",
    "mail-from-maria": """
mails = search_mail(sender="maria")
answer(mails)
""",
    "unread-subjects": """
mails = search_mail(unread=True)
answer([m.subject for m in mails])
""",
    "northwind-invoice": """
mails = search_mail(sender="Northwind", text="invoice")
invoice = extract(mails[0].body, "the total and the due date of the invoice", {"amount": float, "due": date})
answer(invoice)
""",
    "parcel-arrival": """
mails = search_mail(text="PX-55120")
arrival = extract(mails[0].body, "the date on which the parcel arrives", {"arrives": date})
answer(arrival.arrives)
""",
    "forward-costs": """
mails = search_mail(sender="Lee", text="server costs")
send_mail(["finance@example.com"], f"Fwd: {mails[0].subject}", mails[0].body)
answer("forwarded")
""",
    "save-holidays": """
mails = search_mail(text="holiday calendar")
path = save_attachment(mails[0].id, mails[0].attachments[0])
answer(path)
""",
    "answer-helen": """
mails = search_mail(sender="Helen Ward")
send_mail([mails[0].sender], f"Re: {mails[0].subject}", "We will send your money back.")
answer("sent")
""",
    "server-costs": """
mails = search_mail(sender="Lee", text="server costs")
costs = extract(mails[0].body, "the server costs in February", {"february": float})
send_mail(["finance@example.com"], "Server costs in February", f"{costs.february} EUR")
answer(costs.february)
""",
    "invoice-sum": """
mails = search_mail(text="invoice")
total = 0
for m in mails:
    invoice = extract(m.body, "the amount of the invoice", {"amount": float})
    total += invoice.amount
answer(total)
""",
    "tracking-numbers": """
mails = search_mail(sender="parcel")
found = []
for m in mails:
    parcel = extract(m.body, "the tracking number of the parcel", {"number": str})
    found.append(parcel.number)
answer(found)
""",
    "week-subjects": """
mails = search_mail(since=date(2026, 3, 9))
write_lines("week.txt", [m.subject for m in mails])
answer(len(mails))
""",
    "today-senders": """
day = today()
mails = search_mail(since=day)
answer(unique_lines([m.sender for m in mails]))
""",
    "pass-on-alert": """
mails = search_mail(sender="monitor.example.com", unread=True)
if len(mails) > 0:
    send_mail(["oncall@example.com"], f"Fwd: {mails[0].subject}", mails[0].body)
answer(len(mails))
""",
    "invoice-table": """
rows = []
for m in search_mail(text="invoice"):
    invoice = extract(m.body, "the vendor and the amount of the invoice", {"vendor": str, "amount": float})
    rows.append({"vendor": invoice.vendor, "amount": invoice.amount})
write_csv("invoices.csv", rows)
answer(rows)
""",
    "first-due": """
rows = []
for m in search_mail(text="invoice"):
    invoice = extract(m.body, "the due date of the invoice", {"due": date})
    rows.append({"vendor": m.sender_name, "due": invoice.due})
first = sort_rows(rows, "due")[0]
answer(first["vendor"])
""",
    "full-disk": """
mails = search_mail(text="db-2")
disk = extract(mails[0].body, "how full the disk is, in percent", {"percent": int})
if disk.percent > 90:
    append_text("todo.txt", "[ ] clean up db-2\\n")
answer(disk.percent)
""",
    "complaint-table": """
rows = []
for m in search_mail(subject="complaint"):
    complaint = extract(m.body, "the order number", {"order": int})
    rows.append({"sender": m.sender_name, "order": complaint.order})
write_csv("complaints.csv", rows)
answer(rows)
""",
    "large-invoices": """
for m in search_mail(text="invoice"):
    invoice = extract(m.body, "the vendor and the amount of the invoice", {"vendor": str, "amount": float})
    if invoice.amount > 300:
        send_mail(["approval@example.com"], "Invoice to approve", f"{invoice.vendor}: {invoice.amount:.2f} EUR")
answer("done")
""",
    "invoice-limit": """
amounts = []
for m in search_mail(text="invoice"):
    invoice = extract(m.body, "the amount of the invoice", {"amount": float})
    amounts.append(invoice.amount)
total = sum(amounts)
if total > 2000:
    send_mail(["finance@example.com"], "Sum of the invoices", f"The invoices add up to {total:.2f} EUR.")
else:
    write_text("invoice_sum.txt", f"{total:.2f}")
answer(total)
""",
    "answer-complaints": """
mails = search_mail(subject="complaint")
for m in mails:
    complaint = extract(m.body, "the order number", {"order": int})
    send_mail([m.sender], f"Re: {m.subject}", f"We are looking into your order {complaint.order}.")
answer(len(mails))
""",
}
