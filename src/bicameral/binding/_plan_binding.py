"""Binding of a plan: its references become values of the world, table by table, or questions.

What a column can be is known only once the file before it is bound, and what a table is after a step that selects or
joins only once the columns of that step are. So the plan is bound in rounds; each asks the check of plans which
references are open and what is known of their candidates. What a bound plan rests on is told as doubts to the person
who reads its answer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeGuard

from bicameral.binding._binder import Binder, ChooserKind
from bicameral.binding._candidates import BIND_STEP, Candidate, joined_label
from bicameral.binding._column_kinds import ColumnsOfKind, columns_by_kind
from bicameral.binding._compared import columns_by_cells, is_compared_with_truth
from bicameral.binding._indirect_columns import match_added, match_within_table
from bicameral.binding._joint_tables import JointTables
from bicameral.binding._matching import Bound, Unbound, match_words
from bicameral.binding._other_readings import OtherReading, find_absent, find_misread
from bicameral.binding._plan_rows import changes_file, compares_words, read_table, selection_step, terms_of_cells
from bicameral.binding._questions import Binding, Question, show_candidate
from bicameral.binding._row_selection import RowChoices, select_by_words
from bicameral.binding._screening import display_name
from bicameral.binding._truth_cells import TruthCell, find_truth_cell, rewrite_truth
from bicameral.binding._uses import ColumnUse, FileUse, FolderUse, SiteUse, truth_columns
from bicameral.binding._world_source import WorldSource
from bicameral.errors import BindError, Place
from bicameral.labels import TRUSTED_USER, Label, join, label_tree_to_json
from bicameral.planning import Intent, OverriddenRefusal, chosen_directives, effects_of, invented_constants
from bicameral.plans import (
    BoundTo,
    Call,
    Plan,
    Reference,
    ReferenceSite,
    Step,
    bind_cells,
    bind_references,
    drop_bindings,
    insert_steps,
    literal_arguments,
    open_references,
    reference_sites,
    walk,
)
from bicameral.runs import Doubt
from bicameral.tools import Registry
from bicameral.types import Type

_GUESSED = {
    "model": "as the quarantined model chose",
    "newest": "since it is the newest",
    "cells": "by what it contains",
    "value": "since its cells have what it is compared with",
    "measure": "since it is the only column of numbers that can be added up",
    "columns": "since it has the columns, and another table of that name does not",
}
"""The ways of binding that may be wrong though only one candidate was left."""
_BEYOND_NAMES = frozenset(("cells", "model", "person"))
"""The ways in which a table is bound that need not have all words in its name, its folders and its columns."""


@dataclass(frozen=True, slots=True)
class PlanBinding:
    """A plan after binding.

    Args:
        plan: The plan with what its references were bound to; open where there is a question.
        bindings: What words were bound to, each once, in the order of the plan.
        questions: What only a person can decide.
        inserted: The steps that binding put behind others, by the paths of these in the plan as it was written.
    """

    plan: Plan
    bindings: tuple[Binding, ...] = ()
    questions: tuple[Question, ...] = ()
    inserted: Mapping[str, tuple[Step, ...]] = field(default_factory=dict[str, tuple[Step, ...]])

    def shown_plan(self, written: Plan) -> Plan:
        """The plan as people read it: as it was written, with the steps that binding inserted.

        It has names of the world in it, and is not for a planner.
        """
        return insert_steps(written, self.inserted)

    def moved_places(self, places: Mapping[str, Place]) -> dict[str, Place]:
        """The places of the written steps in a file, by the paths that these steps have now."""
        return {self._moved_path(path): place for path, place in places.items()}

    def _moved_path(self, path: str) -> str:
        moved: list[str] = []
        parts = path.split("/")
        for depth, part in enumerate(parts):
            if part.isdecimal():
                blocks = [(at.split("/"), steps) for at, steps in self.inserted.items()]
                before = [len(steps) for at, steps in blocks if at[:-1] == parts[:depth] and int(at[-1]) < int(part)]
                part = str(int(part) + sum(before))
            moved.append(part)
        return "/".join(moved)

    def require(self) -> None:
        """Raise the first question as an error."""
        if self.questions:
            first = self.questions[0]
            code = "bind.nothing-found" if first.reason == "none" else "bind.several-found"
            raise BindError(code, first.text, fix="Say it in the words of the name, or answer when asked.")


class PlanBinder:
    """Binds the references of plans.

    Args:
        registry: The real tools, which know the columns of the tables that are there.
        binder: Matches words with candidates.

    Example:
        >>> bound = await PlanBinder(registry, Binder(WorldSource(registry))).bind(plan)
        >>> [str(each) for each in bound.bindings]
        ['*bills* → bills_2026.csv']
    """

    def __init__(self, registry: Registry, binder: Binder) -> None:
        self._registry = registry
        self._binder = binder

    async def bind(self, plan: Plan, scope: Mapping[str, Type] | None = None) -> PlanBinding:
        """The plan with its references bound, as far as they can be.

        Args:
            plan: The plan.
            scope: The types of the variables before its first step.
        """
        found: dict[ReferenceSite, Binding | Question] = {}
        while ready := self._ready_sites(plan, scope, found):
            for site in ready:
                said = await self._truth_cell(plan, site, ready)
                if said is not None and (rewritten := rewrite_truth(plan, site, said)) is not None:
                    plan, found[site] = rewritten, said.binding(site.words)
                else:
                    found[site] = await self._bind_site(plan, site, scope)
            plan = bind_references(plan, _Lookup(found, _literal_keys(self._sites(plan, scope, found))).find)
        # What is known only in the run, such as the fields of a web service, is looked up by the words themselves: a
        # name that is not there is an error of the run.
        plan = bind_references(plan, partial(_take_literally, self._sites(plan, scope, found)))
        asked = (each for each in found.values() if isinstance(each, Question))
        questions = tuple(dict.fromkeys((*asked, *_find_conflicts(found))))
        inserted: dict[str, tuple[Step, ...]] = {}
        if not questions:
            # Whether a plan selects these rows itself is known when all its columns are bound.
            inserted, questions = await self._select_rows(plan, found)
        if not questions:
            # What a column is decides how its cells are compared, so that this comes when all columns are known.
            plan = bind_cells(insert_steps(plan, inserted), self._registry, scope)
        bindings = {(each.kind, each.words, each.value): each for each in found.values() if isinstance(each, Binding)}
        return PlanBinding(plan, tuple(bindings.values()), questions, inserted)

    def without(self, *choosers: ChooserKind) -> PlanBinder:
        """The same binder, which does not ask these."""
        return PlanBinder(self._registry, self._binder.without(*choosers))

    async def find_other_reading(self, plan: Plan, bound: PlanBinding) -> OtherReading | None:
        """Why a plan should read something else: what it reads has another form, or is not there. Nobody is asked.

        Args:
            plan: The plan, with its references open.
            bound: The same plan after binding.
        """
        if not open_references(plan) or effects_of(plan, self._registry).changes:
            # A text that is sent or stored as it is may well be that of a table; and whether something is written or
            # sent is not decided by what is there.
            return None
        rules = self.without("model", "person")
        misread = await find_misread(
            plan, self._registry, bound.bindings, rules._binder, lambda site: rules._bind_site(plan, site, None)
        )
        return misread or find_absent(bound.questions, plan, self._registry)

    def _sites(
        self, plan: Plan, scope: Mapping[str, Type] | None, found: Mapping[ReferenceSite, object]
    ) -> list[ReferenceSite]:
        return [site for site in reference_sites(plan, self._registry, scope) if site not in found]

    def _ready_sites(
        self, plan: Plan, scope: Mapping[str, Type] | None, found: Mapping[ReferenceSite, object]
    ) -> list[ReferenceSite]:
        return [site for site in self._sites(plan, scope, found) if _is_ready(site)]

    async def _bind_site(self, plan: Plan, site: ReferenceSite, scope: Mapping[str, Type] | None) -> Binding | Question:
        match site.refers:
            case "column":
                # The name selects a part of a value that carries the label of the table.
                offered = [Candidate("column", name, (name,), label=TRUSTED_USER) for name in site.names or ()]
                return await self._bind_column(plan, site, offered)
            case "value":
                cells = self._cells(plan, site.column or "")
                if not cells:
                    # Nothing is known of the column, so the words themselves are compared.
                    return Binding("value", site.words, site.words, TRUSTED_USER, "exact")
                return await self._binder.bind("value", site.words, candidates=cells)
            case "file":
                tool = self._registry.get(site.tool) if site.tool else None
                if tool is not None and (endings := tool.table_endings):
                    tables = await self._binder.offer("table")
                    readable = [each for each in tables if str(each.value).lower().endswith(endings)]
                    joint = await JointTables(plan, self._registry, scope).find(site, readable)
                    if joint is not None:
                        return joint
                use = FileUse(plan, site, self._registry, scope, self._binder)
                if tool is None or not tool.table_endings:
                    result = await self._binder.bind("file", site.words, use=use)
                else:
                    result = await self._binder.bind("table", site.words, endings=tool.table_endings, use=use)
                if site.tool is None and _is_by_cells(result):
                    # A path that is read elsewhere in the plan: which rows are meant could not be selected there.
                    return await self._binder.confirm(_ask_again(result))
                return result
            case "folder":
                into = FolderUse(plan, site, self._registry, self._binder)
                return await self._binder.bind("folder", site.words, use=into)
            case kind:
                return await self._binder.bind(kind, site.words, use=SiteUse(plan, site, self._registry))

    async def _bind_column(self, plan: Plan, site: ReferenceSite, offered: Sequence[Candidate]) -> Binding | Question:
        if plausible := columns_by_kind(site, offered):
            return await self._bind_by_kind(site.words, plausible, offered)
        match = match_words(site.words, offered, "column")
        if not (isinstance(match, Bound) and match.how in ("exact", "normalised")):
            match = self._match_truth(plan, site, offered) or match
            if isinstance(match, Unbound):
                match = match_within_table(site.words, plan, offered, self._registry) or match
            added = match_added(plan, site, match, offered, self._registry)
            if isinstance(added, tuple):
                return await self._binder.ask("column", site.words, added, offered)
            match = added or match
        if isinstance(match, Bound):
            return Binding("column", site.words, match.candidate.value, TRUSTED_USER, match.how, match.score)
        by_cells = columns_by_cells(plan, site, self._registry) if isinstance(match, Unbound) else None
        if isinstance(match, Unbound) and by_cells is not None:
            # Columns that share a word with the mention stay possible: the cells alone do not overrule them.
            names = dict.fromkeys((*by_cells.names, *(each.value for each in match.near)))
            candidates = [each for each in offered if each.value in names]
            only = candidates[0]
            if by_cells.certain and len(candidates) == 1 and not show_candidate(1, only).suspicions:
                return Binding("column", site.words, only.value, by_cells.label, "value", 0.7)
            return await self._binder.ask("column", site.words, candidates, offered)
        use = ColumnUse(plan, site, self._registry)
        return await self._binder.bind("column", site.words, candidates=offered, use=use)

    def _match_truth(self, plan: Plan, site: ReferenceSite, offered: Sequence[Candidate]) -> Bound | None:
        """The only column of yes and no that is called so, where no other can be compared with what the plan says.

        *bezahlt* is a word of `paid` and of `payee`: who was paid is neither true nor false.
        """
        if not is_compared_with_truth(plan, site, self._registry):
            return None
        match = match_words(site.words, [each for each in offered if each.value in truth_columns(site)], "column")
        return match if isinstance(match, Bound) else None

    async def _truth_cell(self, plan: Plan, site: ReferenceSite, sites: Sequence[ReferenceSite]) -> TruthCell | None:
        """The cell that says what a column is asked for that does not exist, if its words are looked for once."""
        alone = sum(_key(each) == _key(site) for each in sites) == 1
        return await find_truth_cell(plan, site, self._registry) if site.refers == "column" and alone else None

    async def _select_rows(
        self, plan: Plan, found: dict[ReferenceSite, Binding | Question]
    ) -> tuple[dict[str, tuple[Step, ...]], tuple[Question, ...]]:
        """The selections behind the tables that words mean by their cells, and what has to be asked about them."""
        steps, inserted, questions = dict(walk(plan.steps)), dict[str, tuple[Step, ...]](), list[Question]()
        for site, binding in found.items():
            step = steps.get(site.path)
            if not isinstance(binding, Binding) or binding.kind != "table" or binding.how not in _BEYOND_NAMES:
                continue
            if not isinstance(step, Call) or step.name is None:
                continue
            table = await read_table(self._registry, step)
            terms = terms_of_cells(binding.words, str(binding.value), table)
            if not terms or compares_words(plan, step.name, terms, self._registry):
                continue
            choices = select_by_words(terms, table.rows, table.texts, whole=binding.how != "cells")
            label = join(binding.label, table.label)
            result = await self._choose_rows(plan, binding, choices, label)
            if isinstance(result, Question):
                questions.append(result)
            elif result.rows is not None:
                found[site] = result
                selecting = selection_step(step, binding.words, result.rows, result.label, self._registry)
                inserted[site.path] = (*inserted.get(site.path, ()), selecting)
        return inserted, tuple(dict.fromkeys(questions))

    async def _choose_rows(self, plan: Plan, binding: Binding, choices: RowChoices, label: Label) -> Binding | Question:
        """The binding of a table with the rows that are meant, or the question which ones."""
        unclear = _ask_again(replace(binding, label=label))
        if not choices.selections:
            # Known by its cells, and none of them is one that a plan could compare with.
            return unclear if binding.how == "cells" else binding
        if changes_file(plan, self._registry, str(binding.value)):
            # A plan that writes the table back would lose the other rows.
            return unclear
        if choices.only is not None:
            return replace(binding, label=label, rows=choices.only)
        by_column = {each.column: each for each in choices.selections}
        columns = [Candidate("column", name, (name,), label=label) for name in by_column]
        chosen = await self._binder.ask("column", binding.words, columns)
        if isinstance(chosen, Question):
            return chosen
        return replace(binding, label=join(label, chosen.label), rows=by_column[str(chosen.value)])

    async def _bind_by_kind(
        self, words: str, plausible: ColumnsOfKind, offered: Sequence[Candidate]
    ) -> Binding | Question:
        only = plausible.candidates[0]
        # A name that is suspicious is bound by a person alone.
        if plausible.sure and len(plausible.candidates) == 1 and not show_candidate(1, only).suspicions:
            return Binding("column", words, only.value, TRUSTED_USER, "kind", 0.7)
        return await self._binder.ask("column", words, plausible.candidates, offered)

    def _cells(self, plan: Plan, column: str) -> Sequence[Candidate]:
        """The texts in a column of this name, in all tables that the plan reads, with the labels of those tables."""
        cells: dict[str, Candidate] = {}
        for _, step in walk(plan.steps):
            tool = self._registry.get(step.tool) if isinstance(step, Call) else None
            if tool is None:
                continue
            literals = literal_arguments(step.args)
            texts = tool.column_texts(literals).get(column, frozenset())
            label = tool.result_labels(None, BIND_STEP, arguments=literals).flat
            for text in sorted(texts):
                cells.setdefault(text, Candidate("value", text, (text,), label=label))
        return tuple(cells.values())


async def bind_by_rules(plan: Plan, registry: Registry, *, today: dt.date | None = None) -> PlanBinding:
    """The plan bound by rules alone, for a check: no model is asked, and nobody.

    Args:
        plan: The plan. What it says that it is bound to is dropped, and found anew.
        registry: The tools, which know the world.
        today: The day of the request.

    Raises:
        BindError: Rules do not decide what some words mean.
    """
    plan = drop_bindings(plan)
    if not open_references(plan):
        return PlanBinding(bind_cells(plan, registry))
    bound = await PlanBinder(registry, Binder(WorldSource(registry, today=today))).bind(plan)
    bound.require()
    return bound


def planning_doubts(
    plan: Plan,
    intent: Intent,
    bindings: Sequence[Binding],
    registry: Registry,
    own: Collection[str],
    *,
    dropped: Sequence[str] = (),
    overridden: OverriddenRefusal | None = None,
) -> tuple[Doubt, ...]:
    """What is not sure about a plan: a refusal before it, words bound by a guess, invented constants, lost calls.

    Args:
        plan: The plan as people read it, with its references and the steps that binding inserted.
        intent: What it is for.
        bindings: What its words were bound to.
        registry: The tools.
        own: Values of the user's settings, such as the own addresses.
        dropped: The tools of calls that the planner wrote, and that nobody asked for.
        overridden: The refusal in whose place the plan was written.
    """
    # Its text is the planner's and names trusted tools: no text of the world is in it.
    refused = () if overridden is None else (Doubt("refused-before", str(overridden), TRUSTED_USER),)
    left = (
        Doubt("left-out", f"{name} was not called: the request does not ask for it", TRUSTED_USER) for name in dropped
    )
    return (*refused, *binding_doubts(bindings), *_constant_doubts(plan, intent, registry, own), *left)


def binding_doubts(bindings: Sequence[Binding]) -> tuple[Doubt, ...]:
    """The words of a plan that were bound by a guess; for a plan that a person wrote, whose constants are given."""
    guessed = (
        Doubt("unbound-word", text, binding.label) for binding in bindings if (text := _doubt_text(binding)) is not None
    )
    skipped = dict.fromkeys(binding.skipped for binding in bindings if binding.skipped is not None)
    missed = (Doubt("skipped-file", f"folders that could not be read: {each}", each.label) for each in skipped)
    return (*guessed, *missed)


def _doubt_text(binding: Binding) -> str | None:
    if binding.how == "naming":
        return f"nothing is called {display_name(binding.words)}; {display_name(str(binding.value))} is shown"
    if binding.how == "new":
        return f"there is no folder {display_name(binding.words)}; it is created"
    return f"{binding}, {_GUESSED[binding.how]}" if binding.how in _GUESSED else None


def _constant_doubts(plan: Plan, intent: Intent, registry: Registry, own: Collection[str]) -> Iterator[Doubt]:
    for constant in invented_constants(plan, intent, registry, own):
        text = f"the plan selects by {constant.value!r}, which the request does not say"
        yield Doubt("invented-constant", text, TRUSTED_USER, constant.path)
    for choice in chosen_directives(plan, intent, registry, own):
        text = (
            f"the plan chooses {choice.value!r} for {choice.tool} ({choice.argument}), which the request does not say"
        )
        yield Doubt("invented-constant", text, TRUSTED_USER, choice.path)


_Key = tuple[str, str, str]
"""The path of a step, and the kind and the words of a reference in it."""


def _key(site: ReferenceSite) -> _Key:
    return site.path, site.refers, site.words


def _literal_keys(sites: Iterable[ReferenceSite]) -> frozenset[_Key]:
    """The columns that stand as an argument which names no column: only their words are taken.

    Otherwise the heading that a stranger wrote would become a text, a path or a recipient of the plan, without a label.
    """
    return frozenset(_key(site) for site in sites if site.refers == "column" and site.names is None and site.tool)


def _find_conflicts(found: Mapping[ReferenceSite, Binding | Question]) -> Iterator[Question]:
    """The same words that mean two things in one step: which of them is meant where, only other words can say."""
    meanings: dict[_Key, dict[str, Candidate]] = {}
    for site, each in found.items():
        if isinstance(each, Binding):
            candidate = Candidate(each.kind, each.value, (each.name or str(each.value),), label=each.label)
            meanings.setdefault(_key(site), {}).setdefault(repr(each.value), candidate)
    for (_, _, words), candidates in meanings.items():
        if len(candidates) > 1:
            offered = tuple(candidates.values())
            shown = tuple(show_candidate(number, each) for number, each in enumerate(offered, 1))
            yield Question(offered[0].kind, words, "several", shown, offered, joined_label(offered))


class _Lookup:
    """What the references of a plan are bound to, by their site."""

    def __init__(self, found: Mapping[ReferenceSite, Binding | Question], literal: frozenset[_Key]) -> None:
        self._bindings: dict[_Key, Binding | None] = dict.fromkeys(literal)
        for site, binding in found.items():
            key = _key(site)
            known = self._bindings.get(key)
            if isinstance(binding, Question) or (known is not None and known.value != binding.value):
                # The same words mean two columns in one step: neither is taken.
                self._bindings[key] = None
            elif key not in self._bindings:
                self._bindings[key] = binding
            elif known is not None:
                # Found twice, perhaps among others: whoever could have changed one of the choices counts.
                self._bindings[key] = replace(known, label=join(known.label, binding.label))

    def find(self, path: str, reference: Reference) -> BoundTo | None:
        binding = self._bindings.get((path, reference.refers, reference.words))
        return None if binding is None else BoundTo(value=binding.value, label=label_tree_to_json(binding.label))


def _is_by_cells(result: Binding | Question) -> TypeGuard[Binding]:
    return isinstance(result, Binding) and result.how == "cells"


def _ask_again(binding: Binding) -> Question:
    """The question whether a file is meant that was found by its cells."""
    file = Candidate(binding.kind, binding.value, (binding.name or str(binding.value),), label=binding.label)
    return Question(binding.kind, binding.words, "none", (show_candidate(1, file),), (file,), binding.label, 1)


def _is_ready(site: ReferenceSite) -> bool:
    """Whether the candidates are known. A value that is compared with no column is a word like any other."""
    return site.refers not in ("column", "value") or site.names is not None or site.column is not None


def _take_literally(sites: Sequence[ReferenceSite], path: str, reference: Reference) -> BoundTo | None:
    """The words themselves, for a column or a value of something that is read only in the run."""
    unknown = any(_key(site) == (path, reference.refers, reference.words) for site in sites)
    if reference.refers not in ("column", "value") or not unknown:
        return None
    return BoundTo(value=reference.words, label=label_tree_to_json(TRUSTED_USER))
