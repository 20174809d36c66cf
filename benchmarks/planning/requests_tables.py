"""Requests about tables in CSV and JSON files."""

from __future__ import annotations

from datetime import date

from .judge import answer_mentions, answer_names, answer_number, expect, file_rows, file_says, mailed
from .judge_tables import answer_pairs, file_pairs, same_table
from .request import Request, needs

EMPLOYEES = (
    "Nora Field",
    "Peter Moss",
    "Rita Lund",
    "Samir Aziz",
    "Tara Quinn",
    "Ugo Ferri",
    "Vera Holm",
    "Wim Bakker",
    "Xenia Ruiz",
)
PRODUCTS = ("Oak Desk", "Office Chair", "Desk Lamp", "Bookshelf", "Filing Cabinet", "Whiteboard", "Coat Rack")
CATEGORIES = {"travel": 825.0, "office": 542.4, "training": 450.0, "software": 218.0, "meals": 211.8}
SPENT_AT = {
    "Alpine Sports": 676.0,
    "Baker Street Cafe": 765.0,
    "City Museum": 458.4,
    "Delta Garage": 159.0,
    "Elm School": 267.0,
    "Fern Hotel": 1608.0,
    "Grand Theatre": 279.2,
    "Hill Clinic": 34.9,
}

ONE_AND_TWO_STEPS = (
    Request(
        "config-timeout",
        "What is the timeout in config.json?",
        1,
        needs("tables"),
        expect(answer_mentions(45, lacks=[3], at_most=60)),
    ),
    Request(
        "total-expenses",
        "What is the total of all expenses in expenses.csv?",
        2,
        needs("tables"),
        expect(answer_number(2247.2)),
    ),
    Request(
        "engineers",
        "Which employees in employees.csv work in the Engineering department?",
        2,
        needs("tables"),
        expect(answer_names("Nora Field", "Rita Lund", "Vera Holm", among=EMPLOYEES)),
    ),
    Request(
        "top-earner",
        "who earns most, see employees.csv",
        2,
        needs("tables"),
        expect(answer_names("Rita Lund", among=EMPLOYEES)),
        sloppy=True,
    ),
    Request(
        "reorder-list",
        "what stuff in stock.csv do we need to reorder? (qty below the reorder_at number)",
        2,
        needs("tables"),
        expect(answer_names("Office Chair", "Filing Cabinet", "Whiteboard", among=PRODUCTS)),
        sloppy=True,
    ),
    Request(
        "team-to-csv",
        "Turn team.json into a CSV file team.csv.",
        2,
        needs("tables", "write"),
        expect(
            file_rows(
                "team.csv",
                {"name": "Dana Cole", "role": "lead", "email": "dana.cole@example.com"},
                {"name": "Lee Park", "role": "developer", "email": "lee.park@example.com"},
                {"name": "Aiko Tanaka", "role": "designer", "email": "aiko.tanaka@example.org"},
                {"name": "Bruno Keller", "role": "developer", "email": "bruno.keller@example.org"},
                ordered=True,
            ),
            writes=["team.csv"],
        ),
    ),
)

THREE_STEPS = (
    Request(
        "travel-spending",
        "hw much did i spend on travel?? see expenses.csv",
        3,
        needs("tables"),
        expect(answer_number(825)),
        sloppy=True,
    ),
    Request(
        "by-category",
        "Add up the expenses in expenses.csv for each category and save the result as by_category.csv.",
        3,
        needs("tables", "group", "write"),
        expect(file_pairs("by_category.csv", CATEGORIES), writes=["by_category.csv"]),
    ),
    Request(
        "sort-salaries",
        "sort employees.csv by salary, highest 1st, n save it as employees_sorted.csv",
        3,
        needs("tables", "write"),
        expect(
            same_table("employees_sorted.csv", "employees.csv"),
            file_rows(
                "employees_sorted.csv",
                *({"name": EMPLOYEES[place]} for place in (2, 0, 6, 4, 8, 5, 1, 7, 3)),
                ordered=True,
                more=True,
            ),
            writes=["employees_sorted.csv"],
        ),
        sloppy=True,
    ),
    Request(
        "order-states",
        "Count how many orders in orders.csv have each status and save the counts in status.json.",
        3,
        needs("tables", "group", "write"),
        expect(file_pairs("status.json", {"shipped": 7, "pending": 3, "cancelled": 2}), writes=["status.json"]),
    ),
    Request(
        "gold-offer",
        "Send every gold customer in customers.csv a mail with the subject Spring offer that says they get 15 "
        "percent off until 31 March.",
        3,
        needs("tables", "loop", "send"),
        expect(
            *(
                mailed(address, 15, date(2026, 3, 31), subject="Spring offer")
                for address in (
                    "office@alpine.example.org",
                    "shop@citymuseum.example.org",
                    "desk@fernhotel.example.org",
                )
            ),
            mails=3,
        ),
    ),
)

