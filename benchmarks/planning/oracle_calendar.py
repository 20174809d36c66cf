"""Plans by hand for the requests about the calendar."""

PLANS: dict[str, str] = {
    "events-today": """
events = list_events(today())
answer(events)
""",
    "add-dentist": """
add_event("Dentist", datetime(2026, 3, 19, 9, 15), 30)
answer("added")
""",
    "events-tomorrow": """
events = list_events(today() + timedelta(days=1))
answer([f"{e.start:%H:%M} {e.title}" for e in events])
""",
    "free-tomorrow": """
slots = find_free_time(today() + timedelta(days=1), 60)
answer(slots)
""",
    "move-retro": """
events = search_events("retrospective", date(2026, 3, 13), date(2026, 3, 13))
change_event(events[0].id, start=datetime(2026, 3, 13, 16, 0))
answer("moved")
""",
    "cancel-demo": """
events = search_events("vendor demo")
delete_event(events[0].id)
answer("cancelled")
""",
    "budget-room": """
events = search_events("budget planning")
change_event(events[0].id, location="Room Oak")
answer("changed")
""",
    "budget-meeting": """
mails = search_mail(sender="Dana", text="budget review")
meeting = extract(mails[0].body, "when the meeting starts and how long it takes", {"start": datetime, "minutes": int})
add_event("Budget review", meeting.start, meeting.minutes)
answer(meeting)
""",
    "friday-call": """
slots = find_free_time(date(2026, 3, 13), 60)
add_event("Call with Adatum", slots[0].start, 60)
answer(slots[0].start)
""",
    "meeting-hours": """
events = list_events(today())
minutes = sum([(e.end - e.start).total_seconds() / 60 for e in events])
answer(minutes / 60)
""",
    "week-agenda": """
events = list_events(date(2026, 3, 9), date(2026, 3, 13))
write_lines("agenda.txt", [e.title for e in events])
answer(len(events))
""",
    "tomorrow-mail": """
events = list_events(today() + timedelta(days=1))
lines = [f"{e.start:%H:%M} {e.title}" for e in events]
send_mail(["assistant@example.com"], "Tomorrow", "\\n".join(lines))
answer("sent")
""",
    "free-for-dana": """
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
    "train-trip": """
mails = search_mail(text="train to Lyon")
trip = extract(mails[0].body, "when the train leaves", {"leaves": datetime})
add_event("Train to Lyon", trip.leaves)
send_mail(["maria.santos@example.org"], "My train to Lyon", f"My train leaves at {trip.leaves:%Y-%m-%d %H:%M}.")
answer(trip.leaves)
""",
    "parcel-events": """
mails = search_mail(subject="your parcel is on its way") + search_mail(subject="your parcel is delayed")
for m in mails:
    parcel = extract(m.body, "the delivery date", {"arrives": date})
    add_event("Parcel", datetime(parcel.arrives.year, parcel.arrives.month, parcel.arrives.day, 9, 0))
answer(len(mails))
""",
}
