"""Echo: a request becomes an intent, by rules where the request is explicit, and by a model where it is not."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import MutableMapping
from importlib.resources import files
from typing import Any

from bicameral.errors import IntentError
from bicameral.models import Message, Provider
from bicameral.planning._echo_reply import (
    ACTIONS,
    ECHO_SCHEMA,
    PARAMETERS,
    QUESTION_KINDS,
    EchoReply,
    confirmed_questions,
    echo_task,
    intent_steps,
    invented_parts,
    may_need_person,
    merged_output,
    parse_echo_reply,
    proposed_questions,
)
from bicameral.planning._intent_document import GivenAnswer, Intent
from bicameral.planning._questions import is_explicit, remaining_questions, understand
from bicameral.routing import call_context
from bicameral.sessions import Listener, Session
from bicameral.tools import Registry

ECHO_PROMPT_VERSION = 2
ECHO_TOKENS = 400
ECHO_SEED = 0
"""What chance begins with where the temperature is above 0: the same request gets the same account of a local model."""
ECHO_ADAPTER = "echo"
"""The job of the adapter for restating requests; a model with it needs no examples."""
INTENT_CACHE_FORM = "intent-cache/3"
"""The format of a cache entry; entries of another format are ignored."""

_SYSTEM = f"""\
You restate a request as JSON so that a planner can work from it. List the steps in the order they must happen, each \
an action with its parameters. Copy every parameter and constraint word for word from the request, as it is spelt \
there. Leave out greetings. Do not add anything that was not asked for. The task is the actions in a few words.
Actions: {", ".join(ACTIONS)}.
Parameters: {", ".join(PARAMETERS)}.
If something must be known first, end with a question: {", ".join(QUESTION_KINDS)}."""


class Echo:
    """Turns requests into intents. Explicit requests do not need the model; with `deterministic` it is never asked.

    Args:
        cache: Replies of the model to earlier requests.
        project: Part of the cache key: a reply of one project is never used in another.
        temperature: How freely the model restates a request. None is 0 (the likeliest account, so that the same request
            gives the same plan), or what an alias has for all its calls.

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
        temperature: float | None = None,
    ) -> None:
        trained = ECHO_ADAPTER in provider.adapters
        setup = echo_setup_messages(examples=not trained)
        self._session = Session(
            "echo",
            provider,
            setup,
            max_tokens=ECHO_TOKENS,
            timeout=timeout,
            listener=listener,
            adapter=ECHO_ADAPTER if trained else None,
            fixed=len(setup),
        )
        self._cache = cache
        self._project = project
        self._temperature = temperature

    async def intent(
        self,
        request: str,
        registry: Registry,
        today: dt.date,
        *,
        deterministic: bool = False,
        answers: tuple[GivenAnswer, ...] = (),
        thorough: bool = True,
    ) -> Intent:
        """The intent of a request; its `questions` are empty when nothing needs to be asked.

        Args:
            deterministic: Never ask the model.
            thorough: Ask the model for the steps of the request also where nothing can be open.
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
        if not thorough and not may_need_person(plain, registry):
            # No reply could change what is asked, and a plan is made from the request itself.
            return plain
        understood = await self._ask_model(text)
        if any(invented_parts(understood, text)):
            # The model invented a name, so the request itself is the safer account.
            return plain
        proposed = confirmed_questions(proposed_questions(understood, plain), understood, plain, registry)
        questions = remaining_questions(plain.model_copy(update={"questions": proposed}), plain.answers)
        return plain.model_copy(
            update={
                "task": echo_task(understood, text),
                "steps": intent_steps(understood),
                "constraints": tuple(understood.constraints),
                "output": merged_output(plain, understood.output),
                "questions": questions,
                "by": "echo",
            }
        )

    async def prepare(self) -> None:
        """Let a local model read its fixed prompt, which a provider may keep for later processes."""
        await self._session.prepare()

    def _cache_key(self, text: str) -> str:
        """A hash over the messages that are sent, the schema, the model, the project and the temperature."""
        provider = self._session.provider
        messages = [[message.speaker, message.text] for message in self._session.setup]
        model = [provider.name, provider.grammars, dict(provider.adapters)]
        parts = [INTENT_CACHE_FORM, ECHO_PROMPT_VERSION, self._project, model, ECHO_TOKENS, ECHO_SCHEMA, messages, text]
        if self._temperature is not None:
            parts += [self._temperature, ECHO_SEED]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _load_cached(self, key: str) -> EchoReply | None:
        """The cached reply; an entry of another format or key is dropped."""
        known = self._cache.get(key) if self._cache is not None else None
        if known is None or self._cache is None:
            return None
        try:
            entry: Any = json.loads(known)
            is_own = (entry["form"], entry["key"]) == (INTENT_CACHE_FORM, key)
            found = parse_echo_reply(entry["understood"]) if is_own else None
        except (ValueError, TypeError, KeyError, RecursionError):
            found = None
        if found is None:
            self._cache.pop(key, None)
        return found

    async def _ask_model(self, text: str) -> EchoReply:
        key = self._cache_key(text)
        if (known := self._load_cached(key)) is not None:
            return known
        configured = self._temperature is not None
        with call_context(keeps_sampling=configured):
            reply = await self._session.ask(
                text, json_schema=ECHO_SCHEMA, temperature=self._temperature or 0.0, seed=ECHO_SEED
            )
        understood = parse_echo_reply(reply.text)
        if understood is None:
            raise IntentError(
                "intent.not-understood",
                "the model's account of the request was cut off",
                fix="Say it in fewer words, or use --deterministic.",
            )
        # The reply of a substitute model is not cached: an entry could not say that it is one.
        if self._cache is not None and reply.degraded is None:
            self._cache[key] = json.dumps(
                {"form": INTENT_CACHE_FORM, "key": key, "understood": understood.model_dump_json()}
            )
        return understood


def echo_setup_messages(*, examples: bool) -> tuple[Message, ...]:
    """The prompt before the request; a model with the adapter needs no examples."""
    shown = [Message("system", _SYSTEM)]
    for example in _load_examples() if examples else ():
        understood = json.dumps(example["understood"], ensure_ascii=False)
        shown += [Message("user", example["request"]), Message("assistant", understood)]
    return tuple(shown)


def _load_examples() -> list[dict[str, Any]]:
    return json.loads(files("bicameral.planning").joinpath("echo.json").read_text("utf-8"))
