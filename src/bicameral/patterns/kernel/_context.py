"""The context of a running pattern: the only way from a pattern to models and tools.

It propagates labels. A question has the join of the labels of its parts, and so has the reply; a question with
untrusted text in it goes to the quarantined model. The label of a value that a context has opened (`read`) is from then
on joined to everything it does: to each question, and to the fact that a tool is called. Guards check each call before
policy decides, and each result before anything else gets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from bicameral.labels import Labelled
from bicameral.patterns.kernel._actions import Actions
from bicameral.patterns.kernel._parts import Parts
from bicameral.patterns.kernel._plans import Plans
from bicameral.patterns.kernel._questions import Questions

if TYPE_CHECKING:
    from bicameral.patterns.kernel._pattern import Pattern


T = TypeVar("T")
P = ParamSpec("P")


class Context(Questions, Actions, Plans, Parts):
    """One part of a running pattern. Parts share only what they are given and what they return."""

    __slots__ = ()

    async def run_pattern(self, name: str, pattern: Pattern[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        """Run another pattern as a part of this run, under this name."""
        return await self.run_part(name, lambda part: pattern.execute(part, *args, **kwargs))
