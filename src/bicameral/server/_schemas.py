"""Request and response models, as the OpenAPI document describes them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from bicameral.durable import RunState
from bicameral.planning import MAX_REQUEST
from bicameral.runs import Ending

# Control characters: nobody types them, and PostgreSQL stores no NUL. Requests may not hold them anywhere else either.
_UNTYPED = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f"
TYPED_TEXT = rf"^[^{_UNTYPED}]*[^\s{_UNTYPED}][^{_UNTYPED}]*$"
"""Text that a person could have typed, and not only blanks."""
ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
MAX_PLAN_CHARS = 60_000
"""At most twelve bytes of JSON per character: it fits into the largest body that is allowed by default."""
MAX_DEPTH = 40
"""Nesting of a reply; deeper values could exhaust the stack when they are written."""

RunIdText = Annotated[str, Field(pattern=ID_PATTERN)]
RequestText = Annotated[str, Field(min_length=1, max_length=MAX_REQUEST, pattern=TYPED_TEXT)]


def _validate_plain(value: Any) -> Any:
    """A JSON value that can be encoded again: no NaN or infinity, no lone surrogate, no NUL, not too deep."""
    _check_plain(value, 0)
    return value


def _check_plain(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    match value:
        case float():
            if value != value or value in (float("inf"), float("-inf")):
                raise ValueError("no JSON number")
        case str():
            if "\x00" in value or (not value.isprintable() and any("\ud800" <= c <= "\udfff" for c in value)):
                raise ValueError("no text")
        case dict():
            for key, item in cast("dict[str, Any]", value).items():
                _check_plain(key, depth)
                _check_plain(item, depth + 1)
        case list():
            for item in cast("list[Any]", value):
                _check_plain(item, depth + 1)
        case _:
            pass


PlainJson = Annotated[Any, AfterValidator(_validate_plain)]


def _integral_to_int(value: Any) -> Any:
    """8.0 as 8: in JSON they are the same number, and strict mode would refuse it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WholeNumber = BeforeValidator(_integral_to_int)


class RequestModel(BaseModel):
    """What a client sends: unknown fields are errors and nothing is coerced."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True)


class ResponseModel(BaseModel):
    """What a client is told."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class ErrorPlace(ResponseModel):
    """Where something is wrong."""

    file: str | None = None
    line: int | None = None
    column: int | None = None
    step: str | None = None
    argument: str | None = None


class ErrorFacts(ResponseModel):
    """What is wrong. Facts that there are none of are left out."""

    code: str
    """A stable code, such as `server.unauthenticated`; docs/errors.md has all of them."""
    message: str
    """What is wrong, in a sentence."""
    place: ErrorPlace | None = None
    expected: str | None = None
    """What would have been right."""
    nearest: str | None = None
    """The valid name that looks most like the one given."""
    fix: str | None = None
    """What to do next."""


class ErrorAnswer(ResponseModel):
    """Every answer that is not a success."""

    error: ErrorFacts


class CapsGiven(RequestModel):
    """How much the run may take; never more than the server's own limits."""

    rounds: Annotated[int, Field(ge=1, le=10**6), WholeNumber] | None = None
    calls: Annotated[int, Field(ge=1, le=10**9), WholeNumber] | None = None
    tokens: Annotated[int, Field(ge=1, le=10**12), WholeNumber] | None = None
    money: Annotated[float, Field(gt=0, le=10**9)] | None = None
    seconds: Annotated[float, Field(gt=0, le=10**9)] | None = None
    work: Annotated[int, Field(ge=1, le=10**15), WholeNumber] | None = None


class _SubmissionFields(RequestModel):
    priority: Annotated[int, Field(ge=1, le=9), WholeNumber] = 5
    """The smaller comes first."""
    delay: Annotated[float, Field(ge=0, le=366 * 86400)] = 0
    """Seconds that the run waits before it begins."""
    answer_within: Annotated[float, Field(ge=1, le=366 * 86400)] = 7 * 86400
    """Seconds that a question to a person stays open; after that it is answered with no."""
    caps: CapsGiven | None = None


