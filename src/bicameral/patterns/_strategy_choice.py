"""The automatic choice of a strategy for a request, with its reason.

The compiled plan has the strongest guarantee, so it is chosen unless the words of the request say that no plan can be
written beforehand. Rules of the user come first, then a model if one is configured, then the rules that are built in.
Only the user's own words and the declared effects of tools are read: untrusted text chooses nothing, and neither does a
tool that describes itself. What cannot be classified gets the default, with a note that says why.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from bicameral.errors import BicameralError
from bicameral.labels import Labelled, open_labelled
from bicameral.limits import BudgetSpent, LimitReached
from bicameral.models import Message
from bicameral.patterns._conversation import ModelPair
from bicameral.patterns._strategy_types import STRATEGIES, StrategyName, strategy_by_name
from bicameral.tools import Registry

DEFAULT_STRATEGY: StrategyName = "compiled"
MAX_CLASSIFIED = 4_000
"""Characters of a request that a classifier model reads."""

ChosenBy = Literal["caller", "configuration", "rule", "model", "words", "default"]
_BY_TEXT: dict[ChosenBy, str] = {
    "caller": "as asked for",
    "configuration": "as configured",
    "rule": "by a rule of the configuration",
    "model": "by the classifier model",
    "words": "by the words of the request",
    "default": "by default",
}


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """A strategy, and why it was chosen.

    Args:
        by: What chose it.
        reason: Why, in words for people.
        note: Why another way of choosing, which comes first, did not choose; empty if it did or there was none.
    """

    strategy: StrategyName
    by: ChosenBy
    reason: str
    note: str = ""

    @property
    def is_automatic(self) -> bool:
        """Whether neither the caller nor the configuration named the strategy."""
        return self.by not in ("caller", "configuration") and bool(self.reason)

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{self.strategy}, {_BY_TEXT[self.by]}{why}" + (f" ({self.note})" if self.note else "")

    def to_json(self) -> dict[str, str]:
        found = {"strategy": self.strategy, "by": self.by, "reason": self.reason}
        return found | ({"note": self.note} if self.note else {})


@dataclass(frozen=True, slots=True)
class StrategyRule:
    """Requests with one of these phrases, as whole words in any case, get this strategy."""

    contains: tuple[str, ...]
    strategy: StrategyName

    def find(self, request: str) -> str | None:
        """The first phrase that the request has."""
        words = " ".join(request.casefold().split())
        return next((each for each in self.contains if _phrase_pattern(each).search(words)), None)


@cache
def _phrase_pattern(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(' '.join(phrase.casefold().split()))}(?!\w)")


@dataclass(frozen=True, slots=True)
class StrategyClassifier:
    """How `auto` chooses.

    Args:
        rules: Rules of the user; the first that fits counts.
        model: The alias of a classifier model; None if there is none.
    """

    rules: tuple[StrategyRule, ...] = ()
    model: str | None = None

    async def choose(self, request: Labelled[str], registry: Registry, models: ModelPair) -> StrategyChoice:
        """The strategy for a request. It never fails: what cannot be classified gets the default, with a note."""
        if not request.label.trusted:
            # Somebody else's words would choose how much freedom is given to those who read them.
            return StrategyChoice(
                DEFAULT_STRATEGY, "default", "the request carries untrusted text and is not classified"
            )
        text, note = open_labelled(request), ""
        for rule in self.rules:
            phrase = rule.find(text)
            if phrase is not None:
                return StrategyChoice(rule.strategy, "rule", f"the request has {phrase!r}")
        if self.model is not None:
            try:
                return await _ask_model(text, self.model, models)
            except (BudgetSpent, LimitReached):
                raise
            except BicameralError as error:
                note = f"the classifier {self.model!r} did not choose: {error.code}"
        return choose_by_words(text, registry, note)


_REVIEW = re.compile(
    r"\b(?:double[- ]check"
    r"|check (?:it|everything|the results?|your(?: own)? work) (?:again|afterwards|at the end|twice)"
    r"|(?:check|review) your(?: own)? work|verify (?:the results?|that it (?:worked|is done)|afterwards)"
    r"|make sure (?:that )?(?:it|everything) (?:worked|is done|was done)"
    r"|until (?:it works|it is right|all tests pass))\b",
    re.IGNORECASE,
)
_OPEN_ENDED = re.compile(
    r"\b(?:investigate|explore|diagnose|troubleshoot|debug|research|look into|dig into|figure out|find out (?:why|how)"
    r"|work out (?:why|how)|get to the bottom|depending on (?:what|which|how|whether)|based on what you (?:find|see)"
    r"|as you see fit|whatever (?:is needed|it takes|you find)|use your (?:own )?judge?ment"
    r"|decide (?:yourself|what|which))\b",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:^|\n)\s*(?:\d{1,2}[.)]|[-*•])\s+\S")
_STAGE = re.compile(r"\b(?:first|second|then|next|after that|afterwards|finally|lastly|at the end)\b", re.IGNORECASE)
_MIN_STAGES = 2


def choose_by_words(request: str, registry: Registry, note: str = "") -> StrategyChoice:
    """The strategy by the rules that are built in: the same request and tools always get the same."""
    tools = [tool for tool in registry if not tool.self_described]
    if not any(tool.effect == "read" for tool in tools):
        return StrategyChoice(DEFAULT_STRATEGY, "default", "no tool reads, so nothing can be learned on the way", note)
    if (found := _REVIEW.search(request)) is not None:
        reason = f"it asks for a look back at the result ({_quote(found)})"
        return StrategyChoice("spar", "words", reason, note)
    found = _OPEN_ENDED.search(request)
    if found is None:
        reason = "its words do not say that steps depend on what is found, so all of it can be planned and proved"
        return StrategyChoice(DEFAULT_STRATEGY, "default", reason, note)
    if len(_NUMBERED.findall(request)) >= _MIN_STAGES or len(_STAGE.findall(request)) >= _MIN_STAGES:
        reason = f"it names stages, and what they do depends on what is found ({_quote(found)})"
        return StrategyChoice("plan_and_execute", "words", reason, note)
    return StrategyChoice("native_react", "words", f"the next step depends on what is found ({_quote(found)})", note)


def _quote(found: re.Match[str]) -> str:
    return repr(" ".join(found.group().split()))


CLASSIFIER_PROMPT = """Choose how a program with tools goes about a request.
- compiled: all steps can be written down before anything is read. This is the usual one.
- native_react: the next step depends on what is found, and there are few.
- plan_and_execute: several stages, each of which depends on what is found.
- spar: as plan_and_execute, where the result must be looked at again before it is done.
Reply as JSON: {"strategy": "…"}."""
CLASSIFIER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"strategy": {"enum": sorted(STRATEGIES)}},
    "required": ["strategy"],
    "additionalProperties": False,
}


async def _ask_model(request: str, alias: str, models: ModelPair) -> StrategyChoice:
    """What the classifier model chooses. It reads the request alone: no tool, no file, no result."""
    messages = (Message("system", CLASSIFIER_PROMPT), Message("user", request[:MAX_CLASSIFIED]))
    session = models.session("reasoning", trusted=True)
    reply = await session.converse(messages, job="reasoning", json_schema=CLASSIFIER_SCHEMA, model=alias)
    try:
        written = json.loads(reply.text)
        name = written["strategy"] if isinstance(written, dict) else None  # pyright: ignore[reportUnknownVariableType]
    except (ValueError, KeyError, RecursionError):
        name = None
    # An unknown name is an error like any other of the classifier.
    strategy = strategy_by_name(str(name)[:60])  # pyright: ignore[reportUnknownArgumentType]
    return StrategyChoice(strategy, "model", f"{reply.model or alias} chose it")
