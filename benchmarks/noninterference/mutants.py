"""Label rules with one mistake each: a measurement that cannot fail would show nothing.

A mutant replaces a function of the label rules wherever it is used, in the proof and in the run alike, as a slip in the
function itself would. Memories of labels are emptied before and after.
"""

# Mistakes are put in the place of private functions, whose types do not matter here.
# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportPrivateImportUsage=false

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from bicameral.labels import NOTHING, PUBLIC, Label, LabelTree, Source, join, make_labelled, open_labelled
from bicameral.patterns import Context
from bicameral.plans.labels import _proof as proofs, _storage as places, _transfer as steps
from bicameral.tools import _call_labels as attached, _call_labels as results

from . import execution

Change = tuple[Any, Any]
"""A function, and what stands in its place."""


def _condition_forgotten() -> list[Change]:
    """A branch or loop does not add what decided it to the control flow."""
    return [(steps.pc_inside, lambda pc, decided_by, mode: pc)]


def _branch_not_taken_forgotten() -> list[Change]:
    """What a branch may have changed does not carry its condition where it was not taken."""
    return [(steps.branch_names, lambda step: frozenset[str]())]


def _early_answer_forgotten() -> list[Change]:
    """That a run has not ended tells nothing about what follows."""
    return [(steps.pc_after, lambda step, pc, inside: pc)]


def _arguments_forgotten() -> list[Change]:
    """What a call gave has none of the labels of what it was given."""
    return [(results.join_arguments, lambda own, arguments, keeps, top: own if own is not NOTHING else _TRUSTED)]


def _extract_trusted() -> list[Change]:
    """What the quarantined model writes counts as a service's, with the labels of what it read left out."""
    return [(steps.labels_after_extract, lambda source, instruction, path, pc: join(_TRUSTED, pc))]


def _extract_public() -> list[Change]:
    """What the quarantined model writes may be read by everyone."""

    def after(source: LabelTree, instruction: LabelTree, path: str, pc: Label) -> Label:
        found = original(source, instruction, path, pc)
        return Label(found.sources, PUBLIC)

    original = steps.labels_after_extract
    return [(original, after)]


def _places_forgotten() -> list[Change]:
    """What is written somewhere and read again has lost its labels."""
    return [(places.recall_stored_labels, lambda tool, shades, values, env: (shades, NOTHING))]


def _loop_names_forgotten() -> list[Change]:
    """The items of a loop are the user's own."""
    return [(steps.turn_labels, lambda step, over, inside, mode: dict.fromkeys(step.names, _TRUSTED))]


def _update_forgotten() -> list[Change]:
    """What is added to a list, a number or a text does not add its labels."""
    return [(steps.labels_after_update, lambda step, env, pc, mode: env.get(step.name, NOTHING))]


def _attached_public() -> list[Change]:
    """Everyone may read what goes along by its name."""

    def label(origin: Any, tool: str, argument: str, step: str) -> Label:
        return Label({Source("system", tool, argument, step)}, PUBLIC)

    return [(attached.attached_label, label)]


def _serialised_trusted() -> list[Change]:
    """What one round leaves to the next comes back as the user's own."""

    def start(each: Any, outcome: Any, before: Any) -> Any:
        found = original(each, outcome, before)
        variables = {name: replace(held, label_tree=_TRUSTED) for name, held in found.variables.items()}
        return replace(found, variables=variables)

    original = execution.go_on_from
    return [(original, start)]


def _proof_forgets_conditions() -> list[Change]:
    """The proof alone takes every call for one that no stranger decides."""

    def prove(*given: Any, **more: Any) -> Any:
        decide = given[2]
        return original(*given[:2], lambda facts: decide(replace(facts, pc=NOTHING)), *given[3:], **more)

    original: Any = proofs.prove
    return [(original, prove)]


