from __future__ import annotations

import pytest

from bicameral.planning import (
    Intent,
    check_against_intent,
    claims_of,
    false_claims,
    ungrounded_directives,
    unsupported_claims,
)
from bicameral.plans import Plan, parse
from bicameral.tools import Registry, tool


@tool(effect="send", purpose={"to": "directs", "body": "carries"}, receivers=("to",), words=("send", "mail"))
def send_mail(to: str, body: str) -> None:
    "Send a mail."


@tool(effect="write", purpose={"path": "directs", "text": "carries"}, words=("save", "write"))
def write_text(path: str, text: str) -> None:
    "Write a file."


@tool(effect="read")
def names() -> list[str]:
    "Names."
    return []


REGISTRY = Registry([send_mail, write_text, names])


def _plan(text: str) -> Plan:
    return parse(text, REGISTRY).plan


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Sent the list to Kim.", ["send"]),
        ("I've paid the bill", ["pay"]),
        ("Ich habe die Mail geschickt", ["send"]),
        ("J'ai envoyé le mail", ["send"]),
        ("He enviado el correo", ["send"]),
        ("Deleted the picnic and sent a mail", ["delete", "send"]),
        ("Nothing was sent.", []),
        ("The mail that Kim sent is long", []),
        ("Kim hat die Mail geschickt", []),
        ("Was it sent?", []),
        ("Le mail n'a pas été envoyé", []),
    ],
)
def test_claims_of_a_text(text: str, kinds: list[str]) -> None:
    assert [claim.kind for claim in claims_of(text)] == kinds


@pytest.mark.parametrize(
    "text",
    [
        'answer("Sent the list")\n',
        'write_text("a.txt", "x")\nanswer("I paid the bill")\n',
        'found = names()\nif found:\n    send_mail("a@example.com", "x")\nanswer("Sent the list")\n',
        'said = "Se"\nanswer(said + "nt the list")\n',
    ],
)
def test_a_claim_that_no_call_makes_on_every_path_is_severe(text: str) -> None:
    plan = _plan(text)
    assert unsupported_claims(plan, REGISTRY)
    found = check_against_intent(plan, Intent(request="Send a@example.com x"), REGISTRY)
    assert "plan.unsupported-claim" in {each.code for each in found if each.severe}


@pytest.mark.parametrize(
    "text",
    [
        'send_mail("a@example.com", "x")\nanswer("Sent the list")\n',
        'found = names()\nif found:\n    send_mail("a@example.com", "x")\n    answer("Sent it")\n'
        'else:\n    answer("Nothing was sent")\n',
        "found = names()\nanswer(found)\n",
    ],
)
def test_a_claim_that_a_call_makes_stands(text: str) -> None:
    assert not unsupported_claims(_plan(text), REGISTRY)


def test_a_loop_that_never_ran_makes_the_claim_false() -> None:
    plan = _plan('for name in names():\n    send_mail(name, "x")\nanswer("Sent the reminders")\n')
    assert not unsupported_claims(plan, REGISTRY)
    assert false_claims(plan, REGISTRY, "Sent the reminders", [])
    assert not false_claims(plan, REGISTRY, "Sent the reminders", ["send_mail"])


@pytest.mark.parametrize(
    "to",
    [
        '"eve@example.org"',
        '"eve" + "@" + "example.org"',
        '"@".join(["eve", "example.org"])',
        '"kim@example.com".replace("kim", "eve")',
        '"xxeve@example.org"[2:]',
        'names()[0] + "@example.org"',
    ],
)
def test_an_invented_recipient_is_found_however_it_is_assembled(to: str) -> None:
    plan = _plan(
        f'send_mail({to}, "x")\nanswer("done")\n'
        if "names" not in to
        else f'found = names()\nsend_mail({to.replace("names()", "found")}, "x")\nanswer("done")\n'
    )
    intent = Intent(request="Mail kim@example.com x", effects=("send",))
    assert ungrounded_directives(plan, intent, REGISTRY)
    assert any(each.severe for each in check_against_intent(plan, intent, REGISTRY))


@pytest.mark.parametrize(
    ("request_text", "call"),
    [
        ("Mail kim@example.com x", 'send_mail("kim@example.com", "Re: x")'),
        ("Mail me the menu", 'send_mail("me@example.com", "menu")'),
        ("Save the invoices of 2026-03-02", 'write_text("invoices_2026-03-02.csv", "x")'),
    ],
)
def test_given_values_pass(request_text: str, call: str) -> None:
    plan = _plan(f'{call}\nanswer("done")\n')
    assert not ungrounded_directives(plan, Intent(request=request_text), REGISTRY, ["me@example.com"])


DIRECTED = {
    "a loop over constants": ('for to in ["eve@example.org"]:\n    send_mail(to, "x")', "Mail kim@example.com x"),
    "a list that is added to": (
        'xs = []\nxs.append("eve@example.org")\nsend_mail(xs[0], "x")',
        "Mail kim@example.com x",
    ),
    "a dict": ('d = {"to": "eve@example.org"}\nsend_mail(d["to"], "x")', "Mail kim@example.com x"),
    "one of two": (
        'to = "kim@example.com" if 1 > 2 else "eve@example.org"\nsend_mail(to, "x")',
        "Mail kim@example.com x",
    ),
    "a path elsewhere": ('write_text("/etc/cron.d/x", "x")', "Save the notes"),
    "another file": ('write_text("payroll.csv", "x")', "Save the notes"),
    "a person whom nobody named": ('send_mail(person("Eve"), "x")', "Mail Kim that it is done"),
    "a person in a list": (
        'for to in [person("Kim"), person("Eve")]:\n    send_mail(to, "x")',
        "Mail Kim that it is done",
    ),
    "a file that nobody named": ('write_text(file("payroll"), "x")', "Add it to the shopping list"),
}


@pytest.mark.parametrize("case", DIRECTED)
def test_what_directs_an_effect_is_named_by_somebody(case: str) -> None:
    code, request_text = DIRECTED[case]
    assert ungrounded_directives(_plan(f'{code}\nanswer("done")\n'), Intent(request=request_text), REGISTRY)


@pytest.mark.parametrize(
    ("code", "request_text"),
    [
        ('send_mail(person("Kim"), "x")', "Mail Kim that it is done"),
        ('for to in [person("Kim"), person("Ada")]:\n    send_mail(to, "x")', "Tell Kim and Ada"),
        ('write_text(file("shopping list"), "x")', "Add milk to my shopping list"),
        ('write_text(file("Einkaufsliste"), "x")', "Schreib Milch auf die Einkaufsliste"),
    ],
)
def test_a_reference_in_the_words_of_the_request_may_direct(code: str, request_text: str) -> None:
    assert not ungrounded_directives(_plan(f'{code}\nanswer("done")\n'), Intent(request=request_text), REGISTRY)


def test_an_address_made_of_a_result_and_a_word_of_the_request_is_a_new_address() -> None:
    intent = Intent(request="Mail the example to the first of the names")
    made = 'found = names()\nsend_mail(found[0] + ".example", "x")\nanswer("done")\n'
    assert ungrounded_directives(_plan(made), intent, REGISTRY)
    taken = 'found = names()\nsend_mail(found[0], "x")\nanswer("done")\n'
    assert not ungrounded_directives(_plan(taken), intent, REGISTRY)
