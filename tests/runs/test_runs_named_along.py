"""A thing that was spoken of in a run may go out by its number to those who may read it, and to nobody else."""

from __future__ import annotations

from typing import TypedDict

import pytest
from runs_boundary import Person

from bicameral.errors import ToolError
from bicameral.plans import Conditional, parse, prove
from bicameral.policy import Policy
from bicameral.runs import Failed, Finished, RunOutcome, run_plan
from bicameral.tools import Origin, Participants, Registry, tool

ANN, BOB = "ann@example.com", "bob@example.com"
READERS = Participants(("owner", "shared_with"))


class File(TypedDict):
    id: str
    owner: str
    shared_with: list[str]
    text: str


class Event(TypedDict):
    id: str
    guests: list[str]
    title: str


class Drive:
    """Files with numbers, and events that have numbers, too."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.files = [
            File(id="1", owner="me", shared_with=[ANN], text="for Ann"),
            File(id="2", owner="me", shared_with=[BOB], text="for Bob"),
        ]

    @property
    def registry(self) -> Registry:
        file = Origin("system", "public", names="text")
        read = {"": Origin("system", "public"), "[].text": Origin("third_party", READERS), "[].id": file}

        @tool(effect="read", outbound=False, purpose={"words": "selects"}, origins=read, toolbox="drive")
        def search(words: str) -> list[File]:
            """The files there are."""
            return [each for each in self.files if words in each["text"]]

        @tool(
            effect="read",
            outbound=False,
            origins={
                "": Origin("system", "public"),
                "[].id": Origin("system", "public", names="title"),
                "[].title": Origin("third_party", Participants(("guests",))),
            },
            toolbox="drive",
        )
        def events() -> list[Event]:
            """Events, numbered like files, to which both are invited."""
            return [Event(id="1", guests=[ANN, BOB], title="lunch"), Event(id="2", guests=[ANN, BOB], title="tea")]

        @tool(effect="read", outbound=False, purpose={"name": "selects"}, origins=Origin("system", "public"))
        def address_of(name: str) -> str:
            """The address book."""
            return f"{name}@example.com"

        @tool(effect="write", purpose={"id": "directs"}, origins=Origin("system"), toolbox="drive")
        def unshare(id: str) -> None:
            """Nobody may read a file any more."""

        def share(file: str, to: str) -> None:
            """Send a file."""
            self.sent.append((file, to))

        sending = {"effect": "send", "receivers": ("to",), "origins": Origin("system")}
        along = {"file": Origin("third_party", names="text")}
        return Registry(
            [
                *(search, events, address_of, unshare),
                tool(**sending, attaches=along, toolbox="drive")(share),  # pyright: ignore[reportArgumentType, reportCallIssue]
                tool(**sending, attaches=along, toolbox="other", name="elsewhere")(share),  # pyright: ignore[reportArgumentType, reportCallIssue]
            ]
        )


async def _run(source: str, drive: Drive, person: Person) -> RunOutcome:
    registry = drive.registry
    plan = parse(source, registry).plan
    # Before a run nobody is known who may read it.
    assert isinstance(prove(plan, registry, Policy.load((), registry).preview).calls[-1].verdict, Conditional)
    return await run_plan(plan, registry, policy=Policy.load((), registry), approver=person)


@pytest.mark.parametrize(
    "source",
    [
        "f = search('Ann')[0]\nto = address_of('ann')\nshare(f.id, to)",
        # The items of a list are told apart.
        "fs = search('for')\nto = address_of('ann')\nshare(fs[0].id, to)",
        "fs = search('for')\nto = address_of('bob')\nshare('2', to)",
    ],
)
async def test_who_may_read_a_thing_may_be_sent_it_by_its_number(source: str) -> None:
    drive, person = Drive(), Person(lambda call: False)
    assert isinstance(await _run(f"{source}\nanswer(1)", drive, person), Finished)
    assert len(drive.sent) == 1


@pytest.mark.parametrize(
    "source",
    [
        "fs = search('for')\nto = address_of('bob')\nshare(fs[0].id, to)",
        "to = address_of('ann')\nshare('1', to)",
        # The number of an event is not that of a file, nor is a file of another service this one.
        "es = events()\nto = address_of('ann')\nshare(es[0].id, to)",
        "es = events()\nfs = search('Ann')\nto = address_of('bob')\nshare('1', to)",
        "fs = search('Ann')\nes = events()\nto = address_of('bob')\nshare('1', to)",
        "fs = search('for')\nto = address_of('ann')\nelsewhere('1', to)",
        # What was changed since may be for others now.
        "fs = search('for')\nto = address_of('ann')\nunshare('1')\nshare('1', to)",
    ],
)
async def test_nobody_else_is_sent_it(source: str) -> None:
    drive, person = Drive(), Person(lambda call: False)
    assert isinstance(await _run(f"{source}\nanswer(1)", drive, person), Failed)
    assert drive.sent == []
    assert person.asked[0].calls[0].rules == ("leaves-its-readers",)


@pytest.mark.parametrize(
    "id",
    [Origin("third_party", names="text"), Origin("system", names="txt"), Origin("system", names="id.text")],
)
def test_a_name_that_a_stranger_gives_stands_for_nothing(id: Origin) -> None:
    with pytest.raises(ToolError) as caught:

        @tool(effect="read", origins={"id": id})
        def broken() -> File:
            return File(id="", owner="", shared_with=[], text="")

    assert caught.value.code == "tools.bad-origins"


def test_an_attachment_that_is_refused_says_why() -> None:
    def share(file: str, to: str) -> None: ...

    with pytest.raises(ToolError, match="there is no argument 'fil'"):
        tool(effect="send", attaches=("fil",))(share)
    with pytest.raises(ToolError, match="can say so"):
        tool(effect="send", attaches={"file": Origin("third_party", Participants(("to",)))})(share)
    with pytest.raises(ToolError, match="is not an Origin"):
        tool(effect="send", attaches={"file": "public"})(share)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ToolError, match="there is no argument ''"):
        tool(effect="send", attaches={"": Origin("user")})(share)
    for wrong in (7, "file"):
        with pytest.raises(ToolError, match="names no arguments"):
            tool(effect="send", attaches=wrong)(share)  # pyright: ignore[reportArgumentType, reportCallIssue]
