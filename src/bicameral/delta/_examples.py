"""Worked examples for the planner: a request and the plan for it.

The first few stand in every prompt, in this order, so that their prefix is reused; of the others the ones whose words
are nearest to the request are added. None of them is a request of a benchmark.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

_BUILT_IN = frozenset(
    "answer extract combine date datetime time timedelta len sum min max sorted mean str int float round unique".split()
)


@dataclass(frozen=True)
class Example:
    """A request with the plan that serves it."""

    request: str
    plan: str

    @cached_property
    def tools(self) -> frozenset[str]:
        """The tools that the plan calls."""
        calls = (node.func for node in ast.walk(ast.parse(self.plan)) if isinstance(node, ast.Call))
        return frozenset(call.id for call in calls if isinstance(call, ast.Name)) - _BUILT_IN


ALWAYS: tuple[Example, ...] = (
    Example(
        "Sort requests.txt, drop repeated lines and show me the ones about refunds",
        """\
lines = read_lines("requests.txt")
unique = unique_lines(lines)
ordered = sort_lines(unique)
found = grep(ordered, "refund")
answer(found)
""",
    ),
    Example(
        "For every unread mail about a booking note the hotel and the price in bookings.csv",
        """\
mails = search_mail(text="booking", unread=True)
rows = []
for m in mails:
    info = extract(m.body, "the hotel and the price of the booking", {"hotel": str, "price": float})
    rows.append({"hotel": info.hotel, "price": info.price})
write_csv("bookings.csv", rows)
answer(f"Wrote {len(rows)} bookings to bookings.csv")
""",
    ),
    Example(
        "If more than 2 devices in devices.csv are broken mail the number to lab@example.org, "
        "otherwise write fine to note.txt",
        """\
rows = read_csv("devices.csv")
broken = filter_rows(rows, "status", "==", "broken")
if len(broken) > 2:
    send_mail(["lab@example.org"], "Broken devices", f"{len(broken)} devices are broken.")
    answer(f"Mailed that {len(broken)} devices are broken")
else:
    write_text("note.txt", "fine")
    answer("Wrote fine to note.txt")
""",
    ),
    Example(
        "Find a free half hour on 2025-06-03 and put a call with Lee there",
        """\
slots = find_free_time(date("2025-06-03"), minutes=30)
event = add_event("Call with Lee", slots[0].start, minutes=30)
answer(event)
""",
    ),
)

BANK: tuple[Example, ...] = (
    Example(
        "How many lines does server.txt have?",
        """\
lines = read_lines("server.txt")
answer(len(lines))
""",
    ),
    Example(
        "Show the last 4 lines of build.log that mention warning",
        """\
lines = read_lines("build.log")
found = grep(lines, "warning")
last = tail(found, count=4)
answer(last)
""",
    ),
    Example(
        "Count the lines without the word draft in plan.md and write the number to count.txt",
        """\
lines = read_lines("plan.md")
kept = grep(lines, "draft", invert=True)
write_text("count.txt", str(len(kept)))
answer(len(kept))
""",
    ),
    Example(
        "How many of the first 50 lines of trace.txt are timeouts?",
        """\
lines = read_lines("trace.txt")
first = head(lines, count=50)
found = grep(first, "timeout")
answer(len(found))
""",
    ),
    Example(
        "Count the failures in boot.txt; when there are more than 5, mail admin@example.org how many",
        """\
lines = read_lines("boot.txt")
failures = grep(lines, "failure")
if len(failures) > 5:
    send_mail(["admin@example.org"], "Failures", f"There are {len(failures)} failures.")
    answer(f"Mailed that there are {len(failures)} failures")
else:
    answer(f"There are only {len(failures)} failures")
""",
    ),
    Example(
        "Which entries of packing.txt are not packed yet? Packed ones begin with ok",
        """\
lines = read_lines("packing.txt")
answer([line for line in lines if not line.startswith("ok")])
""",
    ),
    Example(
        "How much is the deposit in lease.txt and until when does it run?",
        """\
