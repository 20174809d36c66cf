"""What goes from one round to the next: values with their types and labels, under the names that plans gave them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from bicameral.boundary import Held
from bicameral.labels import EitherShade, Label, ListShade, RecordShade, Shade
from bicameral.plans import Answer, Const, DictOf, Plan
from bicameral.types import ANY, Type


def of_round(shade: Shade, number: int) -> Shade:
    """The same labels, saying of each source in which round it was: `2/0` of the first becomes `round1/2/0`.

    Steps are numbered from zero in every plan, and whoever is asked about a value must be told where it came from.
    Nothing else of a label changes.
    """
    match shade:
        case Label():
            return label_of_round(shade, number)
        case ListShade(places=None):
            return ListShade(label_of_round(shade.own, number), of_round(shade.item, number))
        case ListShade():
            places = [of_round(place, number) for place in shade.places or ()]
            return ListShade(label_of_round(shade.own, number), places=places)
        case RecordShade():
            fields = {name: of_round(each, number) for name, each in shade.fields.items()}
            return RecordShade(label_of_round(shade.own, number), fields, of_round(shade.rest, number))
        case EitherShade(as_list=as_list, as_record=as_record):
            both = of_round(as_list, number), of_round(as_record, number)
            return EitherShade(cast("ListShade", both[0]), cast("RecordShade", both[1]))


def label_of_round(label: Label, number: int) -> Label:
    """The same for one label."""
    sources = (replace(source, step=_step(source.step, number)) for source in label.sources)
    return Label(sources, label.readers)


def _step(step: str, number: int) -> str:
    return step if not step or step.startswith("round") else f"round{number}/{step}"


def left_by(plan: Plan, answer: Any, shade: Shade, types: Mapping[str, Type], number: int) -> dict[str, Held]:
    """The variables that a plan has left, out of what it answered."""
    match plan.steps[-1]:
        case Answer(value=DictOf(entries=entries)):
            names = [str(key.value) for key, _ in entries if isinstance(key, Const)]
        case _:
            names = []
    values = cast("dict[str, Any]", answer)
    return {
        name: Held(values[name], types.get(name, ANY), of_round(shade.field(name), number))
        for name in names
        if name in values
    }
