"""S6, output template: the reply has a fixed shape, which code can rely on.

Use it wherever a program reads what a model wrote. The shape is a type, the model is held to it while it writes, and
what does not fit all the same is written again, never mended: a value that was bent into shape hides a failure. That
the shape is right says nothing of the values, so there is room for a check of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypedDict

from bicameral.errors import RunError
from bicameral.patterns.kernel import Answered, Context, Labelled, Pattern, PatternExample, Role
from bicameral.types import RecordType, Type, type_from_annotation

HOST = Role("Host", "Reply with one JSON object of the wanted form and nothing else.", max_tokens=256)
REPAIR = Role(
    "Repair",
    "Write the reply again as one JSON object of the wanted form. Change the form alone, and add nothing.",
    tier="small",
    max_tokens=256,
)
ValueCheck = Callable[[Any], str | None]
"""Says what is wrong with a value, in words of its own, or nothing."""


@dataclass(frozen=True)
class OutputTemplate(Pattern[[Labelled[str]], dict[str, Any]]):
    """The form is a `TypedDict` (or any record type); the value that comes is one of it, with the labels of the task.

    A reply that does not fit goes to the Repair, who does not see the task, at most `retries` times. A value that fits
    and that `check` finds wrong ends it: nobody may guess another one.

    Example:
        >>> ticket = OutputTemplate.of(Ticket)
        >>> outcome = await ticket.run(desk, program_text("The app crashes when I print."))
        >>> outcome.value["kind"]
        'bug'
    """

    id: ClassVar[str] = "S6"
    wanted: Type
    retries: int = 1
    host: Role = HOST
    repair: Role = REPAIR
    check: ValueCheck | None = None

    @classmethod
    def of(cls, form: Any, *, retries: int = 1, check: ValueCheck | None = None) -> OutputTemplate:
        """For a form that is written as a Python annotation."""
        return cls(type_from_annotation(form), retries, check=check)

    async def execute(self, stage: Context, /, task: Labelled[str]) -> Labelled[dict[str, Any]]:
        # The form stands in the fixed beginning of the prompt, so that it is read once however many tasks there are.
        form = stage.derive(_render_form(self.wanted))
        made = await stage.fill(
            self.host, task, wanted=self.wanted, stable=[form], retries=self.retries, repair=self.repair
        )
        return (
            made
            if self.check is None
            else await stage.run_part("check", lambda part: _check_value(part, made, self.check))
        )


async def _check_value(
    part: Context, made: Labelled[dict[str, Any]], check: ValueCheck | None
) -> Labelled[dict[str, Any]]:
    problem = check(part.read(made)) if check is not None else None
    if problem is not None:
        raise RunError("pattern.bad-value", f"the reply has the wanted form and a wrong value: {problem}")
    return made


def _render_form(wanted: Type) -> str:
    if not isinstance(wanted, RecordType):
        return f"Fields:\n- value ({wanted})"
    return "Fields:\n" + "\n".join(f"- {each.name} ({each.type})" for each in wanted.fields)


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
        "setup": f"{HOST.setup}\n\n{_render_form(type_from_annotation(_Ticket))}",
        "input": _TASK,
        "output": 24,
    },
)
