"""How a plan uses what its words name: what tells tables and columns apart where no name has the words.

A table is told by the columns and the cells that a plan uses of it, a column by what is computed with it. Neither binds
anything: it brings candidates into a question, and whoever writes a table with just these columns is one line of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bicameral.binding._binder import Binder, Ranking, Use
from bicameral.binding._candidates import Candidate
from bicameral.binding._compared import is_compared_with_truth
from bicameral.binding._indirect_columns import ADDING, totalled_arguments
from bicameral.binding._joint_tables import JointTables
from bicameral.binding._questions import Binding
from bicameral.binding._screening import display_name
from bicameral.binding._shown_columns import find_naming_column
from bicameral.binding._world_source import TEXT_ENDINGS
from bicameral.errors import nearest_name
from bicameral.labels import TRUSTED_USER
from bicameral.plans import (
    Apply,
    Arithmetic,
    Call,
    Compare,
    Const,
    Plan,
    Reference,
    ReferenceSite,
    children,
    step_expressions,
    walk,
)
from bicameral.tools import Registry
from bicameral.types import Type

MOST_RANKED = 40
"""Tables whose columns and cells are looked at; of more, none."""

_FOLDER_NAME = re.compile(r"\w[\w-]*")
"""One name: no path, nothing hidden, no words beside it, and no ending, with which it would rather be a file."""
_UNCHANGING = frozenset({"pure", "read"})
_COMPUTING = ADDING | {"median", "round", "abs", "float", "int"}
_ORDERING = frozenset({"<", "<=", ">", ">="})


class SiteUse(Use):
    """How a plan uses a reference: whether an effect goes to it.

    Args:
        plan: The plan.
        site: The reference.
        registry: The tools.
    """

    def __init__(self, plan: Plan, site: ReferenceSite, registry: Registry) -> None:
        self._plan, self._site, self._registry = plan, site, registry
        self.directs = self._directs_effect()

    def _directs_effect(self) -> bool:
        if self._site.refers in ("column", "value"):
            return False
        if self._site.tool is not None:
            tool = self._registry.get(self._site.tool)
            return tool is None or tool.effect not in _UNCHANGING
        # A value of a variable may go to any tool.
        calls = (self._registry.get(step.tool) for _, step in walk(self._plan.steps) if isinstance(step, Call))
        return any(tool is None or tool.effect not in _UNCHANGING for tool in calls)


class FileUse(SiteUse):
    """How a plan uses a file that a tool reads as a table.

    Args:
        plan: The plan.
        site: The reference to a file.
        registry: The tools.
        scope: The types of the variables before the first step.
        binder: Matches the words with files of other endings.
    """

    def __init__(
        self, plan: Plan, site: ReferenceSite, registry: Registry, scope: Mapping[str, Type] | None, binder: Binder
    ) -> None:
        super().__init__(plan, site, registry)
        self._scope, self._binder = scope, binder
        self._tool = registry.get(site.tool) if site.tool else None

    async def rank(self, candidates: Sequence[Candidate]) -> Ranking:
        """The tables that have the columns which the plan uses, and the cells that it compares with."""
        if self._tool is None or not self._tool.table_endings or len(candidates) > MOST_RANKED:
            return Ranking()
        tables = JointTables(self._plan, self._registry, self._scope)
        shares = [(await tables.used_share(self._site, each), each) for each in candidates]
        known = sorted(((share, each) for share, each in shares if share), key=lambda found: -found[0])
        return Ranking(
            tuple(each for share, each in known if share == 1), tuple(each for share, each in known if share < 1)
        )

    async def describe_other(self) -> str:
        """A file that fits and that the tool cannot read, with the tool that reads it."""
        if self._tool is None or not self._tool.table_endings:
            return ""
        other = await self._binder.bind_by_rules("file", self._site.words)
        path = str(other.value) if other is not None else ""
        if not path or path.lower().endswith(self._tool.table_endings):
            return ""
        note = f"{display_name(path)} fits, but {self._tool.name} reads only {', '.join(self._tool.table_endings)}"
        reader = self._reader_of(path)
        return f"{note}; {reader} reads it." if reader else f"{note}."

    def _reader_of(self, path: str) -> str | None:
        """The tool that reads a file of this ending."""
        tables = [name for name in self._registry.names if path.lower().endswith(self._endings(name))]
        if tables:
            return tables[0]
        return "read_text" if path.lower().endswith(TEXT_ENDINGS) and self._registry.get("read_text") else None

    def _endings(self, name: str) -> tuple[str, ...]:
        tool = self._registry.get(name)
        return tool.table_endings if tool is not None else ()


class FolderUse(SiteUse):
    """How a plan uses a folder: whether files go into it, so that it may be one that does not exist yet.

    Args:
        plan: The plan.
        site: The reference to a folder.
        registry: The tools.
        binder: Knows the folders that there are.
    """

    def __init__(self, plan: Plan, site: ReferenceSite, registry: Registry, binder: Binder) -> None:
        super().__init__(plan, site, registry)
        self._binder = binder

    async def take_instead(self) -> Binding | None:
        """The new folder of this name, where files go into it and no folder shares a word with the mention.

        *Copy my notes to backup* names a folder that the copy creates. The name is the user's own word: one plain
        name, since *the folder of last year* describes a folder rather than names one.
        """
        words = self._site.words.strip().rstrip("/")
        tool = self._registry.get(self._site.tool) if self._site.tool else None
        # What deletes a folder, or does anything else with it, needs one that is there.
        if tool is None or tool.effect != "write" or not tool.files_only or not _FOLDER_NAME.fullmatch(words):
            return None
        if await self._spelled_alike() is not None:
            # Perhaps misspelled: the person is asked, rather than a second folder created beside the one that is meant.
            return None
        # With the slash a file keeps its name inside the folder; without it the file itself would get the name.
        return Binding("folder", self._site.words, f"{words}/", TRUSTED_USER, "new", 0.5)

    async def describe_other(self) -> str:
        """A folder whose name is spelled almost like the words."""
        alike = await self._spelled_alike()
        return f"There is {display_name(alike)}." if alike is not None else ""

    async def _spelled_alike(self) -> str | None:
        there = {name.casefold(): name for each in await self._binder.offer("folder") for name in each.names}
        nearest = nearest_name(self._site.words.strip().rstrip("/").casefold(), there)
        return there[nearest] if nearest is not None else None


class ColumnUse(SiteUse):
    """How a plan uses a column: whether something is computed with it, or the answer only shows it."""

    async def rank(self, candidates: Sequence[Candidate]) -> Ranking:
        """The columns of numbers, where something is computed; those of yes and no, where these are compared."""
        site = self._site
        if is_compared_with_truth(self._plan, site, self._registry):
            return Ranking(tuple(each for each in candidates if each.value in truth_columns(site)))
        if not any(_is_computed(step, site.words, self._registry) for step in self._steps()):
            return Ranking()
        numbers = {*site.amounts, *site.numbers}
        return Ranking(tuple(each for each in candidates if each.value in numbers))

    async def take_instead(self) -> Binding | None:
        """The column that names the rows, where the answer only shows it."""
        return await find_naming_column(self._plan, self._site, self._registry)

    def _steps(self) -> Iterator[Any]:
        return (step for path, step in walk(self._plan.steps) if path == self._site.path)


def truth_columns(site: ReferenceSite) -> frozenset[str]:
    """The columns that may hold yes and no: those that are known to hold nothing else."""
    return frozenset(site.names or ()) - {*site.days, *site.amounts, *site.numbers, *site.texts}


def _is_computed(step: Any, words: str, registry: Registry) -> bool:
    """Whether a step computes a number with a cell of the column, or compares the cell by its size."""
    tool = registry.get(step.tool) if isinstance(step, Call) else None
    if tool is not None and any(_is_column(step.args.get(name), words) for name in totalled_arguments(tool)):
        return True
    return any(_is_number(expr, words) for expr in step_expressions(step))


def _is_number(node: Any, words: str, *, number: bool = False) -> bool:
    """Whether an expression needs a cell of the column to be a number."""
    if isinstance(node, Reference):
        return number and _is_column(node, words)
    number = (
        number
        or isinstance(node, Arithmetic)
        or (isinstance(node, Apply) and node.function in _COMPUTING)
        or (isinstance(node, Compare) and _compares_numbers(node))
    )
    return any(_is_number(child, words, number=number) for child in children(node))


def _compares_numbers(node: Compare) -> bool:
    operands = (node.first, *(operand for _, operand in node.rest))
    sizes = any(op in _ORDERING for op, _ in node.rest)
    return sizes and any(isinstance(each, Const) and type(each.value) in (int, float) for each in operands)


def _is_column(expr: Any, words: str) -> bool:
    return isinstance(expr, Reference) and (expr.refers, expr.words) == ("column", words)
