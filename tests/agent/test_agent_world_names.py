"""A canary in every name of the world: each is read, on every way that a request can take, and no planner sees one.

There are eight kinds of names that somebody else chooses: files, folders, columns, keys of JSON, sheets, events,
contacts and subjects. The watch over privileged prompts (see `canaries`) fails each of these tests if it finds one.
"""

from __future__ import annotations

import json
import mailbox
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, ScriptedProvider
from bicameral.binding import Candidate
from bicameral.config import Config
from bicameral.durable import Submission
from bicameral.errors import BicameralError, BindError
from bicameral.models import ModelReply, ModelRequest, ReplyToken, Usage
from bicameral.patterns import Answered, _reasoner_run
from bicameral.patterns._reasoner_types import RoundFailure
from bicameral.runs import Answers, ApprovalQuestion, Failed, Finished, Suspend, Waiting
from bicameral.types import BOOL, Type
from canaries import MARK, Watch, canary_name, watching
from surfaces import Service, call, serving

KINDS = frozenset({"file", "folder", "column", "key", "sheet", "event", "contact", "subject"})
FOLDER, FILE = canary_name("folder_taxes"), f"{canary_name('file_bills')}.csv"
BOOK, DATA = f"{canary_name('file_chronicle')}.fods", f"{canary_name('file_settings')}.json"
DAY, FEE, PAID = canary_name("column_day"), canary_name("column_fee"), canary_name("column_paid")

READS: dict[str, tuple[str, str]] = {
    "file": ("How many rows have the bills?", 'found = len(read_csv(file("bills")))\n'),
    "column": (
        "Total the fees in the bills",
        'rows = read_csv(file("bills"))\nfound = sum([row[column("fee")] for row in rows])\n',
    ),
    "folder": ("List the files of the taxes folder", 'found = list_files(folder("taxes"))\n'),
    "key": ("Read the settings", 'found = read_json(file("settings"))\n'),
    "sheet": ("Read the chronicle", 'found = read_text(file("chronicle"))\n'),
    "event": ("Find the events about the roof", 'found = search_events("roof")\n'),
    "contact": ("Find the mails of Kim", 'found = search_mail(sender=person("Kim"))\n'),
    "subject": ("Read the mail about the gutter", 'found = read_mail(mail("gutter"))\n'),
}
DOUBTFUL = "Count the rows of the bills with a fee of 77"
NOTHING_SELECTED = (
    'rows = read_csv(file("bills"))\nfound = [row for row in rows if row[column("fee")] == 77]\nanswer(len(found))\n'
)
WRONG_KIND = NOTHING_SELECTED.replace('column("fee")] == 77', 'column("day")] == "open"')
OTHER = ("How many bills are in the list?", 'answer(len(read_csv(file("bills"))))\n')
MOVE = ("Move the roof meeting to 40 minutes", 'change_event(event("roof meeting"), minutes=40)\nanswer("moved")\n')


def plan_of(kind: str) -> str:
    return READS[kind][1] + "answer(found)\n"


class Person:
    """Takes what has the words in its name, or else the first that is offered, and approves everything."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    async def ask(self, question: str, type: Type) -> Any:
        self.questions.append(question)
        if type == BOOL:
            return True
        head, *offers = question.splitlines()
        fitting = [line for line in offers if head.rpartition(" by ")[2].strip("'?") in line]
        return (fitting or offers)[0].partition(".")[0].strip() if offers else "1"

    async def approve(self, question: ApprovalQuestion) -> Answers:
        return Answers.yes(question.calls)


class Naming(Person):
    """Replies with these names, one after the other."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = iter(names)

    async def ask(self, question: str, type: Type) -> Any:
        self.questions.append(question)
        return next(self._names)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.chdir(tmp_path)
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "letter.txt").write_text("hello\n")
    (tmp_path / FILE).write_text(f"{DAY},{FEE},{PAID}\n2026-03-01,12,yes\n2026-03-02,30,no\n")
    (tmp_path / DATA).write_text(json.dumps({canary_name("key"): 1, "nested": {canary_name("key_deep"): [2]}}))
    (tmp_path / BOOK).write_text(f'<table:table table:name="{canary_name("sheet")}"/>\n')
    # Headings that no prompt has by itself, since the columns of every table may be looked at.
    (tmp_path / "contacts.csv").write_text(f"surname,mailbox_at\nKim {canary_name('contact')},kim@example.com\n")
    (tmp_path / "calendar.ics").write_text(_calendar(), newline="")
    mailbox.Maildir(tmp_path / "Maildir").add(_mail())
    (tmp_path / "bicameral.toml").write_text(
        '[toolbox.mail]\nfolder = "Maildir"\n[toolbox.calendar]\nfile = "calendar.ics"\ntimezone = "UTC"\n'
        '[journal]\nfile = "journal.db"\n[cache]\nfolder = "cache"\n'
    )
    return Config.load(tmp_path / "bicameral.toml", base=tmp_path)


