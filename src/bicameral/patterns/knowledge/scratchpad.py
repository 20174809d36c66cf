"""K8, scratchpad: what a step finds out is noted, and later steps read the notes instead of finding it out again.

Use it for three or more steps that need each other. Each step is asked alone, with the notes of the steps that it reads
between marks behind the fixed part of its prompt; it fills in its result and its own notes. A note is never changed:
another one may take its place, by naming it. Notes have the label of what their writer had read. A step that reads a
stranger's notes is a stranger's too, and one that does not stays clean.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, cast

from bicameral.errors import ModelError, RunError, nearest
from bicameral.labels import Label
from bicameral.types import STR, Field, ListType, LiteralType, RecordType, Type, optional

from ..kernel import Answered, Example, Labelled, Pattern, Role, Stage, said, text
from ._pad import Note, Pad, line, too_much, without_marks

__all__ = ["Note", "Pad", "Scratchpad", "Step"]

HOST = Role(
    "Host",
    "You do one step of a task. Notes of earlier steps stand between [notes] and [/notes]: rely on them. Note the fact "
    "that you found, with the name of what it is about, and more notes only if there are more facts that later steps "
    "need. Then write the result of this step.",
    max_tokens=256,
)
Fetch = Callable[[Stage], Awaitable[Labelled[Any]]]
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its name, what is to be done, the steps whose notes it reads (left out: all before it), and material.

    Material is a value, or a function that gets one when its turn has come, such as a call of a tool.
    """

    name: str
    do: Labelled[str]
    reads: tuple[str, ...] | None = None
    material: Labelled[Any] | Fetch | None = None


@dataclass(frozen=True)
class Scratchpad(Pattern[[Sequence[Step]], str]):
    """The result of the last step; the notes are gone when it is there. Runs side by side have a pad each.

    Example:
        >>> steps = [Step("bill", said("What is due?"), material=bill), Step("tip", said("And a tenth more?"))]
        >>> outcome = await Scratchpad().run(desk, steps)
    """

    id: ClassVar[str] = "K8"
    max_notes: int = 20
    max_tokens: int = 800
    host: Role = HOST

    async def on(self, stage: Stage, /, steps: Sequence[Step]) -> Labelled[str]:
        _check(steps, self.max_notes)
        pad = Pad(tuple(step.name for step in steps), self.max_notes, self.max_tokens)
        result = said("")
        try:
            for number, step in enumerate(steps, 1):
                before = pad.steps[: number - 1] if step.reads is None else step.reads
                work = _Work(self.host, step, number, pad.pages(before), pad.share, number == len(steps))
                done = await stage.do(f"step {number}", work)
                pad.write(step.name, done.field("notes"))
                result = done.field("result")
            return result
        finally:
            pad.drop()


@dataclass(frozen=True, slots=True)
class _Work:
    """One step at work, on a part of its own: what it reads is opened there and nowhere else."""

    host: Role
    step: Step
    number: int
    pages: Mapping[str, Labelled[list[Note]]]
    share: tuple[int, int]
    last: bool

    async def __call__(self, part: Stage) -> Labelled[dict[str, Any]]:
        notes = self._shown(part)
        material = self.step.material
        given = await material(part) if callable(material) else material
        parts = [text("{do}", do=self.step.do).map(without_marks)]
        if given is not None:
            parts = [text("Material:\n{given}\n\n", given=given).map(without_marks), *parts]
        pad = part.give("".join(f"{line(note)}\n" for note in notes))
        wanted = _form([note["id"] for note in notes], last=self.last)
        head = (text("[notes]\n{pad}[/notes]\n\n", pad=pad), *parts)
        again: Labelled[str] = said("")
        for left in (1, 0):
            reply = await self._replied(part, (*head, again), wanted)
            forms = [] if self.last else [reply["note"], *reply["more"]]
            written = [_note(each, self.number, at) for at, each in enumerate(forms, 1)]
            why = self._refused(written, reply["result"])
            if why is None:
                replaced = sum(note["replaces"] is not None for note in written)
                part.note("noted", notes=len(written), replaced=replaced, shown=len(notes))
                return part.give({"notes": written, "result": reply["result"]})
            part.note("notes-rejected", notes=len(written), retries=left)
            again = part.give(f"\n\nYour reply does not do: {why}.")
        raise RunError("pattern.bad-notes", f"{self.step.name!r} has not noted what it found as it should")

    async def _replied(self, part: Stage, asked: Sequence[Labelled[str]], wanted: Type) -> dict[str, Any]:
        """What the host fills in; a reply without readable notes counts as one without any."""
        try:
            return part.read(await part.fill(self.host, *asked, wanted=wanted, retries=0))
        except ModelError as error:
            if error.code != "models.bad-reply":
                raise
            return {"note": {"text": ""}, "more": [], "result": None}

    def _refused(self, notes: Sequence[Note], result: str | None) -> str | None:
        if result is None or not all(note["text"] for note in notes):
            return "write down what was found, as a note" if not self.last else "write the result"
        return too_much(notes, self.share)

    def _shown(self, part: Stage) -> list[Note]:
        """The notes that this step reads, without those whose place another one has taken.

        A note never takes the place of one that is more trusted than itself: then both are shown.
        """
        labels: dict[str, Label] = {}
        found: dict[str, Note] = {}
        for page in self.pages.values():
            for note in part.read(page):
                old = note["replaces"]
                if old in found and (page.label.trusted or not labels[old].trusted):
                    del found[old]
                labels[note["id"]], found[note["id"]] = page.label, note
        return list(found.values())


def _form(known: Sequence[str], *, last: bool) -> Type:
    """The form of a reply: each step but the last has a note, which can name only one that its writer was shown."""
    result = Field("result", STR)
    if last:
        return RecordType((result,))
    taken = (Field("replaces", optional(LiteralType(tuple(known)))),) if known else ()
    note = RecordType((Field("text", STR), *taken))
    return RecordType((Field("note", note), Field("more", ListType(note)), result))


def _note(written: Mapping[str, Any], step: int, number: int) -> Note:
    words = without_marks(_SPACE.sub(" ", written["text"]).strip())
    return Note(id=f"{step}.{number}", text=words, replaces=cast("str | None", written.get("replaces")))


def _check(steps: Sequence[Step], most: int) -> None:
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
                    nearest=nearest(name, names[:number]),
                )


# An example ---------------------------------------------------------------------------------------------------------

_LAMP: Final = "The Lumen is a lamp of brushed steel. Brightco makes it in small numbers."
_MAKER: Final = "Brightco has its head office in Ghent, next to the station."


def _steps(folder: Path) -> tuple[Sequence[Step]]:
    return (
        [
            Step("lamp", said("Which company makes the Lumen?"), material=said(_LAMP)),
            Step("company", said("In which city is Brightco?"), reads=(), material=said(_MAKER)),
            Step("answer", said("From the notes: in which city is the company that makes the Lumen?")),
        ],
    )


def _good(outcome: Answered[str]) -> bool:
    return "Ghent" in outcome.value and [each.at for each in outcome.asked] == ["step 1/", "step 2/", "step 3/"]


def _sizes(folder: Path) -> dict[str, int | float | str]:
    asked = f"[notes]\n[/notes]\n\nMaterial:\n{_LAMP}\n\nWhich company makes the Lumen?"
    return {"setup": HOST.setup, "input": asked, "steps": 3, "output": 10, "item_output": 25}


EXAMPLE = Example(
    "Two facts are noted in two steps and put together in a third, which sees nothing but the notes.",
    lambda folder: Scratchpad(),
    _steps,
    _good,
    _sizes,
)
