"""Chat templates of weights files: how the turns of a conversation are laid out for a model.

A template comes with the weights, so it is a text of whoever made them: it is rendered in a process of its own
(`_template_process`). It never sees what is said. It is rendered with a placeholder for each turn, so that its result
depends on the speakers alone, and is then cut at the placeholders: the texts between them are the template's own and
may hold control tokens, and the contents are tokenized apart from them, without any.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from bicameral.errors import ModelError

_MAX_TURNS = 2_000
_SECONDS = 20
_THINK, _END_THINK = "<think>", "</think>"
_JOIN = "\n\n"


class TemplateError(Exception):
    """A template cannot be parsed, or cannot be rendered; the text is the reason in a few words."""


LayoutPart: TypeAlias = str | int
"""A text of the template, or the number of the turn whose content belongs here."""
Turns: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""Speakers, and the numbers of the turns that each of them says."""


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """The chat template of a weights file.

    Args:
        source: Its text, as the file has it.
        bos: The text of the token that begins a prompt.
        eos: The text of the token that ends a reply.
        adds_bos: Whether a prompt begins with `bos` even if the template does not write it.
    """

    source: str
    bos: str = ""
    eos: str = ""
    adds_bos: bool = False

    def layout(self, speakers: Iterable[str]) -> tuple[LayoutPart, ...]:
        """The parts of a prompt for turns of these speakers, up to where the model's own turn begins.

        A template that knows no system message gets it as the beginning of the first user's turn, and one that wants
        speakers to take turns gets one turn for several of the same speaker. One that leaves a turn out, repeats one or
        changes their order is refused with `models.bad-template`.
        """
        return _layout(self, tuple(speakers))

    def is_marked(self, control: frozenset[str]) -> bool:
        """Whether a control token is between any two turns; otherwise a text can imitate the end of its turn."""
        parts = self.layout(("user", "assistant", "user"))
        between = [part for before, part in pairwise(parts) if isinstance(before, int)]
        return all(isinstance(part, str) and any(token in part for token in control) for part in between)


@lru_cache(maxsize=256)
def _layout(template: ChatTemplate, speakers: tuple[str, ...]) -> tuple[LayoutPart, ...]:
    if len(speakers) > _MAX_TURNS:
        raise bad_template_error(f"it cannot lay out {len(speakers)} turns")
    plain: Turns = tuple((speaker, (number,)) for number, speaker in enumerate(speakers))
    folded = _fold_system(plain)
    reasons: list[str] = []
    for turns in dict.fromkeys((plain, folded, _merge_turns(folded))):
        try:
            return _close_thought(template, _begin(template, _cut(_render(template, turns), len(speakers))))
        except TemplateError as error:
            reasons.append(str(error))
    raise bad_template_error(reasons[-1])


def bad_template_error(reason: str) -> ModelError:
    """The error for a template that cannot lay out a conversation."""
    return ModelError(
        "models.bad-template",
        f"the chat template of these weights cannot be used: {reason}",
        fix="Use weights whose template has been mended, or another model.",
    )


def _placeholder(number: int) -> str:
    # A private character on both sides, so that it is no part of another placeholder, and no white space to strip.
    return f"\ue0f0turn{number}\ue0f0"


def _render(template: ChatTemplate, turns: Turns) -> str:
    messages = [{"role": speaker, "content": _JOIN.join(map(_placeholder, numbers))} for speaker, numbers in turns]
    names: Mapping[str, object] = {
        "messages": messages,
        "add_generation_prompt": True,
        # A reply is what was asked for, without a thought before it: a constraint leaves no room for one.
        "enable_thinking": False,
        "bos_token": template.bos,
        "eos_token": template.eos,
    }
    return render_template(template.source, names)


def render_template(source: str, names: Mapping[str, object]) -> str:
    """The text of a template with these values; raises `TemplateError` where it cannot be rendered."""
    asked = json.dumps({"source": source, "names": names})
    # Without the environment and the working folder: nothing there changes what the program imports.
    program = [sys.executable, "-I", str(Path(__file__).with_name("_template_process.py"))]
    try:
        ended = subprocess.run(
            program, input=asked, capture_output=True, text=True, encoding="utf-8", timeout=_SECONDS, check=False
        )
        told: dict[str, str] = json.loads(ended.stdout)
    except subprocess.TimeoutExpired:
        raise TemplateError("it takes too long") from None
    except ValueError:
        raise TemplateError("it takes too much memory, time or nesting") from None
    if "error" in told:
        raise TemplateError(told["error"])
    return told["text"]


def _cut(rendered: str, count: int) -> tuple[LayoutPart, ...]:
    parts: list[LayoutPart] = []
    rest = rendered
    for number in range(count):
        before, found, rest = rest.partition(_placeholder(number))
        if not found:
            raise TemplateError(f"turn {number + 1} is missing or in another place")
        parts += [before, number]
    parts.append(rest)
    # The rest of a placeholder would be text that nobody wrote, or a second copy of a turn.
    if any("\ue0f0" in part for part in parts if isinstance(part, str)):
        raise TemplateError("a turn is there more than once, or in pieces")
    return tuple(part for part in parts if part != "")


def _begin(template: ChatTemplate, parts: tuple[LayoutPart, ...]) -> tuple[LayoutPart, ...]:
    first = parts[0] if parts else ""
    has_bos = isinstance(first, str) and first.startswith(template.bos)
    return parts if not template.adds_bos or not template.bos or has_bos else _joined((template.bos, *parts))


def _close_thought(template: ChatTemplate, parts: tuple[LayoutPart, ...]) -> tuple[LayoutPart, ...]:
    """Let a model that thinks before it replies begin with its reply."""
    tail = parts[-1] if parts and isinstance(parts[-1], str) else ""
    if _END_THINK not in template.source or tail.rstrip().endswith(_END_THINK):
        return parts
    if tail.rstrip().endswith(_THINK):
        line_break = "" if tail.endswith("\n") else "\n"
        return _joined((*parts, f"{line_break}{_END_THINK}\n\n"))
    return _joined((*parts, f"{_THINK}\n\n{_END_THINK}\n\n"))


def _joined(parts: tuple[LayoutPart, ...]) -> tuple[LayoutPart, ...]:
    """The parts with texts that follow each other as one, as the tokenizer would see them."""
    found: list[LayoutPart] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, str) and isinstance(last, str):
            found[-1] = last + part
        else:
            found.append(part)
    return tuple(found)


def _fold_system(turns: Turns) -> Turns:
    """The turns with the system message at the beginning of the first turn of the user, and no other one."""
    first = turns[:1] if turns and turns[0][0] == "system" else ()
    rest = tuple(("user" if speaker == "system" else speaker, numbers) for speaker, numbers in turns[len(first) :])
    if not first:
        return rest
    if rest and rest[0][0] == "user":
        return (("user", (*first[0][1], *rest[0][1])), *rest[1:])
    return (("user", first[0][1]), *rest)


def _merge_turns(turns: Turns) -> Turns:
    merged: list[tuple[str, tuple[int, ...]]] = []
    for speaker, numbers in turns:
        if merged and merged[-1][0] == speaker:
            merged[-1] = (speaker, (*merged[-1][1], *numbers))
        else:
            merged.append((speaker, numbers))
    return tuple(merged)
