"""Echo's training data: accounts derived from plans, blocks written by hand, and packs that a training can read."""

from __future__ import annotations

import datetime as dt
import json
import random

import pytest

from benchmarks.intent import load_requests
from bicameral.planning import Intent, understand
from bicameral.planning._echo import echo_setup_messages
from bicameral.planning._echo_reply import invented_parts, parse_echo_reply
from training.delta.sample import standard_registry
from training.echo.blocks import CORPUS, fill_block, read_echo_blocks
from training.echo.build import packs, written_pair
from training.echo.check import against_evaluation, problems
from training.echo.derive import derive_account, question_kind
from training.echo.replies import Account, UnfitError, check_reply, is_decodable, render_reply

TODAY = dt.date(2026, 3, 11)
BLOCKS = [block for path in sorted(CORPUS.glob("*.txt")) for block in read_echo_blocks(path)]


def plain(request: str) -> Intent:
    return understand(request, standard_registry(), TODAY)


def derived(request: str, plan: str) -> Account:
    intent = plain(request)
    account = derive_account(plan, intent)
    check_reply(render_reply(account), intent)
    return account


def test_there_are_enough_blocks_by_hand_and_each_has_three_phrasings() -> None:
    assert len(BLOCKS) >= 150
    assert all(len(block.phrasings) >= 3 for block in BLOCKS)
    assert sum(any(line.startswith("? ") for line in block.account) for block in BLOCKS) >= 50


@pytest.mark.parametrize("name", ["en", "de", "fr", "es"])
def test_the_blocks_of_a_language_pass_the_check(name: str) -> None:
    assert [each for block in read_echo_blocks(CORPUS / f"{name}.txt") for each in problems(block)] == []


def test_filters_and_aggregates_of_a_plan_become_steps_and_constraints() -> None:
    account = derived(
        "What do the unpaid bills over 50 add up to? I mean the amount",
        'rows = read_csv(file("bills"))\n'
        'open = filter_rows(rows, column("paid"), "==", False)\n'
        'big = [row for row in open if row[column("amount")] > 50]\n'
        'answer(sum([row[column("amount")] for row in big]))\n',
    )
    assert account.steps == (
        {"action": "read", "file": "bills"},
        {"action": "keep", "what": "unpaid"},
        {"action": "keep", "column": "amount", "above": 50},
        {"action": "sum", "of": "amount"},
    )
    assert account.constraints == ("unpaid", "50")
    assert account.output == "answer"


def test_days_are_said_as_the_request_says_them_and_effects_are_the_output() -> None:
    account = derived(
        "Schick Anna die Mails von Ben seit letzten Montag",
        'mails = search_mail(sender="Ben", since=date("2026-03-09"))\n'
        'send_mail([person("Anna")], "Mails", "\\n".join([m.subject for m in mails]))\n'
        'answer("Gesendet")\n',
    )
    assert account.steps == (
        {"action": "search-mail", "from": "Ben", "since": "letzten Montag"},
        {"action": "send", "to": "Anna"},
    )
    assert account.output == "mail"


def test_a_change_is_a_step_even_if_what_it_is_done_to_has_no_name() -> None:
    account = derived(
        "Delete all the yoga sessions",
        'events = search_events("yoga")\nfor e in events:\n    delete_event(e.id)\nanswer(len(events))\n',
    )
    assert [step["action"] for step in account.steps][:2] == ["search-calendar", "cancel-event"]


def test_a_plan_that_asks_becomes_a_closed_question() -> None:
    plan = 'path = ask("Which file is the contract?")\ntext = read_text(path)\nanswer(extract(text, "notice", str))\n'
    account = derived("What is the notice period of the contract?", plan)
    assert account.questions == (("file", "contract"),)


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("To whom should I send it?", "recipient"),
        ("An wen soll die Mail gehen?", "recipient"),
        ("Depuis quelle date ?", "since"),
        ("¿Cuánto ha pagado?", "amount"),
        ("Wann findet das Grillen statt?", "day"),
        ("Which district do you mean?", "which"),
    ],
)
def test_questions_of_the_corpus_have_a_closed_kind(question: str, kind: str) -> None:
    assert question_kind(question) == kind


@pytest.mark.parametrize(
    "plan",
    [
        'rows = read_csv(file("bills"))\nanswer(filter_rows(rows, column("x"), "==", value("Mallory")))\n',
        'rows = read_csv(file("bills"))\nanswer([row for row in rows if row[column("amount")] > 99])\n',
    ],
)
def test_a_condition_that_the_request_does_not_say_has_no_account(plan: str) -> None:
    with pytest.raises(UnfitError):
        derived("Show me the bills", plan)


def test_packs_have_the_prompt_and_the_opening_of_echos_session() -> None:
    pairs = [written_pair(block, block.phrasings[0], 1) for block in BLOCKS[:30]]
    made = list(packs(pairs, random.Random(1)))
    assert sum(len(pack["pairs"]) for pack in made) == len(pairs)
    for pack in made:
        assert pack["opening"] == ""
        assert pack["system"] == echo_setup_messages(examples=False)[0].text
        for request, reply in pack["pairs"]:
            parsed = parse_echo_reply(reply)
            assert parsed is not None
            assert [*invented_parts(parsed, request)] == []
            assert is_decodable(reply)
            assert json.loads(reply)["steps"]


def test_the_same_seed_gives_the_same_pairs() -> None:
    for block in BLOCKS[::20]:
        assert written_pair(block, block.phrasings[0], 3) == written_pair(block, block.phrasings[0], 3)


def test_requests_of_the_evaluation_are_refused() -> None:
    for each in load_requests()[::10]:
        assert [*against_evaluation(each.text, Account(({"action": "do"},)))]


def test_a_filling_is_the_same_for_the_same_seed() -> None:
    block = next(block for block in BLOCKS if any("<" in each for each in block.phrasings))
    assert fill_block(block, block.phrasings[0], 1) == fill_block(block, block.phrasings[0], 1)
