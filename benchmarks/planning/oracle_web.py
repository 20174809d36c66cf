"""Plans by hand for the requests about web pages; `{site}` is the website, as in the requests."""

PLANS: dict[str, str] = {
    "usd-rate": """
rates = fetch_json("{site}/api/rates.json")
answer(rates["rates"]["USD"])
""",
    "founding-year": """
page = fetch_page("{site}/about.html")
about = extract(page.text, "the year in which the company was founded", {"founded": int})
answer(about.founded)
""",
    "save-hours": """
page = fetch_page("{site}/opening.html")
write_text("opening.txt", page.text)
answer("saved")
""",
    "open-sundays": """
page = fetch_page("{site}/opening.html")
hours = extract(page.text, "whether the shops are open on Sundays", {"open_on_sundays": bool})
answer(hours.open_on_sundays)
""",
    "porto-opening": """
page = fetch_page("{site}/news.html")
news = extract(page.text, "the date on which the shop in Porto opens", {"opens": date})
write_text("porto.txt", f"{news.opens}")
answer(news.opens)
""",
    "application-deadline": """
page = fetch_page("{site}/careers.html")
job = extract(page.text, "the deadline for applications", {"deadline": date})
add_event("Application deadline", datetime(job.deadline.year, job.deadline.month, job.deadline.day, 9, 0))
answer(job.deadline)
""",
    "service-down": """
status = fetch_json("{site}/api/status.json")
down = [service["name"] for service in status["services"] if service["state"] == "down"]
if len(down) > 0:
    send_mail(["ops@example.com"], "Service down", ", ".join(down))
answer(down)
""",
    "page-titles": """
index = fetch_page("{site}/index.html")
titles = []
for link in index.links:
    page = fetch_page(link.url)
    titles.append(page.title)
write_lines("titles.txt", titles)
answer(titles)
""",
    "lamp-in-pounds": """
page = fetch_page("{site}/products.html")
lamp = extract(page.text, "the price of the desk lamp in EUR", {"lamp_price": float})
rates = fetch_json("{site}/api/rates.json")
answer(round(lamp.lamp_price * rates["rates"]["GBP"], 2))
""",
    "stock-in-dollars": """
rows = read_csv("stock.csv")
worth = sum([row["quantity"] * row["price"] for row in rows])
rates = fetch_json("{site}/api/rates.json")
dollars = round(worth * rates["rates"]["USD"])
write_text("worth.txt", f"{dollars}")
answer(dollars)
""",
}
