"""What Echo's model may say: steps with parameters, constraints, an output and questions, each checked.

The model restates a request and adds nothing. Actions, parameter names and kinds of questions are closed lists, and
every parameter consists of words or numbers of the request, so that a reply holds no name, number, address, file or day
that the person did not write. A reply that does is not mended: the request itself is the account of it (fail closed).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, field_validator

from bicameral.days import NUMBER_WORDS
from bicameral.planning._clauses import only_asks
from bicameral.planning._intent_document import Intent, IntentOutput, IntentStep, OpenQuestion, QuestionTopic
from bicameral.planning._language import guess_language
from bicameral.planning._lexicon import EVERYTHING, PREPOSITIONS, STOP_TOKENS
from bicameral.planning._recipients import names_recipient
from bicameral.text import lazy_pattern, mentions as stands_in, stem
from bicameral.tools import Registry

ACTIONS = (
    "read find search-mail search-calendar list-files fetch keep remove remove-duplicates sort take count sum average "
    "minimum maximum compare group join extract write append copy move rename delete send reply forward draft "
    "add-event change-event cancel-event find-time do"
).split()
"""What a step may do. `do` is for all else, with the words of the request in `what`."""

COPIED = tuple("file folder link mail event from to subject text title place when since before time".split())
"""Parameters that name something: their words stand in the request as they are, one after the other."""
SAID = tuple("what about column of by contains".split())
"""Parameters in words of the request, which need not be neighbours there."""
NUMBERS = ("count", "above", "below", "minutes")
PARAMETERS = (*COPIED, *SAID, "is", *NUMBERS, "order", "unread")

OUTPUTS = ("answer", "file", "mail", "calendar")
QUESTION_KINDS: dict[QuestionTopic, str] = {
    "file": "Which file or text is meant{about}?",
    "recipient": "To whom should it go{about}?",
    "since": "Since when{about}?",
    "day": "On which day{about}?",
    "which": "Which one is meant{about}?",
    "amount": "How much, or how many{about}?",
}
"""The questions that the model may propose. Their text is ours: it fills in words of the request and nothing else."""

MAX_STEPS = 8
MAX_CONSTRAINTS = 4
MAX_QUESTIONS = 2
_MAX_WORDS = 160
_MAX_QUESTION_WORDS = 60


def _words_schema(most: int = _MAX_WORDS) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most}


def _parameter_schema(name: str) -> dict[str, Any]:
    if name in NUMBERS:
        return {"type": "number"}
    if name == "order":
        return {"enum": ["ascending", "descending"]}
    if name == "unread":
        return {"type": "boolean"}
    return {"anyOf": [_words_schema(), {"type": "boolean"}, {"type": "number"}]} if name == "is" else _words_schema()


ECHO_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "maxLength": 80},
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"action": {"enum": ACTIONS}} | {name: _parameter_schema(name) for name in PARAMETERS},
                "required": ["action"],
                "additionalProperties": False,
            },
            "minItems": 1,
            "maxItems": MAX_STEPS,
        },
        "constraints": {"type": "array", "items": _words_schema(120), "maxItems": MAX_CONSTRAINTS},
        "output": {"enum": [*OUTPUTS]},
        # Last and optional: a reply is whole without it, and one that leaves something open ends in a question.
        "questions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "kind": {"enum": [*QUESTION_KINDS]},
                    "words": {"type": "string", "maxLength": _MAX_QUESTION_WORDS},
                },
                "required": ["kind", "words"],
                "additionalProperties": False,
            },
            "minItems": 1,
            "maxItems": MAX_QUESTIONS,
        },
    },
    "required": ["task", "steps", "constraints", "output"],
    "additionalProperties": False,
}

Value = Annotated[str, Field(max_length=_MAX_WORDS)] | bool | int | FiniteFloat


class _Part(BaseModel):
    # A provider without grammars, or a damaged cache, may return anything.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class EchoStep(_Part):
    """An action and its parameters."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    __pydantic_extra__: dict[str, Value] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]

    action: str

    @field_validator("action")
    @classmethod
    def _check_action(cls, value: str) -> str:
        if value not in ACTIONS:
            raise ValueError(f"{value[:40]!r} is no action")
        return value

    def model_post_init(self, context: Any) -> None:
        for name, value in self.parameters.items():
            if not _has_type(name, value):
                raise ValueError(f"{name[:40]!r} is no parameter of this kind")

    @property
    def parameters(self) -> dict[str, Value]:
        return dict(self.__pydantic_extra__ or {})


