"""Requests about tables that are named, with what is right and a reference plan for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from .data import Data
from .judge import Expected, Mail, has_content, has_number, has_rows, names, number, says
from .request import Request, de, en, es, fr, task

Row = Mapping[str, Any]


def _sums(rows: Iterable[Row], by: str, column: str) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for row in rows:
        sums[row[by]] += row[column]
    return {key: round(value, 2) for key, value in sums.items()}


def _total(rows: Iterable[Row], column: str) -> float:
    return round(sum(row[column] for row in rows), 2)


def _where(data: Data, table: str, column: str, value: object) -> list[Row]:
    return [row for row in data.rows(table) if row[column] == value]


def _low(data: Data) -> list[Row]:
    return [row for row in data.rows("stock") if row["quantity"] < row["reorder_at"]]


def _pairs(sums: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in sums.items()]


def _order_rows(data: Data, status: str | None = None) -> list[Row]:
    """Orders with what is known of their customer, of one status or all."""
    customers = {row["customer_id"]: row for row in data.rows("customers")}
    rows = [{**customers[row["customer_id"]], **row} for row in data.rows("orders")]
    return [row for row in rows if status in (None, row["status"])]


def _supplier_orders(data: Data) -> Expected:
    products = [row["product"] for row in data.rows("stock")]
    address = {row["supplier"]: row["email"] for row in data.rows("suppliers")}
    return Expected(
        mails=tuple(
            Mail(
                address[row["supplier"]],
                says=(row["product"],),
                lacks=tuple(p for p in products if p != row["product"]),
            )
            for row in _low(data)
        )
    )


def _city_list(data: Data) -> Expected:
    sums = _sums(_order_rows(data, "shipped"), "city", "total")
    return Expected(files={"city_totals.csv": has_rows(*_pairs(sums))})


def _top_buyer(data: Data) -> Expected:
    sums = _sums(_order_rows(data), "email", "total")
    best = max(sums, key=lambda address: sums[address])
    return Expected(mails=(Mail(best, says=(sums[best],)),))


def _salary_gap(data: Data) -> Expected:
    means = {
        name: sum(row["salary"] for row in rows) / len(rows)
        for name in ("Engineering", "Sales")
        for rows in [_where(data, "employees", "department", name)]
    }
    return Expected(answer=number(round(means["Engineering"] - means["Sales"], 2)))


def _travel_check(data: Data) -> Expected:
    total = _total(data.rows("expenses"), "amount")
    if total > 1500:
        sums = _sums(data.rows("expenses"), "category", "amount")
        return Expected(files={"by_category.csv": has_rows(*_pairs(sums))})
    return Expected(mails=(Mail("finance@example.com", says=(total,)),))


REQUESTS: list[Request] = [
    *task(
        "config-timeout",
        1,
        'config = read_json("config.json")\nanswer(config["timeout"])',
        lambda d: Expected(answer=number(int(d.texts["config.json"].split('"timeout": ')[1].split(",")[0]))),
        en("What's the timeout in config.json?"),
        fr("Quelle est la valeur de timeout dans config.json ?"),
    ),
    *task(
        "total-expenses",
        2,
        'rows = read_csv("expenses.csv")\nanswer(sum([row["amount"] for row in rows]))',
        lambda d: Expected(answer=number(_total(d.rows("expenses"), "amount"))),
        en("Add up the amount column of expenses.csv."),
    ),
    *task(
        "engineers",
        2,
        """
rows = read_csv("employees.csv")
found = filter_rows(rows, "department", "==", "Engineering")
answer([row["name"] for row in found])
""",
        lambda d: Expected(
            answer=names(
                [row["name"] for row in _where(d, "employees", "department", "Engineering")],
                [row["name"] for row in d.rows("employees")],
            )
        ),
        en("Who works in Engineering according to employees.csv?"),
        de("Wer arbeitet laut employees.csv in der Abteilung Engineering?"),
    ),
    *task(
        "top-earner",
        2,
        """
