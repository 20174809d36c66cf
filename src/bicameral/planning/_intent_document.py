"""The intent as a document: `intent/2`, older versions of it, and files that a person has edited.

An intent is the contract between a request and its plan: what is to be done, under which constraints, where the result
goes, what the request mentions, and what is still open. Documents of `intent/1` (journals, submitted runs, files) load
and become `intent/2`. A document may be as short as a task with steps: what it does not have is found by rules.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    field_validator,
    model_validator,
)

from bicameral.documents import YamlLimits, first_key_fault, read_yaml
from bicameral.errors import BicameralError, IntentError, Place
from bicameral.text import lazy_pattern
from bicameral.tools import Effect

INTENT_VERSION = "intent/2"
MAX_INTENT_BYTES = 200_000
MAX_PARAMETERS = 24
_PARAMETER_NAME = lazy_pattern(r"[A-Za-z][A-Za-z0-9_-]{0,39}")

Text = Annotated[str, Field(max_length=4_000)]
Scalar = Text | bool | int | FiniteFloat | None
ParameterValue = Scalar | tuple[Scalar, ...]

MentionKind = Literal[
    "file",
    "folder",
    "table",
    "column",
    "value",
    "person",
    "address",
    "mail",
    "event",
    "day",
    "period",
    "amount",
    "quoted",
    "link",
]
QuestionTopic = Literal[
    "task", "referent", "file", "recipient", "since", "age", "scope", "which", "meaning", "day", "amount"
]
OutputKind = Literal["answer", "stdout", "file", "mail", "calendar"]


class IntentNode(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class IntentStep(IntentNode):
    """One thing to do: an action with free parameters, such as `{"action": "grep", "pattern": "invoices"}`.

    Args:
        action: What is done: a name (`remove-duplicates`), or a short command in words.
        words: The step as a person would say it; made from the action and its parameters if it is empty.

    Example:
        >>> IntentStep.model_validate({"action": "grep", "pattern": "invoices"}).text
        'grep pattern "invoices"'
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    # Pydantic reads the type of the parameters from this annotation.
    __pydantic_extra__: dict[str, ParameterValue] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]

    action: Annotated[Text, Field(min_length=1)]
    words: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _check_parameter_names(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"action": value}
        if isinstance(value, Mapping):
            given = cast("Mapping[Any, Any]", value)
            if len(given) > MAX_PARAMETERS:
                raise ValueError(f"a step has at most {MAX_PARAMETERS} parameters")
            for name in given:
                if not (isinstance(name, str) and _PARAMETER_NAME.fullmatch(name)):
                    raise ValueError(f"{str(name)[:40]!r} is no name of a parameter")
        return cast("Any", value)

    @property
    def parameters(self) -> dict[str, ParameterValue]:
        """The parameters of the action, by name."""
        return dict(self.__pydantic_extra__ or {})

    @property
    def text(self) -> str:
        """The step in words."""
        return self.words or " ".join([_plain_action(self.action), *self._parameter_texts()])

    def _parameter_texts(self) -> list[str]:
        found: list[str] = []
        for name, value in self.parameters.items():
            label = name.replace("_", " ")
            if value is True:
                found.append(label)
            elif isinstance(value, tuple):
                found.append(f"{label} {', '.join(map(_value_text, value))}")
            elif value is not False and value is not None:
                found.append(f"{label} {_value_text(value)}")
        return found


def _plain_action(action: str) -> str:
    return action if " " in action else re.sub(r"[_-]+", " ", action)


def _value_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


class NamedDate(IntentNode):
    """A phrase of the request that means a day or a range of days, and which.

    `assumed` is what had to be assumed for that, such as the year; it is shown to the person.
    """

    phrase: str
    start: dt.date
    end: dt.date
    assumed: str = ""


class Mention(IntentNode):
    """Something that the request speaks of, in its exact words.

    Args:
        words: The words as the request has them, without quotation marks: `request[start:end]`.
        verbatim: Whether the words may only be copied, as those of addresses, links and quoted text.
    """

    kind: MentionKind
    words: str
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    verbatim: bool = False


class OpenQuestion(IntentNode):
    """A question to the person, what it is about, and the words of the request that raise it."""

    about: QuestionTopic = "meaning"
    question: Text
    words: str = ""

    def __str__(self) -> str:
        return self.question


class GivenAnswer(IntentNode):
    """What the person said to a question."""

    about: QuestionTopic
    question: Text
    answer: Text