def _mail() -> EmailMessage:
    message = EmailMessage()
    message["From"] = f'"Kim {canary_name("contact")}" <kim@example.com>'
    message["To"] = "me@example.com"
    message["Subject"] = f"{canary_name('subject')} gutter"
    message["Date"] = format_datetime(datetime(2026, 3, 1, 12, tzinfo=UTC))
    message["Message-ID"] = "<1@example.com>"
    message.set_content("It leaks.")
    return message


def _calendar() -> str:
    lines = [
        *("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//x//EN", "BEGIN:VEVENT", "UID:1@example.com"),
        *("DTSTAMP:20260101T000000Z", "DTSTART:20261203T100000Z", "DTEND:20261203T104500Z"),
        *(f"SUMMARY:{canary_name('event')} roof meeting", "END:VEVENT", "END:VCALENDAR", ""),
    ]
    return "\r\n".join(lines)


def maker(plans: Mapping[str, Sequence[str]], **options: Any) -> Callable[[Config], Agent]:
    """Agents whose planner writes the plans of a request one after the other, and the last again and again."""
    written: Counter[str] = Counter()

    def write(request: ModelRequest) -> ModelReply:
        # The longest one, since one request may begin like another.
        said = max((each for each in plans if each in request.messages[-1].text), key=len, default="")
        place = request.seed if request.temperature > 0 else written[said]
        written[said] += request.temperature == 0
        texts = plans.get(said, ["answer(0)\n"])
        confidence = (ReplyToken("file", 0.2),) if request.confidence else ()
        return ModelReply(texts[min(place, len(texts) - 1)], "stop", Usage(1, 0, 1), confidence=confidence)

    def make(config: Config) -> Agent:
        none = ScriptedProvider(lambda request: '{"value": "none"}', grammars=False, chamber="quarantined")
        given: dict[str, Any] = {"cache": {}, "now": lambda: datetime(2026, 11, 17, 12), **options}
        return Agent.from_config(config, privileged=ScriptedProvider(write, grammars=False), quarantined=none, **given)

    return make


ALL = maker({request: [f"{plan}answer(found)\n"] for request, plan in READS.values()})


@pytest.fixture
async def service(config: Config, tmp_path: Path) -> AsyncIterator[Service]:
    plans = {request: [f"{plan}answer(found)\n"] for request, plan in READS.values()}
    async with serving(config, maker(plans | {OTHER[0]: [OTHER[1]]}), tmp_path) as found:
        yield found


def require_nothing_shown(watch: Watch, kinds: frozenset[str] = KINDS, prompts: int = 1) -> None:
    """The names were read, planners were asked, and no prompt has a name."""
    assert kinds <= watch.planted, f"not read, so that nothing was tried: {sorted(kinds - watch.planted)}"
    assert len(watch.prompts) >= prompts, "nobody was asked, so that nothing was tried"
    assert all(MARK not in text.casefold() for _, text in watch.prompts)
    assert watch.leaks == []


# Ways that a request can take ---------------------------------------------------------------------------------------


async def test_one_plan_after_the_other(config: Config, privileged_prompts: Watch) -> None:
    async with ALL(config) as agent:
        for request, _ in READS.values():
            outcome = await agent.run(request, asker=Person(), deterministic=True)
            assert isinstance(outcome, Finished), outcome
    require_nothing_shown(privileged_prompts, prompts=len(READS))


async def test_rounds(config: Config, privileged_prompts: Watch) -> None:
    plans = {request: [f"{plan}look(found)\n", 'answer("seen")\n'] for request, plan in READS.values()}
    async with maker(plans)(config) as agent:
        for request, _ in READS.values():
            reasoned = await agent.reason(request, rounds=3, asker=Person(), deterministic=True)
            assert isinstance(reasoned, Answered), reasoned
            assert len(reasoned.rounds) == 2
    require_nothing_shown(privileged_prompts, prompts=2 * len(READS))
    assert sum("found = " in text.rpartition("plan 1:")[2] for _, text in privileged_prompts.prompts) >= len(READS)


async def test_a_plan_that_was_repaired(config: Config, privileged_prompts: Watch) -> None:
    plans = {request: [f"{plan}answer(nothing)\n", f"{plan}answer(found)\n"] for request, plan in READS.values()}
    async with maker(plans)(config) as agent:
        for request, _ in READS.values():
            assert isinstance(await agent.run(request, asker=Person(), deterministic=True), Finished)
    require_nothing_shown(privileged_prompts, prompts=2 * len(READS))
    assert sum("This plan is wrong" in text for _, text in privileged_prompts.prompts) == len(READS)