rows = read_csv("employees.csv")
ordered = sort_rows(rows, "salary", descending=True)
answer(ordered[0]["name"])
""",
        lambda d: Expected(
            answer=names(
                [max(d.rows("employees"), key=lambda row: row["salary"])["name"]],
                [row["name"] for row in d.rows("employees")],
            )
        ),
        en("whose salary is the highest in employees.csv?"),
        es("¿Quién gana más según employees.csv?"),
        unseen=True,
    ),
    *task(
        "reorder-list",
        3,
        'rows = read_csv("stock.csv")\nanswer([row["product"] for row in rows if row["quantity"] < row["reorder_at"]])',
        lambda d: Expected(
            answer=names([row["product"] for row in _low(d)], [row["product"] for row in d.rows("stock")])
        ),
        en("Which products in stock.csv have a quantity below reorder_at?"),
        unseen=True,
    ),
    *task(
        "team-to-csv",
        2,
        'rows = read_json("team.json")\nwrite_csv("team.csv", rows)\nanswer("saved")',
        lambda d: Expected(files={"team.csv": has_rows(*d.rows("team"))}),
        en("Turn team.json into a table team.csv."),
        fr("Transforme team.json en tableau team.csv."),
        unseen=True,
    ),
    *task(
        "travel-spending",
        3,
        """
rows = read_csv("expenses.csv")
travel = filter_rows(rows, "category", "==", "travel")
answer(sum([row["amount"] for row in travel]))
""",
        lambda d: Expected(answer=number(_total(_where(d, "expenses", "category", "travel"), "amount"))),
        en("How much does expenses.csv show for travel?"),
    ),
    *task(
        "by-category",
        3,
        """
rows = read_csv("expenses.csv")
totals = group_rows(rows, "category", "amount", "sum")
write_csv("by_category.csv", totals)
answer(totals)
""",
        lambda d: Expected(
            files={"by_category.csv": has_rows(*_pairs(_sums(d.rows("expenses"), "category", "amount")))}
        ),
        en("Total the amounts of expenses.csv by category and save the result as by_category.csv."),
        de("Summiere die Beträge in expenses.csv nach category und speichere das als by_category.csv."),
    ),
    *task(
        "sort-salaries",
        3,
        """
rows = read_csv("employees.csv")
ordered = sort_rows(rows, "salary", descending=True)
write_csv("employees_sorted.csv", ordered)
answer("saved")
""",
        lambda d: Expected(
            files={
                "employees_sorted.csv": has_rows(
                    *sorted(d.rows("employees"), key=lambda row: -row["salary"]), ordered=True
                )
            }
        ),
        en("Save employees.csv sorted by salary, highest first, as employees_sorted.csv."),
    ),
    *task(
        "order-states",
        3,
        """
rows = read_csv("orders.csv")
counts = group_rows(rows, "status", "order_id", "count")
write_json("status.json", counts)
answer(counts)
""",
        lambda d: (
            lambda states: Expected(
                files={
                    "status.json": has_rows(
                        *[{"status": each, "count": states.count(each)} for each in sorted(set(states))]
                    )
                }
            )
        )([row["status"] for row in d.rows("orders")]),
        en("Count the orders in orders.csv for each status and write the counts to status.json."),
        unseen=True,
    ),
    *task(
        "gold-offer",
        4,
        """
rows = read_csv("customers.csv")
for row in rows:
    if row["tier"] == "gold":
        send_mail([row["email"]], "Spring offer", "You get 15 percent off until 31 March.")
answer("sent")
""",
        lambda d: Expected(
            mails=tuple(
                Mail(row["email"], subject="Spring offer", quotes=("You get 15 percent off until 31 March.",))
                for row in _where(d, "customers", "tier", "gold")
            )
        ),
        en(
            'Mail every gold customer in customers.csv, subject "Spring offer", text "You get 15 percent off until 31 '
            'March."'
        ),
        es(
            'Escribe a todos los clientes gold de customers.csv con el asunto "Spring offer" y el texto '
            '"You get 15 percent '
            'off until 31 March."'
        ),
    ),
    *task(
        "budget-check",
        4,
        """
rows = read_csv("expenses.csv")
total = sum([row["amount"] for row in rows])
if total > 1500:
    write_text("budget.txt", "over budget")
answer(total)
""",
        lambda d: Expected(
            answer=number(_total(d.rows("expenses"), "amount")),
            files={"budget.txt": has_content("over budget")} if _total(d.rows("expenses"), "amount") > 1500 else {},
        ),
        en('What is the total of expenses.csv? Only if it is above 1500, write "over budget" into budget.txt.'),
        de(
            'Wie hoch ist die Summe in expenses.csv? Nur wenn sie über 1500 liegt, schreib "over budget" in budget.txt.'
        ),
        condition=True,
    ),
    *task(
        "top-five",
        3,
        """
