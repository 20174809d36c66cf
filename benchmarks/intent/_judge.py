"""An intent against what was to be understood, and the figures over all of them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bicameral.planning import Intent, IntentStep

from ._requests import ExpectedStep, IntentRequest

_ARTICLES = frozenset(
    "the a an my our der die das den dem des ein eine einen mein meine le la les l un une du des mon ma mes el los las "
    "una mi mis del al".split()
)
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a request.

    Args:
        mentions: How many mentions were found, how many of them are right, and how many were to be found.
        asked: Whether something was asked; `asked_right` if it is what the request leaves open.
        invented: Whether the intent has a word or a number that the request does not have.
    """

    request: IntentRequest
    intent: Intent
    steps_right: bool
    mentions: tuple[int, int, int]
    output_right: bool
    asked: bool
    asked_right: bool
    invented: bool


def judge(request: IntentRequest, intent: Intent) -> Judged:
    """Compare an intent with what was to be understood."""
    topics = {each.about for each in intent.questions}
    found = [(each.kind, _plain(each.words)) for each in intent.mentions]
    wanted = [(kind, {_plain(each) for each in words}) for kind, words in request.mentions]
    right = sum(any(kind == other and words in given for other, given in wanted) for kind, words in found)
    return Judged(
        request,
        intent,
        steps_right=steps_match(intent.steps, request.steps),
        mentions=(len(found), min(right, len(wanted)), len(wanted)),
        output_right=intent.output.kind == request.output
        or (request.output, intent.output.kind) == ("answer", "stdout"),
        asked=bool(topics),
        asked_right=bool(topics & request.topics),
        invented=bool(invented_words(intent)),
    )


def steps_match(steps: Sequence[IntentStep], expected: Sequence[ExpectedStep]) -> bool:
    """Whether the steps are those that were expected, as a set: none missing, none that was not said."""
    left = list(steps)
    # What must be there is matched first, so that a step that may be missing takes no other's place.
    for each in sorted(expected, key=lambda step: step.may_be_missing):
        found = next((step for step in left if _is_step(step, each)), None)
        if found is not None:
            left.remove(found)
        elif not each.may_be_missing:
            return False
    return not left


def _is_step(step: IntentStep, expected: ExpectedStep) -> bool:
    given = step.parameters
    allowed = expected.required | expected.optional
    if step.action != expected.action or not {*expected.required} <= {*given} or not {*given} <= {*allowed}:
        return False
    return all(_plain(str(value)) in {_plain(each) for each in allowed[name]} for name, value in given.items())


def _plain(text: str) -> str:
    """Words without case, accents, articles and punctuation; numbers as they are."""
    folded = unicodedata.normalize("NFKD", text.casefold().replace(".0", ""))
    bare = "".join(char for char in folded if not unicodedata.combining(char))
    words = _WORD.findall(bare)
    return " ".join([each for each in words if each not in _ARTICLES] or words)


def invented_words(intent: Intent) -> list[str]:
    """Words and numbers of steps, constraints, output and mentions that the request does not have.

    This is a rule of its own and not the one by which Echo accepts a reply: every word has to be in the request, and
    every number in digits or as a word.
    """
    said = set(_plain(intent.request).split()) | set(_WORD.findall(_plain(intent.request)))
    texts = [
        *intent.constraints,
        *(each.words for each in intent.questions),
        *intent.output.to,
        intent.output.path or "",
    ]
    for step in intent.steps:
        values = [value for value in step.parameters.values() if not isinstance(value, bool)]
        flat = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
        # A number in words ("three") is judged by the expected steps.
        texts += [str(each) for each in flat if isinstance(each, str) and each not in ("ascending", "descending")]
        texts += [
            f"{each:g}" for each in flat if isinstance(each, int | float) and any(map(str.isdigit, intent.request))
        ]
    stems = {word[:4] for word in said}
    return [word for text in texts for word in _plain(text).split() if word not in said and word[:4] not in stems]


def interval(right: int, cases: int) -> list[float] | None:
    """The 95 % Wilson interval of a share, None without cases."""
    if not cases:
        return None
    z, share = 1.959964, right / cases
    middle = share + z * z / (2 * cases)
    spread = z * math.sqrt(share * (1 - share) / cases + z * z / (4 * cases * cases))
    scale = 1 + z * z / cases
    return [round(max(0.0, (middle - spread) / scale), 4), round(min(1.0, (middle + spread) / scale), 4)]


def _share(flags: Iterable[bool]) -> float | None:
    listed = list(flags)
    return round(sum(listed) / len(listed), 4) if listed else None


def summarise(judged: Sequence[Judged]) -> dict[str, Any]:
    """The object of the last line; `interval` has the 95 % interval of each share."""
    opens = [each for each in judged if each.request.is_open]
    whole = [each for each in judged if not each.request.is_open]
    found, right, wanted = (sum(each.mentions[at] for each in judged) for at in range(3))
    # Which steps are right is a matter of the model's account; rules alone leave the request as one step.
    steps = [each.steps_right for each in judged]
    unseen = [each.steps_right for each in judged if each.request.unseen]
    outputs = [each.output_right for each in judged]
    asked = [each.asked_right for each in opens]
    needless = [each.asked for each in whole]
    return {
        "requests": len(judged),
        "open": len(opens),
        "steps_right": _share(steps),
        "steps_right_unseen": _share(unseen),
        "mentions_precision": round(right / found, 4) if found else None,
        "mentions_recall": round(right / wanted, 4) if wanted else None,
        "output_right": _share(outputs),
        "asked_when_open": _share(asked),
        "asked_needlessly": _share(needless),
        "invented": sum(each.invented for each in judged),
        "restated": _share(each.intent.by == "echo" for each in judged),
        "interval": {
            "steps_right": interval(sum(steps), len(steps)),
            "mentions_precision": interval(right, found),
            "mentions_recall": interval(right, wanted),
            "output_right": interval(sum(outputs), len(outputs)),
            "asked_when_open": interval(sum(asked), len(asked)),
            "asked_needlessly": interval(sum(needless), len(needless)),
        },
    }
