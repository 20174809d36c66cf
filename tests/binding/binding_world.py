"""A folder with tables, the standard tools over it, and plans that are bound and run there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bicameral.binding import Binder, PlanBinder, PlanBinding, WorldSource
from bicameral.plans import Plan, check, parse
from bicameral.policy import Policy
from bicameral.runs import Journal, new_run_id, run_plan
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes


class BindingWorld:
    """A folder with the standard tools over it."""

    def __init__(self, folder: Path, *choosers: Any, **tables: str) -> None:
        for place in ("own", "out"):
            (folder / place).mkdir(exist_ok=True)
        for name, text in tables.items():
            path = folder / (name.replace("__", "/") + ".csv")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        folders = Folders.of(folder, read=[folder], write=[folder], trusted=[folder / "own"])
        here = Surroundings(folders)
        self.registry = Registry(load_toolboxes({name: {} for name in ("files", "tables")}, here))
        self.folder = folder
        self.selections: list[dict[str, Any]] = []
        self.binder = PlanBinder(self.registry, Binder(WorldSource(self.registry, folders=folders), choosers=choosers))

    async def bind(self, source: str | Plan) -> PlanBinding:
        plan = parse(source, self.registry).plan if isinstance(source, str) else source
        return await self.binder.bind(plan)

    async def run(self, bound: PlanBinding) -> Any:
        bound.require()
        assert check(bound.plan, self.registry).ok
        run = new_run_id()
        with Journal(self.folder / "journal.db") as journal:
            outcome = await run_plan(bound.plan, registry=self.registry, policy=Policy(), journal=journal, run=run)
            self.selections = [found for each in journal.events(run) for found in each.body.get("selections", ())]
        return outcome

    async def answer(self, source: str) -> Any:
        return (await self.run(await self.bind(source))).answer