FOUR_AND_FIVE_STEPS = (
    Request(
        "budget-check",
        "Add up the expenses in expenses.csv. If they come to more than 2000, write over budget to budget.txt, "
        "otherwise write within budget.",
        4,
        needs("tables", "condition", "write"),
        expect(file_says("budget.txt", "over budget", lacks=["within"], at_most=100), writes=["budget.txt"]),
    ),
    Request(
        "top-five",
        "Write the five largest expenses from expenses.csv to top5.csv, largest first.",
        4,
        needs("tables", "write"),
        expect(
            file_rows(
                "top5.csv",
                {"amount": 450, "vendor": "Lakeside School"},
                {"amount": 402.6, "vendor": "Blue Yonder"},
                {"amount": 310.45, "vendor": "Northwind"},
                {"amount": 218, "vendor": "Wingtip Rail"},
                {"amount": 145, "vendor": "Fabrikam"},
                ordered=True,
                more=True,
            ),
            writes=["top5.csv"],
        ),
    ),
    Request(
        "customer-totals",
        "How much has each customer ordered in total? Orders are in orders.csv, the names of the customers in "
        "customers.csv.",
        4,
        needs("tables", "join", "group"),
        expect(answer_pairs(SPENT_AT)),
    ),
    Request(
        "top-category",
        "which category in expenses.csv costs us the most? mail it + the amount to finance@example.com",
        4,
        needs("tables", "group", "send"),
        expect(
            mailed("finance@example.com", "travel", 825, lacks=["meals", "training", "software"], at_most=400), mails=1
        ),
        sloppy=True,
    ),
    Request(
        "reorder-file",
        "Save the products in stock.csv whose quantity is below reorder_at to reorder.csv, with only the "
        "columns product and quantity, smallest quantity first.",
        5,
        needs("tables", "write"),
        expect(
            file_rows(
                "reorder.csv",
                {"product": "Filing Cabinet", "quantity": 2},
                {"product": "Office Chair", "quantity": 3},
                {"product": "Whiteboard", "quantity": 9},
                ordered=True,
            ),
            writes=["reorder.csv"],
        ),
    ),
    Request(
        "city-totals",
        "Join orders.csv with customers.csv, keep only the shipped orders, add up the totals for each city and "
        "save them as city_totals.csv.",
        5,
        needs("tables", "join", "group", "write"),
        expect(
            file_pairs("city_totals.csv", {"Madrid": 1449.0, "Lisbon": 974.4, "Porto": 498.0, "Seville": 34.9}),
            writes=["city_totals.csv"],
        ),
    ),
    Request(
        "pending-orders",
        "for all pending orders in orders.csv pls mail the customer (addresses r in customers.csv) that order "
        "number so and so is delayed",
        5,
        needs("tables", "join", "loop", "send"),
        expect(
            mailed("office@alpine.example.org", 1008, lacks=[1010, 1012]),
            mailed("tickets@grandtheatre.example.org", 1010, lacks=[1008, 1012]),
            mailed("desk@fernhotel.example.org", 1012, lacks=[1008, 1010]),
            mails=3,
        ),
        sloppy=True,
    ),
)

REQUESTS = ONE_AND_TWO_STEPS + THREE_STEPS + FOUR_AND_FIVE_STEPS
