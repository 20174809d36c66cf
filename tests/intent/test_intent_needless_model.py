"""Echo's model is not asked for a plan where no reply of it could change what a person is asked."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from bicameral.models import ScriptedProvider
from bicameral.planning import Echo
from bicameral.planning._echo_reply import (
    ACTIONS,
    QUESTION_KINDS,
    confirmed_questions,
    may_need_person,
    parse_echo_reply,
    proposed_questions,
)
from bicameral.planning._questions import understand
from property_examples import examples
from question_tools import FINDING, PLAIN

TODAY = dt.date(2026, 3, 11)

CLEAR = (
    "what did the plumber say about the boiler",
    "How many of my invoices are paid?",
    "was steht im mietvertrag zur kaution",
    "Mail Kim the minutes of the last meeting",
    "quel est le montant de la facture d'eau",
)
OPEN = (
    "Send the report",
    "Delete the old notes",
    "Show everything since the move",
    "Which expenses were too high?",
    "Schedule a meeting with the plumber",
)

replies = st.fixed_dictionaries(
    {
        "task": st.just(""),
        "steps": st.lists(st.sampled_from(ACTIONS).map(lambda action: {"action": action}), min_size=1, max_size=3),
        "constraints": st.just([]),
        "output": st.sampled_from(["answer", "file", "mail", "calendar"]),
        "questions": st.lists(
            st.fixed_dictionaries({"kind": st.sampled_from([*QUESTION_KINDS]), "words": st.integers(0, 9)}),
            min_size=1,
            max_size=2,
        ),
    }
)


@settings(max_examples=examples(300))
@given(st.sampled_from([*CLEAR, *OPEN]), replies, st.booleans())
def test_where_the_model_need_not_be_asked_no_reply_of_it_would_be_heard(
    request: str, reply: dict[str, Any], finds: bool
) -> None:
    words = request.split()
    for each in reply["questions"]:
        each["words"] = words[each["words"] % len(words)]
    registry = FINDING if finds else PLAIN
    plain = understand(request, registry, TODAY)
    understood = parse_echo_reply(json.dumps(reply))
    assert understood is not None
    asked = confirmed_questions(proposed_questions(understood, plain), understood, plain, registry)
    assert may_need_person(plain, registry) or asked == ()


@pytest.mark.parametrize("request_text", CLEAR)
async def test_a_request_that_leaves_nothing_open_needs_no_model_for_its_plan(request_text: str) -> None:
    provider = ScriptedProvider([])
    intent = await Echo(provider).intent(request_text, FINDING, TODAY, thorough=False)
    assert (intent.by, intent.questions, provider.requests) == ("deterministic", (), [])


@pytest.mark.parametrize("request_text", OPEN)
async def test_a_request_that_may_leave_something_open_is_shown_to_the_model(request_text: str) -> None:
    reply = {"task": "", "steps": [{"action": "read"}], "constraints": [], "output": "answer"}
    provider = ScriptedProvider([json.dumps(reply)])
    intent = await Echo(provider).intent(request_text, FINDING, TODAY, thorough=False)
    assert intent.questions or len(provider.requests) == 1


async def test_whoever_wants_the_steps_gets_them_from_the_model() -> None:
    reply = {"task": "", "steps": [{"action": "read"}], "constraints": [], "output": "answer"}
    intent = await Echo(ScriptedProvider([json.dumps(reply)])).intent(CLEAR[0], FINDING, TODAY)
    assert intent.by == "echo"
