"""What can be said of a call before its values are known."""

from __future__ import annotations

from dataclasses import dataclass

from bicameral.decisions import Ask


@dataclass(frozen=True, slots=True)
class Depends(Ask):
    """A policy that leaves no choice may stop the call, depending on what is known only when it is made.

    Only `Policy.preview` gives it. Nobody can say yes to it beforehand; `question` says what it depends on.
    """