async def test_several_plans_and_their_dry_runs(config: Config, privileged_prompts: Watch) -> None:
    request, plan = READS["column"]
    other = plan.replace("fee", "fees")
    nothing = f'{plan}found = [row for row in rows if row[column("fee")] == 77]\n'
    written = [f"{each}answer(found)\n" for each in (nothing, plan, other, plan)]
    async with maker({request: written})(config) as agent:
        planned = await agent.plan(request, asker=Person(), deterministic=True)
        assert planned.choice["different"] > 1
        assert isinstance(await agent.run(planned, asker=Person()), Finished)
    require_nothing_shown(privileged_prompts, frozenset({"file", "column"}), prompts=4)


async def test_a_run_that_waited_and_was_resumed(config: Config, privileged_prompts: Watch) -> None:
    class Away:
        async def approve(self, question: ApprovalQuestion) -> Answers:
            raise Suspend(question)

    plans = {MOVE[0]: [MOVE[1]], READS["event"][0]: [plan_of("event")]}
    async with maker(plans)(config) as agent:
        waiting = await agent.run(MOVE[0], asker=Person(), approver=Away(), deterministic=True)
        assert isinstance(waiting, Waiting), waiting
        ended = await agent.resume(waiting.run, asker=Person(), approver=Person())
        assert isinstance(ended, Finished), ended
        assert isinstance(await agent.run(READS["event"][0], deterministic=True), Finished)
    require_nothing_shown(privileged_prompts, frozenset({"event"}), prompts=2)


async def test_echo_after_the_world_was_read(config: Config, privileged_prompts: Watch) -> None:
    async with ALL(config) as agent:
        for request, _ in READS.values():
            await agent.run(request, asker=Person(), deterministic=True)
        with suppress(BicameralError):
            await agent.intent("Could you perhaps see to that thing with the roof, the one from before?")
    assert "echo" in {role for role, _ in privileged_prompts.prompts}
    require_nothing_shown(privileged_prompts)


# Errors, questions and doubts ---------------------------------------------------------------------------------------


async def test_what_a_binding_says_to_the_person_is_in_no_later_prompt(
    config: Config, privileged_prompts: Watch
) -> None:
    plans = {READS["file"][0]: [plan_of("file")], OTHER[0]: [OTHER[1]], READS["key"][0]: [plan_of("key")]}
    async with maker(plans)(config) as agent:
        with pytest.raises(BindError) as caught:
            await agent.run(OTHER[0], deterministic=True)
        assert MARK in str(caught.value), "the person is told the names"
        person = Person()
        # The same agent goes on: neither the next request nor its rounds know what the person was told.
        await agent.run(READS["file"][0], asker=person, deterministic=True)
        reasoned = await agent.reason(OTHER[0], rounds=3, deterministic=True, fresh=True)
        assert reasoned.ending == "asked"
        await agent.reason(READS["key"][0], rounds=2, asker=person, deterministic=True)
    require_nothing_shown(privileged_prompts, frozenset({"file", "key"}), prompts=4)


async def test_what_nothing_is_called_is_asked_of_the_person_alone(config: Config, privileged_prompts: Watch) -> None:
    unknown = 'rows = read_csv(file("zebra"))\nanswer(max([row[column("giraffe")] for row in rows]))\n'
    async with maker({OTHER[0]: [unknown]})(config) as agent:
        person = Naming(FILE, FEE)
        ended = await agent.run(OTHER[0], asker=person, deterministic=True)
        assert isinstance(ended, Finished), ended
        assert FILE in person.questions[0]
        assert FEE in person.questions[1]
        await agent.reason(OTHER[0], rounds=2, asker=Naming(FILE, FEE), deterministic=True, fresh=True)
    require_nothing_shown(privileged_prompts, frozenset({"file", "column"}), prompts=2)


async def test_an_error_that_names_a_column_is_not_told_to_the_next_round(
    config: Config, privileged_prompts: Watch
) -> None:
    request = "Count the rows of the bills with an open day"
    async with maker({request: [WRONG_KIND]})(config) as agent:
        with pytest.raises(BicameralError) as caught:
            (await agent.plan(request, asker=Person(), deterministic=True)).checked.require()
        assert caught.value.code == "bind.column-kind"
        assert MARK in str(caught.value), "the person is told the column"
        reasoned = await agent.reason(request, rounds=3, asker=Person(), deterministic=True)
        assert not reasoned.ok
        with suppress(BicameralError):
            await agent.run(request, asker=Person(), deterministic=True)
    require_nothing_shown(privileged_prompts, frozenset({"file", "column"}), prompts=3)


