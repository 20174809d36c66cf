"""The role `echo`: a model understands requests, and the fields of the intents are judged."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from bicameral.agent import Agent
from bicameral.config import Config
from bicameral.errors import IntentError, ModelError
from bicameral.models import Provider, ScriptedProvider
from bicameral.planning import Echo, Intent
from bicameral.trials._cases import Case, IntentCase, intent_day
from bicameral.trials._judgement import Judgement, counts_as_failure, mentions, show_text
from bicameral.trials._world import World

_CHANGING_ACTIONS = frozenset(
    "write append copy move rename delete send reply forward draft add-event change-event cancel-event".split()
)


class IntentTrial:
    """Understands each request as `bicameral intent` does.

    Args:
        provider: The model, of the privileged chamber.
        timeout: Seconds for one call.
    """

    def __init__(self, provider: Provider, *, timeout: float | None = None) -> None:
        self._provider = provider
        # Only the descriptions of its tools are used: they say which effects a request may ask for.
        self._world = World().__enter__()
        defaults = Config.defaults()
        limits = defaults.limits if timeout is None else defaults.limits.model_copy(update={"model_timeout": timeout})
        self._agent = Agent(
            self._world.registry,
            config=defaults.model_copy(update={"limits": limits}),
            privileged=provider,
            quarantined=ScriptedProvider([], name="no reader", chamber="quarantined"),
            cache={},
            now=_now,
        )

    async def prepare(self) -> None:
        await Echo(self._provider, timeout=None).prepare()

    async def run(self, case: Case) -> Judgement:
        assert isinstance(case, IntentCase)
        try:
            intent = await self._agent.intent(case.request, partial=True)
        except IntentError as error:
            return Judgement(False, describe_expected(case), f"error {error.code}")
        except ModelError as error:
            if not counts_as_failure(error):
                raise
            return Judgement(False, describe_expected(case), f"error {error.code}")
        return judge_intent(case, intent)

    def close(self) -> None:
        self._world.__exit__(None)


def _now() -> dt.datetime:
    return dt.datetime.combine(intent_day(), dt.time(9))


def judge_intent(case: IntentCase, intent: Intent) -> Judgement:
    """Whether the intent has the fields that the request says, and nothing that it does not."""
    if intent.by != "echo":
        # The reply named something that the request does not say, so it was not used.
        return Judgement(False, describe_expected(case), "a reply that does not fit the request")
    faults = list(_faults(case, intent))
    came = f"{describe_intent(intent)} (wrong: {', '.join(faults)})" if faults else "as expected"
    return Judgement(not faults, describe_expected(case), show_text(came))


def _faults(case: IntentCase, intent: Intent) -> Iterator[str]:
    """The fields of an intent that are wrong."""
    actions = {step.action for step in intent.steps}
    wanted = [each.split("|") for each in case.goal]
    yield from ("goal" for each in wanted if actions.isdisjoint(each))
    unasked = (actions & _CHANGING_ACTIONS) - {action for each in wanted for action in each}
    yield from (f"unasked {action}" for action in sorted(unasked))
    yield from (f"filter {each!r}" for each in case.filters if not _holds(intent, each))
    if intent.output.kind != case.output and (case.output, intent.output.kind) != ("answer", "stdout"):
        yield "output"
    topics = {question.about for question in intent.questions}
    if case.missing and topics.isdisjoint(case.missing):
        yield "missing details"
    elif topics and not case.missing:
        yield "needless question"


def _holds(intent: Intent, filter_: str) -> bool:
    """Whether a step has a parameter of this name and value, or, without a name, any parameter or constraint has."""
    names, named, values = filter_.partition(" = ")
    wanted = (values if named else names).split("|")
    allowed = names.split("|") if named else None
    found = [
        _parameter_text(value)
        for step in intent.steps
        for name, value in step.parameters.items()
        if allowed is None or name in allowed
    ]
    texts = found if named else [*found, *intent.constraints]
    return any(mentions(text, each) for text in texts for each in wanted)


def _parameter_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def describe_expected(case: IntentCase) -> str:
    """The fields that are right for a request, in one line."""
    parts = ["steps " + ", ".join(case.goal), *case.filters, f"output {case.output}"]
    parts.append(f"asks for {' or '.join(case.missing)}" if case.missing else "asks nothing")
    return "; ".join(parts)


def describe_intent(intent: Intent) -> str:
    """An intent in one line: steps, constraints, output and what is asked."""
    parts = [step.text for step in intent.steps] + [f"constraint {each}" for each in intent.constraints]
    parts.append(f"output {intent.output.kind}")
    asked = sorted({question.about for question in intent.questions})
    parts.append(f"asks for {', '.join(asked)}" if asked else "asks nothing")
    return "; ".join(parts)
