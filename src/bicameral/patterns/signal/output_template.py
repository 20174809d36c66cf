"""S6, output template: the reply is a value of a fixed type, on which code can rely.

Use it wherever a program reads what a model wrote. The model is constrained to the type while it writes. A reply that
still does not fit is written again and never coerced: a coerced value hides a failure. A value of the right type can
still be wrong, so `check` can test it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypedDict

from bicameral.errors import RunError
from bicameral.patterns.kernel import Answered, Context, Labelled, Pattern, PatternExample, Role, ValueCheck
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
    fits and fails `check` ends the run with `pattern.bad-value`, and no other value is guessed.

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

    @classmethod
    def of(cls, form: Any, *, retries: int = 1, check: ValueCheck | None = None) -> OutputTemplate:
        """An output template for a Python annotation."""
        return cls(type_from_annotation(form), retries, check=check)

    async def execute(self, context: Context, /, task: Labelled[str]) -> Labelled[dict[str, Any]]:
        # In the fixed beginning of the prompt, which can be cached for all tasks.
        form = context.derive(_render_form(self.wanted))
        value = await context.fill(
            self.host, task, wanted=self.wanted, stable=[form], retries=self.retries, repair=self.repair
        )
        check = self.check
        return value if check is None else await context.run_part("check", partial(_check_value, value, check))


async def _check_value(value: Labelled[dict[str, Any]], check: ValueCheck, part: Context) -> Labelled[dict[str, Any]]:
    problem = check(part.read(value))
    if problem is not None:
        # What is wrong may quote the value.
        why = f": {problem}" if value.label.trusted else ""
        raise RunError("pattern.bad-value", f"the reply has the wanted form and a wrong value{why}")
    return value


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
