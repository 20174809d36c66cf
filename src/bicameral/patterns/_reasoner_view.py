"""What a planner reads about earlier rounds: views of results, the history, and the variables that they left.

Channel rules decide which values are shown. Everything else is a handle, and here a handle is the variable itself: the
next plan uses `mails[0].body` without any model having read it. That such a text exists follows from its type, which
was known before, so a text that is not shown adds nothing to the label of the view; its length, which an attacker
chooses, is not shown either. Everything else in a view carries its label: values, counts, and whether there is a value
at all. The newest round is shown in full; the oldest get one line each once the history is long.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bicameral.boundary import HandleContent, HandleTable, ViewLevel, privileged_view
from bicameral.labels import NOTHING, Label, LabelTree, join, join_all, rename_steps
from bicameral.patterns._history import count_shortened
from bicameral.patterns._reasoner_types import Round
from bicameral.plans import Answer, Const, DictOf, Plan
from bicameral.types import ANY, MONEY, ListType, OptionalType, RecordType, StrType, TupleType, Type, is_bounded


def tree_of_round(tree: LabelTree, number: int) -> LabelTree:
    """The same labels with the round in the step of each source: `2/0` of the first round becomes `round1/2/0`.

    Every plan numbers its steps from zero, so without the round an approver could not see where a value came from.
    Nothing else of a label changes.
    """
    return rename_steps(tree, lambda step: step if step.startswith("round") else f"round{number}/{step}")


def label_of_round(label: Label, number: int) -> Label:
    """Like `tree_of_round`, for one label."""
    return tree_of_round(label, number).flat


def variables_left_by(
    plan: Plan, answer: Any, tree: LabelTree, types: Mapping[str, Type], number: int
) -> dict[str, HandleContent]:
    """The variables that a plan left, taken from its answer."""
    match plan.steps[-1]:
        case Answer(value=DictOf(entries=entries)):
            names = [str(key.value) for key, _ in entries if isinstance(key, Const)]
        case _:
            names = []
    values = cast("dict[str, Any]", answer)
    return {
        name: HandleContent(values[name], types.get(name, ANY), tree_of_round(tree.field(name), number))
        for name in names
        if name in values
    }


_HANDLE_KEYS = {"handle", "kind", "length", "origin"}
_LIST_KEYS = {"count", "first", "all"}


@dataclass(frozen=True, slots=True)
class ResultView:
    """A result as the planner reads it, and the label of what is shown."""

    text: str
    label: Label


def view_result(content: HandleContent, level: ViewLevel = "scalars", *, as_type: Type | None = None) -> ResultView:
    """One result as the planner reads it; `as_type` is its type with the field names that the planner may read.

    Example:
        >>> view_result(HandleContent([{"paid": True, "note": "…"}], ListType(record), tree)).text
        '1 item: {paid: true, note: <text>}'
    """
    view = privileged_view(content.value, content.type, content.label_tree, HandleTable("view"), level=level)
    text = _render_view(view, content.type, content.type if as_type is None else as_type)
    return ResultView(text, _view_label(view, content.type, content.label_tree))


def _render_view(seen: Any, type_: Type, names: Type) -> str:
    """The view of a value as text, with the field names of `names`, a type of the same structure."""
    match seen, type_:
        case _, OptionalType(item=item) if seen is not None:
            return _render_view(seen, item, names.item if isinstance(names, OptionalType) else names)
        case _, ListType() | TupleType() if _has_keys(seen, _LIST_KEYS):
            return _render_items(seen["count"], seen["first"], type_, names)
        case dict(), RecordType() if _has_keys(seen, set(type_.names)):
            return _render_record(cast("dict[str, Any]", seen), type_, names)
        case _, StrType(format=kind) if _has_keys(seen, _HANDLE_KEYS) and not is_bounded(type_):
            # Only the type decides this text: the view does not even show that a value is not of its type.
            return f"<{kind or 'text'}>"
        case {"handle": _, "kind": str() as kind}, _:
            return f"<{kind}>"
        case _:
            return json.dumps(seen)


def _render_record(seen: dict[str, Any], type_: RecordType, names: Type) -> str:
    """The fields in their order; only `<record>` unless every field has a name that the planner may read."""
    if type_ == MONEY:
        names = MONEY
    if not isinstance(names, RecordType) or len(names.fields) != len(type_.fields):
        return "<record>"
    pairs = zip(type_.fields, names.fields, strict=True)
    return "{" + ", ".join(f"{to.name}: {_render_view(seen[of.name], of.type, to.type)}" for of, to in pairs) + "}"


def _render_items(count: int, first: list[Any], type_: ListType | TupleType, names: Type) -> str:
    types = _item_types(type_, len(first))
    named = _item_types(names, len(first)) if isinstance(names, ListType | TupleType) else (ANY,) * len(first)
    items = [_render_view(each, inner, to) for each, inner, to in zip(first, types, named, strict=False)]
    more = ["…"] if count > len(first) else []
    return f"{count} item{'' if count == 1 else 's'}" + (": " + ", ".join(items + more) if items else "")


def _item_types(type_: ListType | TupleType, count: int) -> tuple[Type, ...]:
    return type_.items if isinstance(type_, TupleType) else (type_.item,) * count


def _view_label(seen: Any, type_: Type, tree: LabelTree) -> Label:
    """The label of what a view shows. The type decides, since untrusted data may imitate the shape of a view."""
    match type_:
        case StrType() if _has_keys(seen, _HANDLE_KEYS) and not is_bounded(type_):
            return NOTHING
        case ListType() | TupleType() if _has_keys(seen, _LIST_KEYS):
            first = cast("list[Any]", seen["first"])
            pairs = enumerate(zip(first, _item_types(type_, len(first)), strict=False))
            return join(tree.own, join_all(_view_label(each, inner, tree.place(at)) for at, (each, inner) in pairs))
        case RecordType(fields=fields) if _has_keys(seen, set(type_.names)):
            # The field names may come from a table, so the label of the record itself counts too.
            parts = (_view_label(seen[field.name], field.type, tree.field(field.name)) for field in fields)
            return join(tree.own, join_all(parts))
        case _:
            return tree.flat


def _has_keys(seen: Any, keys: set[str]) -> bool:
    return isinstance(seen, dict) and set(cast("dict[str, Any]", seen)) == keys


MAX_HISTORY = 4_000
"""Characters beyond which the oldest rounds are shown in one line each. The newest is never shortened."""
_LONGEST_TYPE = 120


def render_history(rounds: Sequence[Round], variables: Mapping[str, Type], *, most: int = MAX_HISTORY) -> str:
    """The rounds so far and the variables that they left; empty before the first round."""
    if not rounds:
        return ""
    parts, lines = [_render_round(each) for each in rounds], [_render_round_line(each) for each in rounds]
    shortened = count_shortened([len(each) for each in parts], [len(each) for each in lines], most)
    parts[:shortened] = lines[:shortened]
    return "\n".join(("Done so far:", *parts, *_variable_lines(variables), "Write the plan for what is left to do."))


def _render_round(each: Round) -> str:
    lines = [f"plan {each.number}:"]
    lines += [f"  {line}" for line in each.draft.splitlines() if not line.startswith('"""')]
    lines += [f"  # {line}" for line in _round_results(each)]
    return "\n".join(lines)


def _render_round_line(each: Round) -> str:
    done = ", ".join(dict.fromkeys(effect.tool for effect in each.effects))
    if each.failure is not None:
        return f"plan {each.number}: {each.failure}" + (f"; done before that: {done}" if done else "")
    left = ", ".join(each.left) or "nothing"
    return f"plan {each.number}: left {left}" + (f"; done: {done}" if done else "")


def _round_results(each: Round) -> list[str]:
    """The lines on a round's results: their views, where it failed, and the effects it had."""
    lines = list(each.told)
    if each.failure is not None:
        lines.append(str(each.failure))
    done = dict.fromkeys(effect.tool for effect in each.effects)
    return lines + ([f"done, do not do it again: {', '.join(done)}"] if done else [])


def _variable_lines(variables: Mapping[str, Type]) -> list[str]:
    shown = [f"{name} ({_shorten_type(type_)})" for name, type_ in variables.items()]
    return [f"You can use: {', '.join(shown)}."] if shown else []


def _shorten_type(type_: Type) -> str:
    text = str(type_)
    return text if len(text) <= _LONGEST_TYPE else f"{text[: _LONGEST_TYPE - 1]}…"
