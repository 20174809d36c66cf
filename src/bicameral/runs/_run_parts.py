"""Tools that are a part of the run that calls them, such as a pattern as a tool.

Such a tool does nothing by itself: what it does are steps of the same run, below the step of its call, decided by the
same decider and recorded one by one. So a replay and a resumed run do them again from the record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from bicameral.errors import ToolError
from bicameral.labels import Label, LabelTree

if TYPE_CHECKING:
    from bicameral.runs._call_policy import Decider
    from bicameral.runs._effects import EffectHandler


@dataclass(frozen=True, slots=True)
class RunPart:
    """The call of a tool that is a part of the run.

    Args:
        step: The step of the call: the names of its own steps begin with it.
        handler: The only way to tools, models and people.
        decider: Decides about its calls.
        arguments: The arguments of the call.
        labels: Their labels.
        control: The label of what decided that it is called.
        places: The labels of the places that earlier calls wrote to; its calls update them.
        note: Gets the labels of the places that its calls wrote to.
    """

    step: str
    handler: EffectHandler
    decider: Decider
    arguments: Mapping[str, Any]
    labels: Mapping[str, LabelTree]
    control: Label
    places: dict[str, LabelTree]
    note: Callable[[dict[str, LabelTree]], None]


class PartOfRun(ABC):
    """The runner of a tool that is a part of the run."""

    @abstractmethod
    async def run_inside(self, part: RunPart) -> tuple[Any, LabelTree]:
        """The result of the call, with its labels."""

    async def __call__(self, arguments: Mapping[str, Any]) -> NoReturn:
        """Refused: without a run nobody would decide about what it does, and its labels would be lost."""
        raise ToolError(
            "tools.only-in-a-run",
            "this tool is a part of the run that calls it, and cannot be called without one",
            fix="Call it from a plan, a strategy or a pattern, with policies.",
        )
