"""The parts of the benchmark with their figures; each has a server of its own."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.console import (
    attacks_changing,
    attacks_reading,
    journeys_answers,
    journeys_devices,
    journeys_people,
    journeys_runs,
    journeys_trying,
    journeys_writing,
)
from benchmarks.console.accessibility import check_pages
from benchmarks.console.attack import ATTACKS, try_attacks
from benchmarks.console.browser import Chromium, Watch, chromium
from benchmarks.console.equipment import Equipment
from benchmarks.console.fields import FIELDS
from benchmarks.console.hostile import hostile_texts, storable
from benchmarks.console.injection import try_fields
from benchmarks.console.journey import JOURNEYS, Stage, try_journey
from benchmarks.console.pages import shown_pages
from benchmarks.console.pictures import take_pictures
from benchmarks.console.speed import measure_loads
from benchmarks.console.world import serving_console

PARTS = ("journeys", "attacks", "pages", "speed", "xss")
LONGEST_WORDS = 900
"""Characters of a hostile description."""
MODULES = (
    *(journeys_people, journeys_runs, journeys_answers, journeys_writing, journeys_trying, journeys_devices),
    *(attacks_changing, attacks_reading),
)
"""The modules whose journeys and attacks add themselves to `JOURNEYS` and `ATTACKS`."""


def measure(wanted: Sequence[str], only: Sequence[str]) -> dict[str, Any]:
    """The figures of these parts, or of what has one of these names."""
    parts = parts_with(only) if only else wanted or PARTS
    found: dict[str, Any] = {}
    with chromium() as browser:
        found["chromium"] = browser.version
        if "journeys" in parts:
            found |= measure_journeys(browser, only)
        if "attacks" in parts:
            found |= measure_attacks(browser, only)
        if "pages" in parts:
            found |= measure_pages(browser)
        if "speed" in parts:
            with _folder() as folder, serving_console(Path(folder)) as server:
                found |= measure_loads(browser, server)
        if "xss" in parts:
            found |= measure_injection(browser, only)
        watch: Watch = browser.watch
    found["outside_requests"] = len(watch.outside)
    found["csp_violations"] = found.get("csp_violations", 0) + len(watch.violations)
    found["script_errors"] = len(watch.errors)
    for fault in (*watch.outside, *watch.violations, *watch.errors):
        _tell(f"FAULT {fault}")
    return found


def parts_with(only: Sequence[str]) -> tuple[str, ...]:
    """The parts that have something of these names."""
    known = {"journeys": JOURNEYS, "attacks": ATTACKS, "xss": FIELDS}
    unknown = [name for name in only if not any(name in each for each in known.values())]
    if unknown:
        for part, each in known.items():
            _tell(f"{part}: {', '.join(each)}")
        raise SystemExit(f"not known: {', '.join(unknown)}")
    return tuple(part for part, each in known.items() if any(name in each for name in only))


def measure_journeys(browser: Chromium, only: Sequence[str]) -> dict[str, Any]:
    """Play the journeys."""
    failed: list[str] = []
    chosen = [each for each in JOURNEYS.values() if not only or each.name in only]
    with _folder() as folder, serving_console(Path(folder), equipment=Equipment()) as server:
        stage = Stage(server, browser)
        for each in chosen:
            result = try_journey(each, stage)
            _tell(f"journey {each.name} ({result.seconds:.1f} s): {result.fault or 'ok'}")
            failed += [] if result.ok else [each.name]
    figures = {"journeys": len(chosen), "journeys_ok": len(chosen) - len(failed), "journeys_failed": failed}
    return figures | stage.figures


def measure_attacks(browser: Chromium, only: Sequence[str]) -> dict[str, Any]:
    """Try the attacks with their twins."""
    with _folder() as folder, serving_console(Path(folder)) as server:
        results = try_attacks(Stage(server, browser), tuple(only))
    for result in (each for pair in results for each in pair):
        _tell(f"attack {result.name} ({result.seconds:.1f} s): {result.fault or 'ok'}")
    return {
        "attacks": len(results),
        "attacks_stopped": sum(first.ok for first, _ in results),
        "controls_ok": sum(twin.ok for _, twin in results),
        "attacks_failed": [each.name for pair in results for each in pair if not each.ok],
    }


def measure_pages(browser: Chromium) -> dict[str, Any]:
    """Check every page, light, dark and on a phone."""
    with _folder() as folder, serving_console(Path(folder), equipment=Equipment()) as server:
        pages = shown_pages(server)
        violations, wrong = check_pages(browser, server, pages)
    for each in (*violations, *wrong):
        _tell(f"FAULT {each}")
    return {"pages": len(pages), "axe_violations": len(violations), "pages_wrong": len(wrong)}


def measure_injection(browser: Chromium, only: Sequence[str]) -> dict[str, Any]:
    """Put hostile texts into every field."""
    words = [storable(text)[:LONGEST_WORDS] for text in hostile_texts()]
    with _folder() as folder, serving_console(Path(folder), equipment=Equipment(words)) as server:
        found = try_fields(browser, server, only)
    for fault in (*found.executed, *found.violations, *found.planted, *found.unseen, *found.broken):
        _tell(f"FAULT {fault}")
    return {
        "xss_strings": found.strings,
        "xss_fields": found.fields,
        "xss_pages": found.pages,
        "xss_undefended": found.undefended,
        "xss_executed": len(found.executed),
        "xss_planted": len(found.planted),
        "xss_unseen": len(found.unseen),
        "xss_broken": len(found.broken),
        "csp_violations": len(found.violations),
    }


def write_pictures(folder: Path) -> list[Path]:
    """The pictures of the documentation."""
    with chromium() as browser, _folder() as world, serving_console(Path(world), equipment=Equipment()) as server:
        return take_pictures(browser, server, shown_pages(server), folder)


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="bicameral-console-", ignore_cleanup_errors=True)


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
