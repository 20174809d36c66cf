"""The requests with what is to be understood from them, as text files by language.

: Let Kim know that the bus is late               the request
m person Kim | day Friday                         what it mentions; words may have alternatives: `standup / 9am standup`
- send | to: Kim | text?: the bus is late         a step; a parameter with `?` may be missing
-? read | file: bus                               a step that may be missing
> mail                                            where the result goes
? recipient / which                               it leaves something open; one of these topics has to be asked about
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "requests"
_FEWEST_RESERVED = 3


@dataclass(frozen=True, slots=True)
class ExpectedStep:
    """An action with the values that its parameters may have."""

    action: str
    required: dict[str, tuple[str, ...]]
    optional: dict[str, tuple[str, ...]]
    may_be_missing: bool = False


@dataclass(frozen=True, slots=True)
class IntentRequest:
    """A request and what is to be understood from it.

    Args:
        mentions: Kinds with the words that are right for each.
        topics: What has to be asked about, if the request leaves something open; one of them is enough.
        unseen: Whether the structure of its steps is kept from training data.
    """

    id: str
    language: str
    text: str
    mentions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    steps: tuple[ExpectedStep, ...] = ()
    output: str = "answer"
    topics: frozenset[str] = field(default_factory=frozenset[str])
    unseen: bool = False

    @property
    def is_open(self) -> bool:
        return bool(self.topics)


@cache
def load_requests() -> tuple[IntentRequest, ...]:
    """All requests, in the order of their files."""
    return tuple(each for path in sorted(FOLDER.glob("*.txt")) for each in _read_file(path))


def _read_file(path: Path) -> Iterator[IntentRequest]:
    blocks = re.split(r"\n\s*\n", path.read_text("utf-8").strip())
    for number, block in enumerate(blocks, 1):
        yield _read_request(block.splitlines(), path.stem, number)


def _read_request(lines: list[str], language: str, number: int) -> IntentRequest:
    text, output = "", "answer"
    mentions: list[tuple[str, tuple[str, ...]]] = []
    steps: list[ExpectedStep] = []
    topics: frozenset[str] = frozenset()
    for line in lines:
        mark, _, rest = line.partition(" ")
        match mark:
            case ":":
                text = rest.strip()
            case "m":
                for part in re.split(r"\s+\|\s+", rest.strip()):
                    kind, _, words = part.partition(" ")
                    mentions.append((kind, _alternatives(words)))
            case "-" | "-?":
                steps.append(_read_step(rest, mark == "-?"))
            case ">":
                output = rest.strip()
            case "?":
                topics = frozenset(_alternatives(rest))
            case _:
                raise ValueError(f"{language}.txt, request {number}: {line!r} is no line of a request")
    if not text or not any(not step.may_be_missing for step in steps):
        raise ValueError(f"{language}.txt, request {number}: it needs a text and a step")
    return IntentRequest(
        f"{language}-{number:02}", language, text, tuple(mentions), tuple(steps), output, topics, number % 2 == 0
    )


def _read_step(text: str, may_be_missing: bool) -> ExpectedStep:
    action, *parts = re.split(r"\s+\|\s+", text.strip())
    required: dict[str, tuple[str, ...]] = {}
    optional: dict[str, tuple[str, ...]] = {}
    for part in parts:
        name, _, words = part.partition(":")
        (optional if name.endswith("?") else required)[name.rstrip("?")] = _alternatives(words)
    return ExpectedStep(action, required, optional, may_be_missing)


def _alternatives(words: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in re.split(r"\s+/\s+", words.strip()))


@cache
def reserved_skeletons() -> frozenset[str]:
    """The structures of the unseen requests: actions with the names of their parameters, output, kinds of questions.

    One or two steps cannot be kept back without keeping back what everybody asks for ("find … and read it"), so only
    structures of three steps or more are reserved. A request that may be understood in several ways reserves its
    shortest and its fullest account.
    """
    found: set[str] = set()
    for each in load_requests():
        if not each.unseen:
            continue
        for steps in (each.steps, tuple(step for step in each.steps if not step.may_be_missing)):
            if len(steps) >= _FEWEST_RESERVED:
                for full in (True, False):
                    shape = "; ".join(_shape(step, full) for step in steps)
                    found |= {
                        f"{shape} > {each.output}" + (f" ? {topic}" if topic else "") for topic in each.topics or ("",)
                    }
    return frozenset(found)


def _shape(step: ExpectedStep, full: bool) -> str:
    names = {*step.required} | ({*step.optional} if full else set[str]())
    return " ".join([step.action, *sorted(names)])