rows = read_csv("expenses.csv")
ordered = sort_rows(rows, "amount", descending=True)
write_csv("top5.csv", ordered[:5])
answer("saved")
""",
        lambda d: Expected(
            files={"top5.csv": has_rows(*sorted(d.rows("expenses"), key=lambda row: -row["amount"])[:5], ordered=True)}
        ),
        en("Write the five largest expenses of expenses.csv, largest first, to top5.csv."),
        unseen=True,
    ),
    *task(
        "customer-totals",
        4,
        """
orders = read_csv("orders.csv")
customers = read_csv("customers.csv")
joined = join_rows(orders, customers, "customer_id")
totals = group_rows(joined, "name", "total", "sum")
answer(totals)
""",
        lambda d: Expected(
            answer=says(
                *[fact for pair in _sums(_order_rows(d), "name", "total").items() for fact in pair], at_most=900
            )
        ),
        en("With orders.csv and customers.csv: what is the sum of order totals for each customer name?"),
        fr("Avec orders.csv et customers.csv : quel est le total des commandes pour chaque nom de client ?"),
    ),
    *task(
        "top-category",
        4,
        """
rows = read_csv("expenses.csv")
totals = group_rows(rows, "category", "amount", "sum")
top = sort_rows(totals, "amount", descending=True)[0]
send_mail(["finance@example.com"], "Highest category", f"{top['category']}: {top['amount']:.2f}")
answer("sent")
""",
        lambda d: (
            lambda sums: Expected(
                mails=(
                    Mail(
                        "finance@example.com",
                        says=(max(sums, key=lambda key: sums[key]), max(sums.values())),
                        lacks=tuple(key for key in sums if sums[key] != max(sums.values())),
                    ),
                )
            )
        )(_sums(d.rows("expenses"), "category", "amount")),
        en("Mail finance@example.com the category of expenses.csv with the highest total, and that total."),
        unseen=True,
    ),
    *task(
        "reorder-file",
        4,
        """
rows = read_csv("stock.csv")
low = [row for row in rows if row["quantity"] < row["reorder_at"]]
ordered = sort_rows(low, "quantity")
write_csv("reorder.csv", select_columns(ordered, ["product", "quantity"]))
answer("saved")
""",
        lambda d: Expected(
            files={
                "reorder.csv": has_rows(
                    *[
                        {"product": row["product"], "quantity": row["quantity"]}
                        for row in sorted(_low(d), key=lambda row: row["quantity"])
                    ],
                    ordered=True,
                )
            }
        ),
        en(
            "From stock.csv take the products whose quantity is below reorder_at, lowest first, and save product and "
            "quantity as reorder.csv."
        ),
        unseen=True,
    ),
    *task(
        "city-totals",
        5,
        """
orders = read_csv("orders.csv")
customers = read_csv("customers.csv")
joined = join_rows(orders, customers, "customer_id")
shipped = filter_rows(joined, "status", "==", "shipped")
totals = group_rows(shipped, "city", "total", "sum")
write_csv("city_totals.csv", totals)
answer(totals)
""",
        _city_list,
        en("Sum the shipped orders of orders.csv by the city of the customer (customers.csv) into city_totals.csv."),
        unseen=True,
    ),
    *task(
        "pending-orders",
        5,
        """
orders = read_csv("orders.csv")
customers = read_csv("customers.csv")
pending = filter_rows(orders, "status", "==", "pending")
joined = join_rows(pending, customers, "customer_id")
for row in joined:
    send_mail([row["email"]], "Your order is delayed", f"Your order {row['order_id']} is delayed.")
answer(f"{len(joined)} mails sent")
""",
        lambda d: Expected(
            mails=tuple(Mail(row["email"], says=(row["order_id"],)) for row in _order_rows(d, "pending"))
        ),
        en(
            "Every pending order in orders.csv is delayed. Mail its customer (addresses are in "
            "customers.csv) and name the "
            "order number, one mail for each order."
        ),
    ),
    *task(
        "supplier-orders",
        5,
        """