def _name_of_place_forgotten() -> list[Change]:
    """That something else was not written to is known to everybody, whoever may know what was."""

    def written(tool: Any, shades: Any, values: Any, found: Any, pc: Any, env: Any, result: object = None) -> Any:
        changed = original(tool, shades, values, found, pc, env, result)
        known = all(name in values for name in shades) and not tool.has_fresh_names
        return (
            changed | {places._PLACE_PREFIX: env.get(places._PLACE_PREFIX, NOTHING)} if changed and known else changed
        )

    original = places.places_after_call
    return [(original, written)]


def _told_in_a_branch() -> list[Change]:
    """Who may read a thing is known to everybody as soon as any call tells of it, whatever decided that."""

    def readers(tool: Any, shades: Any, values: Any, found: Any, pc: Any, env: Any, result: object) -> Any:
        return original(tool, dict.fromkeys(shades, NOTHING), values, NOTHING, NOTHING, env, result)

    original = places.readers_after_call
    return [(original, readers)]


def _opened_forgotten() -> list[Change]:
    """A pattern that opens a value and decides by it goes on as if it had not."""
    return [(Context.read, lambda self, closed: open_labelled(closed))]


def _part_forgotten() -> list[Change]:
    """What a part of a pattern gives has the labels of the value alone, and not of what the part has opened."""

    async def run_part(self: Context, name: str, work: Any) -> Any:
        return await work(self.part(name))

    return [(Context.run_part, run_part)]


def _parallel_part_forgotten() -> list[Change]:
    """The same for parts that run side by side."""

    async def run_parallel(self: Context, works: Any, **options: Any) -> Any:
        return [await work(self.part(name)) for name, work in works]

    return [(Context.run_parallel, run_parallel)]


def _reply_forgotten() -> list[Change]:
    """What a model replies within a pattern is the user's own, whatever it has read."""

    async def ask(self: Context, *given: Any, **options: Any) -> Any:
        return make_labelled(open_labelled(await original(self, *given, **options)), _TRUSTED)

    original: Any = Context.ask
    return [(original, ask)]


_TRUSTED = Label({Source("user", "request")})

MUTANTS: Mapping[str, Callable[[], list[Change]]] = {
    change.__name__.removeprefix("_").replace("_", "-"): change
    for change in (
        _condition_forgotten,
        _branch_not_taken_forgotten,
        _early_answer_forgotten,
        _arguments_forgotten,
        _extract_trusted,
        _extract_public,
        _places_forgotten,
        _name_of_place_forgotten,
        _told_in_a_branch,
        _loop_names_forgotten,
        _update_forgotten,
        _attached_public,
        _serialised_trusted,
        _proof_forgets_conditions,
        _opened_forgotten,
        _part_forgotten,
        _parallel_part_forgotten,
        _reply_forgotten,
    )
}


@contextmanager
def mutated(name: str | None) -> Generator[None]:
    """Let one mistake hold, everywhere; none if there is no name."""
    changes = MUTANTS[name]() if name else []
    undo = [entry for old, new in changes for entry in _replaced(old, new)]
    _forget()
    try:
        yield
    finally:
        for module, attribute, old in undo:
            setattr(module, attribute, old)
        _forget()


def _replaced(old: Any, new: Any) -> list[tuple[Any, str, Any]]:
    found: list[tuple[Any, str, Any]] = []
    modules = [each for name, each in sys.modules.items() if name.startswith(("bicameral", "benchmarks.noninter"))]
    # A method is found in its class.
    for owner in (*modules, *Context.__mro__[:-1]):
        for attribute, value in list(vars(owner).items()):
            if value is old:
                setattr(owner, attribute, new)
                found.append((owner, attribute, old))
    if not found:
        raise LookupError(f"{old!r} is used nowhere")
    return found


def _forget() -> None:
    """Empty what the label rules remember."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("bicameral.labels", "bicameral.plans", "bicameral.tools", "benchmarks.noninterference")):
            for value in list(vars(module).values()):
                if callable(getattr(value, "cache_clear", None)):
                    value.cache_clear()
