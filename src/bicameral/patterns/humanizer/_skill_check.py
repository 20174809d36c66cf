"""The validator of skills: code that holds what a model wrote against the record that it was made from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bicameral.boundary import screen

from ._procedures import Nameless
from ._skill import SkillText

MAX_NAME = 60
MAX_LINE = 200
MAX_STEPS = 12
MAX_PRECONDITIONS = 5
NAMES = re.compile(r"\{(\w+)\}")
_SHORTEST = 3


def fault_of(skill: SkillText, record: Nameless, tools: Iterable[str], others: Iterable[str]) -> str | None:
    """What is wrong with a skill, in our own words; `tools` were called in the record, `others` exist besides them."""
    texts = (skill.name, skill.when, *skill.lines)
    whole = "\n".join(texts)
    if not _in_shape(skill, texts):
        return "a short name, one line that says when to use it, and one short line for each call"
    if set(NAMES.findall(whole)) - set(record.parameters):
        return "no names may stand in braces but those of the record"
    if any(len(value) >= _SHORTEST and _stands(value, whole) for value in record.values):
        return "values of that one task must not stand in it"
    if any(_stands(name, whole) for name in set(others) - set(tools)):
        return "it names a tool that was not called"
    if screen(whole).alert:
        return "it speaks to a model instead of saying what to do"
    return None


def _in_shape(skill: SkillText, texts: Sequence[str]) -> bool:
    lines = all(text.strip() and len(text) <= MAX_LINE and text.isprintable() for text in texts)
    counts = 1 <= len(skill.steps) <= MAX_STEPS and len(skill.preconditions) <= MAX_PRECONDITIONS
    return lines and counts and len(skill.name) <= MAX_NAME


def _stands(words: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None