async def test_a_doubt_that_names_a_column_is_in_no_later_prompt(config: Config, privileged_prompts: Watch) -> None:
    plans = {DOUBTFUL: [NOTHING_SELECTED], READS["file"][0]: [plan_of("file")]}
    async with maker(plans)(config) as agent:
        outcome = await agent.run(DOUBTFUL, asker=Person(), deterministic=True)
        assert any(MARK in doubt.text for doubt in outcome.doubts), outcome.doubts
        await agent.run(READS["file"][0], asker=Person(), deterministic=True)
        looking = NOTHING_SELECTED.replace("answer(len(found))", "count = len(found)\nlook(count)")
    async with maker({DOUBTFUL: [looking, "answer(count)\n"]})(config) as agent:
        reasoned = await agent.reason(DOUBTFUL, rounds=3, asker=Person(), deterministic=True)
        assert isinstance(reasoned, Answered)
    require_nothing_shown(privileged_prompts, frozenset({"file", "column"}), prompts=4)


@pytest.fixture
def broken(config: Config) -> Config:
    """A world with a file that a tool cannot read."""
    Path(DATA).write_text("{")
    return config


async def test_a_tool_that_fails_with_a_name_is_told_without_it(broken: Config, privileged_prompts: Watch) -> None:
    request, plan = "Read the settings", 'found = read_json(file("settings"))\nlook(found)\n'
    async with maker({request: [plan, "answer(1)\n"]})(broken) as agent:
        reasoned = await agent.reason(request, rounds=3, asker=Person(), deterministic=True)
        assert any(isinstance(each.outcome, Failed) for each in reasoned.rounds), reasoned
    require_nothing_shown(privileged_prompts, frozenset({"file"}), prompts=2)


async def test_the_watch_would_see_an_error_that_is_told_as_it_is(
    broken: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(error: BicameralError, *_: object) -> RoundFailure:
        return RoundFailure(None, str(error), "")

    monkeypatch.setattr(_reasoner_run, "round_failure", tell)
    request, plan = "Read the settings", 'found = read_json(file("settings"))\nlook(found)\n'
    with watching() as watch:
        async with maker({request: [plan, "answer(1)\n"]})(broken) as agent:
            await agent.reason(request, rounds=3, asker=Person(), deterministic=True)
    assert any("was shown a canary" in leak for leak in watch.leaks), watch.leaks
    assert any("was shown a name of the world" in leak for leak in watch.leaks), watch.leaks


async def test_a_process_that_is_watched_sends_no_canary() -> None:
    watch = Watch(at_once=True)
    watch.found([Candidate("file", FILE, (FILE,))])
    watch.prompt("delta", "Read the bills")
    with pytest.raises(AssertionError, match="was shown a canary"):
        watch.prompt("delta", f"Read {FILE}")


# Surfaces -----------------------------------------------------------------------------------------------------------


async def test_durable_runs(service: Service, privileged_prompts: Watch) -> None:
    for kind, (request, _) in READS.items():
        # There is one event, one contact and one mail, and there are several files, folders and columns.
        reply: object = True if kind in ("event", "contact", "subject") else "1"
        view = await service.settled(Submission(request=request, deterministic=True), [reply, reply])
        assert view.ending == "answered", view
    asked = await service.settled(Submission(request=OTHER[0], deterministic=True))
    assert asked.ending == "asked"
    question = (await service.runs.approval(asked.waits_for[0])).question
    assert MARK in question, "the person is told the names"
    require_nothing_shown(privileged_prompts, prompts=len(READS))


async def test_the_server_and_its_chats_with_earlier_turns(service: Service, privileged_prompts: Watch) -> None:
    said: list[dict[str, Any]] = []
    for request, _ in READS.values():
        planned = await service.ask("POST", "/v1/plans", json={"request": request, "deterministic": True})
        assert planned["ok"] or planned["ending"] == "asked", planned
        said.append({"role": "user", "content": request})
        told = await service.ask("POST", "/v1/chat/completions", json={"model": "bicameral", "messages": said})
        message = told["choices"][0]["message"]
        said.append({"role": "assistant", "content": f"{message['content'] or message['refusal']} {MARK}_turn"})
    kinds = frozenset({"file", "folder", "event", "contact", "subject"})
    require_nothing_shown(privileged_prompts, kinds, prompts=len(READS))


def test_sittings_at_the_command_line_with_following_turns(config: Config, privileged_prompts: Watch) -> None:
    turns = [request for request, _ in READS.values()] + [OTHER[0], READS["event"][0]]
    result = call(config, ALL, "chat", "--deterministic", stdin="\n".join(turns) + "\n")
    assert result.exit_code == 0, result.output
    assert MARK in result.output.casefold(), "the person is told the names"
    kinds = frozenset({"file", "folder", "event", "contact", "subject"})
    require_nothing_shown(privileged_prompts, kinds, prompts=len(READS))
