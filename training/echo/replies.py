"""Replies as the model should write them: in the order of the schema, grounded in the request, and decodable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from llguidance import LLMatcher, LLTokenizer

from bicameral.models._tool_calls import compact_schema
from bicameral.planning import Intent
from bicameral.planning._echo_reply import (
    ECHO_SCHEMA,
    MAX_CONSTRAINTS,
    MAX_STEPS,
    PARAMETERS,
    invented_parts,
    parse_echo_reply,
    proposed_questions,
)

Step = dict[str, Any]
_BYTES = LLTokenizer("byte")
_TASK_ACTIONS = 4


class UnfitError(ValueError):
    """There is no right reply to this request, or none that Echo would accept."""


@dataclass(frozen=True, slots=True)
class Account:
    """What is to be understood from a request."""

    steps: tuple[Step, ...]
    constraints: tuple[str, ...] = ()
    output: str = "answer"
    questions: tuple[tuple[str, str], ...] = ()

    @property
    def skeleton(self) -> str:
        """The shape of the account: actions with the names of their parameters, the output, the kinds of questions."""
        steps = "; ".join(" ".join([step["action"], *sorted(set(step) - {"action"})]) for step in self.steps)
        return f"{steps} > {self.output}" + "".join(f" ? {kind}" for kind, _ in self.questions)


def render_reply(account: Account) -> str:
    """The reply as one line of JSON, as the decoder writes it."""
    steps = [_ordered(step) for step in account.steps]
    named = [step["action"].replace("-", " ") for step in steps if step["action"] != "read"]
    task = " and ".join(list(dict.fromkeys(named))[:_TASK_ACTIONS]) or "read"
    reply: dict[str, Any] = {
        "task": task,
        "steps": steps,
        "constraints": [*dict.fromkeys(account.constraints)][:MAX_CONSTRAINTS],
        "output": account.output,
    }
    if account.questions:
        reply["questions"] = [{"kind": kind, "words": words} for kind, words in account.questions]
    return json.dumps(reply, ensure_ascii=False)


def _ordered(step: Mapping[str, Any]) -> Step:
    if unknown := set(step) - {"action", *PARAMETERS}:
        raise UnfitError(f"there is no parameter {sorted(unknown)[0]!r}")
    return {"action": step["action"]} | {name: step[name] for name in PARAMETERS if name in step}


def check_reply(reply: str, plain: Intent) -> None:
    """Raise UnfitError if Echo would not take this reply as it is.

    Args:
        plain: The intent of the request by rules.
    """
    parsed = parse_echo_reply(reply)
    if parsed is None:
        raise UnfitError("the reply is not valid")
    if len(parsed.steps) > MAX_STEPS:
        raise UnfitError("there are too many steps")
    if invented := list(invented_parts(parsed, plain.request)):
        raise UnfitError(f"the request does not say: {', '.join(invented)}")
    asked = proposed_questions(parsed, plain)
    if len(asked) < len(parsed.questions):
        raise UnfitError("a question would not be asked: it is about what is known, or in other words")
    if not is_decodable(reply):
        raise UnfitError("the schema does not allow this reply")


def is_decodable(reply: str) -> bool:
    """Whether the decoder could write this reply."""
    return _matcher().validate_tokens(_BYTES.tokenize_str(reply)) == len(reply.encode())


@cache
def _matcher() -> LLMatcher:
    """The schema, compiled once: validation does not move a matcher."""
    return LLMatcher(_BYTES, LLMatcher.grammar_from_json_schema(json.dumps(compact_schema(ECHO_SCHEMA))))


def span(words: Sequence[str], request: str, most: int = 7) -> str | None:
    """The shortest stretch of a request, of at most so many words, that has all these words; None if there is none."""
    said = request.split()
    bare = [each.strip(_MARKS).casefold() for each in said]
    wanted = {part.strip(_MARKS).casefold() for each in words for part in str(each).split()}
    for length in range(max(1, len(wanted)), most + 1):
        for start in range(len(said) - length + 1):
            if wanted <= set(bare[start : start + length]):
                return " ".join(said[start : start + length]).strip(_MARKS)
    return None


_MARKS = ".,;:!?…\"“”„«»‹›‘’'`()[]{}<>¿¡*"
