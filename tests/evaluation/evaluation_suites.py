"""Suites and reports for the tests of evaluation, and subjects that answer from a table."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from bicameral.errors import RunError
from bicameral.evaluation import Case, Report, Subject, Suite, evaluate
from bicameral.labels import Labelled, open_labelled

CATEGORIES = ("positive", "negative", "edge", "hostile", "regression")


def suite(each: int = 4) -> Suite[str, str]:
    """Cases of five categories; the right output is the input in capitals."""
    cases = [
        Case(f"{category}-{number}", f"{category} {number}", expected=f"{category} {number}".upper(), category=category)
        for category in CATEGORIES
        for number in range(each)
    ]
    return Suite("capitals", tuple(cases))


def subject(wrong: Mapping[str, str] | None = None, *, name: str = "shouter") -> Subject[str, str]:
    """A subject that is right but for these inputs; `!` fails."""

    async def attempt(given: Labelled[str], seed: int) -> Labelled[str]:
        await asyncio.sleep(0)
        text = open_labelled(given)
        answer = (wrong or {}).get(text, text.upper())
        if answer == "!":
            raise RunError("run.stopped", "it stopped")
        return given.map(lambda _: answer)

    return Subject(name, attempt, "1")


def report(cases: Suite[str, str] | None = None, wrong: Mapping[str, str] | None = None, **options: Any) -> Report[str]:
    """The report of a subject that gives these wrong answers."""
    return asyncio.run(evaluate(subject(wrong), cases or suite(), **options))