MODEL_NAME = "bicameral"
"""The agent, as a model."""
ModelName = Annotated[
    str,
    Field(
        max_length=200,
        json_schema_extra={"anyOf": [{"const": MODEL_NAME}, {"pattern": "^pattern:[A-Z][0-9]{1,2}$"}]},
    ),
]
"""The agent, or a pattern that works on a text, such as `pattern:R5`; `/v1/models` lists them."""


class SubmitRequest(_SubmissionFields):
    """A request in plain words, to be planned and run, or to be worked on by a pattern."""

    request: RequestText
    deterministic: bool = False
    """Plan from the request as it stands, without Echo."""
    model: ModelName = MODEL_NAME
    """`bicameral`, which plans it, or a pattern, which does not: `pattern:R5`."""


class SubmitPlan(_SubmissionFields):
    """A plan to be run as it is."""

    plan: Annotated[str, Field(min_length=1, max_length=MAX_PLAN_CHARS)]
    """In the Python syntax, or `plan/1` JSON as a text."""


class PlanWanted(RequestModel):
    """A request that is to be planned and not run."""

    request: RequestText
    deterministic: bool = False
    """Plan from the request as it stands, without Echo."""
    fresh: bool = False
    """Write the plan anew even if it is known."""


class CheckWanted(RequestModel):
    """A plan that is to be checked and not run."""

    plan: Annotated[str, Field(min_length=1, max_length=MAX_PLAN_CHARS)]
    """In the Python syntax, or `plan/1` JSON as a text."""


class AnswerGiven(RequestModel):
    """Which of the calls that wait may be made; all others may not."""

    approve: (
        Literal["all", "none"]
        | Annotated[list[Annotated[str, Field(pattern="^[0-9a-f]{64}$")]], Field(max_length=10_000)]
    )
    """`all`, `none`, or the hashes of the calls. A yes is one to each call at each of its `steps`, once."""
    for_run: Annotated[list[Annotated[str, Field(pattern="^[0-9a-f]{64}$")]], Field(max_length=1_000)] = []
    """Hashes of approved calls whose `offer` you take: until the end of the run, later calls in its `scope` are not
    asked about. Nothing, unless you say so."""


class ReplyGiven(RequestModel):
    """The reply to a question that a plan asks."""

    value: PlainJson
    """A JSON value of the type that the question wants."""


class Effect(ResponseModel):
    """A change to the world that a run made."""

    model_config = ConfigDict(extra="allow")
    step: str
    tool: str
    effect: str


class DoubtTold(ResponseModel):
    """Something on which an answer or an effect rests, and that may be wrong."""

    code: str
    text: str
    """The doubt in plain words."""
    step: str = ""
    """The step of the plan; empty if it is about the whole plan."""


class CitationTold(ResponseModel):
    """A place that an answer or an effect rests on."""

    fact: str = ""
    """What was read there."""
    where: str
    """The place in plain words: a file with its line, a mail with sender and day, an event."""
    quote: str = ""
    """The words that stand there."""
    kind: str = ""
    source: str = ""
    """The path, or the id of the mail or event."""
    line: int | None = None
    check: str
    """`verbatim`, `words` (all numbers and most words stand there) or `read` (it could not be searched for)."""


class RunTold(ResponseModel):
    """A run as it stands."""

    run: RunIdText
    user: str = ""
    """Whose it is."""
    request: str
    """Empty for a run of a plan."""
    pattern: str | None = None
    """The id of the pattern that works on the request, if it is not planned."""
    state: RunState
    ending: Ending | None = None
    """How it ended, or `asked` while it waits for a person; none while it goes on."""
    created: datetime
    updated: datetime
    attempts: int
    """How often a worker began or took up the run."""
    priority: int
    why: str | None = None
    """Why it failed, was stopped, or waits."""
    doubts: list[DoubtTold] = []
    """What the answer and the effects rest on and may be wrong; to be read before them."""
    citations: list[CitationTold] = []
    """Where what the answer and the effects rest on was found."""
    answer: Any = None
    """What it came to, if it is finished."""
    error: ErrorFacts | None = None
    """What went wrong, if it failed."""
    effects: list[Effect] = []
    waits_for: list[str] = []
    """Ids of the approvals that it waits for."""
    not_before: datetime | None = None
    """When it may begin."""
    seconds: float | None = None
    """How long it worked."""


