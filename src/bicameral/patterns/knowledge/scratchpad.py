"""K8, scratchpad: what a step finds out is noted, and later steps read the notes instead of finding it out again.

Use it for three or more steps that need each other. Each step is asked alone, with the notes of the steps that it reads
between marks behind the fixed part of its prompt; it fills in its result and its own notes. A note is never changed:
another one may take its place, by naming it. Notes have the label of what their writer had read. A step that reads
untrusted notes is untrusted too, and one that does not stays trusted.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, TypedDict, cast

from bicameral.errors import RunError, nearest_name
from bicameral.labels import Label
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    Role,
    approximate_tokens,
    format_text,
    map_labelled,
    program_text,
)
from bicameral.types import STR, Field, ListType, LiteralType, RecordType, Type, optional_type

_MARKS = re.compile(r"\[\s*(/?)\s*notes\s*\]", re.IGNORECASE)


class PadNote(TypedDict):
    """A note: its number, its words in one line, and the number of the note whose place it takes."""

    id: str
    text: str
    replaces: str | None


@dataclass(slots=True)
class Pad:
    """The notes of one task, page by page: a step writes one page, once, and nobody else does.

    Every page has the same share of the room, so what one step writes never decides what another may write.
    """

    steps: tuple[str, ...]
    max_notes: int
    max_tokens: int
    _pages: dict[str, Labelled[list[PadNote]]] = field(default_factory=dict[str, Labelled[list[PadNote]]])

    def write(self, step: str, page: Labelled[list[PadNote]]) -> None:
        if step in self._pages or step not in self.steps:
            raise RunError("pattern.pad-closed", f"the notes of {step!r} are not open", expected="one writer, once")
        self._pages[step] = map_labelled(page, self._within)

    def pages(self, steps: Sequence[str]) -> Mapping[str, Labelled[list[PadNote]]]:
        return {step: self._pages[step] for step in steps}

    def drop(self) -> None:
        """At the end of the task: nothing can be read or written any more."""
        self._pages.clear()
        self.steps = ()

    @property
    def share(self) -> tuple[int, int]:
        """How many notes, and how many tokens, a step may write."""
        return self.max_notes // len(self.steps), self.max_tokens // len(self.steps)

    def _within(self, notes: list[PadNote]) -> list[PadNote]:
        if (why := excess_reason(notes, self.share)) is not None:
            raise RunError("pattern.bad-notes", f"these notes are too much for a step: {why}")
        return notes


def excess_reason(notes: Sequence[PadNote], share: tuple[int, int]) -> str | None:
    """Why these notes do not fit into a share of the pad."""
    most, tokens = share
    if len(notes) > most:
        return f"at most {most} notes"
    if sum(approximate_tokens(render_note(note)) for note in notes) > tokens:
        return f"at most {tokens} tokens"
    return None


def render_note(note: PadNote) -> str:
    """A note as it is shown: one line, behind a number that was given to it."""
    return f"{note['id']} {note['text']}"


def strip_marks(words: str) -> str:
    """Without anything that passes for the marks of the notes: there is one pad in a prompt."""
    return _MARKS.sub(r"(\1notes)", words)


HOST = Role(
    "Host",
    "You do one step of a task. Notes of earlier steps stand between [notes] and [/notes]: rely on them. Note the fact "
    "that you found, with the name of what it is about, and more notes only if there are more facts that later steps "
    "need. Then write the result of this step.",
    max_tokens=256,
)
FetchMaterial = Callable[[Context], Awaitable[Labelled[Any]]]
_SPACE = re.compile(r"\s+")
_EMPTY_REPLY: Mapping[str, Any] = {"note": {"text": ""}, "more": [], "result": None}


@dataclass(frozen=True, slots=True)
class PadStep:
    """One step: its name, what is to be done, the steps whose notes it reads (left out: all before it), and material.

    Material is a value, or a function that gets one when its turn has come, such as a call of a tool.
    """

    name: str
    do: Labelled[str]
    reads: tuple[str, ...] | None = None
    material: Labelled[Any] | FetchMaterial | None = None


@dataclass(frozen=True)
class Scratchpad(Pattern[[Sequence[PadStep]], str]):
    """The result of the last step; the notes are gone when it is there. Runs side by side have a pad each.

    Example:
        >>> due, tip = program_text("What is due?"), program_text("And a tenth more?")
        >>> steps = [PadStep("bill", due, material=bill), PadStep("tip", tip)]
        >>> outcome = await Scratchpad().run(desk, steps)
    """

    id: ClassVar[str] = "K8"
    max_notes: int = 20
    max_tokens: int = 800
    host: Role = HOST

    async def execute(self, stage: Context, /, steps: Sequence[PadStep]) -> Labelled[str]:
        _check_steps(steps, self.max_notes)
        pad = Pad(tuple(step.name for step in steps), self.max_notes, self.max_tokens)
        result = program_text("")
        try:
            for number, step in enumerate(steps, 1):
                before = pad.steps[: number - 1] if step.reads is None else step.reads
                work = _StepWork(self.host, step, number, pad.pages(before), pad.share, number == len(steps))
                done = await stage.run_part(f"step {number}", work)
                pad.write(step.name, done.field("notes"))
                result = done.field("result")
            return result
        finally:
            pad.drop()


@dataclass(frozen=True, slots=True)
class _StepWork:
    """One step at work, on a part of its own: what it reads is opened there and nowhere else."""

    host: Role
    step: PadStep
    number: int
    pages: Mapping[str, Labelled[list[PadNote]]]
    share: tuple[int, int]
    last: bool

    async def __call__(self, part: Context) -> Labelled[dict[str, Any]]:
        notes = self._visible_notes(part)
        material = self.step.material
        given = await material(part) if callable(material) else material
        parts = [format_text("{do}", do=self.step.do).map(strip_marks)]
        if given is not None:
            parts = [format_text("Material:\n{given}\n\n", given=given).map(strip_marks), *parts]
        pad = part.derive("".join(f"{render_note(note)}\n" for note in notes))
        wanted = _reply_form([note["id"] for note in notes], last=self.last)
        head = (format_text("[notes]\n{pad}[/notes]\n\n", pad=pad), *parts)
        again: Labelled[str] = program_text("")
        for left in (1, 0):
            # A reply without readable notes counts as one without any.
            reply = await part.read_form(self.host, *head, again, wanted=wanted) or _EMPTY_REPLY
            forms = [] if self.last else [reply["note"], *reply["more"]]
            written = [_make_note(each, self.number, at) for at, each in enumerate(forms, 1)]
            why = self._refusal_reason(written, reply["result"])
            if why is None:
                replaced = sum(note["replaces"] is not None for note in written)
                part.note("noted", notes=len(written), replaced=replaced, shown=len(notes))
                return part.derive({"notes": written, "result": reply["result"]})
            part.note("notes-rejected", notes=len(written), retries=left)
            again = part.derive(f"\n\nYour reply does not do: {why}.")
        raise RunError("pattern.bad-notes", f"{self.step.name!r} has not noted what it found as it should")

    def _refusal_reason(self, notes: Sequence[PadNote], result: str | None) -> str | None:
        if result is None or not all(note["text"] for note in notes):
            return "write down what was found, as a note" if not self.last else "write the result"
        return excess_reason(notes, self.share)

    def _visible_notes(self, part: Context) -> list[PadNote]:
        """The notes that this step reads, without those whose place another one has taken.

        A note never takes the place of one that is more trusted than itself: then both are shown.
        """
        labels: dict[str, Label] = {}
        found: dict[str, PadNote] = {}
        for page in self.pages.values():
            for note in part.read(page):
                old = note["replaces"]
                if old in found and (page.label.trusted or not labels[old].trusted):
                    del found[old]
                labels[note["id"]], found[note["id"]] = page.label, note
        return list(found.values())


def _reply_form(known: Sequence[str], *, last: bool) -> Type:
    """The form of a reply: each step but the last has a note, which can name only one that its writer was shown."""
    result = Field("result", STR)
    if last:
        return RecordType((result,))
    taken = (Field("replaces", optional_type(LiteralType(tuple(known)))),) if known else ()
    note = RecordType((Field("text", STR), *taken))
    return RecordType((Field("note", note), Field("more", ListType(note)), result))


def _make_note(written: Mapping[str, Any], step: int, number: int) -> PadNote:
    words = strip_marks(_SPACE.sub(" ", written["text"]).strip())
    return PadNote(id=f"{step}.{number}", text=words, replaces=cast("str | None", written.get("replaces")))


def _check_steps(steps: Sequence[PadStep], most: int) -> None:
    names = [step.name for step in steps]
    if not 0 < len(names) <= most or len(set(names)) < len(names):
        raise RunError(
            "pattern.bad-steps", f"there are {len(names)} steps", expected=f"1 to {most}, each with a name of its own"
        )
    for number, step in enumerate(steps):
        for name in step.reads or ():
            if name not in names[:number]:
                raise RunError(
                    "pattern.bad-steps",
                    f"{step.name!r} reads the notes of {name!r}, which is no step before it",
                    nearest=nearest_name(name, names[:number]),
                )


# An example ---------------------------------------------------------------------------------------------------------

_LAMP: Final = "The Lumen is a lamp of brushed steel. Brightco makes it in small numbers."
_MAKER: Final = "Brightco has its head office in Ghent, next to the station."


def _example_steps(folder: Path) -> tuple[Sequence[PadStep]]:
    return (
        [
            PadStep("lamp", program_text("Which company makes the Lumen?"), material=program_text(_LAMP)),
            PadStep("company", program_text("In which city is Brightco?"), reads=(), material=program_text(_MAKER)),
            PadStep("answer", program_text("From the notes: in which city is the company that makes the Lumen?")),
        ],
    )


def _is_correct(outcome: Answered[str]) -> bool:
    return "Ghent" in outcome.value and [each.at for each in outcome.model_calls] == ["step 1/", "step 2/", "step 3/"]


def _sizes(folder: Path) -> dict[str, int | float | str]:
    asked = f"[notes]\n[/notes]\n\nMaterial:\n{_LAMP}\n\nWhich company makes the Lumen?"
    return {"setup": HOST.setup, "input": asked, "steps": 3, "output": 10, "item_output": 25}


EXAMPLE = PatternExample(
    "Two facts are noted in two steps and put together in a third, which sees nothing but the notes.",
    lambda folder: Scratchpad(),
    _example_steps,
    _is_correct,
    _sizes,
)