def _has_type(name: str, value: Value) -> bool:
    if name in NUMBERS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if name == "order":
        return value in ("ascending", "descending")
    if name == "unread":
        return isinstance(value, bool)
    return name == "is" or (name in PARAMETERS and isinstance(value, str) and bool(value.strip()))


class EchoQuestion(_Part):
    """A question that the model proposes: its kind, and the words of the request that raise it."""

    kind: Literal["file", "recipient", "since", "day", "which", "amount"]
    words: Annotated[str, Field(max_length=_MAX_QUESTION_WORDS)]


class EchoReply(_Part):
    """A reply of the model, valid by its form; `invented_parts` says whether it fits a request."""

    task: Annotated[str, Field(max_length=80)]
    steps: Annotated[list[EchoStep], Field(min_length=1, max_length=MAX_STEPS)]
    constraints: Annotated[list[Annotated[str, Field(max_length=120)]], Field(max_length=MAX_CONSTRAINTS)]
    output: Literal["answer", "file", "mail", "calendar"]
    questions: Annotated[list[EchoQuestion], Field(max_length=MAX_QUESTIONS)] = []


def parse_echo_reply(text: str) -> EchoReply | None:
    """The reply of a model or the cache, if it is complete and valid.

    Example:
        >>> parse_echo_reply('{"task": "count", "steps": [{"action": "count"}], "constraints": [], "output": "answer"}')
        EchoReply(task='count', steps=[EchoStep(action='count')], constraints=[], output='answer', questions=[])
    """
    try:
        return EchoReply.model_validate_json(text)
    except (ValueError, RecursionError):
        return None


# Grounding: nothing that the request does not say ---------------------------------------------------------------------


def invented_parts(reply: EchoReply, request: str) -> Iterator[str]:
    """The parts of a reply that the request does not say; none if the reply may be used.

    The task is not among them: it is only a label, and `echo_task` writes it anew where it says something else.
    """
    for step in reply.steps:
        for name, value in step.parameters.items():
            if not is_grounded(name, value, request):
                yield f"{step.action} {name}"
    yield from (f"constraint {each[:40]!r}" for each in reply.constraints if not stands_in_order(each, request))


def is_grounded(name: str, value: Value, request: str) -> bool:
    """Whether the request says the value of a parameter.

    Example:
        >>> is_grounded("to", "Kim", "Tell Kim the total"), is_grounded("to", "Kim Berg", "Tell Kim about the Berg hut")
        (True, False)
    """
    if isinstance(value, bool) or name == "order":
        # Yes or no, up or down: closed choices that carry no name and no number.
        return True
    if isinstance(value, int | float):
        return Decimal(str(value)) in request_numbers(request)
    return stands_in_order(value, request) if name in COPIED else stands_in_any_order(value, request)


def stands_in_order(words: str, request: str) -> bool:
    """Whether the request has these words as they are, one after the other; case and marks aside."""
    wanted = _split(words)
    said = _split(request)
    return bool(wanted) and (
        any(said[at : at + len(wanted)] == wanted for at in range(len(said) - len(wanted) + 1))
        # `Kim` in "Kim's mail", `offre` in "l'offre", a name in quotation marks: whole values, but no whole tokens.
        or stands_in(" ".join(request.split()), " ".join(words.split()))
        or (len(wanted) == 1 and wanted[0] in _word_parts(request))
    )


