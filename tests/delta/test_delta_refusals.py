"""Refusals of the planner: one that code refutes is planned after all, with a doubt; every other one stands."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, Finished
from bicameral.config import Config
from bicameral.config._config import PlanningSettings
from bicameral.errors import ModelError, PlanError
from bicameral.journal import Journal
from bicameral.models import ModelRequest, ScriptedProvider
from bicameral.planning import (
    CompiledPlan,
    Delta,
    Intent,
    PlanCascade,
    complete_intent,
    find_plan_doubts,
    refute_refusal,
)
from bicameral.planning._capabilities import claimed_capability, serving_tools
from bicameral.planning._decode import PREFILL
from bicameral.planning._refusals import missing_capability
from bicameral.planning._unserved_orders import unserved_orders
from bicameral.tools import Folders, Registry, Surroundings, Tool, load_toolboxes, tool

TODAY = dt.date(2026, 5, 4)


@tool(effect="read")
def get_unread_emails() -> list[str]:
    """Returns all the unread emails in the inbox."""
    return []


@tool(effect="send", words=("send", "mail", "email", "write", "forward", "tell"))
def send_email(recipients: list[str], subject: str, body: str) -> None:
    """Sends an email with the given subject to the recipients."""


@tool(effect="read")
def get_day_calendar_events(day: dt.date) -> list[str]:
    """Returns the appointments of the given day."""
    return []


@tool(effect="write", words=("create", "add", "schedule", "put"))
def create_calendar_event(title: str, start: dt.datetime) -> None:
    """Creates a calendar event."""


@tool(effect="irreversible", words=("send", "pay", "transfer"))
def send_money(recipient: str, amount: float) -> None:
    """Sends money to the recipient."""


@tool(effect="write", words=("reserve", "book"))
def reserve_hotel(hotel: str, day: dt.date) -> None:
    """Makes a reservation for a hotel."""


@tool(effect="write", words=("add", "invite"))
def add_user_to_channel(user: str, channel: str) -> None:
    """Add a user to a channel."""


@tool(effect="send", words=("post", "send", "message"))
def send_channel_message(channel: str, body: str) -> None:
    """Send a message to a channel."""


@tool(effect="read")
def read_document(name: str) -> str:
    """Reads the contents of a document."""
    return ""


TOOLS = (
    *(get_unread_emails, send_email, get_day_calendar_events, create_calendar_event, send_money, reserve_hotel),
    *(add_user_to_channel, send_channel_message, read_document),
)
REGISTRY = Registry(TOOLS)
NO_MAILS = "There is no tool that sends mails."


@pytest.fixture
def standard(tmp_path: Path) -> Registry:
    boxes = ("files", "lines", "tables", "mail", "calendar", "web", "clock", "find")
    return load_toolboxes({name: {} for name in boxes}, Surroundings(Folders(tmp_path, (tmp_path,), (tmp_path,))))


def understood(request: str, registry: Registry = REGISTRY) -> Intent:
    return complete_intent(Intent(request=request), registry, TODAY)


def without(*tools: Tool) -> Registry:
    return Registry(each for each in TOOLS if each not in tools)


SERVED = {
    "en": (NO_MAILS, "Send a mail to kim@example.com that the tickets are booked"),
    "de": ("Es gibt kein Werkzeug, das Mails verschickt.", "Schick kim@example.com eine Mail, dass die Karten da sind"),
    "fr": ("Il n'y a pas d'outil qui envoie des mails.", "Envoie un mail à kim@example.com pour dire que c'est prêt"),
    "es": ("No hay ninguna herramienta para enviar correos.", "Envía un correo a kim@example.com con la dirección"),
    "calendar": ("There is no tool that changes the calendar.", "Add an appointment with Kim on May 12 at 9"),
    "reading": ("Es gibt kein Werkzeug, das den Kalender liest.", "Welche Termine habe ich morgen?"),
    "question": ("There is no tool that reads mails.", "How many unread mails do I have?"),
    "money": ("There is no tool that transfers money.", "Transfer 120 euros to Maria"),
    "bill": ("Es gibt kein Werkzeug, das Rechnungen bezahlt.", "Bezahl die Rechnung über 80 Euro an Maria (transfer)"),
    "hotel": ("No hay ninguna herramienta para reservar hoteles.", "Reserva el hotel Sol para el 3 de junio"),
    "own words": ("There is no tool that adds users to a channel.", "Add Omar to the channel general"),
    "post": ("There is no tool that posts to a channel.", 'Post "Lunch at 12" in the channel general'),
    "document": ("Il n'y a pas d'outil qui lit des documents.", "Que dit le document budget ?"),
}


@pytest.mark.parametrize("case", SERVED)
def test_a_refusal_is_refuted_if_a_tool_does_what_it_says_is_missing(case: str) -> None:
    reason, request = SERVED[case]
    refuted = refute_refusal(reason, understood(request), REGISTRY)
    assert refuted is not None
    assert refuted.reason == reason


@pytest.mark.parametrize("case", SERVED)
def test_the_same_refusal_stands_without_these_tools(case: str) -> None:
    reason, request = SERVED[case]
    refuted = refute_refusal(reason, understood(request), REGISTRY)
    assert refuted is not None
    left = Registry(each for each in TOOLS if each.name not in refuted.tools)
    assert refute_refusal(reason, understood(request, left), left) is None


MAIL = "Send a mail to kim@example.com"


@pytest.mark.parametrize(
    ("reason", "request_"),
    [
        # What it says is missing really is, however near the tools come.
        ("There is no tool that makes phone calls.", "Call Kim and tell her that I am late"),
        ("There is no tool that sends mails at a later time.", f"{MAIL} at midnight"),
        ("There is no tool that sends text messages.", "Send Kim a text message"),
        ("There is no tool that sends paper letters.", "Send Kim a letter"),
        ("There is no tool that deletes mails.", "Delete the mails of Kim"),
        ("There is no tool that books flights.", "Book a flight to Rome on Friday"),
        ("There is no tool that books train seats.", "Reserve a seat in the train"),
        ("There is no tool that writes to another person's calendar.", "Add the dinner to the calendar of Kim"),
        ("There is no tool that moves mails between mail folders.", "Put the mails of Kim into the folder School"),
        (
            "Es gibt kein Werkzeug, das Mails zu einer späteren Zeit verschickt.",
            "Schick kim@example.com morgen die Mail",
        ),
        ("Es gibt kein Werkzeug, das Tische reserviert.", "Reservier einen Tisch beim Griechen"),
        ("Il n'y a pas d'outil qui envoie des SMS.", "Envoie un SMS à Kim"),
        ("No hay ninguna herramienta para enviar mensajes de WhatsApp.", "Manda un mensaje de WhatsApp a Kim"),
        ("There is no tool that reserves hotels or makes calls.", "Reserve the hotel Sol for June 3 and call them"),
        # Reasons of another kind.
        ("The request contradicts itself: a mail cannot be sent and not sent.", f"{MAIL}, but do not send it"),
        (
            "La demande se contredit : un mail ne peut pas arriver sans être envoyé.",
            "Envoie un mail à Kim sans l'envoyer",
        ),
        ("The address of Kim is not known.", "Send a mail to Kim"),
        ("There is no file called offer.pdf.", MAIL),
        ("Nothing here can know future lottery numbers.", "Which numbers will win?"),
        ("There is no tool that sends mails. The address is missing, too.", MAIL),
        ("There is no tool that sends mails; the request contradicts itself", MAIL),
        ("It must not be done", MAIL),
        ("no tool", MAIL),
        ("", MAIL),
        ("There is no tool that sends.", MAIL),
    ],
)
def test_a_founded_refusal_stands(reason: str, request_: str) -> None:
    assert refute_refusal(reason, understood(request_), REGISTRY) is None


@pytest.mark.parametrize(
    "request_",
    [
        "Send a mail to kim@example.com and then call her",
        "Mail kim@example.com the date, and book a taxi for me",
        "Mail kim@example.com, then print out the document budget on paper",
        "Schick kim@example.com eine Mail und ruf sie dann an",
        "Schick kim@example.com eine Mail und bestell eine Pizza",
        "Envoie un mail à kim@example.com et appelle le plombier",
        "Envía un correo a kim@example.com y llama al fontanero",
        "Send an SMS to kim@example.com",
        "Send kim@example.com a mail as soon as Anna replies",
    ],
)
def test_a_request_that_is_half_served_stays_refused(request_: str) -> None:
    """The planner gives a wrong reason, and is right that not all of it can be done."""
    assert refute_refusal(NO_MAILS, understood(request_), REGISTRY) is None


@pytest.mark.parametrize(
    "request_",
    [
        "Send a mail to kim@example.com that I will call her",
        'Send a mail to kim@example.com: "Please order a taxi"',
        "Schick kim@example.com eine Mail, dass ich sie anrufe",
        "Envoie un mail à kim@example.com pour dire que je l'appelle demain",
        "Do not call Kim, just mail kim@example.com",
    ],
)
def test_what_a_message_says_is_no_order(request_: str) -> None:
    assert refute_refusal(NO_MAILS, understood(request_), REGISTRY) is not None


def test_an_order_for_which_there_is_a_tool_is_served() -> None:
    request = "Transfer 120 euros to Maria and mail kim@example.com that it is paid"
    assert not list(unserved_orders(request, REGISTRY))
    assert list(unserved_orders(request, without(send_money)))


def test_a_question_about_a_device_orders_nothing_of_it() -> None:
    assert not list(unserved_orders("How much more did we pay for heating this year?", REGISTRY))
    assert not list(unserved_orders("Welche Nummer hat der, der die Waschmaschine repariert hat?", REGISTRY))
    assert list(unserved_orders("Turn the heating up", REGISTRY))
    assert list(unserved_orders("Starte die Waschmaschine", REGISTRY))


@pytest.mark.parametrize(
    ("reason", "request_"),
    [
        (NO_MAILS, "What is the weather in Rome?"),
        (NO_MAILS, "Brew me a coffee"),
        ("There is no tool that changes the calendar.", "Brew me a coffee and put sugar into it"),
        ("There is no tool that transfers money.", "How old is Maria?"),
        ("There is no tool that reads documents.", "Brew me a coffee"),
    ],
)
def test_a_reason_that_has_nothing_to_do_with_the_request_refutes_nothing(reason: str, request_: str) -> None:
    assert refute_refusal(reason, understood(request_), REGISTRY) is None


def test_what_a_tool_says_of_itself_is_no_evidence() -> None:
    """Whoever writes the description of a foreign tool must not decide that a refusal does not stand."""
    foreign = replace(send_email, name="send_email", self_described=True)
    registry = Registry([*(each for each in TOOLS if each is not send_email), foreign])
    assert refute_refusal(NO_MAILS, understood(MAIL), registry) is None
    assert refute_refusal(NO_MAILS, understood(MAIL), REGISTRY) is not None


def test_a_tool_that_only_reads_does_not_serve_a_change() -> None:
    @tool(effect="read")
    def send_email(recipients: list[str]) -> list[str]:
        """Sends an email."""
        return recipients

    capability = claimed_capability("sends mails")
    assert capability is not None
    assert serving_tools(capability, Registry([send_email])) == ()
    assert serving_tools(capability, REGISTRY) == ("send_email",)


@pytest.mark.parametrize(
    "reason",
    ["There is no tool for sending mails", "No tool can send e-mails.", "Kein Werkzeug kann Mails verschicken"],
)
def test_the_capability_is_found_in_other_words(reason: str) -> None:
    capability = missing_capability(reason)
    assert capability is not None
    assert (capability.actions, capability.objects) == ({"send"}, ("mail",))


# The corpus was written before there were tools for drafts, folders of mail, documents and comparisons.
LATER = frozenset({"save_draft", "move_mail", "delete_mail", "read_sheet", "diff_files"})


def test_no_refusal_of_the_training_corpus_is_refuted_by_the_standard_tools(standard: Registry) -> None:
    found = 0
    standard = standard.without(LATER)
    for file in sorted((Path(__file__).parents[2] / "training/delta/corpus").glob("*.txt")):
        for block in re.split(r"\n\s*\n", file.read_text("utf-8")):
            match = re.search(r'^cannot\("(.*)"\)$', block, re.MULTILINE)
            for line in block.splitlines() if match else ():
                if match and line.startswith(("#: ", "#~ ")):
                    found += 1
                    assert refute_refusal(match[1], understood(line[3:], standard), standard) is None, line
    assert found > 1_000


def test_a_refusal_that_was_learned_before_there_was_a_tool_is_refuted(standard: Registry) -> None:
    intent = understood("Lösch alle Werbemails aus meinem Postfach.", standard)
    refuted = refute_refusal("Es gibt kein Werkzeug, das Mails löscht.", intent, standard)
    assert refuted is not None
    assert refuted.tools == ("delete_mail",)


# The planner ----------------------------------------------------------------------------------------------------------

REQUEST = 'Send a mail to kim@example.com with the subject "Trip"'
PLAN = 'send_email(["kim@example.com"], "Trip", "Trip")\nanswer("The mail is sent")\n'
Write = Callable[..., ScriptedProvider]


def planner(*plans: str, reason: str = NO_MAILS) -> ScriptedProvider:
    """Refuses wherever the grammar lets it; else writes the statement that follows what is written of its next plan."""
    left = list(plans)

    def reply(request: ModelRequest) -> str:
        if request.grammar is not None and '"cannot("' in request.grammar:
            return f'cannot("{reason}")\n'
        written = (request.prefill or "").removeprefix(PREFILL)
        if (
            not written
            and len(left) > 1
            and any('"cannot("' not in (each.grammar or "") for each in model.requests[:-1])
        ):
            left.pop(0)
        assert left[0].startswith(written)
        return left[0][len(written) :].split("\n", 1)[0] + "\n"

    model = ScriptedProvider(reply)
    return model


async def compiled_plan(model: ScriptedProvider, request: str = REQUEST, **options: Any) -> CompiledPlan:
    return await Delta(model, **options).compile(understood(request), REGISTRY)


async def refused(model: ScriptedProvider, request: str = REQUEST, **options: Any) -> PlanError:
    with pytest.raises(PlanError) as caught:
        await compiled_plan(model, request, **options)
    assert caught.value.code == "plan.cannot"
    return caught.value


async def test_an_unfounded_refusal_is_planned_after_the_same_prompt_and_doubtful() -> None:
    model = planner(PLAN)
    compiled = await compiled_plan(model)
    assert compiled.overridden is not None
    assert compiled.overridden.tools == ("send_email",)
    assert find_plan_doubts(compiled, understood(REQUEST), REGISTRY)[0].kind == "refused-before"
    first, second = model.requests[:2]
    assert (first.messages, first.prefill) == (second.messages, second.prefill)
    # To begin with a question would be to refuse in other words; later there may be one.
    assert '"ask("' in (first.grammar or "")
    assert '"ask("' not in (second.grammar or "")
    assert '"ask("' in (model.requests[2].grammar or "")


async def test_a_plan_without_a_refusal_has_no_such_doubt() -> None:
    compiled = await compiled_plan(ScriptedProvider(PLAN.splitlines(keepends=True)))
    assert compiled.overridden is None
    assert "refused-before" not in {each.kind for each in find_plan_doubts(compiled, understood(REQUEST), REGISTRY)}


@pytest.mark.parametrize(
    "plan",
    [
        # It avoids the tool that is said to be missing.
        'answer("There is no tool that sends mails")\n',
        # It does what nobody asked for, is wrong, or leaves out what was asked for.
        PLAN.replace("answer", 'send_money("Kim", 5)\nanswer'),
        PLAN.replace("kim@example.com", "eve@example.org"),
        'mails = get_unread_emails()\nsend_email(["kim@example.com"], "Trip", "Trip")\nanswer("The mail is sent")\n',
        'x = ask("To whom?")\nanswer(x)\n',
    ],
)
async def test_a_second_plan_with_any_finding_lets_the_refusal_stand(plan: str) -> None:
    error = await refused(planner(plan))
    assert "There is no tool that sends mails" in error.message


async def test_a_second_plan_must_call_the_tool_that_was_said_to_be_missing() -> None:
    request, reason = "How many unread mails do I have?", "There is no tool that reads mails."
    await refused(planner("answer(0)\n", reason=reason), request)
    plan = "mails = get_unread_emails()\nanswer(len(mails))\n"
    assert (await compiled_plan(planner(plan, reason=reason), request)).overridden is not None


@pytest.mark.parametrize(
    ("reason", "request_"),
    [
        ("There is no tool that makes phone calls.", "Call kim@example.com"),
        ("The request contradicts itself.", REQUEST),
        (NO_MAILS, "Send a mail to kim@example.com and call her"),
    ],
)
async def test_a_founded_refusal_is_not_asked_about_again(reason: str, request_: str) -> None:
    model = planner(PLAN, reason=reason)
    await refused(model, request_)
    assert len(model.requests) == 1


async def test_a_model_that_fails_at_the_second_plan_has_refused() -> None:
    replies = iter([f'cannot("{NO_MAILS}")\n', ModelError("models.failed", "gone")])
    await refused(ScriptedProvider(lambda request: next(replies)))


async def test_a_provider_without_grammars_is_not_asked_again() -> None:
    model = ScriptedProvider([f'cannot("{NO_MAILS}")\n```', f"{PLAN}```"], grammars=False)
    await refused(model)
    assert len(model.requests) == 1


async def test_a_cached_plan_keeps_the_doubt_and_a_forged_refusal_is_not_believed() -> None:
    cache: MutableMapping[str, str] = {}
    model = planner(PLAN)
    first = await compiled_plan(model, cache=cache)
    asked = len(model.requests)
    again = await compiled_plan(model, cache=cache)
    assert (again.cached, again.overridden, len(model.requests)) == (True, first.overridden, asked)
    ((key, text),) = cache.items()
    cache[key] = json.dumps(json.loads(text) | {"refusal": "The request contradicts itself."})
    assert not (await compiled_plan(model, cache=cache)).cached
    cache[key] = json.dumps(json.loads(text) | {"refusal": 5})
    assert not (await compiled_plan(model, cache=cache)).cached


async def test_who_watches_sees_the_plan_only_if_it_is_taken() -> None:
    seen: list[str] = []
    await Delta(planner(PLAN)).compile(understood(REQUEST), REGISTRY, watch=seen.append)
    assert seen[1].startswith("# the planner first refused (There is no tool that sends mails), and send_email can")
    assert seen[2:] == PLAN.splitlines()
    seen.clear()
    with pytest.raises(PlanError):
        await Delta(planner('answer("no")\n')).compile(understood(REQUEST), REGISTRY, watch=seen.append)
    assert seen == [f'cannot("{NO_MAILS}")']


async def test_a_larger_model_is_asked_after_a_refusal_that_did_not_stand() -> None:
    large = ScriptedProvider(PLAN.splitlines(keepends=True), name="large")
    compiled = await PlanCascade({"fast": planner(PLAN), "main": large}).compile(understood(REQUEST), REGISTRY)
    assert compiled.route is not None
    assert compiled.route.alias == "main"
    assert "the planner first refused" in compiled.route.attempts[0][1]
    assert compiled.overridden is None


# The agent ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plans", [0, 2])
async def test_the_journal_and_the_outcome_say_that_a_refusal_was_overridden_and_why(
    tmp_path: Path, plans: int
) -> None:
    note = tmp_path / "notes.txt"
    note.write_text("one\ntwo\n")
    model = planner(
        'lines = read_lines("notes.txt")\nanswer(len(lines))\n', reason="There is no tool that reads files."
    )
    journal = Journal(tmp_path / "journal.db")
    config = Config(base=tmp_path, planning=PlanningSettings(plans=plans))
    reader = ScriptedProvider([], name="reader")
    agent = Agent(config=config, privileged=model, quarantined=reader, cache={}, journal=journal)
    outcome = await agent.run("How many lines does the file notes.txt have?", deterministic=True)
    assert isinstance(outcome, Finished)
    assert outcome.answer == 2
    (doubt,) = [each for each in outcome.doubts if each.code == "refused-before"]
    assert "There is no tool that reads files" in doubt.text
    assert "read_lines" in doubt.text
    written = json.dumps([event.body for event in journal.events(outcome.run)])
    assert "the planner first refused" in written
    journal.close()
