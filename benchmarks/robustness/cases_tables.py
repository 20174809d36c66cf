"""Cases about tables."""

from __future__ import annotations

from ..planning.judge import Expected, has_rows, has_text, names, number
from .case import case
from .data import DATA

_OWNERS = tuple(str(row["owner"]) for row in DATA.rows("repairs"))
_ITEMS = tuple(str(row["item"]) for row in DATA.rows("parts"))
_TOURS = tuple(str(row["tour"]) for row in DATA.rows("tours"))

TABLE_CASES = (
    case(
        "repairs-total",
        ("What is the sum of the column cost", "in repairs.csv"),
        lambda data: Expected(answer=number(sum(row["cost"] for row in data.rows("repairs")))),
        """
rows = read_csv("repairs.csv")
answer(sum([row["cost"] for row in rows]))
""",
        "Add up the column cost of repairs.csv.",
        "Total the cost column in repairs.csv.",
        "I need the total of all values in the column cost of repairs.csv.",
        "Take repairs.csv and tell me what the column cost comes to altogether.",
        end="?",
        keep=("cost",),
    ),
    case(
        "repairs-open",
        ('How many rows have the state "open"', "in repairs.csv"),
        lambda data: Expected(answer=number(sum(row["state"] == "open" for row in data.rows("repairs")))),
        """
rows = read_csv("repairs.csv")
answer(len(filter_rows(rows, "state", "==", "open")))
""",
        'Count the rows of repairs.csv whose state is "open".',
        'In repairs.csv, the state of how many rows is "open"?',
        'Tell me the number of repairs.csv rows where the column state says "open".',
        'Look at repairs.csv: how many have "open" as their state?',
        end="?",
        keep=("state",),
    ),
    case(
        "repairs-dear",
        ("List the owner of each repair with a cost above 100", "from repairs.csv"),
        lambda data: Expected(
            answer=names([row["owner"] for row in data.rows("repairs") if row["cost"] > 100], _OWNERS)
        ),
        """
rows = read_csv("repairs.csv")
answer([row["owner"] for row in rows if row["cost"] > 100])
""",
        "Which owners in repairs.csv have a cost of more than 100?",
        "repairs.csv: give me the owner of every row whose cost is over 100.",
        "Who is the owner in repairs.csv where the cost is greater than 100? Show all of them.",
        "Show me each owner from repairs.csv with a cost higher than 100.",
        among=_OWNERS,
        keep=("owner", "cost", "owners"),
    ),
    case(
        "repairs-done-file",
        ('Save the rows with the state "done" to finished.csv', "taking them from repairs.csv"),
        lambda data: Expected(
            files={"finished.csv": has_rows(*(row for row in data.rows("repairs") if row["state"] == "done"))}
        ),
        """
rows = read_csv("repairs.csv")
write_csv("finished.csv", filter_rows(rows, "state", "==", "done"))
answer("Wrote finished.csv")
""",
        'Filter repairs.csv for the state "done" and write the result to finished.csv.',
        'Copy only those rows of repairs.csv into finished.csv whose state is "done".',
        'finished.csv should have all rows of repairs.csv where state is "done".',
        'Take repairs.csv, keep what has the state "done", and store it as finished.csv.',
        keep=("state",),
    ),
    case(
        "parts-scarce",
        ("Which items have a stock below 5", "in spare_parts.csv"),
        lambda data: Expected(answer=names([row["item"] for row in data.rows("parts") if row["stock"] < 5], _ITEMS)),
        """
rows = read_csv("spare_parts.csv")
answer([row["item"] for row in rows if row["stock"] < 5])
""",
        "List every item of spare_parts.csv with a stock of less than 5.",
        "In spare_parts.csv, show me each item whose stock is under 5.",
        "What item in spare_parts.csv has a stock smaller than 5? Name all.",
        "Give me the items from spare_parts.csv where stock is lower than 5.",
        end="?",
        among=_ITEMS,
        keep=("item", "items", "stock"),
    ),
    case(
        "parts-dearest",
        ("Which item has the highest price", "in spare_parts.csv"),
        lambda data: Expected(answer=names([max(data.rows("parts"), key=lambda row: row["price"])["item"]], _ITEMS)),
        """
rows = read_csv("spare_parts.csv")
best = max(rows, key=lambda row: row["price"])
answer(best["item"])
""",
        "Name the item with the largest price in spare_parts.csv.",
        "What is the most expensive item by price in spare_parts.csv?",
        "Find the item in spare_parts.csv whose price is the greatest.",
        "In spare_parts.csv, what item costs the most, going by the column price?",
        end="?",
        among=_ITEMS,
        keep=("item", "price"),
    ),
    case(
        "parts-shelf",
        ('On which shelf is the item "pedal"', "according to spare_parts.csv"),
        lambda data: Expected(answer=names(["B4"], [row["shelf"] for row in data.rows("parts")])),
        """
rows = read_csv("spare_parts.csv")
found = filter_rows(rows, "item", "==", "pedal")
if found:
    answer(found[0]["shelf"])
else:
    answer("There is none")
""",
        'Look up the shelf of the item "pedal" in spare_parts.csv.',
        'What is the shelf for the item "pedal" in spare_parts.csv?',
        'spare_parts.csv has an item "pedal". Tell me its shelf.',
        'Find the shelf where the item is "pedal" in spare_parts.csv.',
        end="?",
        among=tuple(str(row["shelf"]) for row in DATA.rows("parts")),
        keep=("shelf", "item"),
    ),
    case(
        "tours-sorted",
        ("Write the rows sorted by riders to popular.csv, most riders first", "using tours.csv"),
        lambda data: Expected(
            files={
                "popular.csv": has_rows(
                    *sorted(data.rows("tours"), key=lambda row: row["riders"], reverse=True), ordered=True
                )
            }
        ),
        """
rows = read_csv("tours.csv")
write_csv("popular.csv", sort_rows(rows, "riders", descending=True))
answer("Wrote popular.csv")
""",
        "Sort tours.csv by riders in descending order and save it as popular.csv.",
        "Order the rows of tours.csv by riders, largest first, and store them in popular.csv.",
        "popular.csv should be tours.csv with the highest riders on top and the lowest at the bottom.",
        "Please take tours.csv, sort it by the column riders from high to low, and write popular.csv.",
        keep=("riders",),
    ),
    case(
        "tours-average",
        ("What is the average of the column km", "in tours.csv"),
        lambda data: Expected(answer=number(sum(row["km"] for row in data.rows("tours")) / len(data.rows("tours")))),
        """
rows = read_csv("tours.csv")
answer(sum([row["km"] for row in rows]) / len(rows))
""",
        "Compute the mean of km in tours.csv.",
        "How large is km on average in tours.csv?",
        "Average the column km of tours.csv.",
        "Take all values of km from tours.csv and tell me their mean.",
        end="?",
        keep=("km",),
    ),
    case(
        "tours-long-note",
        ("Write the name of the tour with the most km to longest.txt", "looking it up in tours.csv"),
        lambda data: Expected(
            files={"longest.txt": has_text("Forest ring", lacks=[tour for tour in _TOURS if tour != "Forest ring"])}
        ),
        """
rows = read_csv("tours.csv")
longest = max(rows, key=lambda row: row["km"])
write_text("longest.txt", longest["tour"])
answer(longest["tour"])
""",
        "Find the tour with the largest km in tours.csv and save its name to longest.txt.",
        "Which tour of tours.csv has the highest km? Put its name into longest.txt.",
        "longest.txt should hold the name of the tour that has the most km in tours.csv.",
        "Take tours.csv, pick the tour with the greatest km, and write what it is called to longest.txt.",
        among=_TOURS,
        keep=("km", "tour"),
        loose=True,
    ),
)