text = read_text("lease.txt")
info = extract(text, "the deposit and the last day of the lease", {"deposit": float, "until": date})
answer(f"The deposit is {info.deposit} and the lease runs until {info.until}")
""",
    ),
    Example(
        "Some names are twice in party.txt, put the list without doubles in party-clean.txt",
        """\
lines = read_lines("party.txt")
clean = unique_lines(lines)
write_lines("party-clean.txt", clean)
answer(clean)
""",
    ),
    Example(
        "What is the price of the repair in the mail from Jansen and when will it be ready?",
        """\
mails = search_mail(sender="Jansen", text="repair")
info = extract(mails[0].body, "the price and the day it is ready", {"price": float, "ready": date})
answer(f"The repair costs {info.price} and is ready on {info.ready}")
""",
    ),
    Example(
        "Replace colour by color in essay.txt and save it as essay-us.txt",
        """\
lines = read_lines("essay.txt")
changed = replace_lines(lines, "colour", "color")
write_lines("essay-us.txt", changed)
answer("Wrote essay-us.txt")
""",
    ),
    Example(
        "Take the second column of points.txt, sort it by number, biggest first, and save the first 3 to best.txt",
        """\
lines = read_lines("points.txt")
column = cut(lines, 2)
ordered = sort_lines(column, reverse=True, numeric=True)
best = head(ordered, count=3)
write_lines("best.txt", best)
answer(best)
""",
    ),
    Example(
        "Which txt file in the folder drafts is the largest?",
        """\
files = list_files("drafts", pattern="*.txt")
largest = max(files, key=lambda f: f.size)
answer(largest.name)
""",
    ),
    Example(
        "How many lines do all the md files in docs have together?",
        """\
files = list_files("docs", pattern="*.md")
total = 0
for f in files:
    lines = read_lines(f.path)
    total += len(lines)
answer(total)
""",
    ),
    Example(
        "Which of the files in the folder archive mention Oslo?",
        """\
matches = search_files("Oslo", folder="archive")
answer([match.path for match in matches])
""",
    ),
    Example(
        "Make a folder old and move every bak file from work into it",
        """\
make_folder("old")
files = list_files("work", pattern="*.bak")
for f in files:
    move_file(f.path, f"old/{f.name}")
answer(f"Moved {len(files)} files")
""",
    ),
    Example(
        "Copy agenda.txt to agenda-copy.txt and add the line checked at its end",
        """\
copy_file("agenda.txt", "agenda-copy.txt")
append_text("agenda-copy.txt", "checked\\n")
answer("Copied agenda.txt and added a line")
""",
    ),
    Example(
        "If report.txt is there, delete it",
        """\
there = file_exists("report.txt")
if there:
    delete_file("report.txt")
    answer("Deleted report.txt")
else:
    answer("There is no report.txt")
""",
    ),
    Example(
        "What is the sum of the hours in timesheet.csv?",
        """\
rows = read_csv("timesheet.csv")
total = sum([row["hours"] for row in rows])
answer(total)
""",
    ),
    Example(
        "Total hours for each project in timesheet.csv, most first, saved as hours.csv",
        """\
rows = read_csv("timesheet.csv")
grouped = group_rows(rows, "project", "hours", how="sum")
ordered = sort_rows(grouped, "hours", descending=True)
write_csv("hours.csv", ordered)
answer(ordered)
""",
    ),
    Example(
        "Average rating of the films in films.csv that are longer than 120 minutes",
        """\
rows = read_csv("films.csv")
long = filter_rows(rows, "minutes", ">", 120)
ratings = [row["rating"] for row in long]
average = mean(ratings)
answer(average)
""",
    ),
    Example(
        "How many students of each class are there in students.csv?",
        """\
rows = read_csv("students.csv")
counts = group_rows(rows, "class", "name", how="count")
answer(counts)
""",
    ),
    Example(
        "Who has the most points in league.csv?",
        """\
rows = read_csv("league.csv")
best = max(rows, key=lambda row: row["points"])
answer(best["name"])
""",
    ),
    Example(
        "Combine books.csv and authors.csv by author and keep title and country in both.csv",
        """\
books = read_csv("books.csv")
authors = read_csv("authors.csv")
joined = join_rows(books, authors, "author")
chosen = select_columns(joined, ["title", "country"])
write_csv("both.csv", chosen)
answer(chosen)
""",
    ),
    Example(
        "Which servers in servers.json are down?",
        """\
