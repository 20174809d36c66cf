"""V20, schema validation: every reply is checked against one schema, and sent back with the exact error, then it ends.

Use it where code reads the output and there are rules beyond its form. One type makes the form in the prompt, the
grammar and the validator; `check` says what must hold between its fields. Nothing is coerced. A reply that fails goes
to the Asker, in a session of its own, with the question before it and the validator's own words behind it. After the
last retry the declared exit is taken, and there is always exactly one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypedDict

from bicameral.errors import CatalogError, ModelError, RunError
from bicameral.patterns.kernel import Answered, Context, Labelled, Pattern, PatternExample, Role, ValueCheck
from bicameral.patterns.kernel._codec import fingerprint
from bicameral.patterns.signal.output_template import name_fields, render_form
from bicameral.types import RecordType, Type, mismatch, type_from_annotation, type_json_schema

HOST = Role("Host", "Reply with one JSON object of the wanted form and nothing else.", max_tokens=256)
ASKER = Role(
    "Asker",
    "Correct the reply as little as the error asks for. Reply with one JSON object of the wanted form and nothing "
    "else.",
    tier="small",
    max_tokens=256,
)


@dataclass(frozen=True)
class FailExit:
    """The exit that ends the run with `pattern.invalid-output`."""


@dataclass(frozen=True)
class MarkerExit:
    """The exit that gives this value instead: one of the schema, which passes the check."""

    value: Any


Exit = FailExit | MarkerExit


@dataclass(frozen=True)
class SchemaValidation(Pattern[[Labelled[str]], dict[str, Any]]):
    """A value of the schema, or the exit. The model is asked at most 1 + `max_retries` times.

    Args:
        wanted: The schema, a record type.
        exit: What happens when no reply was accepted. There is no default.
        check: What is wrong between the fields of a value, in words of the program; it is shown to the Asker.

    Example:
        >>> booking = SchemaValidation.of(Booking, FailExit(), check=ends_after_it_begins)
        >>> outcome = await booking.run(runtime, program_text("A room from 3 to 5 March, please."))
        >>> outcome.value["nights"]
        2
    """

    id: ClassVar[str] = "V20"
    wanted: Type
    exit: Exit
    check: ValueCheck | None = None
    max_retries: int = 2
    host: Role = HOST
    asker: Role = ASKER

    @classmethod
    def of(cls, form: Any, exit: Exit, *, check: ValueCheck | None = None, max_retries: int = 2) -> SchemaValidation:
        """A validation of a Python annotation, such as a `TypedDict`."""
        return cls(type_from_annotation(form), exit, check, max_retries)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.wanted, RecordType):
            raise CatalogError("pattern.bad-schema", f"V20: {self.wanted} is no schema", expected="a record type")
        if not isinstance(self.exit, FailExit | MarkerExit):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise CatalogError("pattern.bad-schema", "V20: there is no exit", expected="a FailExit or a MarkerExit")
        if isinstance(self.exit, MarkerExit):
            problem = mismatch(self.exit.value, self.wanted) or (self.check and self.check(self.exit.value))
            if problem:
                raise CatalogError("pattern.bad-schema", f"V20: the marker is no value of the schema: {problem}")

    @property
    def schema_hash(self) -> str:
        """The hash of the schema that prompt, grammar and validator are made from."""
        return fingerprint(type_json_schema(self.wanted))[:12]

    async def execute(self, context: Context, /, task: Labelled[str]) -> Labelled[dict[str, Any]]:
        form = context.derive(render_form(self.wanted))
        context.note("schema", hash=self.schema_hash)
        try:
            return await context.fill(
                self.host,
                task,
                wanted=self.wanted,
                check=self.check,
                stable=[form],
                retries=self.max_retries,
                repair=self.asker,
                repair_sees_question=True,
            )
        except ModelError as error:
            if error.code != "models.bad-reply":
                raise
        if isinstance(self.exit, MarkerExit):
            context.note("exit", kind="marker")
            return context.derive(self.exit.value)
        context.note("exit", kind="error")
        raise RunError(
            "pattern.invalid-output",
            f"not one of {1 + self.max_retries} replies is a value of the schema",
            expected=name_fields(self.wanted),
            fix="The run has the replies: `bicameral runs show`.",
        )


# An example ---------------------------------------------------------------------------------------------------------


class _Booking(TypedDict):
    guest: str
    adults: int
    children: int
    beds: int


def one_bed_each(booking: Any) -> str | None:
    """A check of the example: what holds between three fields of a booking."""
    wanted = booking["adults"] + booking["children"]
    return None if booking["beds"] == wanted else f"beds must be adults + children, which is {wanted}"


_TASK: Final = "Book a room for Ada Young: 2 adults and 1 child. Each of them needs a bed, so 3 beds."


def _is_correct(outcome: Answered[dict[str, Any]]) -> bool:
    value = outcome.value
    return "ada" in value["guest"].lower() and (value["adults"], value["children"], value["beds"]) == (2, 1, 3)


EXAMPLE = PatternExample(
    "A request becomes a booking whose numbers fit each other.",
    lambda folder: SchemaValidation.of(_Booking, FailExit(), check=one_bed_each),
    _TASK,
    _is_correct,
    lambda folder: {
        "setup": f"{HOST.setup}\n\n{render_form(type_from_annotation(_Booking))}",
        "input": _TASK,
        "output": 26,
    },
)
