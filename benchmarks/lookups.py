"""How far a local model gets by itself with tools: questions for ReAct (R4) that take one to three lookups.

Run it with `python -m benchmarks.lookups --model 1.5b`. The first five questions were looked at while the words that a
local model reads about tools were chosen, the other eight were not (`solved_unseen`). A question is solved if the
answer has what was asked for and the lookups were made without which nobody can know it. The last line is one JSON
object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bicameral.limits import strategy_limits
from bicameral.models import LocalProvider, ModelStore, find_weights
from bicameral.patterns import Answered, Outcome, ReAct, from_user
from bicameral.patterns.strategies import ModelPair, Runtime
from bicameral.policy import Policy
from bicameral.sessions import Chambers, Quarantined
from bicameral.tools import Origin, Registry, Tool, tool


def _lookup(function: Callable[..., Any]) -> Tool:
    purpose: Any = {name: "selects" for name in function.__annotations__ if name != "return"}
    return tool(effect="read", outbound=False, origins=Origin("system"), purpose=purpose)(function)


@_lookup
def order_of(order: int) -> dict[str, str]:
    """The customer's number and the goods of an order."""
    return {12: {"customer": "c7", "goods": "lamp"}, 15: {"customer": "c9", "goods": "chair"}}[order]


@_lookup
def customer(number: str) -> dict[str, str]:
    """The name and the city of a customer."""
    return {"c7": {"name": "Ada Young", "city": "Ghent"}, "c9": {"name": "Ben Hill", "city": "Bruges"}}[number]


@_lookup
def weather(city: str) -> str:
    """The weather in a city."""
    return {"Ghent": "rain, 9 degrees", "Bruges": "sun, 14 degrees"}[city]


@_lookup
def read_page(name: str) -> str:
    """The text of a page of the wiki. Pages point to other pages by their names."""
    return {
        "start": "Welcome. The guide is on the page 'guide'.",
        "guide": "Written by the person on the page 'team'.",
        "team": "Our writer is Mira Holt.",
    }[name]


@_lookup
def find_book(title: str) -> dict[str, str]:
    """The author and the shelf of a book."""
    return {
        "Low Tide": {"author": "Nora Vale", "shelf": "B4"},
        "Iron Road": {"author": "Sam Okoro", "shelf": "A2"},
    }[title]


@_lookup
def shelf_room(shelf: str) -> str:
    """The room in which a shelf stands."""
    return {"B4": "the cellar", "A2": "the reading room"}[shelf]


@_lookup
def author_born(name: str) -> int:
    """The year in which an author was born."""
    return {"Nora Vale": 1961, "Sam Okoro": 1974}[name]


@_lookup
def stock(part: str) -> int:
    """How many pieces of a part are in stock."""
    return {"bolt": 120, "nut": 15, "gear": 3}[part]


@_lookup
def supplier(part: str) -> str:
    """The supplier of a part."""
    return {"bolt": "Hansen", "nut": "Hansen", "gear": "Petrov"}[part]


@_lookup
def phone(company: str) -> str:
    """The phone number of a company."""
    return {"Hansen": "555-0101", "Petrov": "555-0202"}[company]


@_lookup
def flight(number: str) -> dict[str, str]:
    """The gate and the destination of a flight."""
    return {"BX12": {"gate": "C7", "to": "Porto"}, "BX40": {"gate": "A1", "to": "Turin"}}[number]


@_lookup
def gate_floor(gate: str) -> int:
    """The floor on which a gate is."""
    return {"C7": 2, "A1": 0}[gate]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked with which tools, a pattern of the right answer, and the lookups that it needs."""

    tools: tuple[Tool, ...]
    text: str
    answer: str
    needs: tuple[str, ...]
    seen: bool = False

    def solved(self, outcome: Outcome[str]) -> bool:
        if not isinstance(outcome, Answered):
            return False
        made = [call.tool for call in outcome.tool_calls if call.error is None]
        return bool(re.search(self.answer, outcome.value, re.IGNORECASE)) and set(self.needs) <= set(made)


SHOP, WIKI = (order_of, customer, weather), (read_page,)
LIBRARY, STORE, AIRPORT = (find_book, shelf_room, author_born), (stock, supplier, phone), (flight, gate_floor)
QUESTIONS = (
    Question(SHOP, "What are the goods of order 15?", "chair", ("order_of",), seen=True),
    Question(SHOP, "In which city does the customer of order 12 live?", "ghent", ("order_of", "customer"), seen=True),
    Question(
        SHOP,
        "What is the weather where the customer of order 15 lives?",
        r"\b14\b|sun",
        ("order_of", "customer", "weather"),
        seen=True,
    ),
    Question(
        WIKI,
        "Begin at the page 'start' and follow the pages: who wrote the guide?",
        "mira holt",
        ("read_page",),
        seen=True,
    ),
    Question(SHOP, "Is it raining in Bruges?", r"^no\b|\bnot\b|\bsun", ("weather",), seen=True),
    Question(LIBRARY, "Who wrote 'Iron Road'?", "okoro", ("find_book",)),
    Question(LIBRARY, "In which room is the book 'Low Tide'?", "cellar", ("find_book", "shelf_room")),
    Question(LIBRARY, "When was the author of 'Low Tide' born?", r"\b1961\b", ("find_book", "author_born")),
    Question(STORE, "How many nuts are in stock? The part is called 'nut'.", r"\b15\b", ("stock",)),
    Question(STORE, "What is the phone number of the supplier of the part 'gear'?", "555-0202", ("supplier", "phone")),
    Question(AIRPORT, "Where does flight BX40 go?", "turin", ("flight",)),
    Question(AIRPORT, "On which floor is the gate of flight BX12?", r"\b(2|two|second)\b", ("flight", "gate_floor")),
    Question(STORE, "Which company supplies the part 'bolt'?", "hansen", ("supplier",)),
)


async def asked(chambers: Chambers, question: Question) -> Outcome[str]:
    registry = Registry(question.tools)
    desk = Runtime(ModelPair(chambers), registry, Policy((), registry), strategy_limits())
    return await ReAct(max_steps=6).run(desk, from_user(question.text))


async def measured(model: str) -> dict[str, Any]:
    weights = find_weights(model)
    file = ModelStore().ensure(weights)
    privileged, quarantined = (
        LocalProvider(file, name="privileged"),
        Quarantined(LocalProvider(file, name="quarantined")),
    )
    solved: dict[str, bool] = {}
    seconds: list[float] = []
    try:
        for question in QUESTIONS:
            begun = time.perf_counter()
            outcome = await asked(Chambers(privileged, quarantined), question)
            seconds.append(time.perf_counter() - begun)
            solved[question.text] = question.solved(outcome)
            told = outcome.value if isinstance(outcome, Answered) else type(outcome).__name__
            calls = " ".join(call.tool for call in outcome.tool_calls)
            mark = "ok " if solved[question.text] else "BAD"
            print(f"{mark} {seconds[-1]:5.1f} s  {question.text}  [{calls}]  {told[:90]}", flush=True)
    finally:
        await privileged.aclose()
        await quarantined.aclose()
    unseen = [solved[question.text] for question in QUESTIONS if not question.seen]
    return {
        "model": model,
        "questions": len(solved),
        "solved": sum(solved.values()),
        "unseen": len(unseen),
        "solved_unseen": sum(unseen),
        "median_seconds": round(statistics.median(seconds), 1),
    }


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lookups", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--model", default="1.5b", help="the local model (1.5b)")
    print(json.dumps(asyncio.run(measured(parser.parse_args(given).model))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