servers = read_json("servers.json")
answer([x["name"] for x in servers if x["state"] == "down"])
""",
    ),
    Example(
        "Turn rivers.csv into rivers.json with only those over 1000 km",
        """\
rows = read_csv("rivers.csv")
long = filter_rows(rows, "length", ">", 1000)
write_json("rivers.json", long)
answer(f"Wrote {len(long)} rivers")
""",
    ),
    Example(
        "What are the subjects of the mails from Jo since 2025-05-01?",
        """\
mails = search_mail(sender="Jo", since=date("2025-05-01"))
answer([m.subject for m in mails])
""",
    ),
    Example(
        "How many unread mails do I have?",
        """\
mails = search_mail(unread=True)
answer(len(mails))
""",
    ),
    Example(
        "What is the tracking number in the mail from the courier?",
        """\
mails = search_mail(sender="courier")
number = extract(mails[0].body, "the tracking number", str)
answer(number)
""",
    ),
    Example(
        "Add up the prices in the mails about tickets and mail the sum to trip@example.org",
        """\
mails = search_mail(text="ticket")
total = 0.0
for m in mails:
    price = extract(m.body, "the price of the ticket", float)
    total += price
send_mail(["trip@example.org"], "Tickets", f"The tickets cost {total:.2f} together.")
answer(total)
""",
    ),
    Example(
        "Reply to the newest mail from Ana that I will come",
        """\
mails = search_mail(sender="Ana", limit=1)
mail = mails[0]
send_mail([mail.sender], f"Re: {mail.subject}", "I will come.")
answer(f"Replied to {mail.sender}")
""",
    ),
    Example(
        "Forward the text of the mail about parking to office@example.org",
        """\
mails = search_mail(text="parking")
send_mail(["office@example.org"], mails[0].subject, mails[0].body)
answer("Forwarded the mail")
""",
    ),
    Example(
        "Write the senders of all mails with complaints to unhappy.txt, each once",
        """\
mails = search_mail(text="complaint")
senders = unique_lines([m.sender for m in mails])
write_lines("unhappy.txt", senders)
answer(senders)
""",
    ),
    Example(
        "Which of the unread mails are angry? List their subjects",
        """\
mails = search_mail(unread=True)
angry = []
for m in mails:
    feeling = extract(m.body, "is the writer angry", bool)
    if feeling:
        angry.append(m.subject)
answer(angry)
""",
    ),
    Example(
        "What do I have on 2025-06-03?",
        """\
events = list_events(date("2025-06-03"))
answer([f"{e.start:%H:%M} {e.title}" for e in events])
""",
    ),
    Example(
        "Mail my events from 2025-06-02 to 2025-06-06 to team@example.org",
        """\
events = list_events(date("2025-06-02"), end=date("2025-06-06"))
lines = [f"{e.start:%Y-%m-%d %H:%M} {e.title}" for e in events]
text = "\\n".join(lines)
send_mail(["team@example.org"], "My events", text)
answer(text)
""",
    ),
    Example(
        "Move the piano lesson to 2025-06-05 at 16:30",
        """\
events = search_events("piano lesson")
event = change_event(events[0].id, start=datetime(2025, 6, 5, 16, 30))
answer(event)
""",
    ),
    Example(
        "Push the budget review back by two hours",
        """\
events = search_events("budget review")
event = events[0]
changed = change_event(event.id, start=event.start + timedelta(hours=2))
answer(changed)
""",
    ),
    Example(
        "Am I free on 2025-06-04 for 90 minutes? If so book Gym, if not tell me",
        """\
slots = find_free_time(date("2025-06-04"), minutes=90)
if slots:
    event = add_event("Gym", slots[0].start, minutes=90)
    answer(event)
else:
    answer("There is no free slot of 90 minutes")
""",
    ),
    Example(
        "Add a meeting Kickoff on 2025-06-09 from 10:00 for 45 minutes with kim@example.org in room 4",
        """\