def stands_in_any_order(words: str, request: str) -> bool:
    """Whether the request has each of these words, in this form or, for a plain word in small letters, another one."""
    known = frozenset(_split(request)) | _word_parts(request)
    stems = {stem(each) for each in known if each.isalpha()}
    raw = [each.strip(_MARKS) for each in words.split()]
    return bool(_split(words)) and all(
        each.casefold() in known or (each.islower() and each.isalpha() and stem(each) in stems) for each in raw if each
    )


_MARKS = ".,;:!?…\"“”„«»‹›‘’'`()[]{}<>¿¡*"
_INNER = lazy_pattern(r"['’\-/+&=]")


def _split(text: str) -> list[str]:
    """The words of a text without the marks around them; addresses, links and file names stay whole."""
    plain = unicodedata.normalize("NFC", text)
    return [word for each in plain.split() if (word := each.strip(_MARKS).casefold())]


@lru_cache(maxsize=64)
def _word_parts(request: str) -> frozenset[str]:
    """The parts of words that are joined by an apostrophe or a hyphen, unless a digit, a dot or an `@` is in them."""
    words = [word for word in _split(request) if not any(char.isdigit() or char in "@./\\_" for char in word)]
    return frozenset(part for word in words for part in _INNER.split(word) if part)


_DIGITS = lazy_pattern(r"\d[\d.,'’\u00a0\u202f]*")
_MAX_DIGITS = 24


@lru_cache(maxsize=64)
def request_numbers(request: str) -> frozenset[Decimal]:
    """The numbers that a request names in digits or in words; `1.200` may be 1200 and 1.2, as both are written so."""
    found: set[Decimal] = set()
    for match in _DIGITS.finditer(request):
        text = match.group().rstrip(".,'’\u00a0\u202f")[:_MAX_DIGITS]
        bare = re.sub(r"['’\u00a0\u202f]", "", text)
        for reading in (bare, bare.replace(",", ""), bare.replace(".", "").replace(",", "."), bare.replace(",", ".")):
            try:
                found.add(Decimal(reading))
            except InvalidOperation:
                continue
    for word in re.findall(r"\w+", _without_accents(request.casefold())):
        if word in NUMBER_WORDS:
            found.add(Decimal(NUMBER_WORDS[word]))
    return frozenset(found)


def _without_accents(text: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))


# What becomes of a reply ----------------------------------------------------------------------------------------------


def echo_task(reply: EchoReply, request: str) -> str:
    """The task in words of the request and of the actions; a task in other words is replaced by the actions."""
    own = {part for action in ACTIONS for part in action.split("-")} | {"and"}
    words = [word for word in _split(reply.task) if word not in own]
    if reply.task.strip() and all(stands_in_any_order(word, request) for word in words):
        return reply.task.strip()
    return " and ".join(dict.fromkeys(step.action.replace("-", " ") for step in reply.steps))


def proposed_questions(reply: EchoReply, plain: Intent) -> tuple[OpenQuestion, ...]:
    """The questions of a reply that may be asked: about words of the request, and not about what it says already.

    Args:
        plain: The intent by rules, whose mentions say what is known.
    """
    found: dict[QuestionTopic, OpenQuestion] = {}
    for each in reply.questions:
        words = " ".join(each.words.split())
        # The words are shown to a person: no characters that a terminal or a reader could take for something else.
        if words and not (words.isprintable() and stands_in_order(words, plain.request)):
            continue
        if each.kind not in found and _is_open(each.kind, words, reply, plain):
            text = QUESTION_KINDS[each.kind].format(about=f" ({words!r})" if words else "")
            found[each.kind] = OpenQuestion(about=each.kind, question=text, words=words)
    return tuple(found.values())


_ANSWERED_BY: dict[QuestionTopic, frozenset[str]] = {
    "file": frozenset({"file", "folder", "table", "link"}),
    "recipient": frozenset({"person", "address"}),
    "since": frozenset({"day", "period"}),
    "day": frozenset({"day", "period"}),
    "amount": frozenset({"amount"}),
}


