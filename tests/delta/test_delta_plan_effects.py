"""What two plans have in common, and what one says: facts of texts, forms that a request asks for, sentences."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from bicameral.planning import (
    Intent,
    complete_intent,
    describe_effects,
    effects_of,
    text_facts,
    unserved_forms,
)
from bicameral.plans import Plan, parse
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    folder: Path = tmp_path_factory.mktemp("files")
    mail = {"folder": str(folder), "address": "me@example.com", "smtp": {"host": "127.0.0.1", "port": 9, "tls": "none"}}
    toolboxes = {"files": {}, "tables": {}, "mail": mail}
    return load_toolboxes(toolboxes, Surroundings(Folders(base=folder, read=(folder,), write=(folder,))))


def _intent(request: str, registry: Registry) -> Intent:
    given = Intent.model_validate({"request": request, "task": request, "steps": [request]})
    return complete_intent(given, registry, dt.date(2026, 3, 11))


def _plan(source: str, registry: Registry) -> Plan:
    return parse(source, registry).plan


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Friday is fine for me.", "I am free on Friday.", True),
        ("Open bills", "Bills that are open", True),
        ("Friday is fine.", "Friday is not fine.", False),
        ("Vendredi me va.", "Vendredi ne me va pas.", False),
        ("At 18:00", "At 19:00", False),
        ("Bis Freitag", "Bis Samstag", False),
        ("It is 5 EUR", "It is 6 EUR", False),
        ("Ask anna@example.com", "Ask ben@example.com", False),
        ("See notes/a.txt", "See notes/b.txt", False),
        ("Title “One”", "Title “Two”", False),
    ],
)
def test_texts_are_the_same_if_their_facts_are(one: str, other: str, same: bool) -> None:
    assert (text_facts(one) == text_facts(other)) is same


EACH = 'for r in read_csv("a.csv"):\n    send_mail(["a@example.com"], "Bill", r["name"])\nanswer("ok")\n'
JOINT = 'names = [r["name"] for r in read_csv("a.csv")]\nsend_mail(["a@example.com"], "Bill", "\\n".join(names))\n'


@pytest.mark.parametrize(
    ("request_text", "for_each"),
    [
        ("Send the bills of a.csv to a@example.com, one mail per bill", True),
        ("Send the bills of a.csv to a@example.com, a separate message for each bill", True),
        ("Für jede Rechnung in a.csv schick eine Nachricht an a@example.com", True),
        ("Pour chaque ligne de a.csv, envoie le nom à a@example.com", True),
        ("Envía a a@example.com un correo por factura de a.csv", True),
        ("Send the bills of a.csv to a@example.com in one mail", False),
        ("Envoie les noms de a.csv à a@example.com dans un seul message", False),
        ("Send a@example.com the total for each customer of a.csv", None),
        ('Send a@example.com the text "one mail per bill"', None),
    ],
)
def test_how_many_messages_a_request_asks_for(registry: Registry, request_text: str, for_each: bool | None) -> None:
    intent = _intent(request_text, registry)
    found = [
        any("message" in each for each in unserved_forms(_plan(plan, registry), intent, registry))
        for plan in (EACH, JOINT)
    ]
    assert found == {True: [False, True], False: [True, False], None: [False, False]}[for_each]


SUM, COUNT = 'answer(sum([r["x"] for r in read_csv("a.csv")]))\n', 'answer(len(read_csv("a.csv")))\n'
LOOP = 'total = 0\nfor r in read_csv("a.csv"):\n    total += r["x"]\nanswer(total)\n'
CELL = 'answer(read_csv("a.csv")[0]["total"])\n'


@pytest.mark.parametrize(
    ("request_text", "plan", "served"),
    [
        ("The sum of x in a.csv", SUM, True),
        ("The sum of x in a.csv", LOOP, True),
        ("The sum of x in a.csv", COUNT, False),
        ("The total of a.csv", CELL, True),
        ("Wie viele Zeilen hat a.csv?", COUNT, True),
        ("Wie viele Zeilen hat a.csv?", SUM, False),
        ("Quel est le nombre de lignes de a.csv ?", SUM, False),
        ("La suma de x en a.csv", COUNT, False),
        ("Show me a.csv", COUNT, True),
    ],
)
def test_which_calculation_a_request_asks_for(registry: Registry, request_text: str, plan: str, served: bool) -> None:
    assert (unserved_forms(_plan(plan, registry), _intent(request_text, registry), registry) == ()) is served


WRITE = 'rows = read_csv("a.csv")\nkept = filter_rows(rows, "x", "==", "{x}")\nwrite_csv("{to}", kept)\n'


def test_plans_with_other_names_of_variables_mean_the_same(registry: Registry) -> None:
    one = 'rows = read_csv("a.csv")\nwrite_text("b.txt", "\\n".join([f"{r.x}: {r.y}" for r in rows]))\n'
    other = one.replace("r.", "row.").replace("for r in", "for row in").replace(": ", " is ")
    assert effects_of(_plan(one, registry), registry).meaning == effects_of(_plan(other, registry), registry).meaning


@pytest.mark.parametrize(("x", "to"), [("2", "b.csv"), ("1", "c.csv")])
def test_plans_with_another_selection_or_target_mean_something_else(registry: Registry, x: str, to: str) -> None:
    one, other = (
        effects_of(_plan(WRITE.format(x=a, to=b), registry), registry).meaning for a, b in (("1", "b.csv"), (x, to))
    )
    assert one != other


def test_effects_are_told_in_sentences(registry: Registry) -> None:
    plan = _plan(WRITE.format(x="open", to="b.csv") + EACH, registry)
    assert describe_effects(plan, registry) == (
        'Write csv: path "b.csv"; rows "a.csv" where "x" == "open"',
        'Send mail: to "a@example.com"; subject "Bill"; body "name" of each, for each of "a.csv"',
    )


def test_a_plan_without_effects_is_told_by_its_answer(registry: Registry) -> None:
    assert describe_effects(_plan(COUNT, registry), registry) == ('Answer the number of "a.csv"',)
