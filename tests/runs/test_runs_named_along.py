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

    def __init__(self, rich: bool = False) -> None:
        self.rich = rich
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

        @tool(effect="read", outbound=False, origins=Origin("user"))
        def is_rich() -> bool:
            """What only the user may know."""
            return self.rich

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
                *(search, events, address_of, unshare, is_rich),
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


_SHARE = "share('1', address_of('ann'))"


@pytest.mark.parametrize(
    ("source", "sent"),
    [
        ("if is_rich():\n    fs = search('for')", 0),
        ("if is_rich():\n    for name in ['for']:\n        fs = search(name)", 0),
        ("fs = search('for')\nif is_rich():\n    unshare('1')", 0),
        ("fs = search('for')\nif is_rich():\n    unshare(address_of('x'))", 0),
        ("fs = search('for' if is_rich() else 'zzz')", 0),
        ("word = 'for' if is_rich() else 'zzz'\nfs = search(word)", 0),
        ("fs = search('for')\nunshare('1' if is_rich() else '2')", 0),
        # Whether anything was done to it is as private, whatever is known of it afterwards.
        ("if is_rich():\n    unshare('1')\nfs = search('for')", 0),
        # What was known before, and what has nothing to do with it, is as it was.
        ("fs = search('for')\nif is_rich():\n    gs = search('for')", 1),
        ("fs = search('for')\nif is_rich():\n    unshare('2')", 1),
        ("fs = search('for')\ngs = search('for' if is_rich() else 'zzz')", 1),
        ("if is_rich():\n    gs = search('for')\nfs = search('for')", 1),
        ("if is_rich():\n    es = events()\nfs = search('for')", 1),
    ],
)
@pytest.mark.parametrize("rich", [False, True])
async def test_it_does_not_show_in_what_is_sent_whether_a_branch_was_taken(source: str, sent: int, rich: bool) -> None:
    drive, person = Drive(rich), Person(lambda call: False)
    await _run(f"{source}\n{_SHARE}\nanswer(1)", drive, person)
    assert len(drive.sent) == sent


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
