"""From a block to what a planner reads and should write, with the planner's own prompt."""

from __future__ import annotations

import datetime as dt
import importlib.util
import random
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bicameral.binding import search_statement
from bicameral.planning import Intent, NamedDate, NeutralNames, understand
from bicameral.planning._decode import prompt_text
from bicameral.tools import Folders, Registry, Surroundings, Tool, load_toolboxes

from .blocks import Block
from .slots import Slots

STANDARD = ("files", "lines", "tables", "mail", "calendar", "web", "clock", "find")
TOOLBOXES = Path(__file__).parent / "toolboxes"
_FOLDER = tempfile.TemporaryDirectory(prefix="corpus-")
_ISO_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_DAY_SLOT = re.compile(r"<d(,|\.start|\.end)?:([^<>]+)>")


@dataclass(frozen=True, slots=True)
class Sample:
    """A request, what the planner is told, and the plan that it should write."""

    place: str
    intent: Intent
    told: str
    plan: str
    registry: Registry
    today: dt.date
    toolbox: str | None = None
    given: str = ""
    """The beginning of the plan that the planner does not write itself."""


@cache
def standard_registry() -> Registry:
    """The standard tools as a planner sees them, over a folder that lives as long as the process."""
    folder = Path(_FOLDER.name).resolve()
    around = Surroundings(Folders(folder, (folder,), (folder,)))
    return NeutralNames().planner_registry(load_toolboxes({toolbox: {} for toolbox in STANDARD}, around))


def make_sample(block: Block, phrasing: str, seed: object, *, by_words: bool = False) -> Sample:
    """One filling of one phrasing; the same seed gives the same filling.

    With `by_words` the files that the plan only reads are called by words instead of their names.
    """
    picks = random.Random(f"{block.place}/{phrasing}/{seed}")
    today = dt.date(2025, 1, 6) + dt.timedelta(days=picks.randint(0, 700))
    slots = Slots(picks, today)
    request, plan = slots.fill(phrasing, in_plan=False), slots.fill(block.plan, in_plan=True)
    if by_words:
        request, plan = _files_by_words(request, plan, picks)
    registry = standard_registry() if block.toolbox is None else foreign_registry(block.toolbox)
    intent = understand(request, registry, today)
    plan = _fill_days(plan, intent.dates)
    _check_days(plan, intent)
    given = search_statement(request) if block.searched else ""
    return Sample(block.place, intent, prompt_text(intent), given + plan, registry, today, block.toolbox, given)


def _check_days(plan: str, intent: Intent) -> None:
    """Refuse a filling in which a slot's day is not the one that the planner is told for that phrase of the request."""
    one = dt.timedelta(days=1)
    known = {day for each in intent.dates for end in (each.start, each.end) for day in (end - one, end, end + one)}
    for day in _ISO_DAY.findall(plan):
        if day not in intent.request and dt.date.fromisoformat(day) not in known:
            raise ValueError(f"the plan has the day {day}, of which the planner is not told")


_READ_FILE = re.compile(r'\b(?:read_csv|read_json|read_text|read_lines)\("([\w.-]+\.(csv|json|txt|md|log))"\)')
_NOUNS = {
    "csv": ("table", "list", "sheet", "spreadsheet"),
    "json": ("data", "file"),
    "txt": ("notes", "list", "text", "file"),
    "md": ("notes", "document", "page"),
    "log": ("log", "log file"),
}


def _files_by_words(request: str, plan: str, picks: random.Random) -> tuple[str, str]:
    """The request and the plan with words for files: `the marina table`, `file("marina")`."""
    for name, ending in dict.fromkeys(_READ_FILE.findall(plan)):
        if plan.count(f'"{name}"') != len(re.findall(rf'\bread_\w+\("{re.escape(name)}"\)', plan)):
            # It is written, moved or compared as well, under the name that the request gives it.
            continue
        words = re.sub(r"[_.-]+", " ", name.removesuffix(f".{ending}")).strip()
        noun, before = picks.choice(_NOUNS[ending]), picks.choice(("the", "the", "my", "our"))
        said = re.compile(
            rf"(?:\b(?:the|my|our)\s+)?(?:\b(?:files?|table)\s+)?(?<![\w/]){re.escape(name)}(?!\w)", re.IGNORECASE
        )
        if not said.search(request):
            continue
        request = said.sub(f"{before} {words} {noun}", request)
        plan = plan.replace(f'"{name}"', f'file("{words}")')
    return request, plan


def _fill_days(plan: str, dates: Sequence[NamedDate]) -> str:
    """The plan with the days that phrases of the request mean, as the planner is told them."""

    def meant(match: re.Match[str]) -> str:
        form, phrase = match[1] or "", match[2].strip().casefold()
        named = [each for each in dates if phrase in each.phrase.casefold() or each.phrase.casefold() in phrase]
        if not named:
            raise ValueError(f"no day of the request is called {match[2]!r}")
        day = named[0].end if form == ".end" else named[0].start
        return f"{day.year}, {day.month}, {day.day}" if form == "," else str(day)

    return _DAY_SLOT.sub(meant, plan)


@cache
def foreign_registry(name: str) -> Registry:
    """The tools of `toolboxes/NAME.py`."""
    path = TOOLBOXES / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"training_toolbox_{name}", path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Registry([value for value in vars(module).values() if isinstance(value, Tool)])
