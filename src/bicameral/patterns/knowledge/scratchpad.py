"""K8, scratchpad: each step writes notes on what it finds out, and later steps read them instead of repeating the work.

Use it for three or more steps that depend on each other. Each step is a separate question with the notes of the steps
that it reads; the reply has its result and its own notes, which are texts or values of a type. A note is never changed:
a later one may replace it by naming it. The notes end with the task, unless they are handed over to a memory. Notes
have the label of what their step had read, so a step that reads untrusted notes is untrusted too, and one that reads
none of them stays trusted.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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
    render_value,
)
from bicameral.types import STR, Field, ListType, LiteralType, RecordType, Type, optional_type

_MARKS = re.compile(r"\[\s*(/?)\s*notes\s*\]", re.IGNORECASE)


class PadNote(TypedDict):
    """A note: its id, its text in one line, the id of the note that it replaces, and its value if it is of a type."""

    id: str
    text: str
    replaces: str | None
    value: Any


@dataclass(slots=True)
class Pad:
    """The notes of one task: a page for each step, which only that step writes, once.

    Every page has the same share of the limits, so an untrusted step cannot use up what another may write.
    """

    steps: tuple[str, ...]
    max_notes: int
    max_tokens: int
    _pages: dict[str, Labelled[list[PadNote]]] = field(default_factory=dict[str, Labelled[list[PadNote]]])

    def write(self, step: str, page: Labelled[list[PadNote]]) -> None:
        if step in self._pages or step not in self.steps:
            raise RunError("pattern.pad-closed", f"the notes of {step!r} are not open", expected="one writer, once")
        self._pages[step] = map_labelled(page, self._check_share)

    def pages(self, steps: Sequence[str]) -> Mapping[str, Labelled[list[PadNote]]]:
        return {step: self._pages[step] for step in steps}

    def drop(self) -> None:
        """Clear the pad at the end of the task; nothing can be read or written afterwards."""
        self._pages.clear()
        self.steps = ()

    @property
    def share(self) -> tuple[int, int]:
        """How many notes, and how many tokens, a step may write."""
        return self.max_notes // len(self.steps), self.max_tokens // len(self.steps)

    def _check_share(self, notes: list[PadNote]) -> list[PadNote]:
        if (why := excess_reason(notes, self.share)) is not None:
            raise RunError("pattern.bad-notes", f"these notes are too much for a step: {why}")
        return notes


def excess_reason(notes: Sequence[PadNote], share: tuple[int, int]) -> str | None:
    """Why these notes do not fit into a share of the pad, or None."""
    most, tokens = share
    if len(notes) > most:
        return f"at most {most} notes"
    if sum(approximate_tokens(render_note(note)) for note in notes) > tokens:
        return f"at most {tokens} tokens"
    return None


def render_note(note: PadNote) -> str:
    """A note as a step reads it: one line that begins with its id."""
    return f"{note['id']} {note['text']}"


def strip_marks(text: str) -> str:
    """The text without anything that looks like the marks around the notes, so that it cannot imitate notes."""
    return _MARKS.sub(r"(\1notes)", text)


HOST = Role(
    "Host",
    "You do one step of a task. Notes of earlier steps stand between [notes] and [/notes]: rely on them. Note the fact "
    "that you found, with the name of what it is about, and more notes only if there are more facts that later steps "
    "need. Then write the result of this step.",
    max_tokens=256,
)
FetchMaterial = Callable[[Context], Awaitable[Labelled[Any]]]
HandOver = Callable[[Mapping[str, Labelled[list[PadNote]]]], Awaitable[None]]
"""Takes the notes of each step, closed and with their labels, at the end of the task."""
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class PadStep:
    """One step of a task.

    Args:
        do: What is to be done.
        reads: The steps whose notes it reads; by default all before it.
        material: A value, or a function that gets one when the step begins, for example by calling a tool.
        note: The type of its notes; by default they are texts.
    """

    name: str
    do: Labelled[str]
    reads: tuple[str, ...] | None = None
    material: Labelled[Any] | FetchMaterial | None = None
    note: Type | None = None


@dataclass(frozen=True)
class Scratchpad(Pattern[[Sequence[PadStep]], str]):
    """Do the steps in order; the value is the result of the last one. Each run has its own pad, dropped at the end.

    Args:
        hand_over: Is given the notes when the last step is done, once a run, for example to write them to `Records`.
            Notes of a task that failed are handed to nobody.

    Example:
        >>> due, tip = program_text("What is due?"), program_text("And a tenth more?")
        >>> steps = [PadStep("bill", due, material=bill), PadStep("tip", tip)]
        >>> outcome = await Scratchpad().run(runtime, steps)
    """

    id: ClassVar[str] = "K8"
    max_notes: int = 20
    max_tokens: int = 800
    host: Role = HOST
    hand_over: HandOver | None = None

    async def execute(self, context: Context, /, steps: Sequence[PadStep]) -> Labelled[str]:
        _check_steps(steps, self.max_notes)
        pad = Pad(tuple(step.name for step in steps), self.max_notes, self.max_tokens)
        result = program_text("")
        try:
            for number, step in enumerate(steps, 1):
                before = pad.steps[: number - 1] if step.reads is None else step.reads
                work = _StepWork(self.host, step, number, pad.pages(before), pad.share, number == len(steps))
                done = await context.run_part(f"step {number}", work)
                pad.write(step.name, done.field("notes"))
                result = done.field("result")
            if self.hand_over is not None:
                # The last step writes no notes.
                await context.once(
                    "hand over the notes", partial(_hand_over, context, self.hand_over, pad.pages(pad.steps[:-1]))
                )
            return result
        finally:
            pad.drop()


async def _hand_over(context: Context, give: HandOver, pages: Mapping[str, Labelled[list[PadNote]]]) -> Labelled[int]:
    await give(pages)
    return context.derive(len(pages))


@dataclass(frozen=True, slots=True)
class _StepWork:
    """The work of one step, in its own part of the context: what it reads adds no label to other steps."""

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
        wanted = _reply_form([note["id"] for note in notes], self.step.note, last=self.last)
        head = (format_text("[notes]\n{pad}[/notes]\n\n", pad=pad), *parts)
        reply = await part.read_form(self.host, *head, wanted=wanted, check=self._fault, retries=1)
        if reply is None:
            raise RunError("pattern.bad-notes", f"{self.step.name!r} has not noted what it found as it should")
        new = self._new_notes(reply)
        replaced = sum(note["replaces"] is not None for note in new)
        part.note("noted", notes=len(new), replaced=replaced, shown=len(notes))
        return part.derive({"notes": new, "result": reply["result"]})

    def _new_notes(self, reply: Mapping[str, Any]) -> list[PadNote]:
        forms = [] if self.last else [reply["note"], *reply["more"]]
        return [_make_note(each, self.number, at) for at, each in enumerate(forms, 1)]

    def _fault(self, reply: Mapping[str, Any]) -> str | None:
        """What is wrong with the notes of a reply."""
        notes = self._new_notes(reply)
        if not all(note["text"] for note in notes):
            return "write down what was found, as a note"
        return excess_reason(notes, self.share)

    def _visible_notes(self, part: Context) -> list[PadNote]:
        """The notes that this step reads, without those that another note replaces."""
        labels: dict[str, Label] = {}
        visible: dict[str, PadNote] = {}
        for page in self.pages.values():
            for note in part.read(page):
                old = note["replaces"]
                # An untrusted note cannot remove a trusted one: then both are shown.
                if old in visible and (page.label.trusted or not labels[old].trusted):
                    del visible[old]
                labels[note["id"]], visible[note["id"]] = page.label, note
        return list(visible.values())


def _reply_form(known: Sequence[str], noted: Type | None, *, last: bool) -> Type:
    """The form of a reply. Each step but the last has a note, which can replace only a note that the step was shown."""
    result = Field("result", STR)
    if last:
        return RecordType((result,))
    replaces = (Field("replaces", optional_type(LiteralType(tuple(known)))),) if known else ()
    note = RecordType((Field("text", STR) if noted is None else Field("value", noted), *replaces))
    return RecordType((Field("note", note), Field("more", ListType(note)), result))


def _make_note(form: Mapping[str, Any], step: int, number: int) -> PadNote:
    # One line without marks, with an id of ours: a note cannot imitate another note.
    written = form["text"] if "text" in form else render_value(form["value"])
    text = strip_marks(_SPACE.sub(" ", written).strip())
    replaces = cast("str | None", form.get("replaces"))
    return PadNote(id=f"{step}.{number}", text=text, replaces=replaces, value=form.get("value"))


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
