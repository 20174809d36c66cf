"""Run it with `python -m benchmarks.console`: the console in a real Chromium, before people and before strangers.

Progress goes to standard error, the last line of standard output is one JSON object, and the exit code is 1 if a
journey fails, a text of a stranger runs, an attack comes through, or a page is not accessible or too large.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.console.browser import missing_part

PARTS = ("journeys", "attacks", "pages", "speed", "xss")
MOST_KB = 150


def options(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--part", action="append", choices=PARTS, metavar="PART", help=f"only this: {', '.join(PARTS)}")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="only this journey, attack or field; `list` shows all"
    )
    parser.add_argument(
        "--screenshots", type=Path, metavar="FOLDER", help="write pictures of the main pages, and nothing else"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file, too")
    return parser.parse_args(given)


ROWS: tuple[tuple[str, str, str], ...] = (
    ("journeys", "journeys of people", "≥ 20"),
    ("journeys_ok", "of them as they must be", "all"),
    ("pages", "pages looked at, each light, dark and on a phone", ""),
    ("axe_violations", "what axe finds on them", "0"),
    ("pages_wrong", "pages that did not come, or are wider than a phone", "0"),
    ("xss_strings", "hostile texts", "≥ 200"),
    ("xss_fields", "groups of fields that they were put into", ""),
    ("xss_pages", "pages that were looked at", ""),
    ("xss_undefended", "texts that do something where nothing is escaped", ""),
    ("xss_executed", "texts that ran", "0"),
    ("xss_planted", "texts that became a part of a page", "0"),
    ("xss_unseen", "texts that a person does not see as they are", "0"),
    ("xss_broken", "pages that did not come", "0"),
    ("csp_violations", "broken rules of the content-security policy", "0"),
    ("outside_requests", "requests to any other host", "0"),
    ("script_errors", "errors of our own scripts", "0"),
    ("attacks", "attacks by pages of strangers", ""),
    ("attacks_stopped", "of them without effect", "all"),
    ("controls_ok", "benign twins that work", "all"),
    ("page_kb", "first load of the runs on the wire, KiB", "≤ 150"),
    ("first_paint_ms", "until something is seen of it, ms", ""),
    ("list_ms", "the list with 5,000 runs, ms", ""),
    ("search_ms", "a search among them, ms", ""),
    ("older_ms", "an older page of them, ms", ""),
    ("seconds", "seconds", ""),
)
NOTHING = (
    *("journeys_failed", "attacks_failed", "axe_violations", "pages_wrong", "xss_executed", "xss_planted"),
    *("xss_unseen", "xss_broken", "csp_violations", "outside_requests", "script_errors"),
)
"""What must be nothing, where it was measured."""
LEAST = {"journeys": 20, "attacks": 10, "pages": 40, "xss_strings": 200, "xss_fields": 15, "xss_undefended": 150}
"""How much must have been tried where it was measured: a benchmark that tries nothing finds nothing."""


def faults(found: Mapping[str, Any], *, selected: bool) -> list[str]:
    """What is not as it must be; of a selection of names it does not matter how many they are."""
    wrong = [f"{name} is {found[name]}" for name in NOTHING if found.get(name)]
    if found.get("page_kb", 0) > MOST_KB:
        wrong.append(f"page_kb is {found['page_kb']}, and may be {MOST_KB}")
    if not selected:
        wrong += [
            f"{name} is {found[name]}, and must be {least}"
            for name, least in LEAST.items()
            if found.get(name, least) < least
        ]
    return wrong


def main(given: Sequence[str] | None = None) -> int:
    chosen = options(given)
    if missing := missing_part():
        print(f"skipped: {missing}", file=sys.stderr)
        return 2
    from benchmarks.console.suite import measure, write_pictures

    if chosen.screenshots is not None:
        made = write_pictures(chosen.screenshots)
        for file in made:
            print(f"{file} {file.stat().st_size:,} bytes")
        return 0
    began = time.monotonic()
    found = measure(tuple(chosen.part or ()), tuple(chosen.only or ()))
    found["seconds"] = round(time.monotonic() - began, 1)
    for name, what, wanted in ROWS:
        if name in found:
            print(f"{name:18} {found[name]!s:>8}  {wanted:6} {what}")
    wrong = faults(found, selected=bool(chosen.only))
    print("".join(f"wrong: {each}\n" for each in wrong), end="", file=sys.stderr)
    text = json.dumps(found)
    if chosen.json is not None:
        chosen.json.write_text(f"{text}\n", "utf-8")
    print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
