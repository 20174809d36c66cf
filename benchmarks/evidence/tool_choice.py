"""V13: is the right one of sixty tools chosen more often if only those that fit the request are shown?

Sixty tools, one for each of five actions on twelve kinds of things. Each tool is asked for in four wordings made by
rule: with the words of its description, with another verb, with another noun, and with both. All tools have the same
argument, so that the choice is the only thing that can be wrong. Both arms ask the same question of the same model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from bicameral.evaluation import Case
from bicameral.patterns import Context, Labelled, Pattern, Role
from bicameral.patterns.reliability.tool_budget import ToolBudget
from bicameral.patterns.strategies import list_tools
from bicameral.tools import Origin, Tool, tool

THINGS = {
    "invoice": "bill",
    "parcel": "package",
    "meeting": "appointment",
    "contact": "address card",
    "photo": "picture",
    "song": "tune",
    "recipe": "cooking instructions",
    "flight": "plane trip",
    "room": "chamber",
    "ticket": "support case",
    "contract": "agreement",
    "vehicle": "car",
}
"""Each thing, and another word for it."""
ACTIONS = {
    "find": ("Find a {thing} and show it.", "Find the {thing} of Ada Moss.", "Look up the {thing} of Ada Moss."),
    "create": ("Create a new {thing}.", "Create a new {thing} for Ada Moss.", "Set up a fresh {thing} for Ada Moss."),
    "delete": ("Delete a {thing}.", "Delete the {thing} of Ada Moss.", "Get rid of the {thing} of Ada Moss."),
    "share": ("Share a {thing} with somebody.", "Share the {thing} with Ada Moss.", "Let Ada Moss see the {thing}."),
    "rename": ("Rename a {thing}.", "Rename the {thing} to Ada Moss.", "Call the {thing} Ada Moss from now on."),
}
"""Each action: what the tool says, a request in the same words, and one in others."""
WORDINGS = ("same words", "other verb", "other noun", "other words")
PICKER = Role(
    "Picker", "Pick the one tool that does what is asked for.", job="acting", phase="act", max_tokens=64, tier="large"
)


def make_tools() -> list[Tool]:
    """The sixty tools."""
    return [_make_tool(action, thing) for thing in THINGS for action in ACTIONS]


def _make_tool(action: str, thing: str) -> Tool:
    def work(name: str) -> str:
        return ""

    work.__name__ = f"{action}_{thing}"
    work.__doc__ = ACTIONS[action][0].format(thing=thing)
    return tool(effect="read", outbound=False, origins=Origin("system"), purpose={"name": "selects"})(work)


def make_cases() -> list[Case[str, str]]:
    """Every tool in every wording."""
    return [Case(f"{name} {wording}", text, name, category=wording) for name, wording, text in _requests()]


def _requests() -> Iterator[tuple[str, str, str]]:
    for thing, other in THINGS.items():
        for action, (_, same, different) in ACTIONS.items():
            for wording in WORDINGS:
                words = same if wording in ("same words", "other noun") else different
                noun = thing if wording in ("same words", "other verb") else other
                yield f"{action}_{thing}", wording, words.format(thing=noun)


@dataclass(frozen=True)
class PickTool(Pattern[[Labelled[str]], str]):
    """The name of one of the tools that are there."""

    id: ClassVar[str] = "I2"

    async def execute(self, context: Context, /, task: Labelled[str]) -> Labelled[str]:
        tools = context.derive(f"Tools:\n{list_tools(context.registry)}")
        return await context.choose(PICKER, task, options=context.registry.names, stable=[tools])


ARMS = {"all tools": PickTool(), "chosen tools": ToolBudget(PickTool())}