event = add_event("Kickoff", datetime(2025, 6, 9, 10, 0), minutes=45, location="room 4", attendees=["kim@example.org"])
answer(event)
""",
    ),
    Example(
        "Cancel the dinner",
        """\
events = search_events("dinner")
delete_event(events[0].id)
answer(f"Deleted {events[0].title}")
""",
    ),
    Example(
        "What does the ticket cost according to http://example.org/tickets?",
        """\
page = fetch_page("http://example.org/tickets")
price = extract(page.text, "the price of a ticket", float)
answer(price)
""",
    ),
    Example(
        "Save the opening hours from http://example.org/museum to hours.txt",
        """\
page = fetch_page("http://example.org/museum")
hours = extract(page.text, "the opening hours", str)
write_text("hours.txt", hours)
answer(hours)
""",
    ),
    Example(
        "Get http://example.org/api/stations and tell me how many stations have more than 5 bikes",
        """\
stations = fetch_json("http://example.org/api/stations")
many = [x for x in stations if x["bikes"] > 5]
answer(len(many))
""",
    ),
    Example(
        "List the links on http://example.org/news that contain sport",
        """\
page = fetch_page("http://example.org/news")
answer([link.url for link in page.links if "sport" in link.url])
""",
    ),
    Example(
        "Read story.txt and tell me who the main person is and in which city they live",
        """\
text = read_text("story.txt")
info = extract(text, "the main person and the city where they live", {"person": str, "city": str})
answer(f"{info.person} lives in {info.city}")
""",
    ),
    Example(
        "For each text file in reviews find out if it is positive and write file and verdict to verdicts.csv",
        """\
files = list_files("reviews", pattern="*.txt")
rows = []
for f in files:
    text = read_text(f.path)
    positive = extract(text, "is the review positive", bool)
    rows.append({"file": f.name, "positive": positive})
write_csv("verdicts.csv", rows)
answer(rows)
""",
    ),
    Example(
        "What day is it today?",
        """\
day = today()
answer(day)
""",
    ),
    Example(
        "Which files are in the folder photos?",
        """\
files = list_files("photos")
answer([f.name for f in files])
""",
    ),
    Example(
        "Copy minutes.txt into the folder shared",
        """\
copy_file("minutes.txt", "shared/minutes.txt")
answer("Copied minutes.txt into shared")
""",
    ),
    Example(
        "What do notes about the garden say? Put all of them from the folder garden into garden.txt",
        """\
files = list_files("garden")
texts = []
for f in files:
    text = read_text(f.path)
    texts.append(text)
write_text("garden.txt", "\\n".join(texts))
answer(f"Put {len(files)} files into garden.txt")
""",
    ),
    Example(
        "Write to every member in club.csv who has not paid that the fee is due, subject Club fee",
        """\
rows = read_csv("club.csv")
late = filter_rows(rows, "paid", "==", False)
for row in late:
    send_mail([row["email"]], "Club fee", "The fee is due.")
answer(f"Mailed {len(late)} members")
""",
    ),
    Example(
        "For each order in sales.csv that is late tell the buyer (address in buyers.csv) which order it is",
        """\
sales = read_csv("sales.csv")
buyers = read_csv("buyers.csv")
late = filter_rows(sales, "state", "==", "late")
joined = join_rows(late, buyers, "buyer_id")
for row in joined:
    send_mail([row["email"]], "Your order", f"Order {row['order_id']} is late.")
answer(f"Mailed {len(joined)} buyers")
""",
    ),
    Example(
        "Mail every quote over 500 that came in by mail to boss@example.org with company and price",
        """\
mails = search_mail(text="quote")
count = 0
for m in mails:
    info = extract(m.body, "the company and the price of the quote", {"company": str, "price": float})
    if info.price > 500:
        send_mail(["boss@example.org"], f"Quote from {info.company}", f"{info.company}: {info.price:.2f}")
        count += 1
answer(f"Mailed {count} quotes")
""",
    ),
    Example(
        "Which shop in my mail delivers first?",
        """\
mails = search_mail(text="delivery")
rows = []
for m in mails:
    info = extract(m.body, "the shop and the delivery date", {"shop": str, "day": date})
    rows.append({"shop": info.shop, "day": info.day})
