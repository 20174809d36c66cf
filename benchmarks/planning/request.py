"""What a request is: a sentence, how hard it is, what is right in each world, and a reference plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from .data import Data
from .judge import Expected, Oracle, Outcome, Verdict, judge
from .skeletons import skeleton_of

Language = Literal["en", "de", "fr", "es"]
Obstacle = Literal["no-tool", "contradiction", "no-recipient", "missing", "dangerous", "unclear"]
"""Why a request cannot or must not be served."""


@dataclass(frozen=True)
class Request:
    """One thing a person asks for.

    Args:
        id: Its name.
        text: What the person types; `{site}` is the website's address.
        level: How many steps it takes, 1 to 5.
        oracle: What is right in a world, computed from its data.
        plan: A reference plan, with `<key>` for what is called something else in each world.
        language: The language of the text.
        natural: It names no file and no tool.
        unseen: Its skeleton occurs in no training data.
        condition: Which effects are right depends on the world.
        obstacle: Why it cannot be served; then only a refusal or a question without any effect is right.
        sheet: What the person answers if asked: words of a question, and the reply.
        declared: The skeleton of a request without a plan.
    """

    id: str
    text: str
    level: int
    oracle: Oracle
    plan: str = ""
    language: Language = "en"
    natural: bool = False
    unseen: bool = False
    condition: bool = False
    obstacle: Obstacle | None = None
    sheet: tuple[tuple[str, str], ...] = ()
    declared: str = ""
    sloppy: bool = field(default=False, repr=False)

    @cached_property
    def skeleton(self) -> str:
        """The structure of the right plan."""
        return self.declared or skeleton_of(self.plan)

    def expected(self, data: Data) -> Expected:
        """What is right in this world."""
        return self.oracle(data)

    def judge(self, outcome: Outcome) -> Verdict:
        """Whether the request was served. A request that cannot be served never is by a run that ends well."""
        if self.obstacle is not None:
            return Verdict(False, "this cannot be served")
        return judge(outcome, self.expected(outcome.world.data))


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to say a task."""

    text: str
    language: Language = "en"
    natural: bool = False


def en(text: str) -> Wording:
    """English that names files or tools."""
    return Wording(text)


def nat(text: str) -> Wording:
    """English as a person talks, without files and tools."""
    return Wording(text, natural=True)


def de(text: str, natural: bool = False) -> Wording:
    return Wording(text, "de", natural)


def fr(text: str, natural: bool = False) -> Wording:
    return Wording(text, "fr", natural)


def es(text: str, natural: bool = False) -> Wording:
    return Wording(text, "es", natural)


def task(
    id: str,
    level: int,
    plan: str,
    oracle: Oracle,
    *wordings: Wording,
    unseen: bool = False,
    condition: bool = False,
    sheet: tuple[tuple[str, str], ...] = (),
) -> list[Request]:
    """A request for each wording of one task; they share the oracle, the plan and so the skeleton.

    Example:
        >>> task("timeout", 1, 'answer(read_json("config.json")["timeout"])', oracle, en("What is the timeout?"))
    """
    made: list[Request] = []
    for wording in wordings:
        suffix = "" if wording.language == "en" else f"-{wording.language}"
        name = f"{id}{suffix}"
        if any(each.id == name for each in made):
            name = f"{name}-{len(made) + 1}"
        made.append(
            Request(
                name,
                wording.text,
                level,
                oracle,
                plan.strip() + "\n",
                wording.language,
                wording.natural,
                unseen,
                condition,
                sheet=sheet,
            )
        )
    return made
