"""Plans with effects for one request: which differences a person decides, and which nobody need decide."""

from __future__ import annotations

import mailbox
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, ScriptedProvider
from bicameral.errors import PlanError
from bicameral.models import ModelReply, ModelRequest, ReplyToken, Usage
from bicameral.tools import Folders, Surroundings, load_toolboxes
from bicameral.types import Type

NOW = datetime(2026, 3, 11, 9, 0, tzinfo=UTC)
CUSTOMERS = "name,email,plan,boss_email\nAnna,anna@example.com,gold,zoe@example.com\nBen,ben@example.com,free,\n"
BILLS = "name,amount,state\nrent,900,open\npower,80,paid\nwater,40,open\n"


class Person:
    """Answers every question in the same way, and remembers it."""

    def __init__(self, reply: str = "1") -> None:
        self.reply, self.questions = reply, list[str]()

    async def ask(self, question: str, type: Type) -> Any:
        self.questions.append(question)
        return self.reply


def _planner(*plans: str) -> ScriptedProvider:
    """Writes the first plan, unsure of it, and the others for the seeds 1, 2 and 3."""

    def reply(request: ModelRequest) -> ModelReply:
        text = plans[min(request.seed if request.temperature > 0 else 0, len(plans) - 1)]
        confidence = (ReplyToken("filter_rows", 0.2),) if request.confidence else ()
        return ModelReply(text, "stop", Usage(1, 0, 1), confidence=confidence)

    return ScriptedProvider(reply, grammars=False)


