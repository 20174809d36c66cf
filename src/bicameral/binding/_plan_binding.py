"""Binding of a plan: its references become values of the world, table by table, or questions.

What a column can be is known only once the file before it is bound, and what a table is after a step that selects or
joins only once the columns of that step are. So the plan is bound in rounds; each asks the check of plans which
references are open and what is known of their candidates. What a bound plan rests on is told as doubts to the person
who reads its answer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bicameral.binding._binder import Binder, Binding, Question, show_candidate
from bicameral.binding._candidates import BIND_STEP, Candidate, joined_label
from bicameral.binding._column_kinds import ColumnsOfKind, columns_by_kind
from bicameral.binding._compared import columns_by_cells
from bicameral.binding._matching import Unbound, match_words
from bicameral.binding._screening import display_name
from bicameral.binding._world_source import TEXT_ENDINGS, WorldSource
from bicameral.errors import BindError
from bicameral.labels import TRUSTED_USER, join, label_tree_to_json
from bicameral.planning import Intent, chosen_directives, invented_constants
from bicameral.plans import (
    BoundTo,
    Call,
    Plan,
    Reference,
    ReferenceSite,
    bind_cells,
    bind_references,
    drop_bindings,
    literal_arguments,
    open_references,
    reference_sites,
    walk,
)
from bicameral.runs import Doubt
from bicameral.tools import Registry, Tool
from bicameral.types import Type

_GUESSED = {
    "model": "as the quarantined model chose",
    "meaning": "by its meaning",
    "newest": "since it is the newest",
    "cells": "by what it contains",
    "value": "since its cells have what it is compared with",
}
"""The ways of binding that may be wrong though only one candidate was left."""


@dataclass(frozen=True, slots=True)
class PlanBinding:
    """A plan after binding.

    Args:
        plan: The plan with what its references were bound to; open where there is a question.
        bindings: What words were bound to, each once, in the order of the plan.
        questions: What only a person can decide.
    """

    plan: Plan
    bindings: tuple[Binding, ...] = ()
    questions: tuple[Question, ...] = ()

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
                found[site] = await self._bind_site(plan, site)
            plan = bind_references(plan, _Lookup(found, _literal_keys(self._sites(plan, scope, found))).find)
        # What is known only in the run, such as the fields of a web service, is looked up by the words themselves: a
        # name that is not there is an error of the run.
        plan = bind_references(plan, partial(_take_literally, self._sites(plan, scope, found)))
        asked = (each for each in found.values() if isinstance(each, Question))
        questions = tuple(dict.fromkeys((*asked, *_find_conflicts(found))))
        if not questions:
            # What a column is decides how its cells are compared, so that this comes when all columns are known.
            plan = bind_cells(plan, self._registry, scope)
        bindings = {(each.kind, each.words, each.value): each for each in found.values() if isinstance(each, Binding)}
        return PlanBinding(plan, tuple(bindings.values()), questions)

    def _sites(
        self, plan: Plan, scope: Mapping[str, Type] | None, found: Mapping[ReferenceSite, object]
    ) -> list[ReferenceSite]:
        return [site for site in reference_sites(plan, self._registry, scope) if site not in found]

    def _ready_sites(
        self, plan: Plan, scope: Mapping[str, Type] | None, found: Mapping[ReferenceSite, object]
    ) -> list[ReferenceSite]:
        return [site for site in self._sites(plan, scope, found) if _is_ready(site)]

    async def _bind_site(self, plan: Plan, site: ReferenceSite) -> Binding | Question:
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
                return await self._bind_file(site.words, self._registry.get(site.tool) if site.tool else None)
            case kind:
                return await self._binder.bind(kind, site.words)

    async def _bind_column(self, plan: Plan, site: ReferenceSite, offered: Sequence[Candidate]) -> Binding | Question:
        if plausible := columns_by_kind(site, offered):
            return await self._bind_by_kind(site.words, plausible)
        match = match_words(site.words, offered, "column")
        by_cells = columns_by_cells(plan, site, self._registry) if isinstance(match, Unbound) else None
        if isinstance(match, Unbound) and by_cells is not None:
            # Columns that share a word with the mention stay possible: the cells alone do not overrule them.
            names = dict.fromkeys((*by_cells.names, *(each.value for each in match.near)))
            candidates = [each for each in offered if each.value in names]
            only = candidates[0]
            if by_cells.certain and len(candidates) == 1 and not show_candidate(1, only).suspicions:
                return Binding("column", site.words, only.value, by_cells.label, "value", 0.7)
            return await self._binder.ask("column", site.words, candidates)
        return await self._binder.bind("column", site.words, candidates=offered)

    async def _bind_by_kind(self, words: str, plausible: ColumnsOfKind) -> Binding | Question:
        only = plausible.candidates[0]
        # A name that is suspicious is bound by a person alone.
        if plausible.sure and len(plausible.candidates) == 1 and not show_candidate(1, only).suspicions:
            return Binding("column", words, only.value, TRUSTED_USER, "kind", 0.7)
        return await self._binder.ask("column", words, plausible.candidates)

    async def _bind_file(self, words: str, tool: Tool | None) -> Binding | Question:
        """A file that the tool can read; if another one fits, the question says which tool reads that."""
        if tool is None or not tool.table_endings:
            return await self._binder.bind("file", words)
        result = await self._binder.bind("table", words, endings=tool.table_endings)
        if isinstance(result, Binding):
            return result
        other = await self._binder.bind_by_rules("file", words)
        path = str(other.value) if other is not None else ""
        if not path or path.lower().endswith(tool.table_endings):
            return result
        note = f"{display_name(path)} fits, but {tool.name} reads only {', '.join(tool.table_endings)}"
        reader = self._reader_of(path)
        return replace(result, note=f"{note}; {reader} reads it." if reader else f"{note}.")

    def _reader_of(self, path: str) -> str | None:
        """The tool that reads a file of this ending."""
        tables = [name for name in self._registry.names if path.lower().endswith(self._endings(name))]
        if tables:
            return tables[0]
        return "read_text" if path.lower().endswith(TEXT_ENDINGS) and self._registry.get("read_text") else None

    def _endings(self, name: str) -> tuple[str, ...]:
        tool = self._registry.get(name)
        return tool.table_endings if tool is not None else ()

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
) -> tuple[Doubt, ...]:
    """What is not sure about a plan: words that were bound by a guess, constants that nobody gave, calls left out.

    Args:
        plan: The plan as it was written, with its references.
        intent: What it is for.
        bindings: What its words were bound to.
        registry: The tools.
        own: Values of the user's settings, such as the own addresses.
        dropped: The tools of calls that the planner wrote, and that nobody asked for.
    """
    left = (
        Doubt("left-out", f"{name} was not called: the request does not ask for it", TRUSTED_USER) for name in dropped
    )
    return (*binding_doubts(bindings), *_constant_doubts(plan, intent, registry, own), *left)


def binding_doubts(bindings: Sequence[Binding]) -> tuple[Doubt, ...]:
    """The words of a plan that were bound by a guess; for a plan that a person wrote, whose constants are given."""
    return tuple(
        Doubt("unbound-word", f"{binding}, {_GUESSED[binding.how]}", binding.label)
        for binding in bindings
        if binding.how in _GUESSED
    )


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


def _is_ready(site: ReferenceSite) -> bool:
    """Whether the candidates are known. A value that is compared with no column is a word like any other."""
    return site.refers not in ("column", "value") or site.names is not None or site.column is not None


def _take_literally(sites: Sequence[ReferenceSite], path: str, reference: Reference) -> BoundTo | None:
    """The words themselves, for a column or a value of something that is read only in the run."""
    unknown = any(_key(site) == (path, reference.refers, reference.words) for site in sites)
    if reference.refers not in ("column", "value") or not unknown:
        return None
    return BoundTo(value=reference.words, label=label_tree_to_json(TRUSTED_USER))
