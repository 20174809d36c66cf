"""A table together with its columns: where the best name lacks a column, the other table that fits and has them all.

"bills" is the name of `bills.csv`, and in everyday words of `invoices.csv`, too. A plan that groups by *client* means
the one with clients. Only tables that fit the words are considered, and only one that is left is taken, with a doubt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from bicameral.binding._candidates import BIND_STEP, Candidate, joined_label
from bicameral.binding._column_kinds import columns_by_kind
from bicameral.binding._compared import compared_texts
from bicameral.binding._matching import Bound, Unbound, fitting_candidates, match_words
from bicameral.binding._questions import Binding
from bicameral.binding._truth_cells import find_truth_cell
from bicameral.binding._words import words_of
from bicameral.labels import TRUSTED_USER, Label, join_all, label_tree_to_json
from bicameral.plans import (
    BoundTo,
    Call,
    Plan,
    Reference,
    ReferenceSite,
    bind_references,
    literal_arguments,
    reference_sites,
    walk,
)
from bicameral.tools import CellLookup, Registry
from bicameral.types import Type

MOST_TRIED = 12
"""Other tables whose columns are looked at; of more, none: the one that fits might not be the only one."""


class JointTables:
    """Finds the table that fits the words of a reference and has the columns that a plan uses.

    Args:
        plan: The plan, with what was bound so far.
        registry: The tools, which know the columns of tables.
        scope: The types of the variables before its first step.
    """

    def __init__(self, plan: Plan, registry: Registry, scope: Mapping[str, Type] | None) -> None:
        self._plan, self._registry, self._scope = plan, registry, scope
        self._sites = reference_sites(plan, registry, scope)

    async def find(self, site: ReferenceSite, offered: Sequence[Candidate]) -> Binding | None:
        """The table with all columns, if the best by its name lacks one; None if the name decides, or nothing does.

        Args:
            site: The reference to a table.
            offered: All tables.
        """
        match = match_words(site.words, offered, "table")
        if not isinstance(match, Bound) or match.how == "newest" or match.candidate.value == site.words:
            return None
        others = [each for each in fitting_candidates(site.words, offered) if each.value != match.candidate.value]
        if not others or len(others) > MOST_TRIED or self._is_used_elsewhere(site):
            return None
        if await self._has_columns(site, match.candidate) is not False:
            return None
        complete = [each for each in others if await self._has_columns(site, each)]
        if len(complete) != 1:
            return None
        chosen = complete[0]
        if match.candidate.label.trusted and not chosen.label.trusted:
            # Otherwise a table that somebody puts beside the user's own would be read in its place.
            return None
        # Whoever wrote the columns of one of them had a hand in the choice, as those who named them.
        read = join_all(self._content_label(site, each) for each in (match.candidate, *others))
        label = join_all((joined_label(offered), read))
        return Binding("table", site.words, chosen.value, label, "columns", 0.6, (), chosen.name)

    def _is_used_elsewhere(self, site: ReferenceSite) -> bool:
        """Whether the same words name a file that is not read as a table: both must stay one file."""
        return any(
            each.refers == "file" and each.words == site.words and not self._reads_tables(each.tool)
            for each in self._sites
        )

    def _reads_tables(self, name: str | None) -> bool:
        tool = self._registry.get(name) if name else None
        return tool is not None and isinstance(tool.refine, CellLookup)

    async def _has_columns(self, site: ReferenceSite, table: Candidate) -> bool | None:
        """Whether a table has all columns that the plan uses of it; None if nothing is known of them."""
        plan = self._bound_to(site, table)
        used = self._used_columns(plan)
        if not used:
            return None
        for each in used:
            if not _is_found(each) and await find_truth_cell(plan, each, self._registry) is None:
                return False
        return True

    async def used_share(self, site: ReferenceSite, table: Candidate) -> float:
        """How much of what the plan uses of a table it has, from 0 to 1: columns, and cells that are compared with.

        0 also where nothing is known of what the plan uses.

        Args:
            site: The reference to a table.
            table: The table that is tried for it.
        """
        plan = self._bound_to(site, table)
        used = self._used_columns(plan)
        has = [_is_found(each) or await find_truth_cell(plan, each, self._registry) is not None for each in used]
        if not any(has):
            return 0.0
        texts = self._texts(plan, site)
        compared = [text for each in used for text in compared_texts(plan, each, self._registry)]
        has += [text in texts for text in compared]
        return sum(has) / len(has)

    def _used_columns(self, plan: Plan) -> list[ReferenceSite]:
        """The columns of a table that is bound in this plan, and was not before."""
        known = {each for each in self._sites if each.names is not None}
        sites = reference_sites(plan, self._registry, self._scope)
        return [each for each in sites if each.refers == "column" and each.names is not None and each not in known]

    def _texts(self, plan: Plan, site: ReferenceSite) -> frozenset[tuple[str, ...]]:
        """The words of each cell of the table that is read at a site."""
        step = dict(walk(plan.steps)).get(site.path)
        tool = self._registry.get(step.tool) if isinstance(step, Call) else None
        if tool is None or not isinstance(step, Call):
            return frozenset()
        cells = tool.column_texts(literal_arguments(step.args))
        return frozenset(words_of(text) for texts in cells.values() for text in texts)

    def _content_label(self, site: ReferenceSite, table: Candidate) -> Label:
        """The label of what is read of a table."""
        step = dict(walk(self._bound_to(site, table).steps)).get(site.path)
        tool = self._registry.get(step.tool) if isinstance(step, Call) else None
        if tool is None or not isinstance(step, Call):
            return table.label
        return tool.result_labels(None, BIND_STEP, arguments=literal_arguments(step.args)).flat

    def _bound_to(self, site: ReferenceSite, table: Candidate) -> Plan:
        return bind_references(self._plan, partial(_bind_words, site.words, table.value))


def _bind_words(words: str, value: Any, path: str, reference: Reference) -> BoundTo | None:
    if reference.refers != "file" or reference.words != words:
        return None
    # Only to look at columns: this plan is thrown away.
    return BoundTo(value=value, label=label_tree_to_json(TRUSTED_USER))


def _is_found(site: ReferenceSite) -> bool:
    """Whether rules find the words among the columns; several that fit are found, too, and asked about later."""
    offered = [Candidate("column", name, (name,), label=TRUSTED_USER) for name in site.names or ()]
    return columns_by_kind(site, offered) is not None or not isinstance(
        match_words(site.words, offered, "column"), Unbound
    )
