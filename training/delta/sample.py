"""From a block to what a planner reads and should write, with the planner's own prompt."""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
import random
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bicameral.planning import Intent, IntentStep, asked_effects, named_dates, required_effects
from bicameral.planning._decode import request_text
from bicameral.planning._neutral_names import NeutralNames
from bicameral.tools import Folders, Registry, Surroundings, Tool, load_toolboxes

from .blocks import Block
from .slots import Slots

STANDARD = ("files", "lines", "tables", "mail", "calendar", "web", "clock")
TOOLBOXES = Path(__file__).parent / "toolboxes"
_FOLDER = tempfile.TemporaryDirectory(prefix="corpus-")
_CELLS = {"str": ("north", "south"), "int": ("3", "41"), "float": ("2.5", "17.25"), "bool": ("true", "false")}


@dataclass(frozen=True, slots=True)
class Sample:
    """A request, what the planner is told, and the plan that it should write."""

    place: str
    intent: Intent
    told: str
    plan: str
    registry: Registry
    toolbox: str | None = None


@contextmanager
def world(block: Block, slots: Slots) -> Generator[Registry]:
    """The registry of a block, while its folder holds the tables that the block names."""
    folder, standard = _standard()
    paths = {folder / slots.fill(file, in_plan=True): what for file, what in block.files.items()}
    for path, what in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_content(path.name, what), encoding="utf-8")
    try:
        yield standard if block.toolbox is None else Registry(_foreign(block.toolbox))
    finally:
        for path in paths:
            path.unlink()


@cache
def _standard() -> tuple[Path, Registry]:
    """A folder that lives as long as the process, and the standard tools over it."""
    folder = Path(_FOLDER.name).resolve()
    around = Surroundings(Folders(folder, (folder,), (folder,)))
    return folder, load_toolboxes({toolbox: {} for toolbox in STANDARD}, around)


@contextmanager
def sampled(block: Block, phrasing: str, seed: object) -> Generator[Sample]:
    """One filling of one phrasing, in its world; the same seed gives the same filling."""
    picks = random.Random(f"{block.place}/{phrasing}/{seed}")
    today = dt.date(2025, 1, 6) + dt.timedelta(days=picks.randint(0, 700))
    slots = Slots(picks, today)
    request = slots.fill(phrasing, in_plan=False)
    plan = slots.fill(block.plan, in_plan=True)
    with world(block, slots) as registry:
        effects = asked_effects(request, registry)
        intent = Intent(
            request=request,
            steps=(IntentStep(action=request),),
            effects=effects,
            required=required_effects(request, effects),
            dates=named_dates(request, today),
        )
        # The corpus is written with the real names of columns, and all its files are its own: none of them is hidden.
        told = request_text(intent, registry, NeutralNames(request))
        yield Sample(block.place, intent, told, plan, registry, block.toolbox)


def _content(name: str, what: str) -> str:
    if name.endswith(".json"):
        return json.dumps(json.loads(what))
    columns = [part.split() for part in what.split(",")]
    rows = [[_CELLS[kind][i] for _, kind in columns] for i in range(2)]
    return "\n".join(",".join(row) for row in [[column for column, _ in columns], *rows]) + "\n"


@cache
def _foreign(name: str) -> tuple[Tool, ...]:
    path = TOOLBOXES / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"training_toolbox_{name}", path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return tuple(value for value in vars(module).values() if isinstance(value, Tool))