def _is_open(kind: QuestionTopic, words: str, reply: EchoReply, plain: Intent) -> bool:
    """Whether the request leaves this open: what it mentions is never asked for."""
    if any(each.kind in _ANSWERED_BY.get(kind, frozenset()) for each in plain.mentions):
        return False
    if kind == "recipient":
        sends = {"send", "reply", "forward", "draft"} & {step.action for step in reply.steps}
        return bool(sends) or reply.output == "mail"
    if kind == "amount":
        return not any(char.isdigit() for char in plain.request)
    # Which one of what: a word that means something.
    return kind != "which" or any(word not in STOP_TOKENS for word in _split(words))


def confirmed_questions(
    questions: Sequence[OpenQuestion], reply: EchoReply, plain: Intent, registry: Registry
) -> tuple[OpenQuestion, ...]:
    """The questions of a model that a person must answer: nothing in the request does, and no tool can find it out.

    Args:
        questions: Those that a reply proposes.
        reply: The reply, whose parameters say what is known.
        plain: The intent by rules.
        registry: The tools. With `find` among them nobody is asked where something is.
    """
    finds, stores = _finds(registry), _stores(registry)
    return tuple(each for each in questions if _needs_person(each, reply, plain, finds=finds, stores=stores))


def may_need_person(plain: Intent, registry: Registry) -> bool:
    """Whether a model's question about this request could be confirmed, whatever the model replies.

    If not, no reply changes what is asked, and the model need not be asked at all.
    """
    finds, stores = _finds(registry), _stores(registry)
    kinds, said = {each.kind for each in plain.mentions}, set(_split(plain.request))
    writes, asks = "write" in plain.effects, only_asks(plain.request, guess_language(plain.request))
    unnamed = not kinds & _ANSWERED_BY["recipient"] and not names_recipient(plain.request, plain.mentions)
    vague = not said.isdisjoint(_VAGUE_MEASURES) or (plain.effects and not said.isdisjoint(_PAYING_VERBS))
    return bool(
        (writes and not stores and not kinds & _STORES)
        or (not finds and not kinds & _PLACES)
        or not finds
        or "irreversible" in plain.effects
        or (unnamed and ("send" in plain.effects or not (plain.effects or asks)))
        or (said & _SINCE_WORDS and not kinds & _PLACES)
        or (writes and not kinds & {*_STORES, "mail", *_ANSWERED_BY["day"]} and said.isdisjoint(_WHEN_WORDS))
        or (vague and not request_numbers(plain.request) and not _HOW_MANY.search(plain.request))
    )


def _finds(registry: Registry) -> bool:
    return any(tool.toolbox == "find" for tool in registry)


def _stores(registry: Registry) -> bool:
    return any(tool.effect == "write" and any(tool.configured.values()) for tool in registry)


_PLACES = frozenset({"file", "folder", "table", "link", "mail", "event"})
_STORES = frozenset({"file", "folder", "table", "link"})
_PLACE_PARAMETERS = frozenset({"file", "folder", "link", "mail", "event"})
_SINCE_WORDS = frozenset("since after seit nach depuis après desde después".split())
_WHEN_WORDS = frozenset("when wann quand cuándo cuando free frei freie freien libre libres hueco slot gap".split())
_HOW_MANY = lazy_pattern(r"\b(?:how\s+(?:much|many)|wie\s*viele?|combien|cu[aá]nt[oa]s?)\b", re.IGNORECASE)
# A measure without a number: only the person knows where it begins.
_VAGUE_MEASURES = frozenset(
    "too much many high large big small low little few some several expensive cheap enough "
    "zu viel viele hoch hohe hohen groß große großen klein kleine niedrig wenig wenige einige paar mehrere teuer "
    "billig trop beaucoup élevé élevée élevés élevées grand grande grands grandes gros grosse grosses petit petites "
    "peu quelques plusieurs cher chère chers chères assez demasiado demasiados demasiada demasiadas mucho muchos alto "
    "alta altos altas pequeño pequeñas poco pocos unos algunos algunas varios varias caro cara caros caras barato "
    "bastante".split()
)
_PAYING_VERBS = frozenset(
    "pay transfer wire donate spend überweise überweis zahle zahl bezahle spende paie paye verse vire paga transfiere "
    "dona".split()
)


