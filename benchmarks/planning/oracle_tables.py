"""Plans by hand for the requests about tables."""

PLANS: dict[str, str] = {
    "config-timeout": """
config = read_json("config.json")
answer(config["timeout"])
""",
    "total-expenses": """
rows = read_csv("expenses.csv")
answer(sum([row["amount"] for row in rows]))
""",
    "engineers": """
rows = read_csv("employees.csv")
engineers = filter_rows(rows, "department", "==", "Engineering")
answer([row["name"] for row in engineers])
""",
    "top-earner": """
rows = read_csv("employees.csv")
ordered = sort_rows(rows, "salary", descending=True)
answer(ordered[0]["name"])
""",
    "reorder-list": """
rows = read_csv("stock.csv")
answer([row["product"] for row in rows if row["quantity"] < row["reorder_at"]])
""",
    "team-to-csv": """
rows = read_json("team.json")
write_csv("team.csv", rows)
answer("saved")
""",
    "travel-spending": """
rows = read_csv("expenses.csv")
travel = filter_rows(rows, "category", "==", "travel")
answer(sum([row["amount"] for row in travel]))
""",
    "by-category": """
rows = read_csv("expenses.csv")
totals = group_rows(rows, "category", "amount", "sum")
write_csv("by_category.csv", totals)
answer(totals)
""",
    "sort-salaries": """
rows = read_csv("employees.csv")
ordered = sort_rows(rows, "salary", descending=True)
write_csv("employees_sorted.csv", ordered)
answer("saved")
""",
    "order-states": """
rows = read_csv("orders.csv")
counts = group_rows(rows, "status", "order_id", "count")
write_json("status.json", counts)
answer(counts)
""",
    "gold-offer": """
rows = read_csv("customers.csv")
gold = filter_rows(rows, "tier", "==", "gold")
for row in gold:
    send_mail([row["email"]], "Spring offer", "You get 15 percent off until 31 March.")
answer(f"{len(gold)} mails sent")
""",
    "budget-check": """
rows = read_csv("expenses.csv")
total = sum([row["amount"] for row in rows])
if total > 2000:
    write_text("budget.txt", "over budget")
else:
    write_text("budget.txt", "within budget")
answer(total)
""",
    "top-five": """
rows = read_csv("expenses.csv")
ordered = sort_rows(rows, "amount", descending=True)
write_csv("top5.csv", ordered[:5])
answer("saved")
""",
    "customer-totals": """
orders = read_csv("orders.csv")
customers = read_csv("customers.csv")
joined = join_rows(orders, customers, "customer_id")
totals = group_rows(joined, "name", "total", "sum")
answer(totals)
""",
    "top-category": """
rows = read_csv("expenses.csv")
totals = group_rows(rows, "category", "amount", "sum")
top = sort_rows(totals, "amount", descending=True)[0]
send_mail(["finance@example.com"], "Highest category", f"{top['category']}: {top['amount']:.2f}")
answer(top)
""",
    "reorder-file": """
rows = read_csv("stock.csv")
low = [row for row in rows if row["quantity"] < row["reorder_at"]]
ordered = sort_rows(low, "quantity")
write_csv("reorder.csv", select_columns(ordered, ["product", "quantity"]))
answer("saved")
""",
    "city-totals": """
orders = read_csv("orders.csv")
customers = read_csv("customers.csv")
joined = join_rows(orders, customers, "customer_id")
shipped = filter_rows(joined, "status", "==", "shipped")
totals = group_rows(shipped, "city", "total", "sum")
write_csv("city_totals.csv", totals)
answer(totals)
""",
    "pending-orders": """
orders = read_csv("orders.csv")
customers = read_csv("customers.csv")
pending = filter_rows(orders, "status", "==", "pending")
joined = join_rows(pending, customers, "customer_id")
for row in joined:
    send_mail([row["email"]], "Your order is delayed", f"Your order {row['order_id']} is delayed.")
answer(f"{len(joined)} mails sent")
""",
}
