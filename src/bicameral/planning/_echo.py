"""Echo: a request in a person's own words becomes an intent, with the questions that must be asked first."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import MutableMapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bicameral.errors import IntentError
from bicameral.models import Message, Provider
from bicameral.planning._intent import (
    Intent,
    IntentStep,
    asked_effects,
    has_added_names,
    is_explicit,
    named_dates,
    open_questions,
    required_effects,
    validate_request,
)
from bicameral.sessions import Listener, Session
from bicameral.tools import Registry

PROMPT_VERSION = 1
ECHO_TOKENS = 400
INTENT_CACHE_FORM = "intent-cache/1"
"""The form of an entry of the cache: one of any other form is none."""

_SYSTEM = """\
You restate a request as JSON so that a planner can work from it. Keep every name, number, address, file and date \
exactly as written. Correct spelling mistakes and leave out greetings. List the steps in the order they must happen, \
each a short command. Do not add anything that was not asked for."""

_EXAMPLES: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "hey could u pls get rid of the double lines in guests.txt n tell me how many are left??",
        {
            "task": "remove duplicate lines and count",
            "steps": ["remove duplicate lines of guests.txt", "count the lines that are left"],
            "constraints": [],
            "output": "answer",
        },
    ),
    (
        "need the avg price per color from cars.csv, put it in avg.csv thx. only cars newer than 2019",
        {
            "task": "average price by color",
            "steps": [
                "read the rows of cars.csv",
                "keep rows whose year is greater than 2019",
                "average price for each color",
                "write the rows to avg.csv",
            ],
            "constraints": ["only cars newer than 2019"],
            "output": "file",
        },
    ),
    (
        "look thru unread mails from Kim, whats the meeting room they mention? mail it to desk@example.com",
        {
            "task": "find the meeting room and mail it",
            "steps": [
                "search unread mails from Kim",
                "read the meeting room from the mail",
                "send the meeting room to desk@example.com",
            ],
            "constraints": [],
            "output": "mail",
        },
    ),
)

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "maxLength": 80},
        "steps": {"type": "array", "items": {"type": "string", "maxLength": 160}, "minItems": 1, "maxItems": 8},
        "constraints": {"type": "array", "items": {"type": "string", "maxLength": 120}, "maxItems": 4},
        "output": {"enum": ["answer", "file", "mail", "calendar"]},
    },
    "required": ["task", "steps", "constraints", "output"],
    "additionalProperties": False,
}


Steps = Annotated[list[Annotated[str, Field(max_length=160)]], Field(min_length=1, max_length=8)]
Constraints = Annotated[list[Annotated[str, Field(max_length=120)]], Field(max_length=4)]


class _EchoReply(BaseModel):
    """A reply, held to the schema: a provider without grammars, or a damaged cache, may have written anything."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)
    task: Annotated[str, Field(max_length=80)]
    steps: Steps
    constraints: Constraints
    output: Literal["answer", "file", "mail", "calendar"]


class Echo:
    """Understands requests. Explicit ones take the fast path past the model; `deterministic` never asks it.

    Example:
        >>> intent = await Echo(provider).intent("Count the lines of notes.txt", registry, today)
    """

    def __init__(
        self,
        provider: Provider,
        *,
        cache: MutableMapping[str, str] | None = None,
        listener: Listener | None = None,
        timeout: float | None = 120.0,
        project: str = "",
    ) -> None:
        self._session = Session(
            "echo", provider, _setup_messages(), max_tokens=ECHO_TOKENS, timeout=timeout, listener=listener
        )
        self._cache = cache
        self._project = project

    async def intent(self, request: str, registry: Registry, today: dt.date, *, deterministic: bool = False) -> Intent:
        """The intent of a request; its `questions` are empty when nothing needs to be asked."""
        text = validate_request(request)
        effects, dates, questions = asked_effects(text, registry), named_dates(text, today), open_questions(text)
        plain = Intent(
            request=text,
            steps=(IntentStep(action=text),),
            effects=effects,
            required=required_effects(text, effects),
            dates=dates,
            questions=questions,
        )
        if deterministic or questions:
            return plain
        if is_explicit(text, registry):
            return plain.model_copy(update={"by": "fast-path"})
        understood = await self._ask_model(text)
        if has_added_names(" ".join(understood["steps"]), text):
            # A model that puts names into a person's mouth has not understood; the words themselves are safer.
            return plain
        return plain.model_copy(
            update={
                "task": understood["task"],
                "steps": tuple(IntentStep(action=step) for step in understood["steps"]),
                "constraints": tuple(understood["constraints"]),
                "output": understood["output"],
                "by": "echo",
            }
        )

    def _cache_key(self, text: str) -> str:
        """A hash over the very messages that are sent, the schema, the model and the project."""
        provider = self._session.provider
        messages = [[message.speaker, message.text] for message in self._session.setup]
        model = [provider.name, provider.grammars, dict(provider.adapters)]
        parts = [INTENT_CACHE_FORM, PROMPT_VERSION, self._project, model, ECHO_TOKENS, _SCHEMA, messages, text]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _load_cached(self, key: str) -> dict[str, Any] | None:
        """What was understood before. An entry of another form or key is none, and is dropped."""
        known = self._cache.get(key) if self._cache is not None else None
        if known is None or self._cache is None:
            return None
        try:
            entry: Any = json.loads(known)
            found = (
                _parse_echo_reply(entry["understood"])
                if (entry["form"], entry["key"]) == (INTENT_CACHE_FORM, key)
                else None
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            found = None
        if found is None:
            self._cache.pop(key, None)
        return found

    async def _ask_model(self, text: str) -> dict[str, Any]:
        key = self._cache_key(text)
        if (known := self._load_cached(key)) is not None:
            return known
        reply = await self._session.ask(text, json_schema=_SCHEMA)
        understood = _parse_echo_reply(reply.text)
        if understood is None:
            raise IntentError(
                "intent.not-understood",
                "the model's account of the request was cut off",
                fix="Say it in fewer words, or use --deterministic.",
            )
        # What another model wrote instead is not kept: the next time it could not say so.
        if self._cache is not None and reply.degraded is None:
            self._cache[key] = json.dumps({"form": INTENT_CACHE_FORM, "key": key, "understood": json.dumps(understood)})
        return understood


def _parse_echo_reply(text: str) -> dict[str, Any] | None:
    """What a model or a cache says, if it is whole and of the form that was asked for."""
    try:
        return _EchoReply.model_validate_json(text).model_dump(mode="python")
    except ValueError:
        return None


def _setup_messages() -> tuple[Message, ...]:
    shown = [Message("system", _SYSTEM)]
    for request, understood in _EXAMPLES:
        shown += [Message("user", request), Message("assistant", json.dumps(understood, ensure_ascii=False))]
    return tuple(shown)
