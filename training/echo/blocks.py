"""The corpus that is written by hand: blocks of phrasings and one account, with the slots of the planner's corpus.

#: Could you forward the lease, it's about time      a phrasing; every phrasing of a block means the same
#~ fwd the rental contract pls                       a sloppy one
- forward | what: lease / rental contract            a step; the first alternative that the phrasing has is taken
! before noon                                        a constraint
> mail                                               the output; an answer if there is none
? recipient: lease / rental contract                 a question, with the words that raise it

A parameter with `?` after its name is left out where the phrasing has none of its words.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bicameral.planning._echo_reply import ACTIONS, NUMBERS, QUESTION_KINDS, Value, is_grounded, stands_in_order
from training.delta.slots import SLOT, Slots

from .replies import Account, Step, UnfitError

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class EchoBlock:
    """Ways to say one thing, and what is to be understood."""

    place: str
    phrasings: tuple[str, ...]
    account: tuple[str, ...]


def read_echo_blocks(path: Path) -> Iterator[EchoBlock]:
    """The blocks of a corpus file; a ValueError names the line of one that is incomplete."""
    lines, start = list[str](), 1
    for number, line in enumerate([*path.read_text("utf-8").splitlines(), ""], 1):
        if line.startswith("## "):
            continue
        if line.strip():
            start = start if lines else number
            lines.append(line.strip())
        elif lines:
            phrasings = tuple(each[3:].strip() for each in lines if each.startswith(("#: ", "#~ ")))
            account = tuple(each for each in lines if not each.startswith(("#: ", "#~ ")))
            if not phrasings or not any(each.startswith("- ") for each in account):
                raise ValueError(f"{path.name}:{start}: a block needs a phrasing and a step")
            yield EchoBlock(f"{path.name}:{start}", phrasings, account)
            lines = []


def fill_block(block: EchoBlock, phrasing: str, seed: object) -> tuple[str, dt.date, Account]:
    """A request, the day on which it is said, and its account; the same seed gives the same ones."""
    picks = random.Random(f"{block.place}/{phrasing}/{seed}")
    today = dt.date(2025, 1, 6) + dt.timedelta(days=picks.randint(0, 700))
    slots = Slots(picks, today)
    request = slots.fill(phrasing, in_plan=False)
    account = read_account([slots.fill(line, in_plan=False) for line in block.account], request)
    if left := SLOT.search(request):
        raise UnfitError(f"unknown slot {left[0]}")
    return request, today, account


def read_account(lines: list[str], request: str) -> Account:
    """The account that lines of a block say, in the words of this request."""
    steps: list[Step] = []
    constraints: list[str] = []
    questions: list[tuple[str, str]] = []
    output = "answer"
    for line in lines:
        mark, rest = line[:2], line[2:].strip()
        match mark:
            case "- ":
                steps.append(_read_step(rest, request))
            case "! ":
                found = _choose("text", rest.removesuffix("?"), request)
                if found:
                    constraints.append(str(found))
                elif not rest.endswith("?"):
                    raise UnfitError(f"the request has none of {rest!r}")
            case "> ":
                output = rest
            case "? ":
                kind, _, words = rest.partition(":")
                if kind not in QUESTION_KINDS:
                    raise UnfitError(f"{kind!r} is no kind of question")
                questions.append((kind, str(_choose("text", words.strip(), request) or "")))
            case _:
                raise UnfitError(f"{line!r} is no line of a block")
    return Account(tuple(steps), tuple(constraints), output, tuple(questions))


def _read_step(text: str, request: str) -> Step:
    action, *parts = re.split(r"\s+\|\s+", text)
    if action not in ACTIONS:
        raise UnfitError(f"{action!r} is no action")
    step: Step = {"action": action}
    for part in parts:
        name, _, words = part.partition(":")
        value = _choose(name.rstrip("?"), words.strip(), request)
        if value is not None:
            step[name.rstrip("?")] = value
        elif not name.endswith("?"):
            raise UnfitError(f"{action} {name}: the request has none of {words.strip()!r}")
    return step


def _choose(name: str, alternatives: str, request: str) -> Value | None:
    """The first alternative that the request says."""
    for each in re.split(r"\s+/\s+", alternatives):
        value: Value = each
        if name in NUMBERS:
            value = float(each) if "." in each else int(each)
        elif name in ("unread", "is") and each in ("true", "false"):
            value = each == "true"
        elif name == "order":
            return each
        if is_grounded(name, value, request) if name != "text" else stands_in_order(str(value), request):
            return value
    return None