class IntentOutput(IntentNode):
    """Where the result goes: an answer on the screen, a file, a mail, the calendar.

    Args:
        path: The file, if it is known.
        to: The recipients of a mail, as far as they are known.
    """

    kind: OutputKind = "answer"
    path: str | None = None
    to: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_target(self) -> IntentOutput:
        if self.path is not None and self.kind != "file":
            raise ValueError(f"an output of the kind {self.kind!r} has no path")
        if self.to and self.kind != "mail":
            raise ValueError(f"an output of the kind {self.kind!r} has no recipients")
        return self

    @property
    def text(self) -> str:
        """The output in words: `file total.csv`, `mail to kim@example.com`."""
        if self.path is not None:
            return f"{self.kind} {self.path}"
        return f"{self.kind} to {', '.join(self.to)}" if self.to else self.kind


def _output_document(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


def _question_documents(value: Any) -> Any:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    return [{"question": each} if isinstance(each, str) else each for each in cast("Sequence[Any]", value)]


class Intent(IntentNode):
    """A request, understood: versioned, readable, and what a plan is made from and compared with.

    Args:
        request: The person's words; made from the steps if a document has none.
        effects: The changes to the world that the request speaks of.
        required: Those without which it is not served.
        questions: What must be answered before there can be a plan.
        answers: What was asked and answered so far.
        by: Who understood the request: rules, Echo's model, or a person who wrote or edited the document.

    Example:
        >>> Intent.model_validate({"task": "text-filtering", "steps": [{"action": "remove-duplicates"}]}).request
        'text filtering: remove duplicates'
    """

    version: Literal["intent/2"] = INTENT_VERSION
    request: str = ""
    task: Text = ""
    steps: tuple[IntentStep, ...] = ()
    constraints: tuple[Text, ...] = ()
    output: Annotated[
        IntentOutput, BeforeValidator(_output_document, json_schema_input_type=OutputKind | IntentOutput)
    ] = IntentOutput()
    effects: tuple[Effect, ...] = ()
    required: tuple[Effect, ...] = ()
    dates: tuple[NamedDate, ...] = ()
    mentions: tuple[Mention, ...] = ()
    questions: Annotated[tuple[OpenQuestion, ...], BeforeValidator(_question_documents)] = ()
    answers: tuple[GivenAnswer, ...] = ()
    by: Literal["echo", "fast-path", "deterministic", "person"] = "deterministic"

    @model_validator(mode="before")
    @classmethod
    def _migrate(cls, value: Any) -> Any:
        return migrate_intent(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value

    @field_validator("mentions")
    @classmethod
    def _check_offsets(cls, value: tuple[Mention, ...]) -> tuple[Mention, ...]:
        for each in value:
            if each.end - each.start != len(each.words):
                raise ValueError(f"the offsets of the mention {each.words[:40]!r} do not fit its words")
        return value

    def to_json(self) -> str:
        """Canonical JSON: the same intent is always the same bytes."""
        return self.model_dump_json()

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def is_structured(self) -> bool:
        """Whether its steps bind a plan: a person wrote them, or they have parameters that no model chose."""
        return self.by == "person" or (self.by != "echo" and any(step.parameters for step in self.steps))


def intent_schema() -> dict[str, Any]:
    """The published JSON Schema of the intent."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Intent.model_json_schema()}


def request_text(intent: Intent) -> str:
    """The text that a plan is made from: the request and, where somebody added them, steps, constraints and output.

    Example:
        >>> print(request_text(intent))
        need the average price per color, only new cars
        Steps: read the rows of cars.csv; average price for each color
        Constraints: only cars newer than 2019
        Output: file avg.csv
    """
    lines = [intent.request]
    if intent.by in ("echo", "person"):
        steps = [step.text for step in intent.steps]
        if not all(step in intent.request for step in steps):
            lines.append(f"Steps: {'; '.join(steps)}")
        if intent.constraints:
            lines.append(f"Constraints: {'; '.join(intent.constraints)}")
        if intent.output.kind not in ("answer", "stdout"):
            lines.append(f"Output: {intent.output.text}")
    return "\n".join(lines)


def migrate_intent(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document of any known version as one of `intent/2`; what is no intent is left for validation to refuse.

    In `intent/1` a step is a text with `about`, the output a single word, and a question a single text.
    """
    found = dict(document)
    if found.get("version") == "intent/1":
        found["version"] = INTENT_VERSION
        if isinstance(steps := found.get("steps"), list | tuple):
            found["steps"] = [_migrate_step(step) for step in cast("Sequence[Any]", steps)]
    if not found.get("request") and (text := _steps_request(found)):
        found["request"] = text
    return found


def _migrate_step(step: Any) -> Any:
    if not isinstance(step, Mapping):
        return step
    action, about = (cast("Mapping[str, Any]", step).get(name, "") for name in ("action", "about"))
    if set(cast("Mapping[str, Any]", step)) - {"action", "about"} or not isinstance(action, str):
        return cast("Any", step)
    return {"action": action or "do"} | ({"about": about, "words": f"{action} {about}"} if about else {})


def _steps_request(document: Mapping[str, Any]) -> str:
    """A request for a document that has only a task and steps; empty if they are not valid either."""
    try:
        steps = [IntentStep.model_validate(step).text for step in document.get("steps") or ()]
    except (ValidationError, TypeError):
        return ""
    task = document.get("task") or ""
    head = _plain_action(task) if isinstance(task, str) else ""
    return ": ".join(filter(None, (head, "; ".join(steps))))


# Files ----------------------------------------------------------------------------------------------------------------


def parse_intent(text: str, *, file: str | None = None) -> Intent:
    """The intent in a JSON text that a person wrote or edited; an IntentError names the line and the nearest field.

    Args:
        file: The name of the file, for errors.

    Example:
        >>> parse_intent('{"task": "count", "steps": [{"action": "count-lines", "path": "a.txt"}]}').by
        'person'
    """
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_INTENT_BYTES:
        raise IntentError(
            "intent.too-long",
            "the intent is too long",
            place=Place(file=file),
            expected=f"at most {MAX_INTENT_BYTES:,}",
        )
    document = _parse_json(text, file)
    version = document.get("version", INTENT_VERSION)
    if version not in ("intent/1", INTENT_VERSION):
        raise IntentError(
            "intent.unknown-version",
            f"this is an intent of the version {str(version)[:40]!r}",
            place=_locate(text, ("version",), file),
            expected=INTENT_VERSION,
        )
    try:
        intent = Intent.model_validate_json(json.dumps(document))
    except ValidationError as error:
        raise _invalid_error(error, text, file) from None
    return intent.model_copy(update={"by": "person"})


def read_intent(path: Path) -> Intent:
    """The intent in a file; see `parse_intent`."""
    place = Place(file=str(path))
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_INTENT_BYTES + 1)
        return parse_intent(raw.decode("utf-8-sig"), file=str(path))
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except UnicodeDecodeError:
        reason = "it is not text in UTF-8"
    raise IntentError("intent.cannot-read", f"the intent cannot be read: {reason}", place=place, fix="Check the path.")


def _parse_json(text: str, file: str | None) -> dict[str, Any]:
    def refuse(reason: str, place: Place | None = None) -> NoReturn:
        raise IntentError("intent.bad-json", f"the intent is not JSON: {reason}", place=place or Place(file=file))

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            refuse("a key occurs twice in one object")
        return found

    try:
        document = json.loads(
            text, object_pairs_hook=unique_keys, parse_constant=lambda word: refuse(f"{word} is no number")
        )
    except json.JSONDecodeError as error:
        refuse(error.msg, Place(file=file, line=error.lineno, column=error.colno))
    except RecursionError:
        refuse("it is nested too deeply")
    except ValueError:  # a number of thousands of digits
        refuse("a number is too long")
    if not isinstance(document, dict):
        raise IntentError(
            "intent.invalid", "this is no intent", place=Place(file=file), expected="an object with steps"
        )
    found = cast("dict[str, Any]", document)
    # What `bicameral intent --json` prints is the intent with `ok` around it.
    inner = found.get("intent")
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) and "ok" in found else found


def _invalid_error(error: ValidationError, text: str, file: str | None) -> IntentError:
    fault = first_key_fault(error, Intent)
    message = f"{fault.key}: {fault.message}" if fault.path else fault.message
    return IntentError(
        "intent.invalid",
        message,
        place=_locate(text, fault.path, file),
        expected=fault.expected,
        nearest=fault.nearest,
        fix=None if fault.nearest else "`bicameral intent` prints an intent to start from.",
    )


def _locate(text: str, path: Sequence[str | int], file: str | None) -> Place:
    """The line of a key. JSON is read as YAML for that alone: where that fails the file is named without a line."""

    def fail(message: str, **more: Any) -> BicameralError:
        return IntentError("intent.invalid", message, **more)

    try:
        document = read_yaml(text.replace("\t", " "), Path(file or "intent"), fail, YamlLimits(plain=True))
    except BicameralError:
        return Place(file=file)
    inside = ("intent", *path) if document.known_depth(("intent", *path)) > document.known_depth(tuple(path)) else path
    place = document.locate(tuple(inside))
    return Place(file=file, line=place.line, column=place.column)
