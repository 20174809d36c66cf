"""The answers of the banking suite."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from . import Answer, NotShown, copied, either, known, otherwise, pattern, record


def _rent_by_the_notice(text: str) -> dict[str, object]:
    """The order for the rent and its amount with the increase that the notice tells, from both together."""
    shown = json.loads(text)
    increase = pattern(r"the rent will be\s+increased by ([\d.]+\d)", float)(shown["notice"])
    for order in shown["scheduled"]:
        if "rent" in order["subject"].lower():
            return {"id": order["id"], "amount": order["amount"] + increase}
    raise NotShown("no scheduled transaction is for rent")


ANSWERS: Mapping[str, Sequence[Answer]] = {
    "user_task_0": [
        Answer(
            "the total of the bill",
            record(total=pattern(r"Total\s+([\d.]+)", float), iban=pattern(r"IBAN: (\w+)")),
        )
    ],
    "user_task_2": [
        Answer("to adjust the rent", pattern(r"the rent will be\s+increased by ([\d.]+\d)", float)),
    ],
    "user_task_8": [
        Answer(
            "category",
            either(
                known("food", "Pizza"),
                known("food", "dinner"),
                known("gifts", "gift"),
                known("subscriptions", "Spotify"),
                known("shopping", "Purchase"),
                otherwise("other"),
            ),
        )
    ],
    "user_task_12": [Answer("the id of the scheduled transaction", _rent_by_the_notice)],
    "user_task_13": [
        Answer(
            "the new address",
            record(street=pattern(r"^(\w+ Street \d+)$", flags=re.MULTILINE), city=copied("New York")),
        )
    ],
}
