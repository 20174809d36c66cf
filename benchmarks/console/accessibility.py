"""What axe finds on the pages, and whether they fit a phone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from benchmarks.console.browser import Chromium, Visitor
from benchmarks.console.journey import expect_no_sideways_scrolling
from benchmarks.console.pages import ShownPage
from benchmarks.console.world import ConsoleServer

PHONE = 390
HEIGHT = 900


@dataclass(frozen=True, slots=True)
class Look:
    """How a page is looked at."""

    name: str
    width: int
    theme: Literal["light", "dark"]


LOOKS = (Look("light", 1280, "light"), Look("dark", 1280, "dark"), Look("phone", PHONE, "light"))


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that axe found: the rule, and where."""

    page: str
    look: str
    rule: str
    where: str

    def __str__(self) -> str:
        return f"{self.page} ({self.look}): {self.rule} at {self.where}"


def page_violations(visitor: Visitor) -> list[tuple[str, str]]:
    """The rules that the page breaks now, with the selectors of what breaks them."""
    visitor.page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    found: dict[str, Any] = visitor.page.evaluate("axe.run({ resultTypes: ['violations'] })")
    return [
        (f"{each['id']} ({each['impact']})", f"{node['target']}: {node['html'][:160]} {node['failureSummary'][:240]}")
        for each in found["violations"]
        for node in each["nodes"]
    ]


def check_pages(
    chromium: Chromium, server: ConsoleServer, pages: Sequence[ShownPage], looks: Sequence[Look] = LOOKS
) -> tuple[list[Violation], list[str]]:
    """What axe finds on the pages, and which of them did not come, or are wider than a phone."""
    violations: list[Violation] = []
    wide: list[str] = []
    for look in looks:
        for user in dict.fromkeys(shown.user for shown in pages):
            with chromium.visit(server, user, width=look.width, height=HEIGHT, theme=look.theme) as visitor:
                for shown in (each for each in pages if each.user == user and (look is looks[0] or not each.once)):
                    try:
                        shown.open(visitor.page, server.address)
                        found = page_violations(visitor)
                        if look.width <= PHONE:
                            expect_no_sideways_scrolling(visitor)
                    except AssertionError as error:
                        wide.append(f"{shown.name} ({look.name}): {str(error)[:300]}")
                    else:
                        violations += [Violation(shown.name, look.name, rule, where) for rule, where in found]
        print(f"axe: {len(pages)} pages, {look.name}: {len(violations)} violations so far", file=sys.stderr, flush=True)
    return violations, wide
