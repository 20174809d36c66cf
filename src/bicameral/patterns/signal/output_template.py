"""S6, output template: the reply is a value of a fixed type, on which code can rely.

Use it wherever a program reads what a model wrote. The model is constrained to the type while it writes. A reply that
still does not fit is written again and never coerced: a coerced value hides a failure. A value of the right type can
still be wrong, so `check` can test it. Where people read the result, a skeleton has the fields as gaps in a text; the
model fills the fields, and code puts them into the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from string import Formatter
from typing import Any, ClassVar, Final, Literal, TypedDict, cast

from bicameral.errors import CatalogError, RunError, nearest_name
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    Role,
    ValueCheck,
    map_labelled,
    render_value,
    vouched_value,
)
from bicameral.types import RecordType, Type, type_from_annotation

HOST = Role("Host", "Reply with one JSON object of the wanted form and nothing else.", max_tokens=256)
REPAIR = Role(
    "Repair",
    "Write the reply again as one JSON object of the wanted form. Change the form alone, and add nothing.",
    tier="small",
    max_tokens=256,
)


@dataclass(frozen=True)
class OutputTemplate(Pattern[[Labelled[str]], dict[str, Any]]):
    """Fill in a form, which is a `TypedDict` or any record type. The value has the label of the task.

    A reply that does not fit goes at most `retries` times to the Repair role, which does not see the task. A value that
    fits and has a placeholder left in it, or fails `check`, ends the run with `pattern.bad-value`; nothing is guessed.

    Args:
        skeleton: A text with every field of the form as a gap, such as `"Dear {name}, …"`. The model is shown it, so
            that the values fit their places; `render` fills it in.

    Example:
        >>> ticket = OutputTemplate.of(Ticket)
        >>> outcome = await ticket.run(runtime, program_text("The app crashes when I print."))
        >>> outcome.value["kind"]
        'bug'
    """

    id: ClassVar[str] = "S6"
    wanted: Type
    retries: int = 1
    host: Role = HOST
    repair: Role = REPAIR
    check: ValueCheck | None = None
    skeleton: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.skeleton is not None:
            # It is trusted text in every prompt.
            vouched_value(self.skeleton)
            _check_skeleton(self.skeleton, self.wanted)

    @classmethod
    def of(
        cls, form: Any, *, retries: int = 1, check: ValueCheck | None = None, skeleton: str | None = None
    ) -> OutputTemplate:
        """An output template for a Python annotation."""
        return cls(type_from_annotation(form), retries, check=check, skeleton=skeleton)

    async def execute(self, context: Context, /, task: Labelled[str]) -> Labelled[dict[str, Any]]:
        # In the fixed beginning of the prompt, which can be cached for all tasks.
        stable = [context.derive(render_form(self.wanted))]
        if self.skeleton is not None:
            stable.append(context.derive(f"The fields go into the gaps of this text:\n{self.skeleton}"))
        value = await context.fill(
            self.host, task, wanted=self.wanted, stable=stable, retries=self.retries, repair=self.repair
        )
        return await context.run_part("check", partial(_check_value, value, self.check))

    def render(self, value: Labelled[dict[str, Any]]) -> Labelled[str]:
        """The skeleton with the fields of a value in its gaps. The text has the labels of all of them.

        Example:
            >>> letter = OutputTemplate.of(Bill, skeleton="{payer} owes {amount} euros.")
            >>> letter.render((await letter.run(runtime, task)).labelled)
        """
        if self.skeleton is None:
            raise CatalogError("pattern.bad-skeleton", "this output template has no skeleton")
        return map_labelled(value, partial(_fill_skeleton, self.skeleton))


def _skeleton_parts(skeleton: str) -> list[tuple[str, str | None]]:
    """The literal texts of a skeleton, each with the name of the gap behind it."""
    try:
        parts = list(Formatter().parse(skeleton))
    except ValueError as error:
        raise CatalogError("pattern.bad-skeleton", f"the skeleton cannot be read: {error}") from None
    if any(spec or conversion for _, _, spec, conversion in parts):
        raise CatalogError("pattern.bad-skeleton", "a gap of the skeleton has more than a name", expected="{name}")
    return [(text, name) for text, name, _, _ in parts]


def _check_skeleton(skeleton: str, wanted: Type) -> None:
    gaps = {name for _, name in _skeleton_parts(skeleton) if name is not None}
    fields = {each.name for each in wanted.fields} if isinstance(wanted, RecordType) else set[str]()
    if gaps != fields:
        other = min(gaps ^ fields)
        raise CatalogError(
            "pattern.bad-skeleton",
            f"the skeleton and the form do not go together: {other!r}",
            expected=f"a gap for each field: {', '.join(sorted(fields)) or 'the form is no record'}",
            nearest=nearest_name(other, fields) if other in gaps else None,
        )


def _fill_skeleton(skeleton: str, value: Mapping[str, Any]) -> str:
    # By hand and not with `format`: what stands in a value is never read as a gap or as an attribute.
    return "".join(
        text if name is None else f"{text}{'-' if value[name] is None else render_value(value[name])}"
        for text, name in _skeleton_parts(skeleton)
    )


async def _check_value(
    value: Labelled[dict[str, Any]], check: ValueCheck | None, part: Context
) -> Labelled[dict[str, Any]]:
    filled = part.read(value)
    problem = "a placeholder is left in it" if has_placeholder(filled) else None if check is None else check(filled)
    if problem is not None:
        # What is wrong may quote the value.
        why = f": {problem}" if value.label.trusted else ""
        raise RunError("pattern.bad-value", f"the reply has the wanted form and a wrong value{why}")
    return value


_PLACEHOLDER = re.compile(r"\s*(?:[.…]+|[<{\[(]{1,2}\s*(?P<name>[\w -]{1,60}?)\s*[>}\])]{1,2})\s*")
_TYPE_NAMES = frozenset({"str", "string", "text", "int", "integer", "number", "value", "date", "bool", "boolean"})


def has_placeholder(value: Any, name: str = "value") -> bool:
    """Whether a text in a value stands for one that was to be filled in: `<product>`, `{text}` or `...` alone.

    Example:
        >>> has_placeholder({"product": "[product]"}), has_placeholder({"product": "[beta] printer"})
        (True, False)
    """
    if isinstance(value, str):
        found = _PLACEHOLDER.fullmatch(value)
        inside = "" if found is None else (found["name"] or name).casefold().replace(" ", "_").replace("-", "_")
        return inside == name.casefold() or inside in _TYPE_NAMES
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return any(has_placeholder(each, field) for field, each in fields.items())
    if isinstance(value, list | tuple):
        return any(has_placeholder(each, name) for each in cast("Sequence[Any]", value))
    return False


def render_form(wanted: Type) -> str:
    """The fields of a form with their types, as a model reads them."""
    if not isinstance(wanted, RecordType):
        return f"Fields:\n- value ({wanted})"
    return "Fields:\n" + "\n".join(f"- {each.name} ({each.type})" for each in wanted.fields)


def name_fields(wanted: Type) -> str:
    """What a form asks for, in an error. Without the names of types, which a recorded pattern no longer has."""
    if not isinstance(wanted, RecordType):
        return "one value of the declared type"
    return f"the declared fields alone: {', '.join(each.name for each in wanted.fields)}"


# An example ---------------------------------------------------------------------------------------------------------


class _Ticket(TypedDict):
    kind: Literal["bug", "question", "praise"]
    product: str
    urgent: bool


_TASK: Final = "Sort this message: The billing page crashes each time I print, please help before tonight!"


def _is_correct(outcome: Answered[dict[str, Any]]) -> bool:
    value = outcome.value
    return value["kind"] == "bug" and "billing" in value["product"].lower() and value["urgent"] is True


EXAMPLE = PatternExample(
    "A message becomes a ticket with a kind, a product and a flag.",
    lambda folder: OutputTemplate.of(_Ticket),
    _TASK,
    _is_correct,
    lambda folder: {
        "setup": f"{HOST.setup}\n\n{render_form(type_from_annotation(_Ticket))}",
        "input": _TASK,
        "output": 24,
    },
)