class RunList(ResponseModel):
    """Runs, the newest first."""

    runs: list[RunTold]


class EventTold(ResponseModel):
    """Something that happened in a run."""

    number: int
    at: float
    """Seconds since 1970."""
    kind: str
    step: str
    """The path of the step with the turns of its loops; empty for the run as a whole."""
    body: dict[str, Any]


class JournalTold(ResponseModel):
    """Everything that happened in a run, in order."""

    run: RunIdText
    events: list[EventTold]


class FileTold(ResponseModel):
    """A file that goes along with a call, as it was when this was asked: a yes is one to this content."""

    name: str
    bytes: int
    sha256: str


class OfferTold(ResponseModel):
    """What may be allowed besides the call itself, for the rest of the run."""

    model_config = ConfigDict(extra="allow")
    tool: str
    argument: str
    value: Any
    scope: str
    """What it would allow, in words."""


class CallTold(ResponseModel):
    """A call that waits for a yes."""

    model_config = ConfigDict(extra="allow")
    step: str
    steps: list[str] = []
    """Where it would be made, with the turns of loops: a yes allows it once at each."""
    tool: str
    effect: str
    arguments: dict[str, Any]
    hash: str
    """What a yes is bound to: the tool, its declaration, every argument and what its files hold."""
    why: str
    times: int = 1
    """How often it would be made."""
    ahead: bool = False
    """It is not due yet, and asked about anew if it is not the same then."""
    files: list[FileTold] = []
    changed: list[str] = []
    """What is different about its files since an earlier question."""
    offer: OfferTold | None = None


class ApprovalTold(ResponseModel):
    """A question to a person: calls that wait for a yes, or something that a plan asks."""

    id: str
    run: str
    user: str = ""
    """Whose run asks."""
    kind: Literal["calls", "ask"]
    state: Literal["open", "approved", "denied", "partly", "expired", "replied", "withdrawn"]
    calls: list[CallTold] = []
    """Each call exactly as it would be made, with the hash that a yes is bound to."""
    question: str
    """What is asked, for a person to read."""
    type: Any = None
    """The type of the reply that an `ask` wants."""
    step: str = ""
    request: str = ""
    """The request of the run."""
    asked: datetime
    expires: datetime
    """After this the answer is no."""
    answered: datetime | None = None
    by: str = ""
    """Who answered."""
    approved: list[str] = []
    """The hashes of the calls that were approved."""
    for_run: list[str] = []
    """The hashes of those whose offer was taken."""
    reply: Any = None


class ApprovalList(ResponseModel):
    """Questions, the oldest first."""

    approvals: list[ApprovalTold]


class PlanTold(ResponseModel):
    """A plan and how it came about, or why there is none (`ok` is false and `error` says so)."""

    ok: bool
    error: ErrorFacts | None = None
    ending: Ending | None = None
    """Why there is no plan: `asked` if something must be said first, `refused` if none serves the request."""
    plan: dict[str, Any] | None = None
    """The plan as `plan/1` JSON."""
    source: str | None = None
    """The plan as people read it."""
    intent: dict[str, Any] | None = None
    report: dict[str, Any] | None = None
    """What the check found, what the plan changes and what it can cost at worst."""
    proof: dict[str, Any] | None = None
    """The verdict of policy on each call; none of a plan with errors."""
    bindings: list[dict[str, Any]] = []
    """What the words of the plan were bound to."""
    doubts: list[DoubtTold] = []
    """What is not sure about the plan."""
    choice: dict[str, Any] | None = None
    """How it was chosen among several; none if there was only one."""


class HealthTold(ResponseModel):
    """Whether the server is there, or ready."""

    ok: bool
