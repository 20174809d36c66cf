"""Echo: a request becomes an intent, by rules where the request is explicit, and by a model where it is not."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import MutableMapping
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bicameral.errors import IntentError
from bicameral.models import Message, Provider
from bicameral.planning._intent import has_added_names
from bicameral.planning._intent_document import GivenAnswer, Intent, IntentOutput, IntentStep
from bicameral.planning._questions import is_explicit, remaining_questions, understand
from bicameral.sessions import Listener, Session
from bicameral.tools import Registry

ECHO_PROMPT_VERSION = 1
ECHO_TOKENS = 400
INTENT_CACHE_FORM = "intent-cache/2"
"""The format of a cache entry; entries of another format are ignored."""

_SYSTEM = """\
You restate a request as JSON so that a planner can work from it. Keep every name, number, address, file and date \
exactly as written. Correct spelling mistakes and leave out greetings. List the steps in the order they must happen, \
each a short command. Do not add anything that was not asked for."""

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
    """A reply, validated: a provider without grammars, or a damaged cache, may return anything."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)
    task: Annotated[str, Field(max_length=80)]
    steps: Steps
    constraints: Constraints
    output: Literal["answer", "file", "mail", "calendar"]


class Echo:
    """Turns requests into intents. Explicit requests do not need the model; with `deterministic` it is never asked.

    Args:
        cache: Replies of the model to earlier requests.
        project: Part of the cache key: a reply of one project is never used in another.

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

    async def intent(
        self,
        request: str,
        registry: Registry,
        today: dt.date,
        *,
        deterministic: bool = False,
        answers: tuple[GivenAnswer, ...] = (),
    ) -> Intent:
        """The intent of a request; its `questions` are empty when nothing needs to be asked.

        Args:
            answers: What the person answered so far, as the request has it: it is not asked again.
        """
        plain = understand(request, registry, today)
        if answers:
            plain = plain.model_copy(update={"answers": answers, "questions": remaining_questions(plain, answers)})
        text = plain.request
        if deterministic or plain.questions:
            return plain
        if is_explicit(text, registry):
            return plain.model_copy(update={"by": "fast-path"})
        understood = await self._ask_model(text)
        if has_added_names(" ".join(understood["steps"]), text):
            # The model invented a name, so the request itself is the safer account.
            return plain
        return plain.model_copy(
            update={
                "task": understood["task"],
                "steps": tuple(IntentStep(action=step) for step in understood["steps"]),
                "constraints": tuple(understood["constraints"]),
                "output": _merged_output(plain.output, understood["output"]),
                "by": "echo",
            }
        )

    def _cache_key(self, text: str) -> str:
        """A hash over the messages that are sent, the schema, the model and the project."""
        provider = self._session.provider
        messages = [[message.speaker, message.text] for message in self._session.setup]
        model = [provider.name, provider.grammars, dict(provider.adapters)]
        parts = [INTENT_CACHE_FORM, ECHO_PROMPT_VERSION, self._project, model, ECHO_TOKENS, _SCHEMA, messages, text]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _load_cached(self, key: str) -> dict[str, Any] | None:
        """The cached reply; an entry of another format or key is dropped."""
        known = self._cache.get(key) if self._cache is not None else None
        if known is None or self._cache is None:
            return None
        try:
            entry: Any = json.loads(known)
            is_own = (entry["form"], entry["key"]) == (INTENT_CACHE_FORM, key)
            found = _parse_echo_reply(entry["understood"]) if is_own else None
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
        # The reply of a substitute model is not cached: an entry could not say that it is one.
        if self._cache is not None and reply.degraded is None:
            self._cache[key] = json.dumps({"form": INTENT_CACHE_FORM, "key": key, "understood": json.dumps(understood)})
        return understood


def _parse_echo_reply(text: str) -> dict[str, Any] | None:
    """The reply of a model or the cache, if it is complete and valid."""
    try:
        return _EchoReply.model_validate_json(text).model_dump(mode="python")
    except ValueError:
        return None


def _setup_messages() -> tuple[Message, ...]:
    shown = [Message("system", _SYSTEM)]
    for example in json.loads(files("bicameral.planning").joinpath("echo.json").read_text("utf-8")):
        understood = json.dumps(example["understood"], ensure_ascii=False)
        shown += [Message("user", example["request"]), Message("assistant", understood)]
    return tuple(shown)


def _merged_output(found: IntentOutput, kind: Literal["answer", "file", "mail", "calendar"]) -> IntentOutput:
    """The kind that the model names; paths and recipients are those that rules find in the request, never a model's."""
    return found if found.kind == kind else IntentOutput(kind=kind)
