"""How untrusted text is marked where it stands in a prompt."""

from __future__ import annotations

from typing import LiteralString, Protocol, Self


class TakeNote(Protocol):
    """Adds an event to the trace of a part."""

    def __call__(self, what: LiteralString, **facts: str | float | bool) -> None: ...


class PromptMarker(Protocol):
    """Marks every untrusted span of a prompt, and looks at every reply. Any exception refuses."""

    @property
    def convention(self) -> str:
        """What the marks mean, for the beginning of every prompt."""
        ...

    @property
    def anchor(self) -> str:
        """The task once more, for the end of every prompt with a marked span."""
        ...

    def within(self, note: TakeNote) -> Self:
        """The same marker for a part, whose trace gets its notes."""
        ...

    def mark(self, text: str, *, verbatim: bool = False) -> str:
        """A span as it stands in the prompt. A `verbatim` one keeps its text between the marks."""
        ...

    def check_reply(self, text: str) -> None:
        """Raises if a reply must not be passed on."""
        ...