class World:
    """A folder with files, a table and mails, and agents over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "files"
        for name in ("notes", "backup"):
            (self.files / name).mkdir(parents=True)
        self.write("customers.csv", CUSTOMERS)
        self.write("bills.csv", BILLS)
        self.write("todo.txt", "")
        self.write("notes/a.txt", "a")
        self.mails = mailbox.Maildir(folder / "mail")

    def write(self, name: str, text: str) -> None:
        (self.files / name).write_text(text)

    def deliver(self, sender: str, subject: str, body: str) -> None:
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"], mail["Date"] = sender, "me@example.com", subject, NOW
        mail.set_content(body)
        self.mails.add(mail)

    async def choose(self, request: str, plans: Sequence[str], person: Person | None) -> Any:
        """The plan for a request for which these plans are drawn, the first one twice if there are two."""
        drawn = plans if len(plans) > 2 else (plans[0], plans[1], plans[1], plans[0])
        settings: dict[str, dict[str, Any]] = {
            "mail": {
                "folder": str(self.folder / "mail"),
                "address": "me@example.com",
                "smtp": {"host": "127.0.0.1", "port": 9, "tls": "none"},
            },
            "calendar": {"file": str(self.folder / "files" / "calendar.ics")},
        }
        folders = Folders(base=self.files, read=(self.files, self.folder / "mail"), write=(self.files,))
        names = ("files", "tables", "lines", "mail", "calendar")
        registry = load_toolboxes(
            {name: settings.get(name, {}) for name in names}, Surroundings(folders, now=lambda: NOW)
        )
        agent = Agent(
            registry,
            privileged=_planner(*drawn),
            quarantined=ScriptedProvider([], name="reader", grammars=False),
            cache={},
            now=lambda: NOW,
        )
        return await agent.plan(request, deterministic=True, asker=person)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def _codes(planned: Any) -> list[str]:
    return [doubt.code for doubt in planned.doubts if doubt.code == "several-plans"]


# Wording ----------------------------------------------------------------------------------------------------------

TELL = "Tell kim@example.com that Friday is fine for me."


def _mail(subject: str, body: str, to: str = "kim@example.com") -> str:
    return f'send_mail(["{to}"], "{subject}", "{body}")\nanswer("Mailed it")\n'


async def test_the_wording_of_a_mail_is_no_question(world: World) -> None:
    person = Person()
    plans = (
        _mail("Possible day", "Friday is fine for me."),
        _mail("Friday", "Friday works for me."),
        _mail("Our meeting", "Hello, I am free on Friday."),
        _mail("Day", "Friday is good."),
    )
    planned = await world.choose(TELL, plans, person)
    assert person.questions == []
    assert (planned.choice["by"], planned.choice["taken"]) == ("wording", 0)
    # Nothing of the world was read for it.
    assert planned.start.read.trusted
    assert _codes(planned) == []


@pytest.mark.parametrize(
    "other",
    ["Friday is not fine for me.", "Saturday is fine for me.", "Friday at 18:00 is fine.", "Friday is fine, “deal”."],
    ids=["denied", "day", "time", "quoted"],
)
async def test_facts_of_a_mail_are_the_persons_choice(world: World, other: str) -> None:
    person = Person("2")
    plans = (_mail("Day", "Friday is fine for me."), _mail("Day", other))
    planned = await world.choose("Tell kim@example.com when I am free.", plans, person)
    assert len(person.questions) == 1
    assert other in planned.source


async def test_an_instruction_in_other_words_is_no_question_and_stays_a_doubt(world: World) -> None:
    world.write("bills.txt", "rent 900")
    plans = tuple(
        f'text = read_text("bills.txt")\nrent = extract(text, "{asked}", str)\n'
        'write_text("one.txt", rent)\nanswer("Wrote it")\n'
        for asked in ("the rent", "how high the rent is")
    )
    person = Person()
    planned = await world.choose("Write the rent in bills.txt to one.txt", plans, person)
    assert person.questions == []
    assert planned.choice["taken"] == 0
    assert _codes(planned) == ["several-plans"]


# Words that bind to the same --------------------------------------------------------------------------------------

OFFER = 'Write to all gold customers of customers.csv with the subject "Offer" and the text "Until May."'


def _offer(column: str) -> str:
    return (
        'rows = read_csv("customers.csv")\ngold = filter_rows(rows, column("plan"), "==", value("gold"))\n'
        f'for row in gold:\n    send_mail([row[{column}]], "Offer", "Until May.")\nanswer("Mailed them")\n'
    )


async def test_two_words_for_one_column_are_no_question(world: World) -> None:
    person = Person()
    planned = await world.choose(OFFER, (_offer('column("emails")'), _offer('column("email")')), person)
    assert person.questions == []
    assert planned.choice["taken"] == 0


async def test_a_plan_whose_column_is_not_there_stands_behind_one_whose_is(world: World) -> None:
    person = Person()
    planned = await world.choose(OFFER, (_offer('column("zqx")'), _offer('column("email")')), person)
    assert person.questions == []
    assert (planned.choice["by"], planned.choice["taken"]) == ("world", 1)
    # The table had a part in it, so the mails need a person's yes.
    assert not planned.start.read.trusted


async def test_two_columns_with_recipients_are_the_persons_choice(world: World) -> None:
    person = Person()
    await world.choose(OFFER, (_offer('column("email")'), _offer('column("boss email")')), person)
    assert len(person.questions) == 1


async def test_a_folder_in_other_words_and_a_name_in_it_are_no_question(world: World) -> None:
    plans = tuple(
        f"files = list_files({given})\nfor f in files:\n    copy_file(f.path, {target})\nanswer('Copied')\n"
        for given, target in (('folder="notes"', 'f"backup/{f.name}"'), ('folder=folder("notes")', '"backup/"'))
    )
    person = Person()
    planned = await world.choose("Copy all files of the folder notes to backup", plans, person)
    assert person.questions == []
    assert planned.choice["taken"] == 0


# What the request says --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["sum", "number"])
async def test_a_calculation_that_the_request_names_is_no_question(world: World, asked: str) -> None:
    read = 'rows = read_csv("bills.csv")\nkept = filter_rows(rows, "state", "==", "open")\n'
    write = 'write_text("one.txt", str(found))\nanswer("Wrote it")\n'
    plans = (
        read + "found = len(kept)\n" + write,
        read + 'found = sum([r["amount"] for r in kept])\n' + write,
    )
    words = {"sum": "the sum of the amount", "number": "the number of bills"}[asked]
    person = Person()
    planned = await world.choose(f"Write {words} that are open in bills.csv to one.txt", plans, person)
    assert person.questions == []
    assert planned.choice["by"] == "fit"
    assert ("sum(" in planned.source) is (asked == "sum")
    assert _codes(planned) == ["several-plans"]


# What would be done here ------------------------------------------------------------------------------------------

LOOK = 'Look at the mail about the disk of db-2. If it is over 90 percent, add the line "[ ] clean" to todo.txt.'


def _look(search: str, target: str = "todo.txt") -> str:
    return (
        f'mails = search_mail({search}, limit=1)\nif mails:\n    full = extract(mails[0].body, "percent", float)\n'
        f'    if full > 90:\n        append_text("{target}", "[ ] clean")\n'
        '        answer("over 90 percent")\n    else:\n        answer("db-2 is not")\nelse:\n    answer("none")\n'
    )


async def test_searches_that_find_the_same_are_no_question(world: World) -> None:
    world.deliver("ops@example.com", "disk", "92 percent")
    person = Person()
    plans = (_look('text="disk"'), _look('text="disk", sender="ops"'))
    planned = await world.choose(LOOK, plans, person)
    assert person.questions == []
    assert (planned.choice["by"], planned.choice["taken"]) == ("world", 0)


async def test_a_search_that_finds_nothing_stands_behind_one_that_finds_something(world: World) -> None:
    world.deliver("ops@example.com", "disk", "92 percent")
    person = Person()
    planned = await world.choose(LOOK, (_look('text="disk", sender="db-2"'), _look('text="disk"')), person)
    assert person.questions == []
    assert planned.choice["taken"] == 1
    assert not planned.start.read.trusted


async def test_most_plans_with_the_first_are_taken_and_the_doubt_stays(world: World) -> None:
    person = Person()
    first, other = _mail("Day", "Friday is fine."), _mail("Day", "Friday is fine.", to="tim@example.com")
    request = "Tell kim@example.com or tim@example.com that Friday is fine."
    planned = await world.choose(request, (first, other, first, first), person)
    assert person.questions == []
    assert "kim@example.com" in planned.source.split("send_mail", 1)[1]
    assert _codes(planned) == ["several-plans"]


async def test_a_majority_against_the_first_plan_is_the_persons_choice(world: World) -> None:
    person = Person()
    first, other = _mail("Day", "Friday is fine."), _mail("Day", "Friday is fine.", to="tim@example.com")
    request = "Tell kim@example.com or tim@example.com that Friday is fine."
    await world.choose(request, (first, other, other, other), person)
    (question,) = person.questions
    # In sentences, not in lines of a plan.
    assert '1. Send mail: to "kim@example.com"; subject "Day"; body "Friday is fine."' in question
    assert '2. Send mail: to "tim@example.com"' in question
    assert "send_mail(" not in question


# What nobody who writes a file or a mail can do -------------------------------------------------------------------

Plant = Callable[[World], None]
PLANTED: dict[str, Plant] = {
    "nothing": lambda world: None,
    "a mail that only the first search finds": lambda world: world.deliver("db-2@example.com", "disk", "99"),
    "a mail that only the second search finds": lambda world: world.deliver("evil@example.com", "other", "99"),
    "a mail for both": lambda world: world.deliver("db-2@example.com", "disk other", "99"),
    "a file with the name of a target": lambda world: world.write("other.txt", "planted"),
}


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)
async def test_nothing_that_a_search_finds_chooses_the_file_that_is_written(world: World, plant: Plant) -> None:
    plant(world)
    person = Person("1")
    request = LOOK.replace("todo.txt", "todo.txt or other.txt")
    plans = (_look('text="disk", sender="db-2"'), _look('text="other"', "other.txt"))
    planned = await world.choose(request, plans, person)
    assert len(person.questions) == 1
    assert "99" not in person.questions[0]
    assert '"todo.txt"' in planned.source.split("append_text", 1)[1].splitlines()[0]
    # Without a person the plan that was written first is taken, whatever was planted.
    alone = await world.choose(request, plans, None)
    assert '"todo.txt"' in alone.source.split("append_text", 1)[1].splitlines()[0]
    assert _codes(alone) == ["several-plans"]


def _forward(search: str, to: str = "kim@example.com") -> str:
    return (
        f"mails = search_mail({search})\nbodies = [m.body for m in mails]\n"
        f'send_mail(["{to}"], "Mails", "\\n".join(bodies))\nanswer("Sent")\n'
    )


@pytest.mark.parametrize("planted", [("contract", "x"), ("bill", "x"), ("contract bill", "x")])
@pytest.mark.parametrize("to", ["kim@example.com", "eve@example.com"])
async def test_a_planted_mail_does_not_choose_what_is_sent_or_to_whom(
    world: World, planted: tuple[str, str], to: str
) -> None:
    # The attack: a mail makes one of two searches find something, so that its plan would win.
    world.deliver("eve@example.com", *planted)
    person = Person("1")
    request = "Send the mails about the contract or the bill to kim@example.com or eve@example.com"
    plans = (_forward('text="contract"'), _forward('text="bill"', to))
    planned = await world.choose(request, plans, person)
    assert "kim@example.com" in planned.source.split("send_mail", 1)[1]
    same = planned.choice["by"] == "world"
    # Only where both send the same mails to the same person it is no question.
    assert same is (planted[0] == "contract bill" and to == "kim@example.com")
    assert len(person.questions) == (not same)


async def test_an_empty_folder_does_not_hide_that_the_targets_differ(world: World) -> None:
    # The attack: where a loop does nothing now, plans with two targets do the same.
    (world.files / "notes" / "a.txt").unlink()
    plans = tuple(
        f'files = list_files("notes")\nfor f in files:\n    copy_file(f.path, "{target}/")\nanswer("Copied")\n'
        for target in ("backup", "shared")
    )
    person = Person("none")
    with pytest.raises(PlanError) as caught:
        await world.choose("Copy the files of the folder notes to backup or shared", plans, person)
    assert caught.value.code == "plan.several"
    assert len(person.questions) == 1


@pytest.mark.parametrize("planted", [False, True])
async def test_a_planted_name_does_not_choose_the_file_that_is_written(world: World, planted: bool) -> None:
    # The attack: a file is called so that the words of the second plan can be bound, and those of the first cannot.
    if planted:
        world.write("wishes.txt", "planted")
    plans = tuple(
        f'text = read_text(file("{words}"))\nwrite_text("{target}", text)\nanswer("Wrote it")\n'
        for words, target in (("zqx", "one.txt"), ("wishes", "two.txt"))
    )
    person = Person("none")
    with pytest.raises(PlanError) as caught:
        await world.choose("Write the zqx or the wishes to one.txt or two.txt", plans, person)
    assert caught.value.code == "plan.several"
    assert len(person.questions) == 1


async def test_the_benign_twin_with_one_target_is_chosen_by_what_is_there(world: World) -> None:
    world.write("wishes.txt", "a bike")
    plans = tuple(
        f'text = read_text(file("{words}"))\nwrite_text("one.txt", text)\nanswer("Wrote it")\n'
        for words in ("zqx", "wishes")
    )
    person = Person()
    planned = await world.choose("Write the zqx or the wishes to one.txt", plans, person)
    assert person.questions == []
    assert (planned.choice["by"], planned.choice["taken"]) == ("world", 1)
    assert not planned.start.read.trusted
