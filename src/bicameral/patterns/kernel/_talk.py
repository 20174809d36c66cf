"""A conversation of a stage with one participant that asks for tools itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, LiteralString

from bicameral.errors import RunError
from bicameral.labels import join
from bicameral.models import ModelReply
from bicameral.strategies import Conversation

from ._labelled import Part, label_of, words_of
from ._roles import Role

if TYPE_CHECKING:
    from ._stage import Stage


class Talk:
    """What is in the conversation and what its stage has opened are one.

    A pattern holds replies and results in its hands here, unlabelled. So they count as opened: from the first word of
    a stranger on, whatever the stage does carries it, and what the stage has opened elsewhere is the label of whatever
    is said here.
    """

    def __init__(self, stage: Stage, role: Role, talk: Conversation) -> None:
        self._stage = stage
        self._role = role
        self._talk = talk
        for part in stage.heads:
            stage.opened = join(stage.opened, label_of(part))
        talk.system(stage.beginning(role))

    def tell(self, *parts: Part) -> None:
        """Say something to the participant, in one message."""
        for part in parts:
            self._stage.opened = join(self._stage.opened, label_of(part))
        self._level()
        self._talk.tell("".join(words_of(part) for part in parts))

    async def ask(self, *, tools: bool = True) -> ModelReply:
        """The next reply. With `tools` it may ask for calls, which are made only by `serve`."""
        self._level()
        if self._role.reads == "trusted" and not self._talk.label.trusted:
            raise must_not_read(self._role)
        try:
            return await self._talk.ask(self._role.phase or "act", role=self._role.job, tools=tools)
        finally:
            self._level()

    async def serve(self, reply: ModelReply, *, most: int | None = None) -> int:
        """Make the calls that a reply asks for, as policy allows; of more than `most` it is said that they are not.

        How many gave a result.
        """
        self._level()
        made = reply.calls[:most]
        try:
            gave = await self._talk.serve(replace(reply, calls=made), because=self._stage.opened)
            for call in reply.calls[len(made) :]:
                self._talk.leave(call, f"not made: {len(made)} at a time. Ask for it again if it is still needed.")
            return gave
        finally:
            self._level()

    def leave(self, reply: ModelReply, why: LiteralString) -> None:
        """Say of the calls that a reply asks for that they are not made, in words that stand in the program."""
        for call in reply.calls:
            self._talk.leave(call, why)

    def _level(self) -> None:
        both = join(self._stage.opened, self._talk.label)
        self._stage.opened = self._talk.label = both


def must_not_read(role: Role) -> RunError:
    return RunError(
        "pattern.must-not-read",
        f"{role.name} must not read what strangers wrote",
        expected="only what the user said and what services vouch for",
        fix="Give it typed values, or let another participant read the text.",
    )