def _needs_person(question: OpenQuestion, reply: EchoReply, plain: Intent, *, finds: bool, stores: bool) -> bool:
    """Whether code finds open what a model asks for: the model alone is no reason to stop before a plan."""
    said = _split(plain.request)
    if question.words and len(_split(question.words)) >= len(said):
        # It repeats the request.
        return False
    given = {name for step in reply.steps for name in step.parameters}
    actions = {step.action for step in reply.steps}
    kinds = {each.kind for each in plain.mentions}
    # Whoever only asks orders nothing that needs a recipient, a file or a day.
    asks = not plain.effects and only_asks(plain.request, guess_language(plain.request))
    match question.about:
        case "file":
            if reply.output == "file" and "write" in plain.effects:
                # Where something should go cannot be looked up, unless the settings say it.
                return not (stores or kinds & _STORES or given & {"file", "folder"})
            # Where something is can be looked up.
            return not finds and not (given & _PLACE_PARAMETERS or kinds & _PLACES)
        case "which":
            if any(each.verbatim and stands_in(each.words, question.words) for each in plain.mentions):
                return False
            # Binding asks which of several is meant, once it knows them; before a deletion it is better asked first.
            return not finds or ("irreversible" in plain.effects and not _says_which(question.words, plain))
        case "recipient":
            # A model may know a word for sending that rules do not, but not where they know what else is ordered.
            sends = bool({"send", "forward"} & actions) or reply.output == "mail"
            sends = sends and ("send" in plain.effects or not plain.effects)
            return sends and not asks and "to" not in given and not names_recipient(plain.request, plain.mentions)
        case "since":
            return not _SINCE_WORDS.isdisjoint(said) and not kinds & _PLACES
        case "day":
            plans = "add-event" in actions or (reply.output == "calendar" and "change-event" not in actions)
            # A day may be written in a mail, or be the first that is free.
            found = kinds & {*_STORES, "mail"} or not _WHEN_WORDS.isdisjoint(said) or "find-time" in actions
            return plans and not asks and "write" in plain.effects and "when" not in given and not found
        case "amount":
            # Whoever asks how many wants the number, and does not leave it out.
            if request_numbers(plain.request) or _HOW_MANY.search(plain.request):
                return False
            vague = not _VAGUE_MEASURES.isdisjoint(_split(question.words))
            return vague or (bool(plain.effects) and not _PAYING_VERBS.isdisjoint(said))
        case _:
            return True


def _says_which(words: str, plain: Intent) -> bool:
    """Whether a request says more of a thing than its name: whose, of when, with what in it, or all of them."""
    said = _split(plain.request)
    if any(not stands_in(words, each.words) for each in plain.mentions) or not EVERYTHING.isdisjoint(said):
        return True
    own = _split(words)
    place = next((at for at in range(len(said)) if own and said[at : at + len(own)] == own), None)
    return place is not None and said[place + len(own) :][:1] != [] and said[place + len(own)] in PREPOSITIONS


def merged_output(plain: Intent, kind: Literal["answer", "file", "mail", "calendar"]) -> IntentOutput:
    """The kind that the model names, if the request asks for its effect; paths and recipients are never a model's."""
    found = plain.output
    needed = {"mail": "send", "file": "write", "calendar": "write"}.get(kind)
    # Effects are what rules read in the request. An output must not bring in another one: documents count it as asked.
    if found.kind == kind or (needed is not None and needed not in plain.effects):
        return found
    # What certainly goes somewhere is not taken back by a model either.
    return found if found.path is not None or found.to else IntentOutput(kind=kind)


def intent_steps(reply: EchoReply) -> tuple[IntentStep, ...]:
    """The steps of a reply as those of an intent."""
    return tuple(IntentStep.model_validate({"action": step.action, **step.parameters}) for step in reply.steps)