stock = read_csv("stock.csv")
suppliers = read_csv("vendors.csv")
joined = join_rows(stock, suppliers, "supplier")
for row in joined:
    if row["quantity"] < row["reorder_at"]:
        send_mail([row["email"]], "Order", f"Please send us more of this: {row['product']}")
answer("sent")
""",
        _supplier_orders,
        en(
            "For each product in stock.csv with a quantity under reorder_at, ask its supplier for more by mail; "
            "vendors.csv has the addresses. One mail per product."
        ),
        unseen=True,
    ),
    *task(
        "top-buyer",
        5,
        """
orders = read_csv("orders.csv")
customers = read_csv("customers.csv")
joined = join_rows(orders, customers, "customer_id")
totals = group_rows(joined, "email", "total", "sum")
best = sort_rows(totals, "total", descending=True)[0]
send_mail([best["email"]], "Thank you", f"You ordered for {best['total']:.2f} EUR.")
answer("sent")
""",
        _top_buyer,
        en(
            "Find the customer who spent most over all orders (orders.csv, customers.csv) and thank them by "
            "mail with the "
            "sum."
        ),
        unseen=True,
    ),
    *task(
        "salary-gap",
        4,
        """
rows = read_csv("employees.csv")
engineering = [row["salary"] for row in rows if row["department"] == "Engineering"]
sales = [row["salary"] for row in rows if row["department"] == "Sales"]
answer(round(sum(engineering) / len(engineering) - sum(sales) / len(sales), 2))
""",
        _salary_gap,
        en(
            "By how much is the average salary in Engineering above that in Sales in employees.csv? "
            "Negative if below, two "
            "decimals."
        ),
        unseen=True,
    ),
    *task(
        "stock-value",
        3,
        """
rows = read_csv("stock.csv")
answer(round(sum([row["quantity"] * row["price"] for row in rows]), 2))
""",
        lambda d: Expected(answer=number(round(sum(row["quantity"] * row["price"] for row in d.rows("stock")), 2))),
        en("What is everything in stock.csv worth (quantity times price)?"),
        es("¿Cuánto vale todo lo que hay en stock.csv (quantity por price)?"),
        unseen=True,
    ),
    *task(
        "slow-suppliers",
        4,
        """
rows = read_csv("vendors.csv")
slow = sort_rows(rows, "lead_days", descending=True)[0]
stock = read_csv("stock.csv")
mine = filter_rows(stock, "supplier", "==", slow["supplier"])
answer([row["product"] for row in mine])
""",
        lambda d: (
            lambda slow: Expected(
                answer=names(
                    [row["product"] for row in _where(d, "stock", "supplier", slow)],
                    [r["product"] for r in d.rows("stock")],
                )
            )
        )(max(d.rows("suppliers"), key=lambda row: row["lead_days"])["supplier"]),
        en("Which products in stock.csv come from the supplier with the most lead_days in vendors.csv?"),
    ),
    *task(
        "expense-branch",
        5,
        """
rows = read_csv("expenses.csv")
total = sum([row["amount"] for row in rows])
if total > 1500:
    totals = group_rows(rows, "category", "amount", "sum")
    write_csv("by_category.csv", totals)
else:
    send_mail(["finance@example.com"], "Expenses", f"The total is {total:.2f}.")
answer(total)
""",
        _travel_check,
        en(
            "If expenses.csv comes to more than 1500, save the totals per category as by_category.csv; if "
            "not, just mail "
            "the total to finance@example.com."
        ),
        fr(
            "Si expenses.csv dépasse 1500 au total, enregistre les totaux par catégorie dans "
            "by_category.csv ; sinon, envoie "
            "seulement le total à finance@example.com."
        ),
        unseen=True,
        condition=True,
    ),
    *task(
        "returned-sum",
        3,
        """
rows = read_csv("orders.csv")
back = filter_rows(rows, "status", "==", "returned")
write_text("returned.txt", f"{sum([row['total'] for row in back]):.2f}")
answer("saved")
""",
        lambda d: Expected(
            files={"returned.txt": has_number(_total(_where(d, "orders", "status", "returned"), "total"))}
        ),
        en("Write the sum of all returned orders in orders.csv to returned.txt, the number alone."),
    ),
]