first = min(rows, key=lambda row: row["day"])
answer(first["shop"])
""",
    ),
    Example(
        "Put the concert from the mail of the theatre into my calendar",
        """\
mails = search_mail(text="concert")
info = extract(mails[0].body, "the title and the start of the concert", {"title": str, "start": datetime})
event = add_event(info.title, info.start)
answer(event)
""",
    ),
    Example(
        "Read the last day of the sale from http://example.org/sale and put it into my calendar as Sale ends at 08:00",
        """\
page = fetch_page("http://example.org/sale")
day = extract(page.text, "the last day of the sale", date)
event = add_event("Sale ends", combine(day, time(8, 0)))
answer(event)
""",
    ),
    Example(
        "Save the headings of all pages linked from http://example.org/list in headings.txt",
        """\
page = fetch_page("http://example.org/list")
titles = []
for link in page.links:
    other = fetch_page(link.url)
    titles.append(other.title)
write_lines("headings.txt", titles)
answer(titles)
""",
    ),
    Example(
        "What does the chair on http://example.org/shop cost in CHF with the rate from http://example.org/rates.json?",
        """\
page = fetch_page("http://example.org/shop")
price = extract(page.text, "the price of the chair", float)
rates = fetch_page("http://example.org/rates.json")
rate = extract(rates.text, "the CHF rate", float)
answer(round(price * rate, 2))
""",
    ),
    Example(
        "What is the port in settings.json?",
        """\
text = read_text("settings.json")
port = extract(text, "the port", str)
answer(port)
""",
    ),
    Example(
        "What is the whole cargo in cargo.csv worth (pieces times value)? Write it to value.txt without cents",
        """\
rows = read_csv("cargo.csv")
total = sum([row["pieces"] * row["value"] for row in rows])
write_text("value.txt", str(round(total)))
answer(total)
""",
    ),
    Example(
        "Save the cars in cars.csv whose fuel is below needed to low.csv, only name and fuel, least fuel first",
        """\
rows = read_csv("cars.csv")
low = [row for row in rows if row["fuel"] < row["needed"]]
ordered = sort_rows(low, "fuel")
chosen = select_columns(ordered, ["name", "fuel"])
write_csv("low.csv", chosen)
answer(chosen)
""",
    ),
    Example(
        "Am I free on 2025-06-04 from 11:00 to 12:00? Mail yes or no to pat@example.org",
        """\
slots = find_free_time(date("2025-06-04"), minutes=60, earliest=time(11, 0), latest=time(12, 0))
if slots:
    send_mail(["pat@example.org"], "2025-06-04", "yes")
    answer("yes")
else:
    send_mail(["pat@example.org"], "2025-06-04", "no")
    answer("no")
""",
    ),
    Example(
        "The seminar is in hall 3 now, change that in the calendar",
        """\
events = search_events("seminar")
event = change_event(events[0].id, location="hall 3")
answer(event)
""",
    ),
    Example(
        "Save the attachment of the mail with the floor plan",
        """\
mails = search_mail(text="floor plan")
mail = mails[0]
path = save_attachment(mail.id, mail.attachments[0])
answer(path)
""",
    ),
    Example(
        "If there is an unread mail from alarm@example.org forward it to guard@example.org",
        """\
mails = search_mail(sender="alarm@example.org", unread=True)
if mails:
    send_mail(["guard@example.org"], mails[0].subject, mails[0].body)
    answer("Forwarded the mail")
else:
    answer("There is no such mail")
""",
    ),
    Example(
        "Add water the plants to my list.txt",
        """\
append_text("list.txt", "water the plants")
answer("Added a line to list.txt")
""",
    ),
    Example(
        "Read the letters in the folder letters and tell me which of them are complaints",
        """\
files = list_files("letters")
found = []
for f in files:
    text = read_text(f.path)
    complaint = extract(text, "is this a complaint", bool)
    if complaint:
        found.append(f.name)
answer(found)
""",
    ),
    Example(
        "Send a mail to crew@example.org with the subject Boat saying that the boat leaves at 9:00",
        """\
send_mail(["crew@example.org"], "Boat", "The boat leaves at 9:00.")
answer("Sent the mail")
""",
    ),
)
